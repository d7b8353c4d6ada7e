/*
 * Faults found in other rate limiters, each as a test named after it. (The fault
 * of full-table sweeps in the hot thread is a matter of the bench.)
 */
#include "support/engine/unit_limiter.h"

#include <pthread.h>
#include <stdio.h>

#define START (120 * WEIR_SECOND)

/* 1. A burst of 1 was no limit at all, and the burst doubled after an idle. */
static void fault_1_burst_of_one_unlimited_or_doubled_after_idle(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = unit_limit(unit_algorithms[i], 1, WEIR_SECOND);
        uint64_t now = START;
        uint64_t seed = 1;
        for (int j = 0; j < 1000; j++) {
            assert_int_equal(unit_drain(w, "k", now), 1);
            assert_int_equal(unit_check(w, "k", 1, now + 1).verdict, WEIR_DENY);
            now += 2 * WEIR_SECOND + unit_random(&seed) % WEIR_HOUR;
        }
        weir_close(w);
    }
}

/* Offers evenly for ten seconds; returns what was admitted. */
static uint64_t offer(struct weir *w, uint64_t per_second)
{
    uint64_t admitted = 0;
    for (uint64_t i = 0; i < 10 * per_second; i++) {
        admitted += unit_check(w, "k", 1, START + i * WEIR_SECOND / per_second).granted;
    }
    return admitted;
}

/* 2. Debt of less than a millisecond was lost by rounding: 6,000/s let 10,000/s through. */
static void fault_2_submillisecond_debt_lost_by_rounding(void **state)
{
    struct weir_options o = unit_options(WEIR_TOKEN_BUCKET, 6000, WEIR_SECOND);
    o.burst = 1;
    struct weir *w = unit_open(&o);
    uint64_t admitted = offer(w, 10000);
    assert_true(admitted <= 60001);
    weir_close(w);
    o.burst = 10;
    w = unit_open(&o);
    admitted = offer(w, 10000);
    assert_in_range(admitted, 59400, 60010);
    weir_close(w);
}

/* 3. The fraction of a token was thrown away at each call: 48 % less than the rate. */
static void fault_3_fraction_thrown_away_underadmits(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = unit_limit(unit_algorithms[i], 1000, WEIR_SECOND);
        uint64_t admitted = offer(w, 1013);
        assert_true(admitted >= 9900);
        assert_true(admitted <= 11000);
        weir_close(w);
    }
}

/* 4. Twice the quota across the edge of a window, where a sliding limit was promised. */
static void fault_4_twice_the_quota_at_a_window_edge(void **state)
{
    uint64_t edge = START;
    struct weir *log = unit_limit(WEIR_SLIDING_LOG, 100, WEIR_SECOND);
    assert_int_equal(unit_drain(log, "k", edge - 1), 100);
    assert_int_equal(unit_drain(log, "k", edge), 0);
    assert_int_equal(unit_drain(log, "k", edge + WEIR_SECOND - 2), 0);
    weir_close(log);
    struct weir *window = unit_limit(WEIR_SLIDING_WINDOW, 100, WEIR_SECOND);
    assert_int_equal(unit_drain(window, "k", edge - 1), 100);
    assert_int_equal(unit_drain(window, "k", edge), 0);
    assert_int_equal(unit_drain(window, "k", edge + WEIR_SECOND / 2), 50);
    weir_close(window);
    /* Stated, not hidden: the fixed window does it. */
    struct weir *fixed = unit_limit(WEIR_FIXED_WINDOW, 100, WEIR_SECOND);
    assert_int_equal(unit_drain(fixed, "k", edge - 1) + unit_drain(fixed, "k", edge), 200);
    weir_close(fixed);
}

/* 5. retry_after was 0, or a second too large. */
static void wait_exactly(struct weir *w, int algorithm)
{
    (void)unit_drain(w, "k", START);
    for (uint64_t cost = 1; cost <= 10; cost++) {
        struct weir_answer a = unit_peek(w, "k", cost, START);
        assert_int_equal(a.verdict, WEIR_DENY);
        assert_true(a.retry_after_ns > WEIR_MILLISECOND);
        uint64_t at = START + a.retry_after_ns;
        assert_int_equal(unit_peek(w, "k", cost, at - WEIR_MILLISECOND).verdict, WEIR_DENY);
        assert_int_equal(unit_peek(w, "k", cost, at - 1).verdict, WEIR_DENY);
        assert_int_equal(unit_peek(w, "k", cost, at).verdict, WEIR_ALLOW);
    }
}

static void fault_5_retry_after_too_small_or_a_second_too_large(void **state)
{
    unit_each(10, WEIR_MINUTE, wait_exactly);
}

/* 6. A cost that can never fit was told to come back later. */
static void ask_too_much(struct weir *w, int algorithm)
{
    for (int used = 0; used < 2; used++) {
        struct weir_answer a = unit_check(w, "k", 11, START);
        assert_int_equal(a.verdict, WEIR_NEVER);
        assert_true(a.retry_after_ns == WEIR_FOREVER);
        assert_int_equal(unit_check(w, "k", 11, START + 365 * WEIR_DAY).verdict, WEIR_NEVER);
        (void)unit_drain(w, "k", START);
    }
    assert_int_equal(unit_peek(w, "k", 10, START).verdict, WEIR_DENY);
}

static void fault_6_cost_above_the_burst_given_a_finite_retry(void **state)
{
    unit_each(10, WEIR_MINUTE, ask_too_much);
}

/* 7. Denied calls were charged, and so were the sibling limits of the one that denied. */
static void hammer(struct weir *w, int algorithm)
{
    struct weir *twin = unit_limit(algorithm, 10, WEIR_MINUTE);
    (void)unit_drain(w, "k", START);
    (void)unit_drain(twin, "k", START);
    for (uint64_t t = 0; t < 1000; t++) {
        (void)unit_check(w, "k", 1 + t % 20, START + t);
    }
    struct weir_answer a = unit_peek(w, "k", 3, START + 1000);
    struct weir_answer b = unit_peek(twin, "k", 3, START + 1000);
    unit_assert_same(&a, &b);
    struct weir *sibling = unit_limit(algorithm, 100, WEIR_MINUTE);
    struct weir_part parts[2] = {{sibling, unit_question("k", 1, WEIR_CHECK)},
                                 {w, unit_question("k", 5, WEIR_CHECK)}};
    for (int i = 0; i < 100; i++) {
        assert_int_equal(weir_check_several_at(parts, 2, START + 1000, &a), 0);
        assert_int_equal(a.verdict, WEIR_DENY);
    }
    assert_int_equal(unit_peek(sibling, "k", 1, START + 1000).remaining, 100);
    weir_close(sibling);
    weir_close(twin);
}

static void fault_7_denied_calls_and_sibling_limits_charged(void **state)
{
    unit_each(10, WEIR_MINUTE, hammer);
}

/* 8. Between the check and the update another thread passed. */
#define THREADS 32
#define CALLS 2000

struct racer {
    struct weir *w;
    uint64_t granted;
};

static void *race(void *arg)
{
    struct racer *r = arg;
    for (int i = 0; i < CALLS; i++) {
        struct weir_answer a;
        if (weir_check_at(r->w, "k", 1, 1, START, &a) == 0) {
            r->granted += a.granted;
        }
    }
    return NULL;
}

static void all_at_once(struct weir *w, int algorithm)
{
    pthread_t thread[THREADS];
    struct racer racer[THREADS];
    uint64_t granted = 0;
    for (int i = 0; i < THREADS; i++) {
        racer[i] = (struct racer){w, 0};
        assert_int_equal(pthread_create(&thread[i], NULL, race, &racer[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        granted += racer[i].granted;
    }
    assert_int_equal(granted, 20000);
    assert_int_equal(unit_stats(w).allowed, 20000);
    assert_int_equal(unit_stats(w).denied, THREADS * CALLS - 20000);
}

static void fault_8_race_between_check_and_update(void **state)
{
    unit_each(20000, WEIR_DAY, all_at_once);
}

/* 9. Odd input made it panic, wrap or abort. (test_overflow.c and the fuzz targets go further.) */
static void odd_input(struct weir *w, int algorithm)
{
    static const uint64_t odd[] = {0, 1, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};
    static const char bytes[] = "\0\xff\xfe\r\n%s%n'\"\\{}";
    struct weir_answer a;
    for (int i = 0; i < 6 * 6; i++) {
        int e = weir_check_at(w, bytes, 1 + i % (sizeof bytes - 1), odd[i / 6], odd[i % 6], &a);
        assert_true(e == 0 || e == WEIR_ECOST || e == WEIR_ETIME);
        if (e == 0) {
            unit_assert_sound(&a, odd[i / 6], WEIR_CHECK);
        }
    }
}

static void fault_9_overflow_or_abort_on_odd_input(void **state)
{
    unit_each(10, WEIR_MINUTE, odd_input);
}

/* 10. Keys made by joining parts collided: "ab" + "c" was "a" + "bc". */
static void fault_10_concatenated_keys_collide(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 1, WEIR_DAY);
    static const struct {
        const char *bytes;
        size_t len;
    } composite[] = {
        {"\2ab\1c", 5}, {"\1a\2bc", 5}, {"\3abc\0", 5}, {"\0\3abc", 5}, {"abc", 3}, {"abc\0", 4},
    };
    struct weir_answer a;
    for (size_t i = 0; i < sizeof composite / sizeof composite[0]; i++) {
        assert_int_equal(weir_check_at(w, composite[i].bytes, composite[i].len, 1, START, &a), 0);
        assert_int_equal(a.verdict, WEIR_ALLOW);
    }
    assert_int_equal(unit_stats(w).keys, 6);
    weir_close(w);
}

/* 12. Any number of keys was kept, or throttled ones were forgotten without a word. */
static void fault_12_unbounded_keys_or_silent_forgiveness(void **state)
{
    for (int on_full = WEIR_EVICT; on_full <= WEIR_ALLOW_NEW; on_full++) {
        struct weir_options o = unit_options(WEIR_TOKEN_BUCKET, 5, WEIR_HOUR);
        o.max_keys = 100;
        o.on_full = on_full;
        struct weir *w = unit_open(&o);
        uint64_t bytes = unit_stats(w).bytes;
        (void)unit_drain(w, "culprit", START);
        uint64_t flood = unit_scale(50000);
        for (uint64_t i = 0; i < flood; i++) {
            char key[32];
            (void)snprintf(key, sizeof key, "rotated %llu", (unsigned long long)i);
            (void)unit_check(w, key, 1, START);
        }
        struct weir_stats s = unit_stats(w);
        assert_int_equal(s.bytes, bytes);
        assert_true(s.keys <= s.capacity);
        /* Every key is either there or counted as what the policy did with it. */
        assert_int_equal(s.keys + s.evicted + s.full_denied + s.full_allowed, flood + 1);
        assert_int_equal(unit_check(w, "culprit", 1, START).verdict, WEIR_DENY);
        weir_close(w);
    }
}

/* 13. Somebody set the wall clock, or a replica's clock was off. */
static void clock_trouble(struct weir *w, int algorithm)
{
    uint64_t now = START + WEIR_DAY;
    assert_int_equal(unit_drain(w, "k", now), 10);
    assert_int_equal(unit_drain(w, "k", now - WEIR_SECOND), 0); /* a replica a second behind */
    struct weir_answer a = unit_peek(w, "k", 1, now - WEIR_HOUR);
    assert_true(a.retry_after_ns <= 2 * WEIR_MINUTE + WEIR_SECOND); /* set back by an hour */
    assert_true(unit_drain(w, "k", now - WEIR_HOUR) <= 10);
    assert_int_equal(unit_drain(w, "k", now + WEIR_HOUR), 10); /* and forward: one quota */
}

static void fault_13_wall_clock_steps_and_replica_skew(void **state)
{
    unit_each(10, WEIR_MINUTE, clock_trouble);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fault_1_burst_of_one_unlimited_or_doubled_after_idle),
        cmocka_unit_test(fault_2_submillisecond_debt_lost_by_rounding),
        cmocka_unit_test(fault_3_fraction_thrown_away_underadmits),
        cmocka_unit_test(fault_4_twice_the_quota_at_a_window_edge),
        cmocka_unit_test(fault_5_retry_after_too_small_or_a_second_too_large),
        cmocka_unit_test(fault_6_cost_above_the_burst_given_a_finite_retry),
        cmocka_unit_test(fault_7_denied_calls_and_sibling_limits_charged),
        cmocka_unit_test(fault_8_race_between_check_and_update),
        cmocka_unit_test(fault_9_overflow_or_abort_on_odd_input),
        cmocka_unit_test(fault_10_concatenated_keys_collide),
        cmocka_unit_test(fault_12_unbounded_keys_or_silent_forgiveness),
        cmocka_unit_test(fault_13_wall_clock_steps_and_replica_skew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
