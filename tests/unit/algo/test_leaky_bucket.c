#include "support/engine/unit_cell.h"

#define T (1000 * WEIR_SECOND)

static struct weir_answer take(struct unit_cell *c, uint64_t cost, uint64_t wait, uint64_t now)
{
    struct algo_ask ask = {now, cost, wait};
    struct algo_step step =
        algo_decide(c->ops, &c->params, (struct algo_state){c->word, NULL}, &ask);
    struct weir_answer a;
    memset(&a, 0, sizeof a);
    a.verdict = step.verdict;
    a.granted = step.verdict == WEIR_ALLOW ? cost : 0;
    c->word = step.verdict == WEIR_ALLOW ? step.word : c->word;
    algo_describe(c->ops, &c->params, (struct algo_state){c->word, NULL}, &ask, &a);
    return a;
}

static void each_call_waits_for_those_before_it(void **state)
{
    struct unit_cell c = unit_cell(WEIR_LEAKY_BUCKET, 4, 4 * WEIR_SECOND, 0);
    assert_int_equal(take(&c, 1, 0, T).delay_ns, 0);
    assert_int_equal(take(&c, 2, 0, T).delay_ns, WEIR_SECOND);
    assert_int_equal(take(&c, 1, 0, T).delay_ns, 3 * WEIR_SECOND);
    struct weir_answer a = take(&c, 1, 0, T);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.retry_after_ns, WEIR_SECOND);
    assert_int_equal(a.reset_after_ns, 4 * WEIR_SECOND);
    assert_int_equal(take(&c, 1, 0, T + WEIR_SECOND).delay_ns, 3 * WEIR_SECOND);
}

static void without_a_queue_there_is_one_per_step_and_no_delay(void **state)
{
    struct unit_cell c = unit_cell(WEIR_LEAKY_BUCKET, 1, WEIR_SECOND, 0);
    for (uint64_t i = 0; i < 10; i++) {
        uint64_t now = T + i * WEIR_SECOND;
        struct weir_answer a = take(&c, 1, 0, now);
        assert_int_equal(a.verdict, WEIR_ALLOW);
        assert_int_equal(a.delay_ns, 0);
        assert_int_equal(take(&c, 1, 0, now + WEIR_SECOND - 1).verdict, WEIR_DENY);
    }
}

static void patience_replaces_the_length_of_the_queue(void **state)
{
    struct unit_cell c = unit_cell(WEIR_LEAKY_BUCKET, 1, WEIR_SECOND, 5);
    assert_int_equal(take(&c, 1, 0, T).verdict, WEIR_ALLOW);
    assert_int_equal(take(&c, 1, WEIR_SECOND - 1, T).verdict, WEIR_DENY);
    struct weir_answer a = take(&c, 1, WEIR_SECOND, T);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(a.delay_ns, WEIR_SECOND);
    a = take(&c, 1, WEIR_SECOND, T);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.retry_after_ns, WEIR_SECOND);
    for (uint64_t i = 2; i <= 5; i++) {
        assert_int_equal(take(&c, 1, WEIR_FOREVER, T).delay_ns, i * WEIR_SECOND);
    }
    assert_int_equal(take(&c, 1, WEIR_FOREVER, T).verdict, WEIR_DENY); /* the debt is spent */
}

static void a_queue_of_the_largest_size_saturates_into_an_error(void **state)
{
    struct limit_spec spec = unit_spec(WEIR_LEAKY_BUCKET, 1, WEIR_SECOND, 0);
    struct algo_layout layout = {0, 0, false};
    struct algo_params p;
    struct weir_error error;
    spec.queue = UINT64_MAX;
    assert_int_equal(algo_leaky_bucket.compile(&spec, &layout, &p, &error), WEIR_EQUOTA);
    assert_non_null(strstr(error.text, "queue + 1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_call_waits_for_those_before_it),
        cmocka_unit_test(without_a_queue_there_is_one_per_step_and_no_delay),
        cmocka_unit_test(patience_replaces_the_length_of_the_queue),
        cmocka_unit_test(a_queue_of_the_largest_size_saturates_into_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
