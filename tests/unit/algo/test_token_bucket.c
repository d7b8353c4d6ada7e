#include "support/engine/unit_cell.h"

#define T (1000 * WEIR_SECOND)

static void one_token_comes_back_after_each_step(void **state)
{
    struct unit_cell c = unit_cell(WEIR_TOKEN_BUCKET, 4, WEIR_SECOND, 0);
    assert_int_equal(unit_cell_take(&c, 4, T), WEIR_ALLOW);
    for (uint64_t i = 0; i < 4; i++) {
        uint64_t step = WEIR_SECOND / 4;
        assert_int_equal(unit_cell_peek(&c, 1, T + i * step).remaining, i);
        assert_int_equal(unit_cell_peek(&c, 1, T + (i + 1) * step - 1).remaining, i);
        assert_int_equal(unit_cell_peek(&c, 4, T).retry_after_ns, WEIR_SECOND);
        assert_int_equal(unit_cell_peek(&c, i + 1, T).retry_after_ns, (i + 1) * step);
    }
    assert_int_equal(unit_cell_peek(&c, 4, T + WEIR_SECOND).verdict, WEIR_ALLOW);
}

static void an_idle_bucket_is_full_and_not_fuller(void **state)
{
    struct unit_cell c = unit_cell(WEIR_TOKEN_BUCKET, 4, WEIR_SECOND, 0);
    (void)unit_cell_take(&c, 1, T);
    assert_int_equal(unit_cell_peek(&c, 1, T + WEIR_DAY).remaining, 4);
    assert_int_equal(unit_cell_take(&c, 4, T + WEIR_DAY), WEIR_ALLOW);
    assert_int_equal(unit_cell_take(&c, 1, T + WEIR_DAY), WEIR_DENY);
}

static void fractions_of_a_token_are_kept(void **state)
{
    struct unit_cell c = unit_cell(WEIR_TOKEN_BUCKET, 3, WEIR_SECOND, 0);
    uint64_t admitted = 0;
    (void)unit_cell_take(&c, 3, T);
    for (uint64_t i = 1; i <= 3000; i++) {
        admitted += unit_cell_take(&c, 1, T + i * (WEIR_SECOND / 10)) == WEIR_ALLOW;
    }
    assert_in_range(admitted, 899, 900);
}

static void waiting_borrows_from_the_future_up_to_the_debt(void **state)
{
    struct unit_cell c = unit_cell(WEIR_TOKEN_BUCKET, 2, 2 * WEIR_SECOND, 3);
    struct algo_ask ask = {T, 1, WEIR_FOREVER};
    for (int i = 0; i < 5; i++) {
        struct algo_step step =
            algo_decide(c.ops, &c.params, (struct algo_state){c.word, NULL}, &ask);
        assert_int_equal(step.verdict, WEIR_ALLOW);
        c.word = step.word;
    }
    assert_int_equal(algo_decide(c.ops, &c.params, (struct algo_state){c.word, NULL}, &ask).verdict,
                     WEIR_DENY);
    ask.wait = 0;
    assert_int_equal(unit_cell_peek(&c, 1, T).retry_after_ns, 4 * WEIR_SECOND);
}

static void a_peek_for_nothing_is_denied_only_in_debt(void **state)
{
    struct unit_cell c = unit_cell(WEIR_TOKEN_BUCKET, 2, 2 * WEIR_SECOND, 3);
    (void)unit_cell_take(&c, 2, T);
    assert_int_equal(unit_cell_peek(&c, 0, T).verdict, WEIR_ALLOW);
    (void)unit_cell_charge(&c, 1, T);
    struct weir_answer a = unit_cell_peek(&c, 0, T);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.retry_after_ns, WEIR_SECOND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_token_comes_back_after_each_step),
        cmocka_unit_test(an_idle_bucket_is_full_and_not_fuller),
        cmocka_unit_test(fractions_of_a_token_are_kept),
        cmocka_unit_test(waiting_borrows_from_the_future_up_to_the_debt),
        cmocka_unit_test(a_peek_for_nothing_is_denied_only_in_debt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
