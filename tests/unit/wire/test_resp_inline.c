/* RESP inline commands: a line of words instead of an array, where they are enabled. */
#include "wire/resp.h"
#include "support/engine/unit_limiter.h"

#include <stdlib.h>

static const struct resp_limits limits = {
    .args_max = 16, .bulk_max = 100, .request_max = 65536, .inline_commands = true};

static struct resp_request request;
static const char *complaint;

static int parse(struct weir_text input)
{
    char *copy = malloc(input.len > 0 ? input.len : 1);
    assert_non_null(copy);
    memcpy(copy, input.at, input.len);
    complaint = NULL;
    memset(&request, 0x55, sizeof request);
    int e = resp_parse((struct weir_text){copy, input.len}, &limits, &request, &complaint);
    free(copy); /* the words do not live there */
    return e;
}

/* The words with a bar behind each. */
static void assert_words(struct weir_text input, struct weir_text expected)
{
    char joined[300];
    size_t n = 0;
    assert_int_equal(parse(input), RESP_REQUEST);
    for (unsigned i = 0; i < request.argc; i++) {
        memcpy(joined + n, request.argv[i].at, request.argv[i].len);
        n += request.argv[i].len;
        joined[n++] = '|';
    }
    assert_int_equal(n, expected.len);
    assert_memory_equal(joined, expected.at, n);
    assert_int_equal(request.used, input.len);
}

static void assert_bad(struct weir_text input, const char *why)
{
    assert_int_equal(parse(input), RESP_BAD);
    assert_string_equal(complaint, why);
    assert_int_equal(request.argc, 0);
}

static void a_line_is_a_request_of_its_words(void **state)
{
    assert_words(TEXT("PING\r\n"), TEXT("PING|"));
    assert_words(TEXT("PING\n"), TEXT("PING|"));
    assert_words(TEXT("WEIR.CHECK api alice\r\n"), TEXT("WEIR.CHECK|api|alice|"));
    assert_words(TEXT("  a \t b\t\tc  \r\n"), TEXT("a|b|c|"));
    assert_words(TEXT("a\rb\n"), TEXT("a|b|"));
    assert_words(TEXT("a\\n b\\\n"), TEXT("a\\n|b\\|"));
    assert_words(TEXT("a\0b \xff\n"), TEXT("a\0b|\xff|"));
    assert_words(TEXT("POSTS HOST\n"), TEXT("POSTS|HOST|"));
    assert_words(TEXT("a POST Host:\n"), TEXT("a|POST|Host:|"));
}

static void a_line_of_blanks_is_passed_over(void **state)
{
    assert_words(TEXT("\r\n"), TEXT(""));
    assert_words(TEXT("\n"), TEXT(""));
    assert_words(TEXT("  \t \r\n"), TEXT(""));
    assert_words(TEXT("\r\r\n"), TEXT(""));
}

static void quotes_hold_a_word_together(void **state)
{
    assert_words(TEXT("a \"b c\" d\r\n"), TEXT("a|b c|d|"));
    assert_words(TEXT("a 'b c' d\r\n"), TEXT("a|b c|d|"));
    assert_words(TEXT("\"\" ''\r\n"), TEXT("||"));
    assert_words(TEXT("foo\"b ar\"\n"), TEXT("foob ar|"));
    assert_words(TEXT("foo'b ar'\n"), TEXT("foob ar|"));
    assert_words(TEXT("\"it's\" 'a \"b\"'\n"), TEXT("it's|a \"b\"|"));
}

static void escapes_are_undone_as_redis_does(void **state)
{
    assert_words(TEXT("\"\\n\\r\\t\\b\\a\"\n"), TEXT("\n\r\t\b\a|"));
    assert_words(TEXT("\"\\x00\\xfF\\x4a\\x4A\"\n"), TEXT("\0\xffJJ|"));
    assert_words(TEXT("\"\\x4\" \"\\xg0\" \"\\x0g\"\n"), TEXT("x4|xg0|x0g|"));
    assert_words(TEXT("\"\\\"\\\\\\q\\'\"\n"), TEXT("\"\\q'|"));
    assert_words(TEXT("'\\'\\n\\\\a'\n"), TEXT("'\\n\\\\a|"));
    assert_words(TEXT("\"\\0\\\0\"\n"), TEXT("0\0|"));
}

static void quotes_that_do_not_end_a_word_are_refused(void **state)
{
    static const struct weir_text lines[] = {
        TEXT("a \"b\n"),        TEXT("a 'b\r\n"),  TEXT("\"\n"),         TEXT("'\n"),
        TEXT("\"a\"b\n"),       TEXT("'a'b\n"),    TEXT("\"a\"\"b\"\n"), TEXT("'a\\'\n"),
        TEXT("\"a\\\"\r\n"),    TEXT("\"a\\\n"),   TEXT("'a\\\n"),       TEXT("\"\\x\n"),
        TEXT("\"a\\\nb\"\r\n"), /* the next line is no part of it */
        TEXT("it's\n"),         TEXT("'a\\\\'\n"), TEXT("\"\\x4\n"),
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_bad(lines[i], "Protocol error: unbalanced quotes in request");
    }
}

static void a_browser_is_sent_away(void **state)
{
    static const char http[] = "Protocol error: found an HTTP request, expected RESP";
    assert_bad(TEXT("POST / HTTP/1.1\r\n"), http);
    assert_bad(TEXT("post\n"), http);
    assert_bad(TEXT("Host: localhost:6380\r\n"), http);
    assert_bad(TEXT("  HOST:\n"), http);
    assert_bad(TEXT("\"Host:\"\n"), http);
}

static void a_line_waits_for_its_end(void **state)
{
    struct weir_text line = TEXT("ECHO \"a \\x41\" 'b'\r\n");
    for (size_t n = 0; n < line.len; n++) {
        assert_int_equal(parse((struct weir_text){line.at, n}), RESP_MORE);
    }
    assert_words(line, TEXT("ECHO|a A|b|"));
}

static void a_line_has_a_longest_length(void **state)
{
    static const char too_big[] = "Protocol error: too big inline request";
    char line[RESP_INLINE_MAX + 1];
    memset(line, ' ', sizeof line);
    assert_int_equal(parse((struct weir_text){line, RESP_INLINE_MAX - 1}), RESP_MORE);
    assert_bad((struct weir_text){line, RESP_INLINE_MAX}, too_big);
    line[RESP_INLINE_MAX] = '\n';
    assert_bad((struct weir_text){line, RESP_INLINE_MAX + 1}, too_big);
    line[RESP_INLINE_MAX - 1] = '\n';
    assert_int_equal(parse((struct weir_text){line, RESP_INLINE_MAX + 1}), RESP_REQUEST);
    assert_int_equal(request.used, RESP_INLINE_MAX);
}

static void words_have_the_limits_of_arguments(void **state)
{
    static const char too_big[] = "Protocol error: too big inline request";
    assert_words(TEXT("a b c d e f g h i j k l m n o p\n"),
                 TEXT("a|b|c|d|e|f|g|h|i|j|k|l|m|n|o|p|"));
    assert_bad(TEXT("a b c d e f g h i j k l m n o p q\n"), too_big);
    char line[102];
    memset(line, 'a', sizeof line);
    line[100] = '\n';
    assert_int_equal(parse((struct weir_text){line, 101}), RESP_REQUEST);
    assert_int_equal(request.argv[0].len, 100);
    line[100] = 'a';
    line[101] = '\n';
    assert_bad((struct weir_text){line, 102}, too_big);
}

static void lines_and_arrays_may_follow_each_other(void **state)
{
    struct weir_text input = TEXT("PING\r\n*1\r\n$4\r\nPING\r\n\r\nECHO x\n*0\r\n");
    static const size_t used[] = {6, 14, 2, 7, 4};
    static const unsigned argc[] = {1, 1, 0, 2, 0};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(parse(input), RESP_REQUEST);
        assert_int_equal(request.used, used[i]);
        assert_int_equal(request.argc, argc[i]);
        input = text_after(input, request.used);
    }
    assert_int_equal(input.len, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_is_a_request_of_its_words),
        cmocka_unit_test(a_line_of_blanks_is_passed_over),
        cmocka_unit_test(quotes_hold_a_word_together),
        cmocka_unit_test(escapes_are_undone_as_redis_does),
        cmocka_unit_test(quotes_that_do_not_end_a_word_are_refused),
        cmocka_unit_test(a_browser_is_sent_away),
        cmocka_unit_test(a_line_waits_for_its_end),
        cmocka_unit_test(a_line_has_a_longest_length),
        cmocka_unit_test(words_have_the_limits_of_arguments),
        cmocka_unit_test(lines_and_arrays_may_follow_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
