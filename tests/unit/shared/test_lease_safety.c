/* Tests what a lease may be spent on, and until when: L1 to L3 of shared/leased/lease.h. */
#include "lease_replies.h"
#include "shared/core/script.h"

/* ---- L1 ---- */

static void a_lease_lives_from_when_its_call_was_made_less_one_in_a_hundred(void **state)
{
    assert_int_equal(ask(1), LEASE_SEND);
    struct store_reply r = reply_of(WEIR_ALLOW, 500, 0, 0, 0, 0, false);
    reply(&call, &r);
    assert_int_equal(ask(1), LEASE_SEND);
    assert_true(call.want >= 20);
    uint64_t made = now;
    now += 900 * MS; /* the reply is slow */
    grant(&call, 20);
    now = made + LIFE_US * 990 - 1;
    assert_int_equal(ask(1) & LEASE_ANSWERED, LEASE_ANSWERED);
    lease_unsent(keys, &call, now);
    now = made + LIFE_US * 990;
    assert_int_equal(ask(1), LEASE_SEND);
    assert_int_equal(call.lease, MARK); /* but the rest can be given back */
    assert_int_equal(call.back, 19);
    lease_lost(keys, &call, now);
}

/* ---- L2 ---- */

static void a_call_without_a_reply_granted_nothing(void **state)
{
    have_lease(10);
    assert_int_equal(spendable(), 10);
    assert_int_equal(ask(1), LEASE_SEND);
    lease_lost(keys, &call, now);
    assert_int_equal(spendable(), 0);
}

static void what_a_lost_call_may_have_settled_is_not_settled_again(void **state)
{
    have_lease(10);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(ask(1), LEASE_ANSWERED);
    }
    assert_int_equal(ask(1), LEASE_ANSWERED | LEASE_SEND);
    assert_int_equal(call.lease, MARK);
    assert_int_equal(call.held, 10);
    assert_int_equal(call.back, 0);
    assert_int_equal(call.keep, 5);
    lease_lost(keys, &call, now);
    assert_int_equal(spendable(), 5); /* the node owns them, under the old mark or the new one */
    assert_int_equal(ask(1), LEASE_SEND);
    assert_int_equal(call.lease, 0);
    assert_int_equal(call.held, 0);
    lease_lost(keys, &call, now);
}

static void units_of_an_unknown_mark_end_with_their_old_lease(void **state)
{
    have_lease(10);
    uint64_t made = now;
    for (int i = 0; i < 6; i++) {
        (void)ask(1);
    }
    lease_lost(keys, &call, now);
    now = made + LIFE_US * 990;
    assert_int_equal(ask(1), LEASE_SEND);
    lease_lost(keys, &call, now);
}

static void a_call_that_was_not_sent_changes_nothing(void **state)
{
    have_lease(10);
    for (int i = 0; i < 6; i++) {
        (void)ask(1);
    }
    lease_unsent(keys, &call, now);
    assert_int_equal(ask(7), LEASE_SEND); /* more than is left: all of it is given back */
    assert_int_equal(call.lease, MARK);
    assert_int_equal(call.held, 10);
    assert_int_equal(call.back, 4);
    lease_unsent(keys, &call, now);
    assert_int_equal(ask(2), LEASE_ANSWERED);
    assert_int_equal(answer.granted, 2);
}

/* ---- L3 ---- */

static void a_reply_that_comes_twice_is_spent_once(void **state)
{
    have_lease(10);
    struct lease_call first = call;
    store_limit_hold(&limit);
    grant(&first, 10);
    assert_int_equal(spendable(), 10);
    store_limit_hold(&limit);
    grant(&first, 10);
    assert_int_equal(spendable(), 0);
}

static void a_reply_that_comes_after_its_lease_has_expired_is_given_back(void **state)
{
    (void)ask(1);
    lease_unsent(keys, &call, now);
    assert_int_equal(ask(1), LEASE_SEND);
    assert_int_not_equal(call.id, 0);
    now += LIFE_US * 995;
    grant(&call, 10);
    assert_int_equal(ask(1), LEASE_SEND);
    assert_int_equal(call.back, 10);
    lease_lost(keys, &call, now);
}

static void units_that_the_store_does_not_know_are_not_spent(void **state)
{
    have_lease(10);
    for (int i = 0; i < 6; i++) {
        (void)ask(1);
    }
    assert_int_equal(call.keep, 5);
    struct store_reply r = reply_of(WEIR_ALLOW, 500, 0, 3, MARK + 1, LIFE_US, false);
    reply(&call, &r);
    assert_int_equal(spendable(), 3);
}

static void what_is_no_lease_is_an_error_and_grants_nothing(void **state)
{
    for (unsigned i = 0; i < 7; i++) {
        struct store_reply r = reply_of(WEIR_ALLOW, 500, 0, 5, MARK, LIFE_US, false);
        r.n = i == 0 ? SCRIPT_ANSWER_COUNT : r.n;
        r.type = i == 1 ? '$' : r.type;
        r.integers[9] = i == 2 ? 100000 : r.integers[9]; /* more than was requested */
        r.integers[12] = i == 3 ? 2 : r.integers[12];
        r.integers[11] = i == 4 ? -1 : r.integers[11];
        r.integers[0] = i == 5 ? WEIR_NEVER + 1 : r.integers[0];
        r.integers[10] = i == 6 ? 0 : r.integers[10]; /* without a mark */
        while (ask(1) == LEASE_SEND && call.want == 0) {
            lease_lost(keys, &call, now);
        }
        assert_int_equal(lease_reply(keys, &call, &r, now, &answer), WEIR_EIO);
        assert_int_equal(spendable(), 0);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_lease_lives_from_when_its_call_was_made_less_one_in_a_hundred),
        TEST(a_call_without_a_reply_granted_nothing),
        TEST(what_a_lost_call_may_have_settled_is_not_settled_again),
        TEST(units_of_an_unknown_mark_end_with_their_old_lease),
        TEST(a_call_that_was_not_sent_changes_nothing),
        TEST(a_reply_that_comes_twice_is_spent_once),
        TEST(a_reply_that_comes_after_its_lease_has_expired_is_given_back),
        TEST(units_that_the_store_does_not_know_are_not_spent),
        TEST(what_is_no_lease_is_an_error_and_grants_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
