/*
 * P9: extreme 64-bit values at every entry point. Nothing wraps (the sanitizers
 * would say so), every answer is sound, and no unit is given twice.
 */
#include "algo/algo.h"
#include "support/engine/unit_limiter.h"

static const uint64_t extremes[] = {
    0,
    1,
    2,
    3,
    1000,
    (UINT64_C(1) << 31) - 1,
    UINT64_C(1) << 31,
    (UINT64_C(1) << 32) - 1,
    UINT64_C(1) << 32,
    1000000000000,
    (UINT64_C(1) << 53) + 1,
    UINT64_C(1) << 61,
    ALGO_LIFE_NS - 1,
    ALGO_LIFE_NS,
    ALGO_LIFE_NS + 1,
    (UINT64_C(1) << 62) - 1,
    UINT64_C(1) << 62,
    (UINT64_C(1) << 63) - 1,
    UINT64_C(1) << 63,
    (UINT64_C(1) << 63) + 1,
    UINT64_MAX - 1,
    UINT64_MAX,
};

#define EXTREMES (sizeof extremes / sizeof extremes[0])

static uint64_t extreme(uint64_t *seed)
{
    uint64_t r = unit_random(seed);
    uint64_t x = extremes[r % EXTREMES];
    return r >> 32 & 1 ? x + (r >> 40) % 3 - 1 : x;
}

/* ---- making ---- */

/* Every pair of count and period: refused by name, or a limit that keeps its word. */
static void use_briefly(struct weir *w)
{
    uint64_t total = 0;
    struct weir_answer a;
    for (size_t i = 0; i < EXTREMES; i++) {
        for (int time = 0; time < 3; time++) {
            int e = weir_check_at(w, "k", 1, extremes[i], time * WEIR_MICROSECOND / 100, &a);
            assert_int_equal(e, extremes[i] == 0 ? WEIR_ECOST : 0);
            if (e == 0) {
                unit_assert_sound(&a, extremes[i], WEIR_CHECK);
                total += a.granted;
                assert_true(total >= a.granted);
            }
        }
    }
}

static void assert_named(int e)
{
    assert_true(e == 0 || e == WEIR_EINVAL || e == WEIR_ERATE || e == WEIR_EQUOTA ||
                e == WEIR_ENOMEM);
}

static void every_rate_is_refused_or_sound(void **state)
{
    for (int algorithm = 0; algorithm < UNIT_ALGORITHMS; algorithm++) {
        for (size_t i = 0; i < EXTREMES * EXTREMES; i++) {
            struct weir_options o = unit_options(unit_algorithms[algorithm], 1, 0);
            struct weir *w;
            o.count = extremes[i / EXTREMES];
            o.period_ns = extremes[i % EXTREMES];
            o.max_keys = 1;
            int e = weir_open(&w, &o, NULL);
            assert_named(e);
            if (e == 0) {
                use_briefly(w);
                weir_close(w);
            }
        }
    }
}

static void every_burst_queue_debt_and_size_is_refused_or_sound(void **state)
{
    uint64_t seed = 61;
    unsigned opened = 0;
    for (uint64_t i = 0; i < unit_scale(20000); i++) {
        struct weir_options o = unit_options(1 + i % 5, 1, extreme(&seed));
        struct weir *w;
        o.count = extreme(&seed) % (1000000 + (i % 3) * extreme(&seed));
        o.period_ns = i % 2 == 0 ? o.period_ns : WEIR_SECOND;
        o.burst = o.algorithm == WEIR_TOKEN_BUCKET ? extreme(&seed) : 0;
        o.queue = o.algorithm == WEIR_LEAKY_BUCKET ? extreme(&seed) : 0;
        o.max_debt = extreme(&seed);
        o.max_keys = 1 + i % 2;
        int e = weir_open(&w, &o, NULL);
        assert_named(e);
        if (e == 0) {
            opened++;
            use_briefly(w);
            weir_close(w);
        }
    }
    assert_true(opened > unit_scale(20000) / 100);
}

/* ---- using ---- */

struct machine {
    struct weir *w;
    bool waits;
    uint64_t seed;
};

static void ask_extremely(struct machine *m, uint64_t now)
{
    struct weir_answer a;
    struct weir_question ask = unit_question("k", extreme(&m->seed), unit_random(&m->seed) % 3);
    if (m->waits && ask.mode != WEIR_UP_TO) {
        ask.max_wait_ns = extreme(&m->seed);
    }
    int e = weir_ask_at(m->w, &ask, now, &a);
    assert_true(e == 0 || e == WEIR_ETIME || e == WEIR_ECOST);
    if (e == 0) {
        unit_assert_sound(&a, ask.cost, ask.mode);
        assert_true(ask.max_wait_ns == 0 || a.delay_ns <= ask.max_wait_ns);
    }
}

static void use_a_verb(struct machine *m, uint64_t now)
{
    struct weir_answer a;
    struct weir_reservation r;
    uint64_t x = extreme(&m->seed);
    uint64_t y = extreme(&m->seed);
    switch (unit_random(&m->seed) % 9) {
    case 0:
        (void)weir_refund_at(m->w, "k", 1, x, y, now, &a);
        break;
    case 1:
        (void)weir_penalize_at(m->w, "k", 1, x, now, &a);
        break;
    case 2:
        (void)weir_block_at(m->w, "k", 1, x, now);
        break;
    case 3:
        (void)weir_unblock(m->w, "k", 1);
        break;
    case 4:
        if (weir_reserve_at(m->w, "k", 1, x, y, now, &r, &a) == 0) {
            (void)weir_settle_at(m->w, &r, extreme(&m->seed), extreme(&m->seed), &a);
            (void)weir_cancel_at(m->w, &r, now, &a);
        }
        break;
    case 5:
        (void)weir_sweep_at(m->w, x, now);
        break;
    case 6:
        (void)weir_change(m->w, x, y, NULL);
        break;
    case 7:
        (void)weir_change(m->w, 1 + x % 1000, m->waits ? y % 1000 : 0, NULL);
        break;
    default:
        (void)weir_reset(m->w, "k", 1);
    }
}

static void extreme_calls_in_any_order_are_sound(void **state)
{
    for (uint64_t i = 0; i < unit_scale(400); i++) {
        struct weir_options o = unit_options(1 + i % 5, 7, i % 3 == 0 ? 1000 : WEIR_SECOND);
        o.offset_ns =
            (o.algorithm == WEIR_FIXED_WINDOW || o.algorithm == WEIR_SLIDING_WINDOW) && i % 2 == 0
                ? 999
                : 0;
        o.align = o.algorithm == WEIR_FIXED_WINDOW && i % 4 == 1;
        o.max_keys = 1;
        struct machine m = {unit_open(&o), o.algorithm <= WEIR_LEAKY_BUCKET, i};
        for (int j = 0; j < 300; j++) {
            uint64_t now = extreme(&m.seed);
            ask_extremely(&m, now);
            use_a_verb(&m, now);
        }
        weir_close(m.w);
    }
}

/* The last moments of a time line, found by bisection: what holds in its middle holds there. */
static uint64_t last_time(struct weir *w)
{
    struct weir_answer a;
    struct weir_question peek = unit_question("k", 1, WEIR_PEEK);
    uint64_t good = 0;
    uint64_t bad = UINT64_MAX;
    while (bad - good > 1) {
        uint64_t middle = good + (bad - good) / 2;
        if (weir_ask_at(w, &peek, middle, &a) == 0) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    return good;
}

static void live_at_the_end(struct weir *w, int algorithm)
{
    struct weir_answer a;
    uint64_t end = last_time(w);
    assert_true(end >= 4 * 365 * WEIR_DAY);
    assert_int_equal(weir_check_at(w, "k", 1, 1, end + 1, &a), WEIR_ETIME);
    assert_int_equal(unit_check(w, "k", 1000, end).verdict, WEIR_ALLOW);
    assert_int_equal(weir_penalize_at(w, "k", 1, 1000, end, &a), 0);
    assert_int_equal(unit_check(w, "k", 1000, end).verdict, WEIR_DENY);
    assert_int_equal(unit_check(w, "k", 1, end).verdict, WEIR_DENY);
    assert_int_equal(unit_check(w, "k", 1000, end - WEIR_SECOND).verdict, WEIR_DENY);
    assert_int_equal(unit_check(w, "other", 1000, end).verdict, WEIR_ALLOW);
}

static void a_wrap_at_the_end_of_the_time_line_admits_nothing(void **state)
{
    unit_each(1000, 1000 * WEIR_SECOND, live_at_the_end);
    unit_each(1000, WEIR_MILLISECOND, live_at_the_end);
    unit_each(1000, 250 * WEIR_MICROSECOND, live_at_the_end);
    unit_each(1000, 365 * WEIR_DAY, live_at_the_end);
}

/* With an offset the time line of explicit times begins before 0. */
static void times_near_2_to_the_63_and_2_to_the_64_do_not_wrap(void **state)
{
    for (int algorithm = WEIR_FIXED_WINDOW; algorithm <= WEIR_SLIDING_WINDOW; algorithm++) {
        struct weir_options o = unit_options(algorithm, 5, ALGO_LIFE_NS);
        struct weir_answer a;
        o.offset_ns = 1;
        struct weir *w = unit_open(&o);
        for (uint64_t beyond = INT64_MAX; beyond >= INT64_MAX; beyond += UINT64_MAX / 37) {
            assert_int_equal(weir_check_at(w, "k", 1, 1, beyond, &a), WEIR_ETIME);
        }
        assert_int_equal(weir_check_at(w, "k", 1, 1, UINT64_MAX, &a), WEIR_ETIME);
        assert_int_equal(weir_check_at(w, "k", 1, 1, UINT64_MAX - 1, &a), WEIR_ETIME);
        assert_int_equal(weir_block_at(w, "k", 1, INT64_MAX, 0), 0);
        a = unit_check(w, "k", 1, 0);
        assert_int_equal(a.flags, WEIR_FLAG_BLOCKED);
        assert_int_equal(a.retry_after_ns, INT64_MAX);
        weir_close(w);
    }
}

static void the_largest_limits_count_to_their_last_unit(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        const uint64_t quotas[] = {1152921504, 1152921504, UINT32_MAX, 65535, 65535};
        struct weir_options o = unit_options(unit_algorithms[i], quotas[i], WEIR_SECOND);
        o.count = i < 2 ? 1 : o.count;
        o.burst = i == 0 ? quotas[i] : 0;
        o.max_debt = WEIR_NO_DEBT;
        o.max_keys = 1;
        struct weir *w = unit_open(&o);
        assert_int_equal(unit_check(w, "k", quotas[i] - 1, 0).remaining, 1);
        assert_int_equal(unit_check(w, "k", 2, 0).verdict, WEIR_DENY);
        assert_int_equal(unit_check(w, "k", 1, 0).remaining, 0);
        assert_int_equal(unit_check(w, "k", 1, 0).verdict, WEIR_DENY);
        assert_int_equal(unit_check(w, "k", quotas[i] + 1, 0).verdict, WEIR_NEVER);
        weir_close(w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_rate_is_refused_or_sound),
        cmocka_unit_test(every_burst_queue_debt_and_size_is_refused_or_sound),
        cmocka_unit_test(extreme_calls_in_any_order_are_sound),
        cmocka_unit_test(a_wrap_at_the_end_of_the_time_line_admits_nothing),
        cmocka_unit_test(times_near_2_to_the_63_and_2_to_the_64_do_not_wrap),
        cmocka_unit_test(the_largest_limits_count_to_their_last_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
