/* A museum of public bugs in rate limiters, as far as an engine can have them. */
#include "algo/algo.h"
#include "support/engine/unit_limiter.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define START (120 * WEIR_SECOND)

/* systemd pull request 17582: a huge interval overflowed when added to the time. */
static void systemd_17582_a_huge_interval_overflows(void **state)
{
    for (int i = 2; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = unit_limit(unit_algorithms[i], 3, ALGO_LIFE_NS);
        assert_int_equal(unit_drain(w, "k", START), 3);
        struct weir_answer a = unit_check(w, "k", 1, START + 50 * 365 * WEIR_DAY);
        assert_int_equal(a.verdict, WEIR_DENY);
        assert_true(a.retry_after_ns > 10 * 365 * WEIR_DAY && a.retry_after_ns < 2 * ALGO_LIFE_NS);
        weir_close(w);
    }
    for (int i = 0; i < 2; i++) {
        struct weir_options o = unit_options(unit_algorithms[i], 3, 30 * 365 * WEIR_DAY);
        o.max_debt = WEIR_NO_DEBT;
        struct weir *w = unit_open(&o);
        assert_int_equal(unit_drain(w, "k", START), 3);
        assert_int_equal(unit_check(w, "k", 1, START + 9 * 365 * WEIR_DAY).verdict, WEIR_DENY);
        assert_int_equal(unit_check(w, "k", 1, START + 10 * 365 * WEIR_DAY).verdict, WEIR_ALLOW);
        weir_close(w);
    }
}

/* systemd pull request 27342: the counter wrapped at 2^32 inside the window. */
static void systemd_27342_the_counter_wraps_inside_the_window(void **state)
{
    struct weir_options o = unit_options(WEIR_FIXED_WINDOW, UINT64_C(3) << 32, WEIR_DAY);
    o.max_debt = WEIR_NO_DEBT;
    struct weir *w = unit_open(&o);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(unit_check(w, "k", UINT64_C(1) << 32, START).verdict, WEIR_ALLOW);
    }
    assert_int_equal(unit_check(w, "k", 1, START).verdict, WEIR_DENY);
    assert_int_equal(unit_check(w, "k", UINT64_C(1) << 32, START).verdict, WEIR_DENY);
    weir_close(w);
    /* Denied calls do not count up to a wrap either. */
    w = unit_limit(WEIR_SLIDING_WINDOW, 63, WEIR_MICROSECOND);
    assert_int_equal(unit_drain(w, "k", START), 63);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(unit_check(w, "k", 63, START).verdict, WEIR_DENY);
    }
    weir_close(w);
}

/* alisaifee/limits pull request 152: a cost greater than the limit was allowed. */
static void too_costly(struct weir *w, int algorithm)
{
    for (uint64_t cost = 6; cost < UINT64_MAX / 2; cost *= 3) {
        assert_int_equal(unit_check(w, "k", cost, START).verdict, WEIR_NEVER);
        assert_int_equal(unit_check(w, "k", UINT64_MAX - cost, START).verdict, WEIR_NEVER);
    }
    assert_int_equal(unit_drain(w, "k", START), 5);
}

static void limits_152_a_cost_greater_than_the_limit_is_allowed(void **state)
{
    unit_each(5, WEIR_MINUTE, too_costly);
}

/* INCR then EXPIRE, not atomic: a key without an end denied for ever. */
static void comes_back(struct weir *w, int algorithm)
{
    for (uint64_t i = 0; i < 100; i++) {
        uint64_t now = START + i * WEIR_HOUR;
        assert_int_equal(unit_drain(w, "k", now), 5);
        assert_int_equal(weir_penalize_at(w, "k", 1, UINT64_MAX, now, NULL), 0);
    }
}

static void incr_expire_a_key_without_end_denies_for_ever(void **state)
{
    unit_each(5, WEIR_MINUTE, comes_back);
}

/* Expiry renewed at each hit: a client that keeps asking was never let in again. */
static void keeps_asking(struct weir *w, int algorithm)
{
    uint64_t admitted = 0;
    for (uint64_t t = 0; t < 600; t++) {
        admitted += unit_check(w, "k", 1, START + t * WEIR_SECOND).granted;
    }
    assert_true(admitted >= 40);
}

static void renewed_expiry_the_window_never_closes(void **state)
{
    unit_each(5, WEIR_MINUTE, keeps_asking);
}

/* vsthrottle issue 4: the clock set two days back blocked everybody. */
static void two_days_back(struct weir *w, int algorithm)
{
    uint64_t now = START + 10 * WEIR_DAY;
    (void)unit_drain(w, "k", now);
    now -= 2 * WEIR_DAY;
    uint64_t waited = 0;
    for (int i = 0; i < 10; i++) {
        struct weir_answer a = unit_check(w, "k", 1, now + waited);
        waited += a.retry_after_ns;
    }
    assert_true(waited <= 10 * 2 * WEIR_MINUTE);
}

static void vsthrottle_4_a_clock_set_back_blocks_everybody(void **state)
{
    unit_each(5, WEIR_MINUTE, two_days_back);
}

/*
 * vsthrottle, the fix of issue 4: time was read before the lock was taken, so a
 * later stamp of another thread made the difference negative.
 */
static _Atomic uint64_t shared_clock;

struct late {
    struct weir *w;
    uint64_t granted;
};

static void *read_time_then_ask(void *arg)
{
    struct late *l = arg;
    for (int i = 0; i < 3000; i++) {
        uint64_t now = atomic_fetch_add(&shared_clock, 1000);
        struct weir_answer a;
        if (i % 8 == 0) {
            (void)sched_yield(); /* others overtake */
        }
        /* cmocka's asserts are for the main thread: an error spoils the sum instead. */
        l->granted += weir_check_at(l->w, "k", 1, 1, now, &a) == 0 ? a.granted : 1000000;
    }
    return NULL;
}

static void time_runs_backwards(struct weir *w, int algorithm)
{
    pthread_t thread[4];
    struct late late[4];
    uint64_t granted = 0;
    shared_clock = START;
    for (int i = 0; i < 4; i++) {
        late[i] = (struct late){w, 0};
        assert_int_equal(pthread_create(&thread[i], NULL, read_time_then_ask, &late[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(thread[i], NULL), 0);
        granted += late[i].granted;
    }
    assert_int_equal(granted, 500); /* all within 12 ms of one period */
}

static void vsthrottle_4_again_time_read_before_the_lock(void **state)
{
    unit_each(500, WEIR_DAY, time_runs_backwards);
}

/* go-limiter issue 41: the same between two calls of one caller. */
static void go_limiter_41_a_negative_difference_becomes_a_huge_refill(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = unit_limit(unit_algorithms[i], 5, WEIR_MINUTE);
        (void)unit_drain(w, "k", START);
        for (uint64_t back = 1; back < WEIR_SECOND; back *= 10) {
            assert_int_equal(unit_check(w, "k", 1, START - back).verdict, WEIR_DENY);
        }
        weir_close(w);
    }
}

/* Better Auth, CVE-2026-45364: rotated keys must not free the key that is limited. */
static void rotation_does_not_free_the_limited_key(void **state)
{
    for (int on_full = WEIR_DENY_NEW; on_full <= WEIR_ALLOW_NEW; on_full++) {
        struct weir_options o = unit_options(WEIR_SLIDING_LOG, 5, WEIR_HOUR);
        o.max_keys = 64;
        o.on_full = on_full;
        struct weir *w = unit_open(&o);
        (void)unit_drain(w, "limited", START);
        for (uint64_t i = 0; i < unit_scale(20000); i++) {
            struct weir_answer a;
            assert_int_equal(weir_check_at(w, &i, sizeof i, 5, START + i, &a), 0);
        }
        assert_int_equal(unit_check(w, "limited", 1, START + WEIR_MINUTE).verdict, WEIR_DENY);
        weir_close(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(systemd_17582_a_huge_interval_overflows),
        cmocka_unit_test(systemd_27342_the_counter_wraps_inside_the_window),
        cmocka_unit_test(limits_152_a_cost_greater_than_the_limit_is_allowed),
        cmocka_unit_test(incr_expire_a_key_without_end_denies_for_ever),
        cmocka_unit_test(renewed_expiry_the_window_never_closes),
        cmocka_unit_test(vsthrottle_4_a_clock_set_back_blocks_everybody),
        cmocka_unit_test(vsthrottle_4_again_time_read_before_the_lock),
        cmocka_unit_test(go_limiter_41_a_negative_difference_becomes_a_huge_refill),
        cmocka_unit_test(rotation_does_not_free_the_limited_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
