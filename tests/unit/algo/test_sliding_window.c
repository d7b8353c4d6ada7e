#include "algo/window.h"
#include "support/engine/unit_cell.h"

#define W WEIR_MINUTE
#define T (100 * W)

/* The formula itself, in plain arithmetic, for small numbers. */
static bool fits(uint64_t current, uint64_t previous, uint64_t e, uint64_t cost, uint64_t quota)
{
    return (current + cost) * W + previous * (W - e) <= quota * W;
}

static void decisions_follow_the_formula(void **state)
{
    for (uint64_t previous = 0; previous <= 6; previous++) {
        for (uint64_t current = 0; current <= 6; current++) {
            for (uint64_t e = 0; e < W; e += W / 12) {
                struct unit_cell c = unit_cell(WEIR_SLIDING_WINDOW, 6, W, 6);
                (void)unit_cell_charge(&c, previous, T - 1);
                (void)unit_cell_charge(&c, current, T + e);
                for (uint64_t cost = 1; cost <= 6; cost++) {
                    struct weir_answer a = unit_cell_peek(&c, cost, T + e);
                    bool yes = fits(current, previous, e, cost, 6);
                    assert_int_equal(a.verdict, yes ? WEIR_ALLOW : WEIR_DENY);
                    assert_int_equal(a.remaining >= cost, yes);
                }
            }
        }
    }
}

/* x / d without what is tested; rounded up. */
static uint64_t quotient_up(u128 x, uint64_t d)
{
    return (uint64_t)((x + d - 1) / d);
}

static uint64_t next_random(uint64_t *x)
{
    *x = *x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *x ^ *x >> 29;
}

/* One state of a limit with this period and the largest quota that it can have. */
static void compare_with_formula(struct unit_cell *c, uint64_t *random)
{
    uint64_t period = c->params.spec.period_ns;
    uint64_t index = 1 + next_random(random) % 3;
    uint64_t e = next_random(random) % period;
    uint64_t now = (index - 1) * period + e;
    struct windows w = {index, next_random(random) % (c->params.quota + 1),
                        next_random(random) % (c->params.quota + 1)};
    uint64_t taken = w.current + quotient_up((u128)w.previous * (period - e), period);
    uint64_t remaining = sub_floor0(c->params.quota, taken);
    c->word = window_pack(&c->params, w);
    assert_int_equal(unit_cell_peek(c, 1, now).remaining, remaining);
    assert_int_equal(unit_cell_decide(c, max_u64(1, remaining), now).verdict,
                     remaining != 0 ? WEIR_ALLOW : WEIR_DENY);
    if (remaining < c->params.quota) {
        assert_int_equal(unit_cell_decide(c, remaining + 1, now).verdict, WEIR_DENY);
    }
}

/* From products of 20 bits to products of 90. */
static void large_numbers_follow_the_formula_too(void **state)
{
    const uint64_t periods[] = {
        1000,          WEIR_SECOND,         WEIR_HOUR,        WEIR_DAY,
        30 * WEIR_DAY, 1000 * WEIR_DAY + 7, ALGO_LIFE_NS / 3, ALGO_LIFE_NS / 2};
    uint64_t random = 1;
    for (size_t i = 0; i < sizeof periods / sizeof periods[0]; i++) {
        struct unit_cell c = unit_cell(WEIR_SLIDING_WINDOW, 1, periods[i], 0);
        uint64_t most = c.params.count_mask;
        for (uint64_t quota = most; quota != 0; quota /= 3) {
            c = unit_cell(WEIR_SLIDING_WINDOW, quota, periods[i], 0);
            for (unsigned k = 0; k < 500; k++) {
                compare_with_formula(&c, &random);
            }
        }
    }
}

static void retry_is_exact_from_every_state(void **state)
{
    for (uint64_t previous = 0; previous <= 9; previous++) {
        for (uint64_t current = 0; current <= 9; current++) {
            for (uint64_t cost = 1; cost <= 6; cost++) {
                struct unit_cell c = unit_cell(WEIR_SLIDING_WINDOW, 6, W, 6);
                uint64_t now = T + W / 7;
                (void)unit_cell_charge(&c, previous, T - 1);
                (void)unit_cell_charge(&c, current, now);
                struct weir_answer a = unit_cell_peek(&c, cost, now);
                if (a.verdict == WEIR_DENY) {
                    uint64_t at = now + a.retry_after_ns;
                    assert_int_equal(unit_cell_peek(&c, cost, at - 1).verdict, WEIR_DENY);
                    assert_int_equal(unit_cell_peek(&c, cost, at).verdict, WEIR_ALLOW);
                }
            }
        }
    }
}

static void the_estimate_is_0_after_the_window_after_the_last_one(void **state)
{
    struct unit_cell c = unit_cell(WEIR_SLIDING_WINDOW, 6, W, 0);
    (void)unit_cell_take(&c, 1, T + 5);
    assert_int_equal(unit_cell_fresh_in(&c, T + 5), 2 * W - 5);
    assert_int_equal(unit_cell_fresh_in(&c, T + W), W);
    assert_int_equal(unit_cell_fresh_in(&c, T + 2 * W - 1), 1);
    assert_int_equal(unit_cell_fresh_in(&c, T + 2 * W), 0);
}

static void windows_that_were_skipped_count_nothing(void **state)
{
    struct unit_cell c = unit_cell(WEIR_SLIDING_WINDOW, 6, W, 0);
    (void)unit_cell_take(&c, 6, T + W - 1);
    assert_int_equal(unit_cell_peek(&c, 1, T + W).remaining, 0);
    assert_int_equal(unit_cell_peek(&c, 1, T + 2 * W).remaining, 6);
    assert_int_equal(unit_cell_peek(&c, 1, T + 50 * W).remaining, 6);
}

static void refunds_reach_the_current_and_the_previous_window(void **state)
{
    struct unit_cell c = unit_cell(WEIR_SLIDING_WINDOW, 6, W, 0);
    (void)unit_cell_take(&c, 3, T - 1);
    (void)unit_cell_take(&c, 3, T);
    assert_int_equal(unit_cell_peek(&c, 1, T).remaining, 0);
    unit_cell_refund(&c, 2, T - 1, T);
    assert_int_equal(unit_cell_peek(&c, 1, T).remaining, 2);
    unit_cell_refund(&c, 9, T, T);
    assert_int_equal(unit_cell_peek(&c, 1, T).remaining, 5);
    unit_cell_refund(&c, 1, T - 2 * W, T);
    assert_int_equal(unit_cell_peek(&c, 1, T).remaining, 5);
}

static void a_lagging_call_sees_the_beginning_of_the_window_ahead(void **state)
{
    struct unit_cell c = unit_cell(WEIR_SLIDING_WINDOW, 6, W, 0);
    (void)unit_cell_take(&c, 4, T - 1);
    (void)unit_cell_take(&c, 1, T);
    assert_int_equal(unit_cell_peek(&c, 1, T - 5).remaining, 1);
    assert_int_equal(unit_cell_take(&c, 1, T - 5), WEIR_ALLOW);
    assert_int_equal(unit_cell_peek(&c, 1, T).remaining, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decisions_follow_the_formula),
        cmocka_unit_test(large_numbers_follow_the_formula_too),
        cmocka_unit_test(retry_is_exact_from_every_state),
        cmocka_unit_test(the_estimate_is_0_after_the_window_after_the_last_one),
        cmocka_unit_test(windows_that_were_skipped_count_nothing),
        cmocka_unit_test(refunds_reach_the_current_and_the_previous_window),
        cmocka_unit_test(a_lagging_call_sees_the_beginning_of_the_window_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
