/* Reserve, then settle or cancel. */
#include "support/engine/unit_limiter.h"

#define START (120 * WEIR_SECOND)
#define TTL (30 * WEIR_SECOND)

static struct weir_reservation reserve(struct weir *w, uint64_t estimate, uint64_t now)
{
    struct weir_reservation r;
    struct weir_answer a;
    assert_int_equal(weir_reserve_at(w, "k", 1, estimate, TTL, now, &r, &a), 0);
    unit_assert_sound(&a, estimate, WEIR_CHECK);
    return r;
}

static void bad_arguments_are_refused(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_MINUTE);
    struct weir_reservation r;
    struct weir_answer a;
    assert_int_equal(weir_reserve_at(NULL, "k", 1, 1, TTL, START, &r, &a), WEIR_EINVAL);
    assert_int_equal(weir_reserve_at(w, "k", 1, 1, TTL, START, NULL, &a), WEIR_EINVAL);
    assert_int_equal(weir_reserve_at(w, "k", 1, 1, TTL, START, &r, NULL), WEIR_EINVAL);
    assert_int_equal(weir_reserve_at(w, "k", 1, 1, 0, START, &r, &a), WEIR_EINVAL);
    assert_int_equal(weir_reserve_at(w, "k", 1, 0, TTL, START, &r, &a), WEIR_ECOST);
    assert_int_equal(weir_reserve_at(w, "k", 0, 1, TTL, START, &r, &a), WEIR_EKEY);
    assert_int_equal(weir_reserve_at(w, NULL, 1, 1, TTL, START, &r, &a), WEIR_EKEY);
    assert_int_equal(weir_reserve_at(w, "k", 1, 1, TTL, UINT64_MAX, &r, &a), WEIR_ETIME);
    assert_int_equal(unit_stats(w).keys, 0);
    r = reserve(w, 1, START);
    assert_int_equal(weir_settle_at(NULL, &r, 1, START, &a), WEIR_EINVAL);
    assert_int_equal(weir_settle_at(w, NULL, 1, START, &a), WEIR_EINVAL);
    assert_int_equal(weir_settle_at(w, &r, 1, UINT64_MAX, &a), WEIR_ETIME);
    assert_int_equal(weir_cancel_at(NULL, &r, START, &a), WEIR_EINVAL);
    assert_int_equal(weir_cancel_at(w, NULL, START, &a), WEIR_EINVAL);
    assert_int_equal(weir_reserve(NULL, "k", 1, 1, TTL, &r, &a), WEIR_EINVAL);
    assert_int_equal(weir_settle(NULL, &r, 1, &a), WEIR_EINVAL);
    assert_int_equal(weir_cancel(NULL, &r, &a), WEIR_EINVAL);
    assert_int_equal(weir_cancel_at(w, &r, START, NULL), 0); /* none of it used it up */
    weir_close(w);
}

static void settle_below(struct weir *w, int algorithm)
{
    struct weir_answer a;
    struct weir_reservation r = reserve(w, 8, START);
    assert_int_equal(unit_peek(w, "k", 1, START).remaining, 2);
    assert_int_equal(weir_settle_at(w, &r, 3, START, &a), 0);
    assert_int_equal(a.remaining, 7);
    assert_int_equal(a.granted, 0);
    assert_int_equal(unit_drain(w, "k", START), 7);
}

static void settling_below_the_estimate_gives_the_rest_back(void **state)
{
    unit_each(10, WEIR_MINUTE, settle_below);
}

static void settle_equal(struct weir *w, int algorithm)
{
    struct weir_answer a;
    struct weir_reservation r = reserve(w, 8, START);
    struct weir_answer before = unit_peek(w, "k", 1, START + 5);
    assert_int_equal(weir_settle_at(w, &r, 8, START + 5, &a), 0);
    unit_assert_same(&before, &a);
}

static void settling_at_the_estimate_changes_nothing(void **state)
{
    unit_each(10, WEIR_MINUTE, settle_equal);
}

static void settle_above(struct weir *w, int algorithm)
{
    struct weir_answer a;
    struct weir_reservation r = reserve(w, 8, START);
    assert_int_equal(weir_settle_at(w, &r, 9, START, &a), 0);
    assert_int_equal(a.granted, 1);
    assert_int_equal(a.remaining, 1);
    r = reserve(w, 1, START);
    assert_int_equal(weir_settle_at(w, &r, 1000, START, &a), 0);
    assert_int_equal(a.verdict, WEIR_DENY);
    /* Ten are used; the default debt takes ten more, a log none. */
    assert_int_equal(a.granted, algorithm == WEIR_SLIDING_LOG ? 0 : 10);
    assert_int_equal(unit_drain(w, "k", START), 0);
}

static void settling_above_the_estimate_goes_into_debt_up_to_max_debt(void **state)
{
    unit_each(10, WEIR_MINUTE, settle_above);
}

/* For a key in any state, cancelling at once leaves no trace. */
static void cancel_now(struct weir *w, int algorithm)
{
    uint64_t seed = 41;
    uint64_t now = START;
    for (int i = 0; i < 2000; i++) {
        now += unit_random(&seed) % (20 * WEIR_SECOND);
        (void)unit_check(w, "k", 1 + unit_random(&seed) % 4, now);
        uint64_t probe = 1 + unit_random(&seed) % 10;
        struct weir_answer before = unit_peek(w, "k", probe, now);
        if (before.remaining == 0) {
            continue;
        }
        struct weir_reservation r = reserve(w, 1 + unit_random(&seed) % before.remaining, now);
        assert_int_equal(weir_cancel_at(w, &r, now, NULL), 0);
        for (uint64_t later = 0; later < 90 * WEIR_SECOND; later += 13 * WEIR_SECOND) {
            struct weir_answer was = unit_peek(w, "k", probe, now + later);
            if (later == 0) {
                unit_assert_same(&before, &was);
            }
        }
    }
}

static void cancelling_at_once_is_the_exact_inverse(void **state)
{
    unit_each(10, WEIR_MINUTE, cancel_now);
}

/* Cancelled later: never richer than a twin that had never reserved. */
static void cancelling_later_never_makes_a_key_richer(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = unit_limit(unit_algorithms[i], 10, WEIR_MINUTE);
        struct weir *twin = unit_limit(unit_algorithms[i], 10, WEIR_MINUTE);
        uint64_t seed = 43;
        uint64_t now = START;
        for (int j = 0; j < 1000; j++) {
            now += unit_random(&seed) % (9 * WEIR_SECOND);
            uint64_t estimate = 1 + unit_random(&seed) % 5;
            struct weir_reservation r = reserve(w, estimate, now);
            now += unit_random(&seed) % (25 * WEIR_SECOND);
            (void)weir_cancel_at(w, &r, now, NULL);
            uint64_t cost = 1 + unit_random(&seed) % 3;
            if (unit_check(w, "k", cost, now).verdict == WEIR_ALLOW) {
                assert_int_equal(unit_check(twin, "k", cost, now).verdict, WEIR_ALLOW);
            }
            assert_true(unit_peek(w, "k", 1, now).remaining <=
                        unit_peek(twin, "k", 1, now).remaining);
        }
        weir_close(w);
        weir_close(twin);
    }
}

static void let_it_expire(struct weir *w, int algorithm)
{
    struct weir_answer a;
    struct weir_reservation r = reserve(w, 8, START);
    struct weir_answer before = unit_peek(w, "k", 1, START + TTL);
    assert_int_equal(weir_settle_at(w, &r, 1, START + TTL, &a), WEIR_EEXPIRED);
    assert_int_equal(weir_cancel_at(w, &r, START + TTL, &a), WEIR_EEXPIRED);
    struct weir_answer after = unit_peek(w, "k", 1, START + TTL);
    unit_assert_same(&before, &after);
    assert_int_equal(weir_settle_at(w, &r, 1, START + TTL - 1, &a), 0); /* the last moment */
}

static void an_expired_reservation_stays_charged(void **state)
{
    unit_each(10, WEIR_MINUTE, let_it_expire);
}

static void settle_twice(struct weir *w, int algorithm)
{
    struct weir_answer a;
    struct weir_reservation r = reserve(w, 8, START);
    assert_int_equal(weir_cancel_at(w, &r, START, &a), 0);
    assert_int_equal(weir_cancel_at(w, &r, START, &a), WEIR_ESTALE);
    assert_int_equal(weir_settle_at(w, &r, 100, START, &a), WEIR_ESTALE);
    assert_int_equal(unit_drain(w, "k", START), 10);
}

static void a_settled_handle_is_used_up(void **state)
{
    unit_each(10, WEIR_MINUTE, settle_twice);
}

static void a_denied_reservation_is_no_handle(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_MINUTE);
    struct weir_reservation r;
    struct weir_answer a;
    (void)unit_drain(w, "k", START);
    assert_int_equal(weir_reserve_at(w, "k", 1, 1, TTL, START, &r, &a), 0);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(weir_settle_at(w, &r, 5, START, &a), WEIR_ESTALE);
    assert_int_equal(weir_reserve_at(w, "k", 1, 11, TTL, START, &r, &a), 0);
    assert_int_equal(a.verdict, WEIR_NEVER);
    assert_int_equal(weir_cancel_at(w, &r, START, &a), WEIR_ESTALE);
    weir_close(w);
}

static void a_handle_of_another_limiter_is_stale_and_stays_good(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_MINUTE);
    struct weir *other = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_MINUTE);
    struct weir_answer a;
    struct weir_reservation r = reserve(w, 4, START);
    struct weir_reservation zero;
    memset(&zero, 0, sizeof zero);
    assert_int_equal(weir_settle_at(other, &r, 1, START, &a), WEIR_ESTALE);
    assert_int_equal(weir_settle_at(w, &zero, 1, START, &a), WEIR_ESTALE);
    assert_int_equal(weir_settle_at(w, &r, 1, START, &a), 0);
    weir_close(w);
    weir_close(other);
}

static void a_handle_can_be_copied_and_lasts_as_long_as_it_is_told(void **state)
{
    struct weir *w = unit_limit(WEIR_FIXED_WINDOW, 10, WEIR_DAY);
    struct weir_reservation r;
    struct weir_answer a;
    assert_int_equal(weir_reserve_at(w, "k", 1, 4, UINT64_MAX, START, &r, &a), 0);
    struct weir_reservation copy = r;
    assert_int_equal(weir_cancel_at(w, &copy, START + WEIR_HOUR, &a), 0);
    assert_int_equal(a.remaining, 10);
    weir_close(w);
}

static void windows_do_not_get_back_what_an_old_window_was_charged(void **state)
{
    struct weir *w = unit_limit(WEIR_FIXED_WINDOW, 10, WEIR_SECOND);
    struct weir_answer a;
    struct weir_reservation r = reserve(w, 8, START);
    (void)unit_check(w, "k", 5, START + WEIR_SECOND);
    assert_int_equal(weir_cancel_at(w, &r, START + WEIR_SECOND, &a), 0);
    assert_int_equal(a.remaining, 5);
    weir_close(w);
}

/* A caller whose clock lags is counted in the window that others have begun, and refunded there. */
static void a_lagging_reservation_is_cancelled_where_it_was_counted(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir *w = unit_limit(unit_algorithms[i], 10, WEIR_MINUTE);
        (void)unit_check(w, "k", 1, START);
        struct weir_answer before = unit_peek(w, "k", 1, START);
        struct weir_reservation r = reserve(w, 3, START - WEIR_SECOND / 2);
        assert_int_equal(weir_cancel_at(w, &r, START - WEIR_SECOND / 2, NULL), 0);
        struct weir_answer after = unit_peek(w, "k", 1, START);
        unit_assert_same(&before, &after);
        weir_close(w);
    }
}

/* ---- what comes back late ---- */

/*
 * The units came back when the bucket had long refilled: they are spent a second
 * time, as many as others had taken meanwhile. From the charge on, the bound holds.
 */
static void a_late_cancel_adds_no_more_than_others_took_since_the_charge(void **state)
{
    for (uint64_t taken = 0; taken <= 10; taken++) {
        struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, 10 * WEIR_SECOND);
        uint64_t later = START + 10 * WEIR_SECOND;
        struct weir_reservation r = reserve(w, 10, START);
        assert_int_equal(taken == 0 ? WEIR_ALLOW : unit_check(w, "k", taken, later).verdict,
                         WEIR_ALLOW);
        assert_int_equal(weir_cancel_at(w, &r, later, NULL), 0);
        assert_int_equal(taken + unit_drain(w, "k", later), 10 + taken);
        weir_close(w);
    }
}

static void a_late_cancel_is_exact_if_nothing_was_charged_since(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, 10 * WEIR_SECOND);
    struct weir *twin = unit_limit(WEIR_TOKEN_BUCKET, 10, 10 * WEIR_SECOND);
    for (uint64_t elapsed = 0; elapsed < 12 * WEIR_SECOND; elapsed += WEIR_SECOND / 3) {
        struct weir_answer a;
        assert_int_equal(weir_reset(w, "k", 1) + weir_reset(twin, "k", 1), elapsed == 0 ? 0 : 2);
        (void)unit_check(w, "k", 3, START);
        (void)unit_check(twin, "k", 5, START);
        struct weir_reservation r = reserve(w, 7, START);
        assert_int_equal(weir_settle_at(w, &r, 2, START + elapsed, &a), 0);
        struct weir_answer b = unit_peek(twin, "k", 1, START + elapsed);
        unit_assert_same(&a, &b);
    }
    weir_close(w);
    weir_close(twin);
}

/* A key that is asked for more than it has, all the time, for a minute. */
static uint64_t saturate(struct weir *w, uint64_t cost, uint64_t from)
{
    uint64_t taken = 0;
    for (uint64_t now = from; now <= from + WEIR_MINUTE; now += 10 * WEIR_MILLISECOND) {
        while (unit_check(w, "k", cost, now).verdict == WEIR_ALLOW) {
            taken += cost;
        }
    }
    return taken;
}

/* Whatever the burst, and whether or not the key may be in debt. */
static void unused_units_of_a_busy_key_return_in_full_after_a_minute(void **state)
{
    static const uint64_t bursts[] = {100000, 1000, 400};
    for (unsigned i = 0; i < 6; i++) {
        struct weir_options o = unit_options(WEIR_TOKEN_BUCKET, 100000, WEIR_MINUTE);
        struct weir_reservation r;
        struct weir_answer a;
        o.burst = bursts[i / 2];
        o.max_debt = i % 2 == 0 ? WEIR_NO_DEBT : 0;
        struct weir *w = unit_open(&o);
        assert_int_equal(weir_reserve_at(w, "k", 1, 300, WEIR_HOUR, START, &r, &a), 0);
        assert_true(saturate(w, 100, START) >= 99900);
        uint64_t later = START + WEIR_MINUTE;
        uint64_t before = unit_peek(w, "k", 1, later).remaining;
        assert_int_equal(weir_settle_at(w, &r, 50, later, &a), 0);
        assert_int_equal(a.remaining, before + 250);
        weir_close(w);
    }
}

/* Three wait; the first does not go. The others have their places already and keep them. */
static void a_cancelled_place_in_a_queue_is_free_again_only_while_it_is_the_last(void **state)
{
    struct weir *w = unit_limit(WEIR_LEAKY_BUCKET, 10, 10 * WEIR_SECOND);
    struct weir_reservation first = reserve(w, 1, START);
    struct weir_reservation second = reserve(w, 1, START);
    struct weir_reservation third = reserve(w, 1, START);
    assert_int_equal(weir_cancel_at(w, &first, START, NULL), 0);
    assert_int_equal(unit_peek(w, "k", 1, START).delay_ns, 3 * WEIR_SECOND);
    assert_int_equal(weir_cancel_at(w, &third, START, NULL), 0);
    assert_int_equal(unit_peek(w, "k", 1, START).delay_ns, 2 * WEIR_SECOND);
    assert_int_equal(weir_cancel_at(w, &second, START, NULL), 0);
    assert_int_equal(unit_peek(w, "k", 1, START).delay_ns, WEIR_SECOND);
    weir_close(w);
}

static void the_unused_end_of_the_last_place_is_free_again(void **state)
{
    struct weir *w = unit_limit(WEIR_LEAKY_BUCKET, 10, 10 * WEIR_SECOND);
    (void)unit_check(w, "k", 1, START);
    struct weir_reservation r = reserve(w, 5, START);
    assert_int_equal(weir_settle_at(w, &r, 2, START + WEIR_SECOND / 2, NULL), 0);
    assert_int_equal(unit_check(w, "k", 1, START).delay_ns, 3 * WEIR_SECOND);
    weir_close(w);
}

/* Units go back as the time that they were charged, not at the rate of today. */
static void a_change_of_the_rate_between_reserve_and_cancel_leaves_no_trace(void **state)
{
    static const uint64_t counts[] = {1, 7, 100, 1000};
    for (unsigned i = 0; i < 8; i++) {
        int algorithm = i % 2 == 0 ? WEIR_TOKEN_BUCKET : WEIR_LEAKY_BUCKET;
        struct weir *w = unit_limit(algorithm, 100, WEIR_SECOND);
        struct weir *twin = unit_limit(algorithm, 100, WEIR_SECOND);
        struct weir_answer a;
        (void)unit_check(w, "k", 30, START);
        (void)unit_check(twin, "k", 30, START);
        struct weir_reservation r = reserve(w, 50, START);
        assert_int_equal(weir_change(w, counts[i / 2], 100, NULL), 0);
        assert_int_equal(weir_change(twin, counts[i / 2], 100, NULL), 0);
        assert_int_equal(weir_cancel_at(w, &r, START, &a), 0);
        struct weir_answer b = unit_peek(twin, "k", 1, START);
        unit_assert_same(&a, &b);
        weir_close(w);
        weir_close(twin);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(settling_below_the_estimate_gives_the_rest_back),
        cmocka_unit_test(settling_at_the_estimate_changes_nothing),
        cmocka_unit_test(settling_above_the_estimate_goes_into_debt_up_to_max_debt),
        cmocka_unit_test(cancelling_at_once_is_the_exact_inverse),
        cmocka_unit_test(cancelling_later_never_makes_a_key_richer),
        cmocka_unit_test(an_expired_reservation_stays_charged),
        cmocka_unit_test(a_settled_handle_is_used_up),
        cmocka_unit_test(a_denied_reservation_is_no_handle),
        cmocka_unit_test(a_handle_of_another_limiter_is_stale_and_stays_good),
        cmocka_unit_test(a_handle_can_be_copied_and_lasts_as_long_as_it_is_told),
        cmocka_unit_test(windows_do_not_get_back_what_an_old_window_was_charged),
        cmocka_unit_test(a_lagging_reservation_is_cancelled_where_it_was_counted),
        cmocka_unit_test(a_late_cancel_adds_no_more_than_others_took_since_the_charge),
        cmocka_unit_test(a_late_cancel_is_exact_if_nothing_was_charged_since),
        cmocka_unit_test(unused_units_of_a_busy_key_return_in_full_after_a_minute),
        cmocka_unit_test(a_cancelled_place_in_a_queue_is_free_again_only_while_it_is_the_last),
        cmocka_unit_test(the_unused_end_of_the_last_place_is_free_again),
        cmocka_unit_test(a_change_of_the_rate_between_reserve_and_cancel_leaves_no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
