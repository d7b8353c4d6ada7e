/* A caller that zeroes its answer and overlooks an error is not told ALLOW. */
#include "support/engine/unit_limiter.h"

#define START (100 * WEIR_SECOND)

static const struct weir_answer zeroed;

/* Asserts that the call failed and left the answer without a verdict. */
static void assert_no_verdict(int error, int expected, const struct weir_answer *a)
{
    assert_int_equal(error, expected);
    assert_memory_equal(a, &zeroed, sizeof zeroed);
}

static void a_zeroed_answer_is_no_verdict(void **state)
{
    assert_int_not_equal(zeroed.verdict, WEIR_ALLOW);
    assert_int_not_equal(zeroed.verdict, WEIR_DENY);
    assert_int_not_equal(zeroed.verdict, WEIR_NEVER);
}

static void a_check_or_question_that_fails_gives_no_verdict(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_SECOND);
    struct weir_question ask = unit_question("k", 1, WEIR_CHECK);
    struct weir_answer a = zeroed;
    assert_no_verdict(weir_check(w, "k", 1, 1, &a), WEIR_EINVAL, &a); /* no clock */
    assert_no_verdict(weir_check_at(NULL, "k", 1, 1, START, &a), WEIR_EINVAL, &a);
    assert_no_verdict(weir_check_at(w, "k", 0, 1, START, &a), WEIR_EKEY, &a);
    assert_no_verdict(weir_check_at(w, "k", 1, 0, START, &a), WEIR_ECOST, &a);
    assert_no_verdict(weir_check_at(w, "k", 1, 1, UINT64_MAX, &a), WEIR_ETIME, &a);
    assert_no_verdict(weir_ask(w, &ask, &a), WEIR_EINVAL, &a);
    assert_no_verdict(weir_ask_at(w, &ask, UINT64_MAX, &a), WEIR_ETIME, &a);
    ask.hashed = &(struct weir_key){{1, 2, 3}};
    assert_no_verdict(weir_ask_at(w, &ask, START, &a), WEIR_ESTALE, &a);
    weir_close(w);
}

static void a_batch_that_fails_gives_no_verdict_to_any_question(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_SECOND);
    struct weir_question asks[3] = {unit_question("a", 1, WEIR_CHECK),
                                    unit_question("b", 1, WEIR_CHECK),
                                    unit_question("c", 0, WEIR_CHECK)};
    struct weir_answer answers[3] = {zeroed, zeroed, zeroed};
    int e = weir_ask_batch_at(w, asks, 3, START, answers, NULL);
    for (int i = 0; i < 3; i++) {
        assert_no_verdict(e, WEIR_ECOST, &answers[i]);
    }
    assert_no_verdict(weir_ask_batch(w, asks, 2, answers, NULL), WEIR_EINVAL, &answers[0]);
    weir_close(w);
}

static void several_limits_that_fail_give_no_verdict(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_SECOND);
    struct weir_part parts[2] = {{w, unit_question("a", 1, WEIR_CHECK)},
                                 {w, unit_question("a", 1, WEIR_CHECK)}};
    struct weir_answer a = zeroed;
    assert_no_verdict(weir_check_several(parts, 1, &a), WEIR_EINVAL, &a);
    assert_no_verdict(weir_check_several_at(parts, 2, START, &a), WEIR_EINVAL, &a);
    assert_no_verdict(weir_check_several_at(parts, 1, UINT64_MAX, &a), WEIR_ETIME, &a);
    parts[1].limiter = NULL;
    assert_no_verdict(weir_check_several_at(parts, 2, START, &a), WEIR_EINVAL, &a);
    weir_close(w);
}

static void a_throttle_that_fails_gives_no_verdict(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_SECOND);
    struct weir *window = unit_limit(WEIR_FIXED_WINDOW, 10, WEIR_SECOND);
    struct weir_question ask = unit_question("k", 1, WEIR_CHECK);
    struct weir_answer a = zeroed;
    assert_no_verdict(weir_throttle(w, 1000, 1, &ask, &a), WEIR_EINVAL, &a);
    assert_no_verdict(weir_throttle_at(w, 0, 1, &ask, START, &a), WEIR_ERATE, &a);
    assert_no_verdict(weir_throttle_at(w, WEIR_HOUR, 1, &ask, START, &a), WEIR_EQUOTA, &a);
    assert_no_verdict(weir_throttle_at(window, 1000, 1, &ask, START, &a), WEIR_ENOTSUP, &a);
    weir_close(window);
    weir_close(w);
}

static void a_reservation_that_fails_gives_no_verdict(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_SECOND);
    struct weir_reservation r = {{0}};
    struct weir_answer a = zeroed;
    assert_no_verdict(weir_reserve(w, "k", 1, 1, 1, &r, &a), WEIR_EINVAL, &a);
    assert_no_verdict(weir_reserve_at(w, "k", 1, 0, 1, START, &r, &a), WEIR_ECOST, &a);
    assert_no_verdict(weir_reserve_at(w, "k", 1, 1, 0, START, &r, &a), WEIR_EINVAL, &a);
    assert_no_verdict(weir_settle_at(w, &r, 1, START, &a), WEIR_ESTALE, &a);
    assert_int_equal(weir_reserve_at(w, "k", 1, 1, 1, START, &r, &a), 0);
    a = zeroed;
    assert_no_verdict(weir_settle_at(w, &r, 1, START + 1, &a), WEIR_EEXPIRED, &a);
    weir_close(w);
}

static void a_refund_or_penalty_that_fails_gives_no_verdict(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_SECOND);
    struct weir_answer a = zeroed;
    assert_no_verdict(weir_refund_at(w, "k", 1, 0, START, START, &a), WEIR_ECOST, &a);
    assert_no_verdict(weir_refund_at(w, "k", 1, 1, UINT64_MAX, START, &a), WEIR_ETIME, &a);
    assert_no_verdict(weir_penalize_at(w, "k", 0, 1, START, &a), WEIR_EKEY, &a);
    weir_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_zeroed_answer_is_no_verdict),
        cmocka_unit_test(a_check_or_question_that_fails_gives_no_verdict),
        cmocka_unit_test(a_batch_that_fails_gives_no_verdict_to_any_question),
        cmocka_unit_test(several_limits_that_fail_give_no_verdict),
        cmocka_unit_test(a_throttle_that_fails_gives_no_verdict),
        cmocka_unit_test(a_reservation_that_fails_gives_no_verdict),
        cmocka_unit_test(a_refund_or_penalty_that_fails_gives_no_verdict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
