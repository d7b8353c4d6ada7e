/* The reader of command streams: lines out of pieces of any size, and the words on them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/replay/replay_reader.h"

/* ---- lines ---- */

static void expect_line(struct replay_reader *r, struct weir_text *rest, bool end,
                        const char *expected)
{
    struct weir_text line;
    size_t used;
    assert_int_equal(replay_reader_next(r, *rest, end, &used, &line), REPLAY_LINE);
    assert_int_equal(line.len, strlen(expected));
    assert_memory_equal(line.at, expected, line.len);
    *rest = text_after(*rest, used);
}

static void expect_more(struct replay_reader *r, struct weir_text rest, bool end)
{
    struct weir_text line;
    size_t used = 1;
    assert_int_equal(replay_reader_next(r, rest, end, &used, &line), REPLAY_MORE);
    assert_int_equal(used, 0);
}

static void lines_end_with_lf_or_crlf_or_the_input(void **state)
{
    struct replay_reader r = {0};
    struct weir_text rest = TEXT("3\n10\r\n\n\r\nx\ry\nlast\r");
    expect_line(&r, &rest, false, "3");
    expect_line(&r, &rest, false, "10");
    expect_line(&r, &rest, false, "");
    expect_line(&r, &rest, false, "");
    expect_line(&r, &rest, false, "x\ry");
    expect_more(&r, rest, false);
    expect_line(&r, &rest, true, "last");
    expect_more(&r, rest, true);
    assert_int_equal(r.line, 6);
}

static void an_empty_input_has_no_line(void **state)
{
    struct replay_reader r = {0};
    expect_more(&r, TEXT(""), false);
    expect_more(&r, TEXT(""), true);
    expect_more(&r, (struct weir_text){NULL, 0}, true);
    assert_int_equal(r.line, 0);
}

/* A line of `len` bytes and an end, given in pieces: what the reader says of it. */
static int outcome_of(size_t len, const char *end, size_t piece)
{
    size_t all = len + strlen(end);
    char *bytes = malloc(all);
    memset(bytes, 'a', len);
    memcpy(bytes + len, end, strlen(end));
    struct replay_reader r = {0};
    struct weir_text line;
    size_t begin = 0;
    size_t have = 0;
    int outcome;
    do {
        size_t used;
        have = have + piece < all ? have + piece : all;
        outcome = replay_reader_next(&r, (struct weir_text){bytes + begin, have - begin},
                                     have == all, &used, &line);
        begin += used;
        assert_true(have - begin <= REPLAY_LINE_MAX + 2 + piece);
    } while (outcome == REPLAY_MORE && have < all);
    assert_int_equal(begin, all);
    assert_int_equal(r.line, 1);
    free(bytes);
    return outcome;
}

static void a_line_may_have_64_kib_and_no_more(void **state)
{
    static const char *const ends[] = {"\n", "\r\n", "", "\r"};
    static const size_t pieces[] = {1, 4096, 65535, 65536, 65537, 1 << 20};
    for (size_t e = 0; e < 4; e++) {
        for (size_t p = 0; p < 6; p++) {
            assert_int_equal(outcome_of(REPLAY_LINE_MAX, ends[e], pieces[p]), REPLAY_LINE);
            assert_int_equal(outcome_of(REPLAY_LINE_MAX + 1, ends[e], pieces[p]), REPLAY_TOO_LONG);
            assert_int_equal(outcome_of(REPLAY_LINE_MAX + 2, ends[e], pieces[p]), REPLAY_TOO_LONG);
            assert_int_equal(outcome_of(3 * REPLAY_LINE_MAX, ends[e], pieces[p]), REPLAY_TOO_LONG);
        }
    }
}

static void the_line_after_one_that_is_too_long_is_read(void **state)
{
    struct replay_reader r = {0};
    static char bytes[REPLAY_LINE_MAX + 10];
    struct weir_text line;
    size_t used;
    memset(bytes, 'x', sizeof bytes);
    struct weir_text rest = {bytes, sizeof bytes};
    assert_int_equal(replay_reader_next(&r, rest, false, &used, &line), REPLAY_MORE);
    assert_int_equal(used, sizeof bytes);
    rest = TEXT("y\nz\n");
    assert_int_equal(replay_reader_next(&r, rest, false, &used, &line), REPLAY_TOO_LONG);
    assert_int_equal(used, 2);
    rest = text_after(rest, used);
    expect_line(&r, &rest, true, "z");
    assert_int_equal(r.line, 2);
}

/* ---- words ---- */

static struct replay_request parse(const char *line)
{
    struct replay_request q;
    struct weir_error error;
    assert_int_equal(replay_request_parse(text_of(line), &q, &error), 0);
    return q;
}

static void words_stand_between_blanks_and_tabs(void **state)
{
    static const char *const lines[] = {"request alice 10", "\trequest\t alice \t10\t ",
                                        "request alice 010"};
    for (int i = 0; i < 3; i++) {
        struct replay_request q = parse(lines[i]);
        assert_true(text_is(q.client, "alice"));
        assert_int_equal(q.time, 10);
        assert_int_equal(q.cost, 1);
    }
}

static void a_client_is_any_bytes_but_blanks(void **state)
{
    struct replay_request q;
    struct weir_error error;
    struct weir_text line = TEXT("request \0\xff\r\"\\ 1");
    assert_int_equal(replay_request_parse(line, &q, &error), 0);
    assert_true(text_equal(q.client, TEXT("\0\xff\r\"\\")));
}

static void times_are_all_64_bit_integers(void **state)
{
    assert_int_equal(parse("request a 9223372036854775807").time, INT64_MAX);
    assert_int_equal(parse("request a -9223372036854775808").time, INT64_MIN);
    assert_int_equal(parse("request a -0").time, 0);
    assert_int_equal(parse("request a 00000000000000000000000000000007").time, 7);
    assert_int_equal(parse("request a 1 18446744073709551615").cost, UINT64_MAX);
}

static void expect_bad(struct weir_text line, const char *expected)
{
    struct replay_request q;
    struct weir_error error = {0, ""};
    assert_int_equal(replay_request_parse(line, &q, &error), WEIR_EINVAL);
    assert_string_equal(error.text, expected);
}

#define BAD(line, expected) expect_bad(TEXT(line), expected)

static void a_bad_request_says_what_was_found_and_expected(void **state)
{
    BAD("", "found the end of the line, expected 'request CLIENT TIMESTAMP'");
    BAD(" \t", "found the end of the line, expected 'request CLIENT TIMESTAMP'");
    BAD("reqest a 1", "found 'reqest', expected 'request CLIENT TIMESTAMP'");
    BAD("Request a 1", "found 'Request', expected 'request CLIENT TIMESTAMP'");
    BAD("requests a 1", "found 'requests', expected 'request CLIENT TIMESTAMP'");
    BAD("request", "found the end of the line, expected a client");
    BAD("request a", "found the end of the line, expected a timestamp, a 64-bit integer");
    BAD("request a b", "found 'b', expected a timestamp, a 64-bit integer");
    BAD("request a 1.5", "found '1.5', expected a timestamp, a 64-bit integer");
    BAD("request a -", "found '-', expected a timestamp, a 64-bit integer");
    BAD("request a +1", "found '+1', expected a timestamp, a 64-bit integer");
    BAD("request a 0x1", "found '0x1', expected a timestamp, a 64-bit integer");
    BAD("request a 1,", "found '1,', expected a timestamp, a 64-bit integer");
    BAD("request a 9223372036854775808",
        "found '9223372036854775808', expected a timestamp, a 64-bit integer");
    BAD("request a -9223372036854775809",
        "found '-9223372036854775809', expected a timestamp, a 64-bit integer");
    BAD("request a 100000000000000000000",
        "found '100000000000000000000', expected a timestamp, a 64-bit integer");
    BAD("request a 1 0", "found '0', expected a cost, a whole number from 1 up");
    BAD("request a 1 -1", "found '-1', expected a cost, a whole number from 1 up");
    BAD("request a 1 18446744073709551616",
        "found '18446744073709551616', expected a cost, a whole number from 1 up");
    BAD("request a 1 1 1", "found '1', expected the end of the line");
}

static void what_was_found_cannot_play_with_the_terminal(void **state)
{
    BAD("\x1b[31m\0 a 1", "found '\\x1b[31m\\x00', expected 'request CLIENT TIMESTAMP'");
    char wild[60];
    memset(wild, 0xff, sizeof wild);
    struct replay_request q;
    struct weir_error error;
    assert_int_equal(replay_request_parse((struct weir_text){wild, sizeof wild}, &q, &error),
                     WEIR_EINVAL);
    assert_non_null(strstr(error.text, "\\xff'..., expected 'request CLIENT TIMESTAMP'"));
}

static void a_client_has_at_most_4096_bytes(void **state)
{
    char line[5000];
    struct replay_request q;
    struct weir_error error;
    int n = snprintf(line, sizeof line, "request %0*d 7", WEIR_KEY_MAX, 0);
    assert_int_equal(replay_request_parse((struct weir_text){line, n}, &q, &error), 0);
    assert_int_equal(q.client.len, WEIR_KEY_MAX);
    snprintf(line, sizeof line, "request %0*d 7", WEIR_KEY_MAX + 1, 0);
    expect_bad(text_of(line), "found a client of 4097 bytes, expected at most 4096");
}

static void expect_bad_number(const char *line, const char *expected)
{
    int64_t n;
    struct weir_error error = {0, ""};
    assert_int_equal(replay_number_parse(text_of(line), "the window", &n, &error), WEIR_EINVAL);
    assert_string_equal(error.text, expected);
}

static void numbers_of_the_head_are_whole_and_alone(void **state)
{
    int64_t n;
    assert_int_equal(replay_number_parse(TEXT(" 12\t"), "n", &n, NULL), 0);
    assert_int_equal(n, 12);
    assert_int_equal(replay_number_parse(TEXT("9223372036854775807"), "n", &n, NULL), 0);
    assert_int_equal(n, INT64_MAX);
    expect_bad_number("",
                      "found the end of the line, expected the window, a whole number below 2^63");
    expect_bad_number("-1", "found '-1', expected the window, a whole number below 2^63");
    expect_bad_number("ten", "found 'ten', expected the window, a whole number below 2^63");
    expect_bad_number(
        "9223372036854775808",
        "found '9223372036854775808', expected the window, a whole number below 2^63");
    expect_bad_number("1 2", "found '2', expected nothing after the window");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_end_with_lf_or_crlf_or_the_input),
        cmocka_unit_test(an_empty_input_has_no_line),
        cmocka_unit_test(a_line_may_have_64_kib_and_no_more),
        cmocka_unit_test(the_line_after_one_that_is_too_long_is_read),
        cmocka_unit_test(words_stand_between_blanks_and_tabs),
        cmocka_unit_test(a_client_is_any_bytes_but_blanks),
        cmocka_unit_test(times_are_all_64_bit_integers),
        cmocka_unit_test(a_bad_request_says_what_was_found_and_expected),
        cmocka_unit_test(what_was_found_cannot_play_with_the_terminal),
        cmocka_unit_test(a_client_has_at_most_4096_bytes),
        cmocka_unit_test(numbers_of_the_head_are_whole_and_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
