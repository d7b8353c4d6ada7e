/* The header fields that tell how much is left, in each format. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "wire/ratelimit.h"

static const struct ratelimit allowed = {.policy = {"api", 3},
                                         .quota = 1000,
                                         .remaining = 999,
                                         .reset_after_ms = 86400,
                                         .now_s = 1700000000,
                                         .window_ns = UINT64_C(86400000000000)};

static void assert_fields(enum ratelimit_format format, const struct ratelimit *r,
                          const char *expected)
{
    struct buffer b;
    buffer_init(&b, 4096);
    ratelimit_put(&b, format, r);
    struct weir_text found = buffer_text(&b);
    assert_int_equal(found.len, strlen(expected));
    assert_memory_equal(found.at, expected, found.len);
    buffer_finish(&b);
}

static void the_draft_has_a_policy_and_what_is_left_of_it(void **state)
{
    assert_fields(RATELIMIT_IETF, &allowed,
                  "RateLimit-Policy: \"api\";q=1000;w=86400\r\nRateLimit: \"api\";r=999;t=87\r\n");
}

/* Integer seconds above 0, or none. */
static void a_window_is_whole_seconds_rounded_up(void **state)
{
    static const struct {
        uint64_t ns;
        const char *policy;
    } cases[] = {{0, "\"api\";q=1000"},
                 {1, "\"api\";q=1000;w=1"},
                 {UINT64_C(1000000000), "\"api\";q=1000;w=1"},
                 {UINT64_C(1000000001), "\"api\";q=1000;w=2"},
                 {UINT64_C(60000000000), "\"api\";q=1000;w=60"},
                 {UINT64_MAX, "\"api\";q=1000;w=18446744074"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct ratelimit r = allowed;
        char expected[128];
        r.window_ns = cases[i].ns;
        (void)snprintf(expected, sizeof expected,
                       "RateLimit-Policy: %s\r\nRateLimit: \"api\";r=999;t=87\r\n",
                       cases[i].policy);
        assert_fields(RATELIMIT_IETF, &r, expected);
    }
}

static void the_time_of_a_denial_is_when_to_come_again(void **state)
{
    struct ratelimit r = allowed;
    r.remaining = 0;
    r.retry_after_ms = 1001;
    assert_fields(RATELIMIT_IETF, &r,
                  "RateLimit-Policy: \"api\";q=1000;w=86400\r\nRateLimit: \"api\";r=0;t=2\r\n");
}

static void a_limit_that_never_resets_has_no_reset_time(void **state)
{
    struct ratelimit r = allowed;
    r.remaining = 0;
    r.reset_after_ms = UINT64_C(18446744073710);
    assert_fields(RATELIMIT_IETF, &r,
                  "RateLimit-Policy: \"api\";q=1000;w=86400\r\nRateLimit: \"api\";r=0\r\n");
}

static void the_older_fields_reset_at_a_time_or_after_one(void **state)
{
    assert_fields(RATELIMIT_X_EPOCH, &allowed,
                  "X-RateLimit-Limit: 1000\r\nX-RateLimit-Remaining: 999\r\n"
                  "X-RateLimit-Reset: 1700000087\r\n");
    assert_fields(RATELIMIT_X_DELTA, &allowed,
                  "X-RateLimit-Limit: 1000\r\nX-RateLimit-Remaining: 999\r\n"
                  "X-RateLimit-Reset: 87\r\n");
    assert_fields(RATELIMIT_OFF, &allowed, "");
}

static void no_name_can_end_the_line_or_the_string(void **state)
{
    struct ratelimit r = allowed;
    r.policy = TEXT("a\"b\\c\r\nX: \xc3\xa9");
    assert_fields(RATELIMIT_IETF, &r,
                  "RateLimit-Policy: \"a\\\"b\\\\c??X: ??\";q=1000;w=86400\r\n"
                  "RateLimit: \"a\\\"b\\\\c??X: ??\";r=999;t=87\r\n");
}

static void numbers_stay_within_what_the_format_can_say(void **state)
{
    struct ratelimit r = allowed;
    r.quota = r.remaining = r.reset_after_ms = r.now_s = UINT64_MAX;
    assert_fields(RATELIMIT_IETF, &r,
                  "RateLimit-Policy: \"api\";q=999999999999999;w=86400\r\n"
                  "RateLimit: \"api\";r=999999999999999\r\n");
    assert_fields(RATELIMIT_X_EPOCH, &r,
                  "X-RateLimit-Limit: 999999999999999\r\nX-RateLimit-Remaining: 999999999999999\r\n"
                  "X-RateLimit-Reset: 999999999999999\r\n");
}

static void retry_after_is_rounded_up_and_never_zero(void **state)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } cases[] = {{0, "1"}, {1, "1"}, {1000, "1"}, {1001, "2"}, {11929, "12"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct buffer b;
        buffer_init(&b, 64);
        ratelimit_put_retry_after(&b, cases[i].ms);
        assert_true(text_equal(buffer_text(&b), text_of(cases[i].text)));
        buffer_finish(&b);
    }
}

/* Exactly 0 to so many of them more; never less. */
static void jitter_adds_and_never_takes_away(void **state)
{
    static const struct {
        uint64_t ms;
        unsigned jitter;
        uint64_t most;
    } cases[] = {{0, 10000, 0},
                 {1, 9999, 1},
                 {1, 10000, 2},
                 {1000, 0, 1000},
                 {1000, 1, 1000},
                 {1000, 10, 1001},
                 {1000, 5000, 1500},
                 {86400000, 10000, 172800000},
                 {86400000, 1234, 97061760},
                 {UINT64_MAX, 10000, UINT64_MAX}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(ratelimit_jitter(cases[i].ms, cases[i].jitter, 0), cases[i].ms);
        assert_int_equal(ratelimit_jitter(cases[i].ms, cases[i].jitter, UINT64_MAX), cases[i].most);
    }
    assert_int_equal(ratelimit_jitter(1000, 10000, UINT64_MAX / 2), 1500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_draft_has_a_policy_and_what_is_left_of_it),
        cmocka_unit_test(the_time_of_a_denial_is_when_to_come_again),
        cmocka_unit_test(a_limit_that_never_resets_has_no_reset_time),
        cmocka_unit_test(the_older_fields_reset_at_a_time_or_after_one),
        cmocka_unit_test(no_name_can_end_the_line_or_the_string),
        cmocka_unit_test(numbers_stay_within_what_the_format_can_say),
        cmocka_unit_test(a_window_is_whole_seconds_rounded_up),
        cmocka_unit_test(jitter_adds_and_never_takes_away),
        cmocka_unit_test(retry_after_is_rounded_up_and_never_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
