/*
 * The promises of the design, P1 to P3 and the fields of the answer, each over
 * all algorithms that it concerns, on explicit time. (P4 to P6:
 * test_promises_time.c. P7: test_full.c. P9: test_overflow.c.)
 */
#include "base/maths.h"
#include "support/engine/unit_limiter.h"

#define START (100 * WEIR_SECOND)
#define EVENTS 1500

/* What a random customer was given. */
struct history {
    uint64_t at[EVENTS];
    uint64_t released[EVENTS];
    uint64_t units[EVENTS];
    unsigned n;
};

/* Mostly bursts, now and then an idle of up to two periods. */
static uint64_t next_time(uint64_t now, uint64_t period, uint64_t *seed)
{
    uint64_t r = unit_random(seed);
    if (r % 10 < 6) {
        return now + r / 16 % (period / 50);
    }
    return now + (r % 10 == 6 ? r / 16 % (2 * period) : r / 16 % (period / 5));
}

static void wander(struct weir *w, uint64_t quota, uint64_t period, struct history *h)
{
    uint64_t seed = 7;
    uint64_t now = START;
    h->n = 0;
    while (h->n < EVENTS) {
        now = next_time(now, period, &seed);
        uint64_t cost = 1 + unit_random(&seed) % (quota + 1);
        struct weir_answer a = unit_check(w, "k", unit_random(&seed) % 3 == 0 ? cost : 1, now);
        if (a.verdict == WEIR_ALLOW) {
            h->at[h->n] = now;
            h->released[h->n] = now + a.delay_ns;
            h->units[h->n++] = a.granted;
        }
    }
}

/* The most units whose times lie within less than `length` of each other. */
static uint64_t densest(const struct history *h, uint64_t length)
{
    uint64_t most = 0;
    for (unsigned i = 0; i < h->n; i++) {
        uint64_t sum = 0;
        for (unsigned j = i; j < h->n && h->at[j] - h->at[i] < length; j++) {
            sum += h->units[j];
        }
        most = sum > most ? sum : most;
    }
    return most;
}

static void p1_token_bucket_admits_at_most_burst_plus_rate_times_t(void **state)
{
    static struct history h;
    struct weir_options o = unit_options(WEIR_TOKEN_BUCKET, 7, WEIR_SECOND);
    o.burst = 12;
    struct weir *w = unit_open(&o);
    wander(w, 12, WEIR_SECOND, &h);
    for (unsigned i = 0; i < h.n; i++) {
        uint64_t sum = 0;
        for (unsigned j = i; j < h.n; j++) {
            sum += h.units[j];
            uint64_t t = h.at[j] - h.at[i];
            assert_true(sum <= 12 || (sum - 12) * WEIR_SECOND <= 7 * t);
        }
    }
    weir_close(w);
}

static void p1_leaky_bucket_bounds_decisions_and_release_times(void **state)
{
    static struct history h;
    struct weir_options o = unit_options(WEIR_LEAKY_BUCKET, 7, WEIR_SECOND);
    o.queue = 4;
    struct weir *w = unit_open(&o);
    wander(w, 5, WEIR_SECOND, &h);
    for (unsigned i = 0; i < h.n; i++) {
        uint64_t sum = 0;
        for (unsigned j = i; j < h.n; j++) {
            sum += h.units[j];
            uint64_t t = h.at[j] - h.at[i];
            assert_true(sum <= 5 || (sum - 5) * WEIR_SECOND <= 7 * t);
            /* What is released from i up to, not including, j took its time; 1 ns of rounding. */
            uint64_t r = h.released[j] - h.released[i] + 1;
            assert_true((sum - h.units[j]) * WEIR_SECOND <= 7 * r);
        }
    }
    weir_close(w);
}

static void p1_fixed_window_admits_at_most_the_quota_per_aligned_window(void **state)
{
    static struct history h;
    struct weir *w = unit_limit(WEIR_FIXED_WINDOW, 7, WEIR_SECOND);
    wander(w, 7, WEIR_SECOND, &h);
    for (unsigned i = 0; i < h.n;) {
        uint64_t sum = 0;
        uint64_t window = h.at[i] / WEIR_SECOND;
        for (; i < h.n && h.at[i] / WEIR_SECOND == window; i++) {
            sum += h.units[i];
        }
        assert_true(sum <= 7);
    }
    weir_close(w);
}

static void p1_sliding_window_admits_at_most_2q_minus_1_in_any_period(void **state)
{
    static struct history h;
    for (uint64_t quota = 1; quota <= 9; quota += 2) {
        struct weir *w = unit_limit(WEIR_SLIDING_WINDOW, quota, WEIR_SECOND);
        wander(w, quota, WEIR_SECOND, &h);
        assert_true(densest(&h, WEIR_SECOND) <= 2 * quota - 1);
        weir_close(w);
    }
}

static void p1_sliding_log_admits_at_most_the_quota_in_any_period(void **state)
{
    static struct history h;
    for (uint64_t quota = 1; quota <= 9; quota += 2) {
        struct weir *w = unit_limit(WEIR_SLIDING_LOG, quota, WEIR_SECOND);
        wander(w, quota, WEIR_SECOND, &h);
        assert_int_equal(densest(&h, WEIR_SECOND), quota);
        weir_close(w);
    }
}

/* Takes one unit after the other as soon as it may; returns when the last one was taken. */
static uint64_t take_eagerly(struct weir *w, uint64_t units, uint64_t now)
{
    while (units > 0) {
        struct weir_answer a = unit_check(w, "k", 1, now);
        units -= a.granted;
        now += a.retry_after_ns;
    }
    return now;
}

static void p2_buckets_admit_9999_of_10000_of_every_rate(void **state)
{
    const struct {
        uint64_t count, period;
    } rates[] = {{1, WEIR_DAY},          {7, WEIR_DAY},          {1, WEIR_MINUTE},
                 {3, WEIR_SECOND},       {6000, WEIR_SECOND},    {99999, WEIR_SECOND},
                 {999983, WEIR_SECOND},  {3333333, WEIR_SECOND}, {9999999, WEIR_SECOND},
                 {10000000, WEIR_SECOND}};
    for (size_t i = 0; i < 2 * sizeof rates / sizeof rates[0]; i++) {
        uint64_t count = rates[i / 2].count;
        uint64_t period = rates[i / 2].period;
        struct weir_options o = unit_options(1 + i % 2, count, period);
        o.burst = i % 2 == 0 ? 100 : 0;
        o.queue = i % 2 == 0 ? 0 : 99;
        struct weir *w = unit_open(&o);
        uint64_t units = unit_scale(20000);
        uint64_t elapsed = take_eagerly(w, units + 100, START) - START;
        /* The burst is free; the rest must come at 99.99 % of the rate (1 ns for the last tick). */
        u128 due = mul_wide(elapsed - 1, count) / period;
        assert_true((u128)units * 10000 >= due * 9999);
        assert_true(units <= due + 1);
        weir_close(w);
    }
}

static void p2_fixed_window_and_log_admit_the_quota_in_every_period(void **state)
{
    const int algorithms[] = {WEIR_FIXED_WINDOW, WEIR_SLIDING_LOG};
    for (int i = 0; i < 2; i++) {
        struct weir *w = unit_limit(algorithms[i], 5, WEIR_SECOND);
        for (uint64_t period = 0; period < 50; period++) {
            assert_int_equal(unit_drain(w, "k", START + period * WEIR_SECOND), 5);
        }
        weir_close(w);
    }
}

static void p2_sliding_window_admits_q_minus_1_of_q_and_half_for_1(void **state)
{
    const uint64_t periods = unit_scale(200);
    for (uint64_t quota = 1; quota <= 10; quota++) {
        struct weir *w = unit_limit(WEIR_SLIDING_WINDOW, quota, WEIR_SECOND);
        uint64_t admitted = 0;
        for (uint64_t t = 0; t < periods * 1000; t++) {
            admitted += unit_check(w, "k", 1, START + t * WEIR_MILLISECOND).granted;
        }
        assert_true(quota == 1 ? admitted >= periods / 2 : admitted >= periods * (quota - 1));
        assert_true(admitted <= (periods + 1) * quota);
        weir_close(w);
    }
}

static void denied_until_retry(struct weir *w, int algorithm)
{
    uint64_t seed = 11 + (uint64_t)algorithm;
    uint64_t now = START;
    unsigned denials = 0;
    for (uint64_t i = 0; i < unit_scale(20000); i++) {
        now = next_time(now, WEIR_SECOND, &seed);
        uint64_t cost = 1 + unit_random(&seed) % 6;
        struct weir_answer a = unit_check(w, "k", cost, now);
        if (a.verdict != WEIR_DENY) {
            assert_int_equal(a.verdict, cost > 5 ? WEIR_NEVER : WEIR_ALLOW);
            continue;
        }
        uint64_t at = now + a.retry_after_ns;
        struct weir_answer before = unit_peek(w, "k", cost, at - 1);
        assert_int_equal(before.verdict, WEIR_DENY);
        assert_int_equal(before.retry_after_ns, 1);
        assert_int_equal(unit_peek(w, "k", cost, at).verdict, WEIR_ALLOW);
        now = denials++ % 2 == 0 ? at : now;
    }
    assert_true(denials > 100);
}

static void p3_denied_one_tick_before_retry_and_allowed_at_it(void **state)
{
    unit_each(5, WEIR_SECOND, denied_until_retry);
    unit_each(5, 999999937, denied_until_retry);
    unit_each(5, 86399999999989, denied_until_retry);
}

static void fresh_after_reset(struct weir *w, int algorithm)
{
    uint64_t seed = 3;
    uint64_t now = START;
    struct weir_answer fresh = unit_peek(w, "never seen", 1, now);
    assert_int_equal(fresh.remaining, 5);
    assert_int_equal(fresh.reset_after_ns, 0);
    for (int i = 0; i < 2000; i++) {
        now = next_time(now, WEIR_SECOND, &seed);
        struct weir_answer a = unit_check(w, "k", 1 + unit_random(&seed) % 5, now);
        struct weir_answer later = unit_peek(w, "k", 5, now + a.reset_after_ns);
        assert_int_equal(later.remaining, 5);
        assert_int_equal(later.reset_after_ns, 0);
        assert_int_equal(later.verdict, WEIR_ALLOW);
        assert_true(a.reset_after_ns >= 1);
        assert_int_equal(unit_peek(w, "k", 5, now + a.reset_after_ns - 1).reset_after_ns, 1);
    }
}

static void reset_is_the_first_moment_at_which_the_key_is_as_good_as_new(void **state)
{
    unit_each(5, WEIR_SECOND, fresh_after_reset);
}

static void remaining_fits(struct weir *w, int algorithm)
{
    uint64_t seed = 5;
    uint64_t now = START;
    for (int i = 0; i < 5000; i++) {
        now = next_time(now, WEIR_SECOND, &seed);
        struct weir_answer a = unit_check(w, "k", 1 + unit_random(&seed) % 3, now);
        if (a.remaining > 0) {
            assert_int_equal(unit_peek(w, "k", a.remaining, now).verdict, WEIR_ALLOW);
        }
        assert_int_not_equal(unit_peek(w, "k", a.remaining + 1, now).verdict, WEIR_ALLOW);
        assert_int_equal(a.quota, 5);
    }
}

static void remaining_is_exactly_what_could_be_taken_next(void **state)
{
    unit_each(5, WEIR_SECOND, remaining_fits);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(p1_token_bucket_admits_at_most_burst_plus_rate_times_t),
        cmocka_unit_test(p1_leaky_bucket_bounds_decisions_and_release_times),
        cmocka_unit_test(p1_fixed_window_admits_at_most_the_quota_per_aligned_window),
        cmocka_unit_test(p1_sliding_window_admits_at_most_2q_minus_1_in_any_period),
        cmocka_unit_test(p1_sliding_log_admits_at_most_the_quota_in_any_period),
        cmocka_unit_test(p2_buckets_admit_9999_of_10000_of_every_rate),
        cmocka_unit_test(p2_fixed_window_and_log_admit_the_quota_in_every_period),
        cmocka_unit_test(p2_sliding_window_admits_q_minus_1_of_q_and_half_for_1),
        cmocka_unit_test(p3_denied_one_tick_before_retry_and_allowed_at_it),
        cmocka_unit_test(reset_is_the_first_moment_at_which_the_key_is_as_good_as_new),
        cmocka_unit_test(remaining_is_exactly_what_could_be_taken_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
