/* Traffic from a file: what is read, and what is said about what cannot be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/cli/simulate_plan.h"

static char folder[64];
static char path[96];

static int make_folder(void **state)
{
    const char *base = getenv("TMPDIR");
    (void)snprintf(folder, sizeof folder, "%.40s/weir-trace-XXXXXX", base != NULL ? base : "/tmp");
    (void)snprintf(path, sizeof path, "%s/t.trace", mkdtemp(folder));
    return 0;
}

static int remove_folder(void **state)
{
    (void)unlink(path);
    return rmdir(folder);
}

static void write_file(const char *text, size_t length)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, length, f), length);
    assert_int_equal(fclose(f), 0);
}

static struct sim_plan trace_plan(uint64_t unit_ns)
{
    struct sim_plan plan = default_plan();
    plan.trace = path;
    plan.unit_ns = unit_ns;
    plan.rate = (struct rate){10, 10 * WEIR_SECOND};
    return plan;
}

static struct sim_traffic read_text(const char *text, uint64_t unit_ns)
{
    struct sim_plan plan = trace_plan(unit_ns);
    struct sim_traffic t;
    struct weir_error error = {0};
    write_file(text, strlen(text));
    if (sim_trace_read(&plan, &t, &error) != 0) {
        fail_msg("%s", error.text);
    }
    sim_trace_place(&t, plan.rate.period_ns);
    return t;
}

/* What is said behind the name of the file. */
static void complaint_about(const char *text, char *complaint)
{
    struct sim_plan plan = trace_plan(WEIR_SECOND);
    struct sim_traffic t;
    struct weir_error error = {0};
    write_file(text, strlen(text));
    assert_int_equal(sim_trace_read(&plan, &t, &error), WEIR_EINVAL);
    assert_memory_equal(error.text, path, strlen(path));
    (void)snprintf(complaint, 256, "%s", error.text + strlen(path));
    assert_null(t.requests);
}

static void expect_complaint(const char *text, const char *complaint)
{
    char said[256];
    complaint_about(text, said);
    assert_string_equal(said, complaint);
}

static void expect_request(const struct sim_traffic *t, size_t i, uint64_t time_ns, uint32_t client,
                           uint64_t cost)
{
    assert_true(t->requests[i].time_ns == time_ns);
    assert_int_equal(t->requests[i].client, client);
    assert_int_equal(t->requests[i].cost, cost);
}

static void lines_are_requests_in_the_order_of_their_times(void **state)
{
    struct sim_traffic t = read_text(
        "request bob 3\nrequest alice 3 7\nrequest bob 12\nrequest alice 5\n", WEIR_SECOND);
    assert_int_equal(t.count, 4);
    assert_int_equal(t.clients, 2);
    assert_true(t.duration_ns == 20 * WEIR_SECOND); /* whole windows */
    assert_true(t.costs);
    assert_false(t.come_back);
    expect_request(&t, 0, 3 * WEIR_SECOND, 1, 1);
    expect_request(&t, 1, 3 * WEIR_SECOND, 0, 7);
    expect_request(&t, 2, 5 * WEIR_SECOND, 0, 1);
    expect_request(&t, 3, 12 * WEIR_SECOND, 1, 1);
    assert_true(text_is(t.names[0], "alice") && text_is(t.names[1], "bob"));
    sim_traffic_finish(&t);
}

static void the_stream_of_weir_replay_is_a_trace(void **state)
{
    struct sim_traffic t = read_text("3\r\n10\r\n2\r\nrequest a 0\r\n\r\nrequest a 9", WEIR_SECOND);
    assert_int_equal(t.count, 2);
    assert_string_equal(t.about, "requests from a file");
    assert_string_equal(t.name, "t.trace");
    assert_false(t.costs);
    expect_request(&t, 1, 9 * WEIR_SECOND, 0, 1);
    sim_traffic_finish(&t);
}

static void the_first_comment_is_the_title(void **state)
{
    struct sim_traffic t = read_text("#  a quiet night \r\n# more\nrequest a 1\n#\n", WEIR_SECOND);
    assert_string_equal(t.about, "a quiet night");
    assert_int_equal(t.count, 1);
    sim_traffic_finish(&t);
    t = read_text("# a\033[2Jb\xff\xc2\x9b \xc3\xa4\nrequest a 1\n", WEIR_SECOND);
    assert_string_equal(t.about, "a?[2Jb??"
                                 "? \xc3\xa4"); /* nothing that drives a terminal */
    sim_traffic_finish(&t);
    t = read_text("#\nrequest a 1\n", WEIR_SECOND);
    assert_string_equal(t.about, "requests from a file");
    sim_traffic_finish(&t);
}

static void times_keep_their_place_within_the_window(void **state)
{
    struct sim_traffic t = read_text("request a 1700000003\nrequest a 1700000012\n", WEIR_SECOND);
    expect_request(&t, 0, 3 * WEIR_SECOND, 0, 1);
    expect_request(&t, 1, 12 * WEIR_SECOND, 0, 1);
    sim_traffic_finish(&t);
    t = read_text("request a -3\nrequest a 2\n", WEIR_SECOND);
    expect_request(&t, 0, 7 * WEIR_SECOND, 0, 1);
    expect_request(&t, 1, 12 * WEIR_SECOND, 0, 1);
    sim_traffic_finish(&t);
    t = read_text("request a -9223372036854775808\nrequest a -9223372036854775807\n", 1);
    assert_true(t.requests[1].time_ns == t.requests[0].time_ns + 1);
    sim_traffic_finish(&t);
}

/* The limits see a time in the same part of a minute, of a day and of a week. */
static void times_keep_their_place_within_the_week(void **state)
{
    const uint64_t week = 7 * WEIR_DAY;
    struct sim_traffic t = read_text("request a 1700000003\n", WEIR_SECOND);
    uint64_t asked = t.base_ns + t.requests[0].time_ns;
    assert_true(asked == UINT64_C(1700000003) * WEIR_SECOND % week);
    sim_traffic_finish(&t);
    t = read_text("request a -3\n", WEIR_SECOND);
    asked = t.base_ns + t.requests[0].time_ns;
    assert_true(asked == week - 3 * WEIR_SECOND);
    sim_traffic_finish(&t);
}

static void events_are_requests_of_their_user_or_key_or_address(void **state)
{
    struct sim_traffic t = read_text("{\"time\": 12.345, \"ip\": \"192.0.2.1\", \"cost\": 3}\n"
                                     "{\"time\": 11, \"user\": \"ann\", \"ip\": \"192.0.2.1\"}\n"
                                     "{\"api_key\": \"k\", \"ip\": \"192.0.2.1\", \"time\": 13}\n"
                                     "{\"time\": 14, \"path\": \"/\"}\n",
                                     WEIR_SECOND);
    assert_int_equal(t.count, 4);
    assert_int_equal(t.clients, 4);
    assert_true(text_is(t.names[0], "-") && text_is(t.names[1], "192.0.2.1"));
    assert_true(text_is(t.names[2], "ann") && text_is(t.names[3], "k"));
    expect_request(&t, 0, 1 * WEIR_SECOND, 2, 1);
    expect_request(&t, 1, 2345 * WEIR_MILLISECOND, 1, 3);
    assert_true(text_starts(t.events[t.requests[0].turn], "{\"time\": 11,"));
    assert_true(text_starts(t.events[t.requests[1].turn], "{\"time\": 12.345,"));
    assert_true(t.base_ns == 10 * WEIR_SECOND);
    sim_traffic_finish(&t);
}

static void a_trace_is_of_lines_or_of_events(void **state)
{
    expect_complaint("request a 1\n{\"time\": 1}\n",
                     ":2: found a JSON object, expected a line as in the lines before");
    expect_complaint("{\"time\": 1}\nrequest a 1\n",
                     ":2: found a line, expected a JSON object as in the lines before");
    expect_complaint("{\"time\": 1, \"cost\": 1000000001}\n",
                     ":1: found a cost of 1000000001, expected at most 1000000000");
    expect_complaint("{\"tim\": 1}\n", ":1: found no \"time\", expected one");
}

static void the_unit_of_times_is_that_of_the_option(void **state)
{
    struct sim_traffic t = read_text("request a 1500\n", WEIR_MILLISECOND);
    expect_request(&t, 0, 1500 * WEIR_MILLISECOND, 0, 1);
    sim_traffic_finish(&t);
}

static void a_bad_line_is_named_with_its_number(void **state)
{
    static const struct {
        const char *text, *line, *found;
    } rows[] = {
        {"request a 1\nreqest b 2\n", ":2: found ", "reqest"},
        {"request a\n", ":1: found ", "the end of the line, expected a timestamp"},
        {"request a 1 1 1\n", ":1: found ", "expected the end of the line"},
        {"\n\nrequest a 1.5\n", ":3: found ", "1.5"},
        {"request a 1 0\n", ":1: found ", "expected a cost, a whole number from 1 up"},
        {"request a 1 1000000001\n", ":1: found ", "1000000001, expected at most 1000000000"},
        {"1\n2\n3\n4\n", ":4: found ", "4"},
        {"request a 1\n3\n", ":2: found ", "3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[256];
        complaint_about(rows[i].text, text);
        assert_memory_equal(text, rows[i].line, strlen(rows[i].line));
        assert_non_null(strstr(text + strlen(rows[i].line), rows[i].found));
    }
}

static void a_line_without_end_is_refused(void **state)
{
    char *line = malloc(100000);
    assert_non_null(line);
    memset(line, 'x', 99999);
    line[99999] = 0;
    expect_complaint(line, ":1: found a line of more than 65536 bytes");
    free(line);
}

static void a_file_without_requests_is_refused(void **state)
{
    expect_complaint("", ": found no request, expected lines 'request CLIENT TIME [COST]'");
    expect_complaint("# nothing\n3\n10\n0\n",
                     ": found no request, expected lines 'request CLIENT TIME [COST]'");
}

static void times_decades_apart_are_refused_with_a_hint(void **state)
{
    expect_complaint("request a 0\nrequest a 9223372036854775807\n",
                     ": found times that are more than 30 years apart; is --unit right?");
    expect_complaint("request a -9223372036854775808\nrequest a 9223372036854775807\n",
                     ": found times that are more than 30 years apart; is --unit right?");
}

static void a_client_longer_than_a_key_is_refused(void **state)
{
    char line[5000];
    memset(line, 'x', sizeof line);
    memcpy(line, "request ", 8);
    (void)snprintf(line + 8 + 4096, 8, " 1\n");
    struct sim_traffic t = read_text(line, WEIR_SECOND);
    sim_traffic_finish(&t);
    memset(line + 8, 'x', 4097);
    (void)snprintf(line + 8 + 4097, 8, " 1\n");
    expect_complaint(line, ":1: found a client of 4097 bytes, expected at most 4096");
}

static void a_missing_file_is_named(void **state)
{
    struct sim_plan plan = trace_plan(WEIR_SECOND);
    struct sim_traffic t;
    struct weir_error error = {0};
    plan.trace = "/nonexistent/x.trace";
    assert_int_equal(sim_trace_read(&plan, &t, &error), WEIR_ENOENT);
    assert_string_equal(error.text,
                        "/nonexistent/x.trace: cannot be opened: No such file or directory");
    plan.trace = folder; /* opens, but has no lines */
    assert_true(sim_trace_read(&plan, &t, &error) < 0);
    assert_non_null(strstr(error.text, "cannot read"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_requests_in_the_order_of_their_times),
        cmocka_unit_test(the_stream_of_weir_replay_is_a_trace),
        cmocka_unit_test(the_first_comment_is_the_title),
        cmocka_unit_test(times_keep_their_place_within_the_window),
        cmocka_unit_test(times_keep_their_place_within_the_week),
        cmocka_unit_test(events_are_requests_of_their_user_or_key_or_address),
        cmocka_unit_test(a_trace_is_of_lines_or_of_events),
        cmocka_unit_test(the_unit_of_times_is_that_of_the_option),
        cmocka_unit_test(a_bad_line_is_named_with_its_number),
        cmocka_unit_test(a_line_without_end_is_refused),
        cmocka_unit_test(a_file_without_requests_is_refused),
        cmocka_unit_test(times_decades_apart_are_refused_with_a_hint),
        cmocka_unit_test(a_client_longer_than_a_key_is_refused),
        cmocka_unit_test(a_missing_file_is_named),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
