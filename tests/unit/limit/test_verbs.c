/* Refund, penalize, block, unblock, reset. */
#include "support/engine/unit_limiter.h"

#define START (120 * WEIR_SECOND) /* a multiple of all periods used here */

static void bad_arguments_are_refused_and_change_nothing(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_SECOND);
    assert_int_equal(weir_refund_at(NULL, "k", 1, 1, START, START, NULL), WEIR_EINVAL);
    assert_int_equal(weir_refund(NULL, "k", 1, 1, NULL), WEIR_EINVAL);
    assert_int_equal(weir_refund_at(w, "k", 1, 0, START, START, NULL), WEIR_ECOST);
    assert_int_equal(weir_refund_at(w, "k", 1, 1, UINT64_MAX, START, NULL), WEIR_ETIME);
    assert_int_equal(weir_refund_at(w, "k", 1, 1, START, UINT64_MAX, NULL), WEIR_ETIME);
    assert_int_equal(weir_penalize_at(NULL, "k", 1, 1, START, NULL), WEIR_EINVAL);
    assert_int_equal(weir_penalize(NULL, "k", 1, 1, NULL), WEIR_EINVAL);
    assert_int_equal(weir_penalize_at(w, "k", 1, 0, START, NULL), WEIR_ECOST);
    assert_int_equal(weir_penalize_at(w, "k", 1, 1, UINT64_MAX, NULL), WEIR_ETIME);
    assert_int_equal(weir_penalize_at(w, NULL, 1, 1, START, NULL), WEIR_EKEY);
    assert_int_equal(weir_block_at(NULL, "k", 1, WEIR_FOREVER, START), WEIR_EINVAL);
    assert_int_equal(weir_block(NULL, "k", 1, WEIR_FOREVER), WEIR_EINVAL);
    assert_int_equal(weir_block_at(w, "k", 1, START, START), WEIR_ETIME);
    assert_int_equal(weir_block_at(w, "k", 1, 0, START), WEIR_ETIME);
    assert_int_equal(weir_block_at(w, "k", 1, WEIR_FOREVER, UINT64_MAX), WEIR_ETIME);
    assert_int_equal(weir_unblock(NULL, "k", 1), WEIR_EINVAL);
    assert_int_equal(weir_unblock(w, NULL, 1), WEIR_EKEY);
    assert_int_equal(weir_reset(NULL, "k", 1), WEIR_EINVAL);
    assert_int_equal(weir_reset(w, NULL, 1), WEIR_EKEY);
    assert_int_equal(unit_stats(w).keys, 0);
    weir_close(w);
}

/* ---- refund ---- */

/* The charged_ns of units that were charged just now, by the answer that they were given. */
static uint64_t charged(int algorithm, struct weir_answer a, uint64_t now)
{
    return algorithm == WEIR_LEAKY_BUCKET ? now + a.reset_after_ns : now;
}

static void take_and_give_back(struct weir *w, int algorithm)
{
    uint64_t now = START + 7;
    (void)unit_check(w, "k", 2, now);
    struct weir_answer before = unit_peek(w, "k", 1, now);
    struct weir_answer a = unit_check(w, "k", 3, now);
    assert_int_equal(weir_refund_at(w, "k", 1, 3, charged(algorithm, a, now), now, &a), 0);
    unit_assert_same(&before, &a);
    before = unit_peek(w, "k", 10, now);
    struct weir_answer after = unit_peek(w, "k", 10, now);
    unit_assert_same(&before, &after);
    assert_int_equal(unit_drain(w, "k", now), 8);
}

static void a_refund_at_once_is_the_exact_inverse(void **state)
{
    unit_each(10, WEIR_MINUTE, take_and_give_back);
}

static void give_back_too_much(struct weir *w, int algorithm)
{
    struct weir_answer a = unit_check(w, "k", 2, START);
    uint64_t at = charged(algorithm, a, START);
    assert_int_equal(weir_refund_at(w, "k", 1, UINT64_MAX, at, START, &a), 0);
    assert_int_equal(a.remaining, 10);
    assert_int_equal(a.reset_after_ns, 0);
    assert_int_equal(a.granted, 0);
    assert_int_equal(unit_drain(w, "k", START), 10);
    /* Nor does a refund to a key that was never seen make it richer than new. */
    assert_int_equal(weir_refund_at(w, "stranger", 8, 5, START, START, &a), 0);
    assert_int_equal(a.remaining, 10);
    assert_int_equal(unit_drain(w, "stranger", START), 10);
}

static void a_refund_never_goes_beyond_a_fresh_key(void **state)
{
    unit_each(10, WEIR_MINUTE, give_back_too_much);
}

static void give_back_late(struct weir *w, int algorithm)
{
    uint64_t later = START + 3 * WEIR_MINUTE;
    uint64_t at = charged(algorithm, unit_check(w, "k", 5, START), START);
    (void)unit_check(w, "k", 4, later);
    struct weir_answer before = unit_peek(w, "k", 1, later);
    struct weir_answer after;
    assert_int_equal(weir_refund_at(w, "k", 1, 5, at, later, &after), 0);
    if (algorithm == WEIR_TOKEN_BUCKET) {
        assert_int_equal(after.remaining, before.remaining + 4); /* no more than others took */
    } else {
        unit_assert_same(&before, &after);
    }
}

static void a_refund_into_the_past_does_nothing_but_for_a_token_bucket(void **state)
{
    unit_each(10, WEIR_MINUTE, give_back_late);
}

/* A caller that names no place gets none: others may have been promised theirs. */
static void a_queue_gives_back_only_the_last_place_and_only_by_its_end(void **state)
{
    struct weir *w = unit_limit(WEIR_LEAKY_BUCKET, 10, WEIR_MINUTE);
    struct weir_answer first = unit_check(w, "k", 2, START);
    struct weir_answer last = unit_check(w, "k", 3, START);
    struct weir_answer a;
    assert_int_equal(weir_refund_at(w, "k", 1, 2, START, START, &a), 0);
    assert_int_equal(a.remaining, 5);
    assert_int_equal(weir_refund_at(w, "k", 1, 2, START + first.reset_after_ns, START, &a), 0);
    assert_int_equal(a.remaining, 5);
    assert_int_equal(weir_refund_at(w, "k", 1, 3, START + last.reset_after_ns, START, &a), 0);
    assert_int_equal(a.remaining, 8);
    assert_int_equal(a.delay_ns, first.reset_after_ns);
    weir_close(w);
}

static void fixed_window_forgets_refunds_of_the_window_before(void **state)
{
    struct weir *w = unit_limit(WEIR_FIXED_WINDOW, 10, WEIR_MINUTE);
    struct weir_answer a;
    (void)unit_check(w, "k", 5, START - 1);
    (void)unit_check(w, "k", 3, START);
    assert_int_equal(weir_refund_at(w, "k", 1, 5, START - 1, START, &a), 0);
    assert_int_equal(a.remaining, 7);
    assert_int_equal(weir_refund_at(w, "k", 1, 2, START, START, &a), 0);
    assert_int_equal(a.remaining, 9);
    weir_close(w);
}

static void sliding_window_gives_back_to_the_window_that_was_charged(void **state)
{
    struct weir *w = unit_limit(WEIR_SLIDING_WINDOW, 10, WEIR_MINUTE);
    struct weir_answer a;
    (void)unit_check(w, "k", 6, START - 1);
    (void)unit_check(w, "k", 3, START);
    assert_int_equal(unit_peek(w, "k", 1, START).remaining, 1);
    assert_int_equal(weir_refund_at(w, "k", 1, 6, START - 1, START, &a), 0);
    assert_int_equal(a.remaining, 7);
    weir_close(w);
}

static void sliding_log_gives_back_the_newest_exactly_and_else_the_oldest(void **state)
{
    struct weir *w = unit_limit(WEIR_SLIDING_LOG, 4, WEIR_MINUTE);
    struct weir_answer a;
    (void)unit_check(w, "k", 2, START);
    (void)unit_check(w, "k", 2, START + 10);
    assert_int_equal(weir_refund_at(w, "k", 1, 2, START + 10, START + 20, &a), 0);
    assert_int_equal(a.remaining, 2);
    assert_int_equal(a.reset_after_ns, WEIR_MINUTE - 20); /* those of START are left */
    (void)unit_check(w, "k", 2, START + 20);
    assert_int_equal(weir_refund_at(w, "k", 1, 1, START, START + 20, &a), 0);
    assert_int_equal(a.remaining, 1);
    assert_int_equal(unit_drain(w, "k", START + 20), 1);
    /* What is in force is one unit of START and three of later: nothing is admitted too early. */
    assert_int_equal(unit_drain(w, "k", START + WEIR_MINUTE), 1);
    assert_int_equal(unit_drain(w, "k", START + WEIR_MINUTE + 20), 3);
    weir_close(w);
}

/* A refund can undo a penalty, unit by unit. */
static void repay(struct weir *w, int algorithm)
{
    struct weir_answer a;
    assert_int_equal(weir_penalize_at(w, "k", 1, 15, START, &a), 0);
    uint64_t units = a.granted;
    for (uint64_t i = 0; i < units; i++) {
        uint64_t at = charged(algorithm, a, START);
        assert_int_equal(weir_refund_at(w, "k", 1, 1, at, START, &a), 0);
    }
    assert_int_equal(a.remaining, 10);
    assert_int_equal(a.reset_after_ns, 0);
}

static void refunds_undo_a_penalty(void **state)
{
    unit_each(10, WEIR_MINUTE, repay);
}

/* ---- penalize ---- */

static void owe(struct weir *w, int algorithm)
{
    struct weir_answer a;
    bool log = algorithm == WEIR_SLIDING_LOG;
    assert_int_equal(weir_penalize_at(w, "k", 1, 4, START, &a), 0);
    assert_int_equal(a.granted, 4);
    assert_int_equal(a.remaining, 6);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(weir_penalize_at(w, "k", 1, UINT64_MAX, START, &a), 0);
    assert_int_equal(a.granted, log ? 6 : 16); /* the quota, and by default as much debt */
    assert_int_equal(a.remaining, 0);
    assert_int_equal(a.verdict, WEIR_DENY);
    struct weir_answer before = unit_peek(w, "k", 1, START);
    assert_int_equal(weir_penalize_at(w, "k", 1, 5, START, &a), 0);
    assert_int_equal(a.granted, 0);
    unit_assert_same(&before, &a);
    assert_int_equal(unit_check(w, "k", 1, START).verdict, WEIR_DENY);
    assert_int_equal(unit_check(w, "k", 1, START + before.retry_after_ns - 1).verdict, WEIR_DENY);
    assert_int_equal(unit_check(w, "k", 1, START + before.retry_after_ns).verdict, WEIR_ALLOW);
}

static void a_penalty_is_charged_up_to_max_debt_and_no_further(void **state)
{
    unit_each(10, WEIR_MINUTE, owe);
}

static void without_debt_a_penalty_takes_what_there_is(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir_options o = unit_options(unit_algorithms[i], 10, WEIR_MINUTE);
        o.max_debt = WEIR_NO_DEBT;
        struct weir *w = unit_open(&o);
        struct weir_answer a;
        assert_int_equal(weir_penalize_at(w, "k", 1, 15, START, &a), 0);
        assert_int_equal(a.granted, 10);
        assert_int_equal(a.remaining, 0);
        weir_close(w);
    }
}

static void a_stated_debt_is_taken_at_its_word(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS - 1; i++) {
        struct weir_options o = unit_options(unit_algorithms[i], 10, WEIR_MINUTE);
        o.max_debt = 3;
        struct weir *w = unit_open(&o);
        struct weir_answer a;
        assert_int_equal(weir_penalize_at(w, "k", 1, 100, START, &a), 0);
        assert_int_equal(a.granted, 13);
        weir_close(w);
    }
}

/* ---- block ---- */

static void shut_out(struct weir *w, int algorithm)
{
    uint64_t end = START + 10 * WEIR_SECOND;
    (void)unit_check(w, "k", 4, START);
    struct weir_answer free = unit_peek(w, "k", 1, end);
    assert_int_equal(weir_block_at(w, "k", 1, end, START), 0);
    struct weir_answer a = unit_check(w, "k", 1, START);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.flags, WEIR_FLAG_BLOCKED);
    assert_int_equal(a.retry_after_ns, 10 * WEIR_SECOND);
    assert_int_equal(a.remaining, 0);
    assert_int_equal(unit_check(w, "other", 1, START).verdict, WEIR_ALLOW);
    assert_int_equal(unit_check(w, "k", 11, START).verdict, WEIR_NEVER);
    assert_int_equal(unit_check(w, "k", 1, end - 1).retry_after_ns, 1);
    struct weir_answer after = unit_peek(w, "k", 1, end);
    unit_assert_same(&free, &after);
    assert_int_equal(unit_check(w, "k", 1, end).verdict, WEIR_ALLOW);
}

static void a_block_denies_until_its_end_and_keeps_the_quota(void **state)
{
    unit_each(10, WEIR_MINUTE, shut_out);
}

static void block_then_unblock(struct weir *w, int algorithm)
{
    assert_int_equal(weir_unblock(w, "k", 1), 0);
    assert_int_equal(weir_block_at(w, "k", 1, WEIR_FOREVER, START), 0);
    struct weir_answer a = unit_check(w, "k", 1, START + 365 * WEIR_DAY);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_true(a.retry_after_ns == WEIR_FOREVER);
    assert_int_equal(unit_stats(w).blocks, 1);
    assert_int_equal(weir_unblock(w, "k", 1), 1);
    assert_int_equal(weir_unblock(w, "k", 1), 0);
    assert_int_equal(unit_stats(w).blocks, 0);
    assert_int_equal(unit_check(w, "k", 1, START + 365 * WEIR_DAY).verdict, WEIR_ALLOW);
}

static void a_block_for_ever_lasts_until_unblocked(void **state)
{
    unit_each(10, WEIR_MINUTE, block_then_unblock);
}

static void a_second_block_replaces_the_first(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_MINUTE);
    assert_int_equal(weir_block_at(w, "k", 1, START + 10, START), 0);
    assert_int_equal(weir_block_at(w, "k", 1, START + 6, START), 0);
    assert_int_equal(unit_check(w, "k", 1, START).retry_after_ns, 6);
    assert_int_equal(weir_block_at(w, "k", 1, START + 50, START), 0);
    assert_int_equal(unit_check(w, "k", 1, START).retry_after_ns, 50);
    assert_int_equal(weir_block_at(w, "k", 1, START + 1, START), 0); /* ends are even, and later */
    assert_int_equal(unit_check(w, "k", 1, START).retry_after_ns, 2);
    assert_int_equal(unit_stats(w).blocks, 1);
    assert_int_equal(weir_unblock(w, "k", 1), 1);
    assert_int_equal(unit_check(w, "k", 1, START).verdict, WEIR_ALLOW);
    weir_close(w);
}

/* The longer of the block and the empty quota counts. */
static void wait_for_both(struct weir *w, int algorithm)
{
    (void)unit_drain(w, "k", START);
    struct weir_answer empty = unit_peek(w, "k", 10, START);
    assert_int_equal(weir_block_at(w, "k", 1, START + 5, START), 0);
    struct weir_answer a = unit_check(w, "k", 10, START);
    assert_int_equal(a.flags, WEIR_FLAG_BLOCKED);
    assert_int_equal(a.retry_after_ns, empty.retry_after_ns);
    assert_int_equal(unit_check(w, "k", 10, START + a.retry_after_ns - 1).verdict, WEIR_DENY);
    assert_int_equal(unit_check(w, "k", 10, START + a.retry_after_ns).verdict, WEIR_ALLOW);
}

static void retry_of_a_blocked_key_is_exact_even_if_its_quota_is_empty(void **state)
{
    unit_each(10, WEIR_MINUTE, wait_for_both);
}

static void a_block_does_not_stop_penalties_refunds_or_resets(void **state)
{
    struct weir *w = unit_limit(WEIR_TOKEN_BUCKET, 10, WEIR_MINUTE);
    struct weir_answer a;
    assert_int_equal(weir_block_at(w, "k", 1, WEIR_FOREVER, START), 0);
    assert_int_equal(weir_penalize_at(w, "k", 1, 3, START, &a), 0);
    assert_int_equal(a.granted, 3);
    assert_int_equal(a.flags, WEIR_FLAG_BLOCKED);
    assert_int_equal(weir_unblock(w, "k", 1), 1);
    assert_int_equal(unit_peek(w, "k", 1, START).remaining, 7);
    weir_close(w);
}

/* ---- reset ---- */

static void forget(struct weir *w, int algorithm)
{
    assert_int_equal(weir_reset(w, "k", 1), 0);
    (void)unit_drain(w, "k", START);
    assert_int_equal(weir_penalize_at(w, "k", 1, 5, START, NULL), 0);
    assert_int_equal(weir_block_at(w, "k", 1, START + 9, START), 0);
    assert_int_equal(weir_reset(w, "k", 1), 1);
    assert_int_equal(weir_reset(w, "k", 1), 0);
    assert_int_equal(unit_check(w, "k", 1, START).flags, WEIR_FLAG_BLOCKED);
    assert_int_equal(unit_peek(w, "k", 1, START + 9).remaining, 10);
    assert_int_equal(unit_drain(w, "k", START + 9), 10);
}

static void a_reset_forgets_the_state_but_not_the_block(void **state)
{
    unit_each(10, WEIR_MINUTE, forget);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_arguments_are_refused_and_change_nothing),
        cmocka_unit_test(a_refund_at_once_is_the_exact_inverse),
        cmocka_unit_test(a_refund_never_goes_beyond_a_fresh_key),
        cmocka_unit_test(a_refund_into_the_past_does_nothing_but_for_a_token_bucket),
        cmocka_unit_test(a_queue_gives_back_only_the_last_place_and_only_by_its_end),
        cmocka_unit_test(fixed_window_forgets_refunds_of_the_window_before),
        cmocka_unit_test(sliding_window_gives_back_to_the_window_that_was_charged),
        cmocka_unit_test(sliding_log_gives_back_the_newest_exactly_and_else_the_oldest),
        cmocka_unit_test(refunds_undo_a_penalty),
        cmocka_unit_test(a_penalty_is_charged_up_to_max_debt_and_no_further),
        cmocka_unit_test(without_debt_a_penalty_takes_what_there_is),
        cmocka_unit_test(a_stated_debt_is_taken_at_its_word),
        cmocka_unit_test(a_block_denies_until_its_end_and_keeps_the_quota),
        cmocka_unit_test(a_block_for_ever_lasts_until_unblocked),
        cmocka_unit_test(a_second_block_replaces_the_first),
        cmocka_unit_test(retry_of_a_blocked_key_is_exact_even_if_its_quota_is_empty),
        cmocka_unit_test(a_block_does_not_stop_penalties_refunds_or_resets),
        cmocka_unit_test(a_reset_forgets_the_state_but_not_the_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
