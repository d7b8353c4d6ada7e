/* Which denials get a line: the first of each key and reason, then samples, and never more than the
 * limit's rate; the others are counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "server/record/denied_log.h"
#include "support/engine/threads_run.h"

#define T0 (UINT64_C(1700000000) * WEIR_SECOND)

static struct denied_log *denials;

static int start(void **state)
{
    denials = denied_log_create();
    return denials != NULL ? 0 : -1;
}

static int stop(void **state)
{
    denied_log_destroy(denials);
    return 0;
}

static bool deny(const char *limit, const char *key, int reason, uint64_t now_ns,
                 struct denied_line *line)
{
    return denied_log_due(denials,
                          &(struct weir_rules_denial){.limit = limit,
                                                      .key = key,
                                                      .key_len = strlen(key),
                                                      .verdict = WEIR_DENY,
                                                      .reason = reason,
                                                      .now_ns = now_ns,
                                                      .log_count = 10,
                                                      .log_period_ns = WEIR_SECOND},
                          line);
}

static void the_first_of_each_key_and_reason_gets_a_line_then_every_hundredth(void **state)
{
    struct denied_line line;
    unsigned lines = 0;
    for (uint64_t i = 1; i <= 300; i++) {
        if (deny("api", "alice", WEIR_REASON_LIMIT, T0 + i * WEIR_SECOND, &line)) {
            assert_true(i == 1 || i % 100 == 0);
            assert_int_equal(line.times, i);
            assert_int_equal(line.left_out, i == 1 ? 0 : i == 100 ? 98 : 99);
            lines++;
        }
    }
    assert_int_equal(lines, 4);
    assert_true(deny("api", "alice", WEIR_REASON_BLOCKED, T0, &line));
    assert_true(deny("api", "bob", WEIR_REASON_LIMIT, T0, &line));
    assert_true(deny("login", "alice", WEIR_REASON_LIMIT, T0, &line));
    assert_false(deny("login", "alice", WEIR_REASON_LIMIT, T0, &line));
    assert_int_equal(denied_log_left_out(denials, "api"), 296);
    assert_int_equal(denied_log_left_out(denials, "login"), 1);
    assert_int_equal(denied_log_left_out(denials, "other"), 0);
}

static void a_key_that_many_limits_deny_gets_the_first_line_of_each(void **state)
{
    struct denied_line line;
    char limit[32];
    for (unsigned i = 0; i < 300; i++) {
        (void)snprintf(limit, sizeof limit, "limit-%u", i);
        assert_true(deny(limit, "alice", WEIR_REASON_LIMIT, T0, &line));
        assert_int_equal(line.times, 1);
    }
}

/* Asks with as many keys as one second brings; returns the lines. */
static unsigned flood(const char *limit, unsigned from, unsigned n, uint64_t now_ns)
{
    struct denied_line line;
    unsigned lines = 0;
    for (unsigned i = 0; i < n; i++) {
        char key[32];
        (void)snprintf(key, sizeof key, "key-%u", from + i);
        lines += deny(limit, key, WEIR_REASON_LIMIT, now_ns, &line);
    }
    return lines;
}

static void a_flood_of_new_keys_gets_no_more_lines_than_the_rate(void **state)
{
    struct denied_line line;
    assert_int_equal(flood("api", 0, 20000, T0), 10);
    assert_int_equal(flood("api", 20000, 100, T0 + WEIR_SECOND - 1), 0);
    assert_int_equal(flood("api", 30000, 100, T0 - WEIR_MILLISECOND), 0); /* a thread that lags */
    assert_int_equal(denied_log_left_out(denials, "api"), 20190);
    assert_true(deny("api", "later", WEIR_REASON_LIMIT, T0 + WEIR_SECOND, &line));
    assert_int_equal(line.left_out, 20190);
    assert_int_equal(flood("api", 50000, 100, T0 + WEIR_SECOND), 9);
    assert_int_equal(flood("login", 0, 100, T0), 10); /* each limit has its own rate */
}

static void a_clock_that_was_set_back_does_not_end_the_log(void **state)
{
    assert_int_equal(flood("api", 0, 100, T0), 10);
    assert_int_equal(flood("api", 200, 100, T0 - WEIR_HOUR), 10);
}

#define THREADS 4
#define EACH 5000

static uint64_t lines_of_all;

static void deny_many(unsigned thread, void *arg)
{
    (void)threads_add(&lines_of_all, flood("shared", thread * EACH, EACH, T0));
}

static void threads_together_write_exactly_as_many_lines(void **state)
{
    lines_of_all = 0;
    threads_run(THREADS, deny_many, NULL);
    assert_int_equal(lines_of_all, 10);
    assert_int_equal(denied_log_left_out(denials, "shared"), THREADS * EACH - 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_first_of_each_key_and_reason_gets_a_line_then_every_hundredth),
        TEST(a_key_that_many_limits_deny_gets_the_first_line_of_each),
        TEST(a_flood_of_new_keys_gets_no_more_lines_than_the_rate),
        TEST(a_clock_that_was_set_back_does_not_end_the_log),
        TEST(threads_together_write_exactly_as_many_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
