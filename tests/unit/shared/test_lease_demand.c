/* Tests how large leases are, how long they are kept, and when the store is asked: L4 to L7 of
 * shared/leased/lease.h. */
#include "lease_replies.h"

/* ---- L4 ---- */

static void a_lease_is_renewed_before_it_is_dry_by_one_call(void **state)
{
    have_lease(32);
    unsigned sent = 0;
    struct lease_call renewal;
    for (unsigned i = 0; i < 32; i++) {
        unsigned said = ask(1);
        assert_int_equal(said & LEASE_ANSWERED, LEASE_ANSWERED);
        if ((said & LEASE_SEND) != 0) {
            renewal = call;
            sent++;
            assert_int_equal(i, 15);
        }
    }
    assert_int_equal(sent, 1);
    assert_int_equal(renewal.cost, 0);
    assert_int_equal(renewal.keep, 16);
    grant(&renewal, 100);
    assert_int_equal(ask(1), LEASE_ANSWERED); /* the new lease pays for units spent meanwhile */
    assert_int_equal(answer.remaining, 500 + 99);
}

static void questions_wait_for_the_one_call_that_is_on_its_way_or_ask_alone(void **state)
{
    (void)ask(1);
    lease_unsent(keys, &call, now);
    assert_int_equal(ask(1), LEASE_SEND);
    assert_int_not_equal(call.id, 0);
    struct lease_call first = call;
    assert_int_equal(ask(1), LEASE_WAIT);
    assert_int_equal(call.id, first.id);
    assert_memory_equal(&call.hash, &first.hash, sizeof call.hash);
    lease_alone(PART(&limit, ALICE, 1), now, &call);
    assert_int_equal(call.id, 0);
    assert_int_equal(call.want, 0);
    struct store_reply r = reply_of(WEIR_ALLOW, 500, 0, 0, 0, 0, false);
    reply(&call, &r);
    grant(&first, 10);
    assert_int_equal(spendable(), 10);
}

static void a_size_follows_the_demand(void **state)
{
    have_lease(30);
    assert_int_equal(call.want, 32); /* the first lease is small */
    uint64_t wanted[4];
    for (unsigned i = 0; i < 4; i++) {
        do {
            now += MS / 10; /* 10,000 a second: 5,000 in a quarter of a life */
        } while ((ask(1) & LEASE_SEND) == 0);
        wanted[i] = call.want;
        grant(&call, 100);
    }
    assert_int_equal(wanted[0], 8 * 32);
    assert_true(wanted[1] <= 1000 && wanted[1] > wanted[0]); /* at most the quota */
    for (unsigned i = 0; i < 400; i++) {                     /* now 50 a second: 25 */
        now += 20 * MS;
        if ((ask(1) & LEASE_SEND) != 0) {
            wanted[3] = call.want;
            grant(&call, 30);
        }
    }
    assert_true(wanted[3] >= 25 && wanted[3] < 50);
}

static void a_question_that_is_tried_here_before_it_goes_to_the_store_counts_once(void **state)
{
    assert_int_equal(lease_ask(keys, PART(&limit, ALICE, 1), LEASE_HERE, now, &answer, NULL), 0);
    assert_int_equal(ask(1), LEASE_SEND);
    assert_int_equal(call.want, 0); /* a second question may never come */
    lease_unsent(keys, &call, now);
}

static void a_key_that_is_rarely_asked_for_takes_out_no_lease(void **state)
{
    for (unsigned i = 0; i < 10; i++) {
        now += WEIR_SECOND;
        assert_int_equal(ask(1), LEASE_SEND);
        assert_int_equal(call.want, 0);
        assert_int_equal(call.id, 0);
        struct store_reply r = reply_of(WEIR_ALLOW, 500, 0, 0, 0, 0, false);
        reply(&call, &r);
        struct lease_call none;
        assert_false(lease_next(keys, now, &none));
    }
}

/* ---- L5 ---- */

static void units_that_nobody_uses_are_returned_after_half_a_life(void **state)
{
    have_lease(20);
    (void)ask(5);
    uint64_t used = now;
    struct lease_call back;
    while (now < used + LIFE_US * 1000 / 2) {
        assert_false(lease_next(keys, now, &back));
        now = node_keys_due(keys);
        assert_true(now > used);
    }
    assert_true(lease_next(keys, now, &back));
    assert_true(now <= used + LIFE_US * 1000 / 2 + 130 * MS);
    assert_int_equal(back.back, 15);
    assert_int_equal(back.held, 20);
    assert_int_equal(back.want, 0);
    grant(&back, 0);
    now += 10 * WEIR_SECOND;
    assert_false(lease_next(keys, now, &back)); /* and then the key is forgotten */
    assert_int_equal(node_keys_due(keys), UINT64_MAX);
}

static void a_spent_lease_of_a_window_is_no_longer_worth_a_call(void **state)
{
    limit_of(WEIR_FIXED_WINDOW, 1000);
    have_lease(20);
    assert_int_equal(spendable(), 20);
    struct lease_call next;
    for (unsigned i = 0; i < 100; i++) {
        now += 100 * MS;
        assert_false(lease_next(keys, now, &next));
    }
    assert_int_equal(node_keys_due(keys), UINT64_MAX);
}

static void a_lease_in_use_is_carried_on_before_it_expires(void **state)
{
    have_lease(30);
    uint64_t made = now;
    unsigned said = 0;
    while ((said & LEASE_SEND) == 0 && now < made + LIFE_US * 1000) {
        now += 100 * MS;
        said = ask(1);
        assert_int_equal(said & LEASE_ANSWERED, LEASE_ANSWERED);
    }
    assert_true(now < made + LIFE_US * 990);
    uint64_t left = call.keep;
    assert_true(left > 1);
    struct store_reply r = reply_of(WEIR_ALLOW, 500, 0, 0, MARK + 5, LIFE_US, true);
    reply(&call, &r);
    now = made + LIFE_US * 1000 + 10; /* the old lease has expired */
    assert_int_equal(ask(left) & LEASE_ANSWERED, LEASE_ANSWERED);
    assert_int_equal(answer.verdict, WEIR_ALLOW);
}

static void a_node_that_ends_returns_everything(void **state)
{
    have_lease(20);
    for (unsigned i = 0; i < 3; i++) { /* another key, whose call is in flight */
        (void)lease_ask(keys, PART(&limit, TEXT("bob"), 1), LEASE_ASK, now, &answer, &call);
        if (call.want == 0) {
            lease_unsent(keys, &call, now);
        } else {
            break;
        }
    }
    struct lease_call bobs = call;
    struct lease_call next;
    node_keys_stop(keys);
    assert_int_equal(node_keys_due(keys), 0);
    assert_true(lease_next(keys, now, &next));
    assert_int_equal(next.back, 20);
    grant(&next, 0);
    assert_false(lease_next(keys, now, &next));
    grant(&bobs, 8);
    assert_true(lease_next(keys, now, &next));
    assert_int_equal(next.back, 8);
    lease_unsent(keys, &next, now); /* not sent: it is not tried forever */
    assert_false(lease_next(keys, now, &next));
    assert_int_equal(ask(1), LEASE_SEND);
    assert_int_equal(call.want, 0);
    lease_unsent(keys, &call, now);
}

static void a_key_that_somebody_changed_returns_its_lease_at_once(void **state)
{
    have_lease(20);
    struct lease_call next;
    lease_forget(keys, PART(&limit, ALICE, 1));
    assert_int_equal(node_keys_due(keys), 0);
    assert_true(lease_next(keys, now, &next));
    assert_int_equal(next.back, 20);
    lease_forget(keys, PART(&limit, ALICE, 1)); /* also drops what is granted meanwhile */
    struct store_reply r = reply_of(WEIR_ALLOW, 500, 0, 0, 0, 0, true);
    reply(&next, &r);
    assert_int_equal(ask(1), LEASE_SEND);
    lease_forget(keys, PART(&limit, ALICE, 1));
    if (call.want >= 5) {
        grant(&call, 5);
        assert_true(lease_next(keys, now, &next));
        assert_int_equal(next.back, 5);
        lease_lost(keys, &next, now);
    } else {
        lease_unsent(keys, &call, now);
    }
}

static void a_lease_that_could_not_be_returned_is_not_spent_on_a_changed_key(void **state)
{
    have_lease(20);
    struct lease_call next;
    lease_forget(keys, PART(&limit, ALICE, 1));
    assert_true(lease_next(keys, now, &next));
    lease_unsent(keys, &next, now);
    assert_false(lease_next(keys, now, &next)); /* not again at once */
    assert_int_equal(ask(1), LEASE_SEND);
    assert_int_equal(call.back, 20);
    lease_unsent(keys, &call, now);
    now += 125 * MS;
    assert_true(lease_next(keys, now, &next));
    assert_int_equal(next.back, 20);
    grant(&next, 0);
    assert_int_equal(spendable(), 0);
}

static void units_that_nobody_used_come_back_to_the_lease(void **state)
{
    have_lease(10);
    assert_int_equal(ask(4), LEASE_ANSWERED);
    assert_true(lease_refund(keys, PART(&limit, ALICE, 4), now));
    assert_false(lease_refund(keys, PART(&limit, ALICE, 1), now)); /* no unit is spent */
    assert_int_equal(spendable(), 10);
    now += LIFE_US * 1000;
    assert_false(lease_refund(keys, PART(&limit, ALICE, 1), now));
}

/* ---- L6 ---- */

static void a_dry_lease_asks_and_settles_in_one_call(void **state)
{
    have_lease(10);
    assert_int_equal(ask(8) & LEASE_ANSWERED, LEASE_ANSWERED);
    lease_unsent(keys, &call, now);
    assert_int_equal(ask(3), LEASE_SEND);
    assert_int_equal(call.cost, 3);
    assert_int_equal(call.lease, MARK);
    assert_int_equal(call.held, 10);
    assert_int_equal(call.back, 2);
    assert_int_equal(call.keep, 0);
    assert_true(call.want > 0);
    grant(&call, 20);
    assert_int_equal(answer.verdict, WEIR_ALLOW);
    assert_int_equal(spendable(), 20);
}

static void more_than_the_quota_is_asked_without_touching_the_lease(void **state)
{
    have_lease(10);
    assert_int_equal(ask(1001), LEASE_SEND);
    assert_int_equal(call.id, 0);
    struct store_reply r = reply_of(WEIR_NEVER, 500, 0, 0, 0, 0, false);
    r.integers[4] = -1;
    reply(&call, &r);
    assert_int_equal(answer.verdict, WEIR_NEVER);
    assert_int_equal(spendable(), 10);
}

static void a_denial_stands_for_its_cost_until_its_retry_or_the_cache_ends(void **state)
{
    assert_int_equal(ask(5), LEASE_SEND);
    deny(&call, 300000);
    now += 299 * MS;
    assert_int_equal(ask(5), LEASE_ANSWERED);
    assert_int_equal(answer.verdict, WEIR_DENY);
    assert_int_equal(answer.retry_after_ns, MS);
    assert_int_equal(ask(6), LEASE_ANSWERED);
    assert_int_equal(ask(4), LEASE_SEND); /* a cheaper request may fit */
    lease_unsent(keys, &call, now);
    now += MS;
    assert_int_equal(ask(5), LEASE_SEND);
    deny(&call, 5000000);
    now += WEIR_SECOND - 1;
    assert_int_equal(ask(5), LEASE_ANSWERED);
    now += 1;
    assert_int_equal(ask(5), LEASE_SEND);
    lease_unsent(keys, &call, now);
}

static void a_short_denial_stands_until_there_is_something_to_find(void **state)
{
    assert_int_equal(ask(1), LEASE_SEND);
    deny(&call, 1000);
    now += WEIR_SECOND / 64 - 1; /* for a bucket that fills in a second */
    assert_int_equal(ask(1), LEASE_ANSWERED);
    assert_int_equal(answer.verdict, WEIR_DENY);
    now += 1;
    assert_int_equal(ask(1), LEASE_SEND);
    struct lease_call first = call;
    assert_int_equal(ask(1), LEASE_ANSWERED); /* until that call is answered */
    assert_int_equal(answer.verdict, WEIR_DENY);
    assert_true(answer.retry_after_ns > 0);
    struct store_reply r = reply_of(WEIR_ALLOW, 100, 0, 0, 0, 0, false);
    reply(&first, &r);
    assert_int_equal(ask(1), LEASE_SEND);
    lease_unsent(keys, &call, now);
}

static unsigned ask_here(void)
{
    return lease_ask(keys, PART(&limit, ALICE, 1), LEASE_HERE, now, &answer, NULL);
}

static void questions_that_are_asked_here_make_no_call_and_renewals_become_due_once(void **state)
{
    struct lease_call next;
    unsigned due = 0;
    assert_int_equal(ask_here(), 0);
    have_lease(10);
    for (unsigned i = 0; i < 10; i++) {
        unsigned said = ask_here();
        assert_int_equal(said & ~LEASE_DUE, LEASE_ANSWERED);
        assert_int_equal(answer.verdict, WEIR_ALLOW);
        due += (said & LEASE_DUE) != 0;
    }
    assert_int_equal(due, 1);
    assert_int_equal(ask_here(), 0);
    assert_int_equal(node_keys_due(keys), 0);
    assert_true(lease_next(keys, now, &next));
    assert_int_equal(next.cost, 0);
    assert_int_equal(next.held, 10);
    grant(&next, 10);
    assert_int_equal(spendable(), 10);
}

/* ---- L7, and bounds ---- */

static void limits_that_are_too_small_are_not_worth_a_lease(void **state)
{
    assert_true(lease_is_worth(&numbers.params, 1));
    assert_true(lease_is_worth(&numbers.params, 31));
    assert_false(lease_is_worth(&numbers.params, 32));
    assert_true(lease_is_worth(&numbers.params, 0));
    limit_of(WEIR_TOKEN_BUCKET, 31);
    assert_false(lease_is_worth(&numbers.params, 1));
    limit_of(WEIR_FIXED_WINDOW, 32);
    assert_true(lease_is_worth(&numbers.params, 1));
    numbers.params.a = 49999; /* us */
    assert_false(lease_is_worth(&numbers.params, 1));
}

static void a_full_table_forgets_what_is_not_outstanding_and_never_what_is(void **state)
{
    struct node_keys *small;
    assert_int_equal(node_keys_of(&small, KEY_LEASED, 64), 0);
    unsigned leased = 0;
    for (unsigned i = 0; i < 2000; i++) {
        struct weir_text key = {(const char *)&i, sizeof i};
        for (unsigned q = 0; q < 2; q++) {
            assert_int_equal(lease_ask(small, PART(&limit, key, 1), LEASE_ASK, now, &answer, &call),
                             LEASE_SEND);
            struct store_reply r = reply_of(WEIR_ALLOW, 500, 0, min_u64(call.want, 9),
                                            call.want != 0 ? MARK : 0, LIFE_US, false);
            leased += call.want != 0;
            assert_int_equal(lease_reply(small, &call, &r, now, &answer), 0);
        }
    }
    assert_int_equal(leased, 64);
    node_keys_destroy(small);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_lease_is_renewed_before_it_is_dry_by_one_call),
        TEST(questions_wait_for_the_one_call_that_is_on_its_way_or_ask_alone),
        TEST(a_size_follows_the_demand),
        TEST(a_question_that_is_tried_here_before_it_goes_to_the_store_counts_once),
        TEST(a_key_that_is_rarely_asked_for_takes_out_no_lease),
        TEST(units_that_nobody_uses_are_returned_after_half_a_life),
        TEST(a_spent_lease_of_a_window_is_no_longer_worth_a_call),
        TEST(a_lease_in_use_is_carried_on_before_it_expires),
        TEST(a_node_that_ends_returns_everything),
        TEST(a_key_that_somebody_changed_returns_its_lease_at_once),
        TEST(a_lease_that_could_not_be_returned_is_not_spent_on_a_changed_key),
        TEST(units_that_nobody_used_come_back_to_the_lease),
        TEST(a_dry_lease_asks_and_settles_in_one_call),
        TEST(more_than_the_quota_is_asked_without_touching_the_lease),
        TEST(a_denial_stands_for_its_cost_until_its_retry_or_the_cache_ends),
        TEST(a_short_denial_stands_until_there_is_something_to_find),
        TEST(questions_that_are_asked_here_make_no_call_and_renewals_become_due_once),
        TEST(limits_that_are_too_small_are_not_worth_a_lease),
        TEST(a_full_table_forgets_what_is_not_outstanding_and_never_what_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
