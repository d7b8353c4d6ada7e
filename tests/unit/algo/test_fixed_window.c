#include "support/engine/unit_cell.h"

#define W WEIR_MINUTE
#define T (100 * W)

static void a_window_has_its_quota_and_the_next_begins_anew(void **state)
{
    struct unit_cell c = unit_cell(WEIR_FIXED_WINDOW, 5, W, 0);
    for (uint64_t i = 0; i < 10; i++) {
        uint64_t begin = T + i * W;
        assert_int_equal(unit_cell_take(&c, 3, begin), WEIR_ALLOW);
        assert_int_equal(unit_cell_take(&c, 3, begin + W / 2), WEIR_DENY);
        assert_int_equal(unit_cell_take(&c, 2, begin + W - 1), WEIR_ALLOW);
        struct weir_answer a = unit_cell_peek(&c, 1, begin + W - 1);
        assert_int_equal(a.retry_after_ns, 1);
        assert_int_equal(a.reset_after_ns, 1);
        assert_int_equal(a.remaining, 0);
    }
}

static void a_debt_ends_with_its_window(void **state)
{
    struct unit_cell c = unit_cell(WEIR_FIXED_WINDOW, 5, W, 7);
    assert_int_equal(unit_cell_charge(&c, 100, T), 12);
    assert_int_equal(unit_cell_peek(&c, 1, T).remaining, 0);
    assert_int_equal(unit_cell_peek(&c, 1, T).retry_after_ns, W);
    assert_int_equal(unit_cell_peek(&c, 5, T + W).remaining, 5);
}

static void a_call_that_lags_is_counted_in_the_window_that_has_begun(void **state)
{
    struct unit_cell c = unit_cell(WEIR_FIXED_WINDOW, 5, W, 0);
    (void)unit_cell_take(&c, 3, T);
    assert_int_equal(unit_cell_take(&c, 2, T - ALGO_SLACK_NS), WEIR_ALLOW);
    assert_int_equal(unit_cell_take(&c, 1, T), WEIR_DENY);
    struct weir_answer a = unit_cell_peek(&c, 1, T - ALGO_SLACK_NS);
    assert_int_equal(a.retry_after_ns, W + ALGO_SLACK_NS);
}

static void a_state_of_the_far_future_keeps_its_count_and_loses_its_time(void **state)
{
    struct unit_cell c = unit_cell(WEIR_FIXED_WINDOW, 5, W, 0);
    (void)unit_cell_take(&c, 5, T);
    assert_int_equal(unit_cell_take(&c, 1, T - ALGO_SLACK_NS - 1), WEIR_DENY);
    struct weir_answer a = unit_cell_peek(&c, 1, T - ALGO_SLACK_NS - 1);
    assert_int_equal(a.retry_after_ns, ALGO_SLACK_NS + 1);
}

static void refunds_go_to_their_own_window_only(void **state)
{
    struct unit_cell c = unit_cell(WEIR_FIXED_WINDOW, 5, W, 0);
    (void)unit_cell_take(&c, 4, T);
    unit_cell_refund(&c, 1, T - 1, T);
    assert_int_equal(unit_cell_peek(&c, 1, T).remaining, 1);
    unit_cell_refund(&c, 1, T + W, T);
    assert_int_equal(unit_cell_peek(&c, 1, T).remaining, 1);
    unit_cell_refund(&c, 1, T, T + W - 1);
    assert_int_equal(unit_cell_peek(&c, 1, T).remaining, 2);
    unit_cell_refund(&c, UINT64_MAX, T, T);
    assert_int_equal(unit_cell_peek(&c, 1, T).remaining, 5);
    assert_int_equal(unit_cell_fresh_in(&c, T), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_has_its_quota_and_the_next_begins_anew),
        cmocka_unit_test(a_debt_ends_with_its_window),
        cmocka_unit_test(a_call_that_lags_is_counted_in_the_window_that_has_begun),
        cmocka_unit_test(a_state_of_the_far_future_keeps_its_count_and_loses_its_time),
        cmocka_unit_test(refunds_go_to_their_own_window_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
