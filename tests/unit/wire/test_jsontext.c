/* JSON: what is and what is not, where a flaw is, and the parts of a text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "wire/jsontext.h"

static bool is_json(const char *text)
{
    struct weir_text t = text_of(text);
    struct jsontext_flaw flaw;
    return jsontext_check(&t, 1000, &flaw);
}

static void what_the_grammar_allows_is_json(void **state)
{
    static const char *const good[] = {"{}",
                                       "[]",
                                       " [ ] ",
                                       "1",
                                       "-0",
                                       "0.5",
                                       "1e9",
                                       "1E+9",
                                       "-1.5e-3",
                                       "true",
                                       "false",
                                       "null",
                                       "\"\"",
                                       "\"a\\\"b\\\\\\/\\b\\f\\n\\r\\t\\u0000\\uD83D\\ude00\"",
                                       "\"\xc3\xa9\xf0\x9f\x98\x80\"",
                                       "{\"a\":1,\"b\":[{},[],\"\"],\"\":null}",
                                       "\t{\r\n\"a\" : [ 1 , 2 ] }\n",
                                       "\"a text of more than eight plain bytes\""};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        if (!is_json(good[i])) {
            fail_msg("refused: %s", good[i]);
        }
    }
}

static void a_flaw_is_told_with_its_place(void **state)
{
    static const struct {
        const char *text;
        unsigned line, column;
        const char *words;
    } rows[] = {
        {"", 1, 1, "expected a value"},
        {"{\"a\":}", 1, 6, "expected a value"},
        {"[1,]", 1, 4, "expected a value"},
        {"[1 2]", 1, 4, "expected ',' or ']'"},
        {"{\"a\":1\n \"b\":2}", 2, 2, "expected ',' or '}'"},
        {"{a:1}", 1, 2, "expected the name of a member"},
        {"{\"a\" 1}", 1, 6, "expected ':'"},
        {"[}", 1, 2, "expected a value"},
        {"{\"a\":[1}", 1, 8, "expected ',' or ']'"},
        {"[", 1, 2, "expected a value"},
        {"{}x", 1, 3, "expected the end of the text"},
        {"tru", 1, 1, "expected a value"},
        {"+1", 1, 1, "expected a value"},
        {"01", 1, 2, "expected the end of the text"},
        {"1.", 1, 3, "expected a digit"},
        {"1e", 1, 3, "expected a digit"},
        {"\"abc", 1, 5, "expected the end of a string"},
        {"\"12345678\n\"", 1, 10, "found a control character in a string, expected an escape"},
        {"\"\\x\"", 1, 2, "found an escape that is not valid"},
        {"\"\\u12g4\"", 1, 2, "found an escape that is not valid"},
        {"\"\\ud800\"", 1, 2, "found an escape that is not valid"},
        {"\"\\ud800\\u0041\"", 1, 2, "found an escape that is not valid"},
        {"\"\\udc00\"", 1, 2, "found an escape that is not valid"},
        {"\"\xff\"", 1, 2, "found bytes that are not UTF-8"},
        {"\"1234567\xed\xa0\x80\"", 1, 9, "found bytes that are not UTF-8"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct weir_text t = text_of(rows[i].text);
        struct jsontext_flaw flaw = {"none", 0, 0};
        bool good = jsontext_check(&t, 1000, &flaw);
        if (good || flaw.line != rows[i].line || flaw.column != rows[i].column ||
            strcmp(flaw.words, rows[i].words) != 0) {
            fail_msg("%s: found %u:%u %s", rows[i].text, flaw.line, flaw.column, flaw.words);
        }
    }
}

static void values_and_names_are_counted(void **state)
{
    struct jsontext_flaw flaw;
    for (size_t most = 0; most < 8; most++) {
        struct weir_text t = TEXT("{\"a\":[1,2],\"b\":\"[1,2,3]\"}"); /* 3 + 2 + 2 */
        assert_int_equal(jsontext_check(&t, most, &flaw), most >= 7);
    }
}

static void nesting_has_a_bound(void **state)
{
    char text[2 * JSONTEXT_DEPTH_MAX + 3];
    memset(text, '[', JSONTEXT_DEPTH_MAX);
    memset(text + JSONTEXT_DEPTH_MAX, ']', JSONTEXT_DEPTH_MAX);
    text[2 * JSONTEXT_DEPTH_MAX] = 0;
    assert_true(is_json(text));
    memset(text, '[', JSONTEXT_DEPTH_MAX + 1);
    memset(text + JSONTEXT_DEPTH_MAX + 1, ']', JSONTEXT_DEPTH_MAX + 1);
    text[2 * JSONTEXT_DEPTH_MAX + 2] = 0;
    assert_false(is_json(text));
}

static void a_text_is_taken_apart(void **state)
{
    static const char *const expected[][2] = {{"\"a\"", "1"},
                                              {"\"b\\\"\"", "[ {\"x\":[]} , \"]\" ]"},
                                              {"\"c\"", "{}"},
                                              {"\"d\"", "null"}};
    struct weir_text t =
        TEXT("  { \"a\" : 1 ,\"b\\\"\":[ {\"x\":[]} , \"]\" ],\"c\":{},\"d\":null } ");
    struct jsontext_flaw flaw;
    struct weir_text name;
    struct weir_text value;
    struct weir_text list = {NULL, 0};
    assert_true(jsontext_check(&t, 100, &flaw));
    assert_int_equal(t.at[t.len - 1], '}');
    for (size_t i = 0; i < 4; i++) {
        assert_true(jsontext_next_member(&t, &name, &value));
        assert_true(text_is(name, expected[i][0]) && text_is(value, expected[i][1]));
        list = i == 1 ? value : list;
    }
    assert_false(jsontext_next_member(&t, &name, &value));
    assert_false(jsontext_next_member(&t, &name, &value));
    assert_true(jsontext_next_item(&list, &value) && text_is(value, "{\"x\":[]}"));
    assert_true(jsontext_next_item(&list, &value) && text_is(value, "\"]\""));
    assert_false(jsontext_next_item(&list, &value));
}

static void escapes_are_decoded(void **state)
{
    char room[100];
    struct weir_text plain = TEXT("\"caf\xc3\xa9\"");
    assert_ptr_equal(jsontext_bytes(plain, NULL).at, plain.at + 1);
    struct weir_text got = jsontext_bytes(
        TEXT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\u00e9\\u20ac\\ud83d\\ude00x\""), room);
    static const char expected[] = "\"\\/\b\f\n\r\t\0\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80x";
    assert_int_equal(got.len, sizeof expected - 1);
    assert_memory_equal(got.at, expected, got.len);
}

/* Every pair and triple of these, so that each way through a string meets each other one. */
static void pieces_of_strings_may_follow_each_other_in_any_order(void **state)
{
    static const struct {
        const char *text, *bytes;
    } pieces[] = {{"a", "a"},
                  {"\\n", "\n"},
                  {"\\\\", "\\"},
                  {"\\\"", "\""},
                  {"\\u0041", "A"},
                  {"\\ufFfD", "\xef\xbf\xbd"}, /* the highest digit, at both ends */
                  {"\\ud83d\\ude00", "\xf0\x9f\x98\x80"},
                  {"\xc3\xa9", "\xc3\xa9"},
                  {"\xe4\xb8\xad", "\xe4\xb8\xad"},
                  {"12345678", "12345678"},
                  {"", ""}};
    const size_t n = sizeof pieces / sizeof pieces[0];
    for (size_t i = 0; i < n * n * n; i++) {
        size_t which[] = {i % n, i / n % n, i / n / n};
        char text[80];
        char expected[40] = "";
        char room[80];
        char *to = stpcpy(text, "[\"");
        char *byte = expected;
        for (size_t k = 0; k < 3; k++) {
            to = stpcpy(to, pieces[which[k]].text);
            byte = stpcpy(byte, pieces[which[k]].bytes);
        }
        (void)stpcpy(to, "\",1]");
        struct weir_text t = text_of(text);
        struct weir_text item;
        struct jsontext_flaw flaw;
        assert_true(jsontext_check(&t, 10, &flaw));
        assert_true(jsontext_next_item(&t, &item));
        struct weir_text got = jsontext_bytes(item, room);
        if (!text_is(got, expected)) {
            fail_msg("%s: found %.*s", text, TEXT_ARGS(got));
        }
        assert_true(jsontext_next_item(&t, &item) && text_is(item, "1"));
        *(to - (to > text + 2 ? 1 : 0)) = '\x1f'; /* in place of its last byte, or of the quote */
        assert_false(is_json(text));
    }
}

static void whole_numbers_are_read(void **state)
{
    static const struct {
        const char *text;
        bool whole;
        uint64_t number;
    } rows[] = {{"0", true, 0},
                {"9223372036854775807", true, INT64_MAX},
                {"9223372036854775808", false, 0},
                {"99999999999999999999", false, 0},
                {"1.0", true, 1},
                {"1e3", true, 1000},
                {"1.5", false, 0},
                {"1e300", false, 0},
                {"-1", false, 0},
                {"1e-1", false, 0},
                {"true", false, 0},
                {"\"1\"", false, 0},
                {".0", false, 0},
                {"e1", false, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t number = 0;
        if (jsontext_whole(text_of(rows[i].text), &number) != rows[i].whole ||
            (rows[i].whole && number != rows[i].number)) {
            fail_msg("%s", rows[i].text);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_grammar_allows_is_json),
        cmocka_unit_test(a_flaw_is_told_with_its_place),
        cmocka_unit_test(values_and_names_are_counted),
        cmocka_unit_test(nesting_has_a_bound),
        cmocka_unit_test(a_text_is_taken_apart),
        cmocka_unit_test(escapes_are_decoded),
        cmocka_unit_test(pieces_of_strings_may_follow_each_other_in_any_order),
        cmocka_unit_test(whole_numbers_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
