#include "support/engine/unit_cell.h"

#define W WEIR_MINUTE
#define T (100 * W)

static void each_unit_counts_for_exactly_one_period(void **state)
{
    struct unit_cell c = unit_cell(WEIR_SLIDING_LOG, 3, W, 0);
    for (uint64_t i = 0; i < 3; i++) {
        assert_int_equal(unit_cell_take(&c, 1, T + i), WEIR_ALLOW);
    }
    for (uint64_t round = 1; round < 50; round++) {
        for (uint64_t i = 0; i < 3; i++) {
            uint64_t due = T + i + round * W;
            assert_int_equal(unit_cell_peek(&c, 1, due - 1).retry_after_ns, 1);
            assert_int_equal(unit_cell_take(&c, 1, due - 1), WEIR_DENY);
            assert_int_equal(unit_cell_take(&c, 1, due), WEIR_ALLOW);
        }
    }
}

static void the_ring_is_right_over_many_laps_and_costs(void **state)
{
    struct unit_cell c = unit_cell(WEIR_SLIDING_LOG, 7, W, 0);
    uint64_t times[4000];
    unsigned n = 0;
    uint64_t seed = 1;
    uint64_t now = T;
    while (n < 3990) {
        now += unit_random(&seed) % (W / 3);
        uint64_t cost = 1 + unit_random(&seed) % 7;
        unsigned live = 0;
        for (unsigned i = n; i > 0 && times[i - 1] + W > now; i--) {
            live++;
        }
        struct weir_answer a = unit_cell_peek(&c, cost, now);
        assert_int_equal(a.remaining, 7 - live);
        assert_int_equal(a.verdict, live + cost <= 7 ? WEIR_ALLOW : WEIR_DENY);
        if (unit_cell_take(&c, cost, now) == WEIR_ALLOW) {
            for (uint64_t i = 0; i < cost; i++) {
                times[n++] = now;
            }
        }
    }
}

/* Notes are written where no reader of the present word looks: a kill before it changes nothing. */
static void a_note_without_its_word_is_invisible(void **state)
{
    struct unit_cell c = unit_cell(WEIR_SLIDING_LOG, 5, W, 0);
    uint64_t seed = 2;
    uint64_t now = T;
    for (int i = 0; i < 1000; i++) {
        now += unit_random(&seed) % (W / 2);
        (void)unit_cell_take(&c, 1 + unit_random(&seed) % 3, now);
        uint64_t left = unit_cell_peek(&c, 1, now).remaining;
        if (left > 0) {
            struct weir_answer before = unit_cell_peek(&c, 5, now);
            c.ops->note(&c.params, (struct algo_state){c.word, c.record}, now, left);
            struct weir_answer after = unit_cell_peek(&c, 5, now);
            assert_memory_equal(&before, &after, sizeof before);
        }
    }
}

static void a_lagging_call_is_noted_under_the_newest_time(void **state)
{
    struct unit_cell c = unit_cell(WEIR_SLIDING_LOG, 2, W, 0);
    (void)unit_cell_take(&c, 1, T);
    assert_int_equal(unit_cell_take(&c, 1, T - ALGO_SLACK_NS), WEIR_ALLOW);
    assert_int_equal(unit_cell_peek(&c, 2, T).retry_after_ns, W);
    assert_int_equal(unit_cell_peek(&c, 1, T + W - 1).verdict, WEIR_DENY);
    assert_int_equal(unit_cell_peek(&c, 2, T + W).verdict, WEIR_ALLOW);
}

static void a_log_of_the_far_future_is_forgotten(void **state)
{
    struct unit_cell c = unit_cell(WEIR_SLIDING_LOG, 2, W, 0);
    (void)unit_cell_take(&c, 2, T + WEIR_DAY);
    bool pulled;
    assert_int_equal(c.ops->as_of(&c.params, (struct algo_state){c.word, c.record}, T, &pulled), 0);
    assert_true(pulled);
    assert_int_equal(unit_cell_take(&c, 2, T), WEIR_ALLOW);
    assert_int_equal(unit_cell_take(&c, 1, T), WEIR_DENY);
}

static void a_refund_of_the_newest_is_exact(void **state)
{
    struct unit_cell c = unit_cell(WEIR_SLIDING_LOG, 5, W, 0);
    (void)unit_cell_take(&c, 2, T);
    struct weir_answer before = unit_cell_peek(&c, 5, T + 1);
    (void)unit_cell_take(&c, 3, T + 1);
    unit_cell_refund(&c, 3, T + 1, T + 1);
    struct weir_answer after = unit_cell_peek(&c, 5, T + 1);
    assert_memory_equal(&before, &after, sizeof before);
}

static void a_refund_of_older_units_takes_the_oldest_and_admits_nothing_early(void **state)
{
    struct unit_cell c = unit_cell(WEIR_SLIDING_LOG, 5, W, 0);
    (void)unit_cell_take(&c, 1, T);
    (void)unit_cell_take(&c, 2, T + 10);
    (void)unit_cell_take(&c, 2, T + 20);
    unit_cell_refund(&c, 2, T + 10, T + 30);
    assert_int_equal(unit_cell_peek(&c, 1, T + 30).remaining, 2);
    /* Gone are those of T and one of T + 10; the truth would be T, T + 20, T + 20. */
    assert_int_equal(unit_cell_peek(&c, 3, T + W).verdict, WEIR_DENY);
    assert_int_equal(unit_cell_peek(&c, 3, T + 10 + W).verdict, WEIR_ALLOW);
    assert_int_equal(unit_cell_peek(&c, 5, T + 20 + W).verdict, WEIR_ALLOW);
}

static void a_refund_after_the_period_is_nothing(void **state)
{
    struct unit_cell c = unit_cell(WEIR_SLIDING_LOG, 5, W, 0);
    (void)unit_cell_take(&c, 2, T);
    (void)unit_cell_take(&c, 3, T + W);
    unit_cell_refund(&c, 2, T, T + W);
    assert_int_equal(unit_cell_peek(&c, 1, T + W).remaining, 2);
}

static void a_penalty_fills_the_log_and_pushes_no_one_out(void **state)
{
    struct unit_cell c = unit_cell(WEIR_SLIDING_LOG, 5, W, 0);
    (void)unit_cell_take(&c, 2, T);
    assert_int_equal(unit_cell_charge(&c, 10, T + 7), 3);
    assert_int_equal(unit_cell_charge(&c, 10, T + 8), 0);
    assert_int_equal(unit_cell_peek(&c, 2, T + 8).retry_after_ns, W - 8);
    assert_int_equal(unit_cell_peek(&c, 5, T + 8).retry_after_ns, W - 1);
}

static void a_live_change_keeps_the_ring(void **state)
{
    struct unit_cell c = unit_cell(WEIR_SLIDING_LOG, 5, W, 0);
    (void)unit_cell_take(&c, 5, T);
    struct algo_layout layout = {0, c.params.capacity, true};
    struct limit_spec spec = unit_spec(WEIR_SLIDING_LOG, 3, W, 0);
    struct weir_error error;
    c.params.spec = spec;
    assert_int_equal(c.ops->compile(&spec, &layout, &c.params, &error), 0);
    assert_int_equal(c.params.capacity, 6);
    assert_int_equal(unit_cell_peek(&c, 1, T).remaining, 0);
    assert_int_equal(unit_cell_peek(&c, 3, T + W).remaining, 3);
    spec.count = 6;
    assert_int_equal(c.ops->compile(&spec, &layout, &c.params, &error), WEIR_EQUOTA);
    assert_non_null(strstr(error.text, "expected at most 5"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_unit_counts_for_exactly_one_period),
        cmocka_unit_test(the_ring_is_right_over_many_laps_and_costs),
        cmocka_unit_test(a_note_without_its_word_is_invisible),
        cmocka_unit_test(a_lagging_call_is_noted_under_the_newest_time),
        cmocka_unit_test(a_log_of_the_far_future_is_forgotten),
        cmocka_unit_test(a_refund_of_the_newest_is_exact),
        cmocka_unit_test(a_refund_of_older_units_takes_the_oldest_and_admits_nothing_early),
        cmocka_unit_test(a_refund_after_the_period_is_nothing),
        cmocka_unit_test(a_penalty_fills_the_log_and_pushes_no_one_out),
        cmocka_unit_test(a_live_change_keeps_the_ring),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
