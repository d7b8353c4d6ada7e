/* The table of operations, and what every algorithm in it must obey. */
#include "support/engine/unit_cell.h"

#define T (1000 * WEIR_SECOND)

static void algorithms_are_found_by_id_and_name(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        const struct algo_ops *ops = algo_by_id(unit_algorithms[i]);
        assert_non_null(ops);
        assert_int_equal(ops->id, unit_algorithms[i]);
        assert_int_equal(weir_algorithm_by_name(weir_algorithm_name(ops->id)), ops->id);
        assert_int_equal(algorithm_has(ops->id, IS_BUCKET),
                         unit_algorithms[i] <= WEIR_LEAKY_BUCKET);
        assert_non_null(strstr(ALGORITHMS_EXPECTED, weir_algorithm_name(ops->id)));
        assert_int_equal(ops->note != NULL, unit_algorithms[i] == WEIR_SLIDING_LOG);
    }
    assert_null(algo_by_id(0));
    assert_null(algo_by_id(-1));
    assert_null(algo_by_id(UNIT_ALGORITHMS + 1));
    assert_int_equal(weir_algorithm_by_name(""), 0);
    assert_int_equal(weir_algorithm_by_name("gcra"), 0);
}

static void algorithms_are_listed_by_their_traits(void **state)
{
    char text[ALGORITHM_LIST_MAX];
    assert_string_equal(algorithm_list(HAS_QUEUE, text), "leaky_bucket");
    assert_string_equal(algorithm_list(CAN_BE_LEASED, text), "token_bucket or fixed_window");
    assert_string_equal(algorithm_list(CAN_BE_SYNCED, text),
                        "token_bucket, fixed_window or sliding_window");
    assert_string_equal(algorithm_list(0, text), "");
    assert_false(algorithm_has(0, ~0u));
    assert_false(algorithm_has(-1, ~0u));
    assert_false(algorithm_has(ALGORITHMS_END, ~0u));
}

static void only_a_log_has_a_record(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct unit_cell c = unit_cell(unit_algorithms[i], 9, WEIR_SECOND, 0);
        bool log = unit_algorithms[i] == WEIR_SLIDING_LOG;
        assert_int_equal(algo_record_bytes(&c.params), log ? 80 : 0);
    }
}

static void a_word_of_0_is_a_fresh_key_at_any_time(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct unit_cell c = unit_cell(unit_algorithms[i], 9, WEIR_SECOND, 0);
        const uint64_t times[] = {0, 1, WEIR_SECOND, T, c.params.max_time};
        for (int j = 0; j < 5; j++) {
            struct weir_answer a = unit_cell_peek(&c, 9, times[j]);
            assert_int_equal(a.verdict, WEIR_ALLOW);
            assert_int_equal(a.remaining, 9);
            assert_int_equal(a.reset_after_ns, 0);
            assert_int_equal(unit_cell_fresh_in(&c, times[j]), 0);
        }
    }
}

static uint64_t debt_of(int algorithm)
{
    return algorithm == WEIR_SLIDING_LOG ? 0 : 4;
}

/* fresh_in, reset_after and the first moment at which all can be taken are one and the same. */
static void fresh_in_is_reset_after(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct unit_cell c =
            unit_cell(unit_algorithms[i], 9, WEIR_SECOND, debt_of(unit_algorithms[i]));
        uint64_t seed = 1;
        uint64_t now = T;
        for (int j = 0; j < 3000; j++) {
            now += unit_random(&seed) % (WEIR_SECOND / 3);
            if (j % 50 == 0) {
                (void)unit_cell_charge(&c, unit_random(&seed) % 14, now);
            }
            (void)unit_cell_take(&c, 1 + unit_random(&seed) % 9, now);
            uint64_t in = unit_cell_fresh_in(&c, now);
            assert_int_equal(in, unit_cell_peek(&c, 1, now).reset_after_ns);
            assert_int_equal(unit_cell_fresh_in(&c, now + in), 0);
            assert_true(in == 0 || unit_cell_fresh_in(&c, now + in - 1) == 1);
            assert_int_equal(unit_cell_peek(&c, 9, now + in).remaining, 9);
        }
    }
}

/* Deciding is a function: it changes neither the word nor the record. */
static void decide_and_describe_change_nothing(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct unit_cell c = unit_cell(unit_algorithms[i], 9, WEIR_SECOND, 0);
        uint64_t seed = 2;
        for (int j = 0; j < 500; j++) {
            uint64_t now = T + unit_random(&seed) % (3 * WEIR_SECOND);
            struct unit_cell before = c;
            (void)unit_cell_peek(&c, unit_random(&seed) % 12, now);
            (void)unit_cell_fresh_in(&c, now);
            (void)unit_cell_stamp(&c, now);
            assert_memory_equal(&before, &c, sizeof c);
            (void)unit_cell_take(&c, 1 + unit_random(&seed) % 5, now);
        }
    }
}

/* In a queue it is the end of the place that was taken. */
static void the_stamp_is_now_or_the_time_that_the_state_has_reached(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct unit_cell c = unit_cell(unit_algorithms[i], 9, WEIR_MINUTE, 0);
        if (unit_algorithms[i] == WEIR_LEAKY_BUCKET) {
            (void)unit_cell_take(&c, 6, T);
            assert_int_equal(unit_cell_stamp(&c, T), T + unit_cell_peek(&c, 1, T).reset_after_ns);
            continue;
        }
        (void)unit_cell_take(&c, 1, 2 * WEIR_MINUTE);
        assert_int_equal(unit_cell_stamp(&c, 2 * WEIR_MINUTE), 2 * WEIR_MINUTE);
        (void)unit_cell_take(&c, 1, 2 * WEIR_MINUTE - 1); /* another window, another thread */
        uint64_t expected =
            unit_algorithms[i] == WEIR_TOKEN_BUCKET ? 2 * WEIR_MINUTE - 1 : 2 * WEIR_MINUTE;
        assert_int_equal(unit_cell_stamp(&c, 2 * WEIR_MINUTE - 1), expected);
    }
}

static void a_charge_is_capped_at_the_debt(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        uint64_t debt = debt_of(unit_algorithms[i]);
        struct unit_cell c = unit_cell(unit_algorithms[i], 9, WEIR_MINUTE, debt);
        assert_int_equal(unit_cell_charge(&c, 5, T), 5);
        assert_int_equal(unit_cell_charge(&c, UINT64_MAX, T), 4 + debt);
        assert_int_equal(unit_cell_charge(&c, 1, T), 0);
        assert_int_equal(unit_cell_peek(&c, 1, T).verdict, WEIR_DENY);
    }
}

/* A state from a far future is pulled down when a denied call meets it. */
static void far_futures_are_pulled_and_near_ones_stand(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct unit_cell c = unit_cell(unit_algorithms[i], 9, WEIR_MINUTE, 0);
        (void)unit_cell_take(&c, 9, T + WEIR_DAY);
        assert_false(unit_cell_decide(&c, 1, T + WEIR_DAY).pulled);
        assert_false(unit_cell_decide(&c, 1, T + WEIR_DAY - ALGO_SLACK_NS).pulled);
        assert_true(unit_cell_decide(&c, 1, T).pulled);
        bool again;
        uint64_t pulled = c.ops->as_of(&c.params, (struct algo_state){c.word, c.record}, T, &again);
        assert_int_equal(c.ops->as_of(&c.params, (struct algo_state){pulled, c.record}, T, &again),
                         pulled);
        assert_false(again);
        (void)unit_cell_take(&c, 1, T);
        assert_false(unit_cell_decide(&c, 1, T).pulled);
        assert_true(unit_cell_fresh_in(&c, T) <= WEIR_MINUTE * 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(algorithms_are_found_by_id_and_name),
        cmocka_unit_test(algorithms_are_listed_by_their_traits),
        cmocka_unit_test(only_a_log_has_a_record),
        cmocka_unit_test(a_word_of_0_is_a_fresh_key_at_any_time),
        cmocka_unit_test(fresh_in_is_reset_after),
        cmocka_unit_test(decide_and_describe_change_nothing),
        cmocka_unit_test(the_stamp_is_now_or_the_time_that_the_state_has_reached),
        cmocka_unit_test(a_charge_is_capped_at_the_debt),
        cmocka_unit_test(far_futures_are_pulled_and_near_ones_stand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
