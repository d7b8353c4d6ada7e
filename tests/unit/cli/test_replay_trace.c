/* Lines of a trace: exact times, costs, texts and whole numbers, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/replay/replay_trace.h"

static struct replay_event event; /* large */

static void parse(const char *line, uint64_t unit_ns)
{
    struct weir_error error = {0, ""};
    if (replay_event_parse(&event, text_of(line), unit_ns, &error) != 0) {
        fail_msg("%s: %s", line, error.text);
    }
}

static void expect_time(const char *number, uint64_t unit_ns, uint64_t time_ns)
{
    char line[200];
    snprintf(line, sizeof line, "{\"x\":{\"time\":9},\"y\":\"\\\"time\\\":8,\",\"time\" : %s }",
             number);
    /* What looks like a time inside other values is not one; an object is no attribute, though. */
    struct weir_error error;
    assert_int_equal(replay_event_parse(&event, text_of(line), unit_ns, &error), WEIR_EINVAL);
    snprintf(line, sizeof line, "{\"y\":\"\\\"time\\\":8,}{\\\"\",\"n\":null,\"time\" : %s }",
             number);
    parse(line, unit_ns);
    assert_true(event.time_ns == time_ns);
    assert_int_equal(event.attributes_count, 1);
    replay_event_finish(&event);
}

static void times_are_exact_decimals_in_the_unit(void **state)
{
    expect_time("0", WEIR_SECOND, 0);
    expect_time("0.0", WEIR_SECOND, 0);
    expect_time("12.345", WEIR_SECOND, UINT64_C(12345000000));
    expect_time("1763230000.123456789", WEIR_SECOND, UINT64_C(1763230000123456789));
    expect_time("1763230000.100000000000", WEIR_SECOND, UINT64_C(1763230000100000000));
    expect_time("1763230000123.456789", WEIR_MILLISECOND, UINT64_C(1763230000123456789));
    expect_time("7.5", WEIR_MICROSECOND, 7500);
    expect_time("9223372036854775807", 1, INT64_MAX);
    expect_time("\"12.345\"", WEIR_SECOND, UINT64_C(12345000000));
}

static void a_cost_may_be_said(void **state)
{
    parse("{\"time\":1}", 1);
    assert_int_equal(event.cost, 0);
    assert_int_equal(event.attributes_count, 0);
    replay_event_finish(&event);
    parse("{\"cost\":9223372036854775807,\"time\":1}", 1);
    assert_true(event.cost == INT64_MAX);
    replay_event_finish(&event);
}

static const struct weir_rules_attribute *find(const char *name)
{
    for (size_t i = 0; i < event.attributes_count; i++) {
        if (strcmp(event.attributes[i].name, name) == 0) {
            assert_int_equal(event.attributes[i].name_len, strlen(name));
            return &event.attributes[i];
        }
    }
    fail_msg("no attribute %s", name);
    return NULL;
}

static void expect_attribute(const char *name, struct weir_text value)
{
    const struct weir_rules_attribute *a = find(name);
    assert_int_equal(a->value_len, value.len);
    assert_memory_equal(a->value, value.at, value.len);
}

static void attributes_are_texts_and_whole_numbers(void **state)
{
    parse("  {\"time\":1, \"path\":\"/a\\u0000b\\/\\u00e4\", \"tokens\":-12, \"user\":\"\", "
          "\"cost\":3, \"no\":null}\r",
          1);
    expect_attribute("path", TEXT("/a\0b/\xc3\xa4"));
    expect_attribute("tokens", TEXT("-12"));
    expect_attribute("user", TEXT(""));
    expect_attribute("cost", TEXT("3"));
    assert_int_equal(event.attributes_count, 4);
    replay_event_finish(&event);
}

static void expect_bad(const char *line, const char *expected)
{
    struct weir_error error = {0, ""};
    assert_int_equal(replay_event_parse(&event, text_of(line), WEIR_SECOND, &error), WEIR_EINVAL);
    assert_string_equal(error.text, expected);
    assert_null(event.object);
}

#define BAD_TIME(number)                                                                           \
    "found a \"time\" of '" number "', expected a number from 0 up such as 12 or 12.345, in s "    \
    "and whole nanoseconds"

static void a_bad_time_says_what_was_found(void **state)
{
    expect_bad("{}", "found no \"time\", expected one");
    expect_bad("{\"time\":-1}", BAD_TIME("-1"));
    expect_bad("{\"time\":1e9}", BAD_TIME("1e9"));
    expect_bad("{\"time\":true}", BAD_TIME("true"));
    expect_bad("{\"time\":null}", BAD_TIME("null"));
    expect_bad("{\"time\":[1,2]}", BAD_TIME("[1,2]"));
    expect_bad("{\"time\":\"1h30\"}", BAD_TIME("1h30"));
    expect_bad("{\"time\":\"\"}", BAD_TIME(""));
    expect_bad("{\"time\":\"1.2.3\"}", BAD_TIME("1.2.3"));
    expect_bad("{\"time\":0.0000000001}", BAD_TIME("0.0000000001"));
    expect_bad("{\"time\":9223372036.854775808}", BAD_TIME("9223372036.854775808"));
    expect_bad("{\"time\":1000000000000}", BAD_TIME("1000000000000"));
    expect_bad("{\"t\\u0069me\":1}", BAD_TIME(""));
}

static void a_bad_cost_says_what_was_found(void **state)
{
    expect_bad("{\"time\":1,\"cost\":0}",
               "found a \"cost\" of '0', expected a whole number from 1 up");
    expect_bad("{\"time\":1,\"cost\": 1.5 }",
               "found a \"cost\" of '1.5', expected a whole number from 1 up");
    expect_bad("{\"cost\":\"x\",\"time\":1}",
               "found a \"cost\" of '\"x\"', expected a whole number from 1 up");
}

static void a_bad_attribute_says_what_was_found(void **state)
{
    expect_bad("{\"time\":1,\"flag\":true}",
               "found 'true' as 'flag', expected a text or a whole number");
    expect_bad("{\"time\":1,\"n\":1.5}", "found '1.5' as 'n', expected a text or a whole number");
    expect_bad("{\"time\":1,\"a\\u001bb\":[]}",
               "found '' as 'a\\x1bb', expected a text or a whole number");
}

static void what_is_no_json_object_is_refused(void **state)
{
    static const char *const lines[] = {"x",
                                        "{",
                                        "{}}",
                                        "{\"time\":1,}",
                                        "{\"time\":1",
                                        "{'time':1}",
                                        "\xff",
                                        "{\"time\":1}{}",
                                        "{\"time\":1,\"time\":1}",
                                        "{\"time\":01}",
                                        "{\"time\":1,\"n\":99999999999999999999}"};
    struct weir_error error;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        assert_int_equal(replay_event_parse(&event, text_of(lines[i]), 1, &error), WEIR_EINVAL);
        assert_memory_equal(error.text, "found no JSON object: ", 22);
        assert_non_null(strstr(error.text, "; expected one"));
    }
    expect_bad("[1]", "found a JSON value that is no object, expected an object");
}

static void there_may_be_256_attributes(void **state)
{
    char line[8000] = "{\"time\":1";
    size_t n = strlen(line);
    struct weir_error error;
    for (int i = 0; i < WEIR_RULES_ATTRIBUTES_MAX; i++) {
        n += (size_t)snprintf(line + n, sizeof line - n, ",\"a%d\":%d", i, i);
    }
    strcpy(line + n, "}");
    parse(line, 1);
    assert_int_equal(event.attributes_count, WEIR_RULES_ATTRIBUTES_MAX);
    expect_attribute("a255", TEXT("255"));
    replay_event_finish(&event);
    strcpy(line + n, ",\"b\":\"\"}");
    assert_int_equal(replay_event_parse(&event, text_of(line), 1, &error), WEIR_EINVAL);
    assert_string_equal(error.text, "found more than 256 attributes, expected fewer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_exact_decimals_in_the_unit),
        cmocka_unit_test(a_cost_may_be_said),
        cmocka_unit_test(attributes_are_texts_and_whole_numbers),
        cmocka_unit_test(a_bad_time_says_what_was_found),
        cmocka_unit_test(a_bad_cost_says_what_was_found),
        cmocka_unit_test(a_bad_attribute_says_what_was_found),
        cmocka_unit_test(what_is_no_json_object_is_refused),
        cmocka_unit_test(there_may_be_256_attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
