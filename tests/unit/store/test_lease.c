/* The node's side of `leased`, rule by rule (store/lease.h), with replies of the test's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/maths.h"
#include "store/lease.h"
#include "support/lease_limit.h"

#define MS WEIR_MILLISECOND
#define LIFE_US UINT64_C(2000000)
#define MARK 777
#define NO_SHARD ((struct text){NULL, 0})
#define ALICE TEXT("alice")

static struct leases *leases;
static struct store_limit limit;
static struct store_numbers numbers;
static uint64_t now;
static struct weir_answer answer;
static struct lease_call call;

static void limit_of(int algorithm, uint64_t count)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.algorithm = algorithm;
    o.count = count;
    o.period_ns = WEIR_SECOND;
    o.burst = algorithm == WEIR_TOKEN_BUCKET ? count : 0;
    assert_int_equal(store_params(&o, &numbers.params, NULL), 0);
    store_params_lease(&numbers.params);
    limit = (struct store_limit){
        .references = 1, .id = 1, .deny_cache_ns = WEIR_SECOND, .numbers = &numbers};
    assert_int_equal(store_key_head(TEXT("t"), TEXT("x"), &numbers.params, &limit.head, NULL), 0);
}

static int setup(void **state)
{
    limit_of(WEIR_TOKEN_BUCKET, 1000);
    now = 10 * WEIR_SECOND;
    return leases_create(&leases, 1024);
}

static int teardown(void **state)
{
    leases_destroy(leases);
    return limit.references == 1 ? 0 : -1; /* whoever held it has let go */
}

/* ---- asking and answering ---- */

static unsigned ask(uint64_t cost)
{
    return lease_ask(leases, &limit, NO_SHARD, ALICE, cost, now, &answer, &call);
}

static struct store_reply reply_of(int verdict, uint64_t remaining, uint64_t retry_us,
                                   uint64_t granted, uint64_t mark, uint64_t life_us, bool kept)
{
    return (struct store_reply){.type = ':',
                                .n = SCRIPT_LEASE_COUNT,
                                .integers = {verdict, 0, (int64_t)remaining, 0, (int64_t)retry_us,
                                             1000, 0, 123, 0, (int64_t)granted, (int64_t)mark,
                                             (int64_t)life_us, kept}};
}

static void reply(const struct lease_call *to, const struct store_reply *r)
{
    assert_int_equal(lease_reply(leases, to, r, now, &answer), 0);
}

static void grant(const struct lease_call *to, uint64_t units)
{
    bool holds = units + to->keep != 0;
    struct store_reply r =
        reply_of(WEIR_ALLOW, 500, 0, units, holds ? MARK : 0, holds ? LIFE_US : 0, to->lease != 0);
    reply(to, &r);
}

static void deny(const struct lease_call *to, uint64_t retry_us)
{
    struct store_reply r = reply_of(WEIR_DENY, 0, retry_us, 0, 0, 0, to->lease != 0);
    reply(to, &r);
}

/* Asks until a lease is asked for, and grants it. */
static void have_lease(uint64_t units)
{
    while (ask(1) == LEASE_SEND && call.want == 0) {
        struct store_reply r = reply_of(WEIR_ALLOW, 500, 0, 0, 0, 0, false);
        reply(&call, &r);
        now += MS;
    }
    assert_true(call.want >= units && call.id != 0);
    grant(&call, units);
}

/* How much can be spent without a word to the store; renewals are lost. */
static uint64_t spendable(void)
{
    uint64_t units = 0;
    for (;;) {
        unsigned said = ask(1);
        if ((said & LEASE_SEND) != 0) {
            lease_lost(leases, &call, now);
        }
        if (said == LEASE_SEND || answer.verdict != WEIR_ALLOW) {
            return units;
        }
        units++;
    }
}

/* ---- L1 ---- */

static void a_lease_lives_from_when_its_call_was_made_less_one_in_a_hundred(void **state)
{
    assert_int_equal(ask(1), LEASE_SEND);
    struct store_reply r = reply_of(WEIR_ALLOW, 500, 0, 0, 0, 0, false);
    reply(&call, &r);
    assert_int_equal(ask(1), LEASE_SEND);
    assert_true(call.want >= 20);
    uint64_t made = now;
    now += 900 * MS; /* the reply takes its time */
    grant(&call, 20);
    now = made + LIFE_US * 990 - 1;
    assert_int_equal(ask(1) & LEASE_ANSWERED, LEASE_ANSWERED);
    lease_unsent(leases, &call, now);
    now = made + LIFE_US * 990;
    assert_int_equal(ask(1), LEASE_SEND);
    assert_int_equal(call.lease, MARK); /* but the rest can be given back */
    assert_int_equal(call.back, 19);
    lease_lost(leases, &call, now);
}

/* ---- L2 ---- */

static void a_call_without_a_reply_granted_nothing(void **state)
{
    have_lease(10);
    assert_int_equal(spendable(), 10);
    assert_int_equal(ask(1), LEASE_SEND);
    lease_lost(leases, &call, now);
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
    lease_lost(leases, &call, now);
    assert_int_equal(spendable(), 5); /* they are this node's, by the old mark or by the new one */
    assert_int_equal(ask(1), LEASE_SEND);
    assert_int_equal(call.lease, 0);
    assert_int_equal(call.held, 0);
    lease_lost(leases, &call, now);
}

static void units_of_an_unknown_mark_end_with_their_old_lease(void **state)
{
    have_lease(10);
    uint64_t made = now;
    for (int i = 0; i < 6; i++) {
        (void)ask(1);
    }
    lease_lost(leases, &call, now);
    now = made + LIFE_US * 990;
    assert_int_equal(ask(1), LEASE_SEND);
    lease_lost(leases, &call, now);
}

static void a_call_that_was_not_sent_changes_nothing(void **state)
{
    have_lease(10);
    for (int i = 0; i < 6; i++) {
        (void)ask(1);
    }
    lease_unsent(leases, &call, now);
    assert_int_equal(ask(7), LEASE_SEND); /* more than is left: all of it goes back */
    assert_int_equal(call.lease, MARK);
    assert_int_equal(call.held, 10);
    assert_int_equal(call.back, 4);
    lease_unsent(leases, &call, now);
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
    lease_unsent(leases, &call, now);
    assert_int_equal(ask(1), LEASE_SEND);
    assert_int_not_equal(call.id, 0);
    now += LIFE_US * 995;
    grant(&call, 10);
    assert_int_equal(ask(1), LEASE_SEND);
    assert_int_equal(call.back, 10);
    lease_lost(leases, &call, now);
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
        r.integers[9] = i == 2 ? 100000 : r.integers[9]; /* more than was wanted */
        r.integers[12] = i == 3 ? 2 : r.integers[12];
        r.integers[11] = i == 4 ? -1 : r.integers[11];
        r.integers[0] = i == 5 ? 3 : r.integers[0];
        r.integers[10] = i == 6 ? 0 : r.integers[10]; /* under no mark */
        while (ask(1) == LEASE_SEND && call.want == 0) {
            lease_lost(leases, &call, now);
        }
        assert_int_equal(lease_reply(leases, &call, &r, now, &answer), WEIR_EIO);
        assert_int_equal(spendable(), 0);
    }
}

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
    assert_int_equal(ask(1), LEASE_ANSWERED); /* what was spent meanwhile is the new lease's */
    assert_int_equal(answer.remaining, 500 + 99);
}

static void questions_go_to_the_store_while_the_one_call_is_on_its_way(void **state)
{
    (void)ask(1);
    lease_unsent(leases, &call, now);
    assert_int_equal(ask(1), LEASE_SEND);
    assert_int_not_equal(call.id, 0);
    struct lease_call first = call;
    assert_int_equal(ask(1), LEASE_SEND);
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
    assert_int_equal(call.want, 32); /* the first one is careful */
    uint64_t wanted[4];
    for (unsigned i = 0; i < 4; i++) {
        do {
            now += MS / 10; /* 10,000 a second: 5,000 in a quarter of a life */
        } while ((ask(1) & LEASE_SEND) == 0);
        wanted[i] = call.want;
        grant(&call, 100);
    }
    assert_int_equal(wanted[0], 8 * 32);
    assert_true(wanted[1] <= 1000 && wanted[1] > wanted[0]); /* the quota */
    for (unsigned i = 0; i < 400; i++) {                     /* now 50 a second: 25 */
        now += 20 * MS;
        if ((ask(1) & LEASE_SEND) != 0) {
            wanted[3] = call.want;
            grant(&call, 30);
        }
    }
    assert_true(wanted[3] >= 25 && wanted[3] < 50);
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
        assert_false(lease_next(leases, now, &none));
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
        assert_false(lease_next(leases, now, &back));
        now = lease_due(leases);
        assert_true(now > used);
    }
    assert_true(lease_next(leases, now, &back));
    assert_true(now <= used + LIFE_US * 1000 / 2 + 130 * MS);
    assert_int_equal(back.back, 15);
    assert_int_equal(back.held, 20);
    assert_int_equal(back.want, 0);
    grant(&back, 0);
    now += 10 * WEIR_SECOND;
    assert_false(lease_next(leases, now, &back)); /* and then the key is forgotten */
    assert_int_equal(lease_due(leases), UINT64_MAX);
}

static void a_spent_lease_of_a_window_is_no_longer_worth_a_call(void **state)
{
    limit_of(WEIR_FIXED_WINDOW, 1000);
    have_lease(20);
    assert_int_equal(spendable(), 20);
    struct lease_call next;
    for (unsigned i = 0; i < 100; i++) {
        now += 100 * MS;
        assert_false(lease_next(leases, now, &next));
    }
    assert_int_equal(lease_due(leases), UINT64_MAX);
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
    now = made + LIFE_US * 1000 + 10; /* the old one is over */
    assert_int_equal(ask(left) & LEASE_ANSWERED, LEASE_ANSWERED);
    assert_int_equal(answer.verdict, WEIR_ALLOW);
}

static void a_node_that_ends_returns_everything(void **state)
{
    have_lease(20);
    for (unsigned i = 0; i < 3; i++) { /* and another key, whose call is on its way */
        (void)lease_ask(leases, &limit, NO_SHARD, TEXT("bob"), 1, now, &answer, &call);
        if (call.want == 0) {
            lease_unsent(leases, &call, now);
        } else {
            break;
        }
    }
    struct lease_call bobs = call;
    struct lease_call next;
    lease_stop(leases);
    assert_int_equal(lease_due(leases), 0);
    assert_true(lease_next(leases, now, &next));
    assert_int_equal(next.back, 20);
    grant(&next, 0);
    assert_false(lease_next(leases, now, &next));
    grant(&bobs, 8);
    assert_true(lease_next(leases, now, &next));
    assert_int_equal(next.back, 8);
    lease_unsent(leases, &next, now); /* no way to the store: it is not tried for ever */
    assert_false(lease_next(leases, now, &next));
    assert_int_equal(ask(1), LEASE_SEND);
    assert_int_equal(call.want, 0);
    lease_unsent(leases, &call, now);
}

static void a_key_that_somebody_changed_returns_its_lease_at_once(void **state)
{
    have_lease(20);
    struct lease_call next;
    lease_forget(leases, &limit, NO_SHARD, ALICE);
    assert_int_equal(lease_due(leases), 0);
    assert_true(lease_next(leases, now, &next));
    assert_int_equal(next.back, 20);
    lease_forget(leases, &limit, NO_SHARD, ALICE); /* also what is granted meanwhile */
    struct store_reply r = reply_of(WEIR_ALLOW, 500, 0, 0, 0, 0, true);
    reply(&next, &r);
    assert_int_equal(ask(1), LEASE_SEND);
    lease_forget(leases, &limit, NO_SHARD, ALICE);
    if (call.want >= 5) {
        grant(&call, 5);
        assert_true(lease_next(leases, now, &next));
        assert_int_equal(next.back, 5);
        lease_lost(leases, &next, now);
    } else {
        lease_unsent(leases, &call, now);
    }
}

static void units_that_nobody_used_come_back_to_the_lease(void **state)
{
    have_lease(10);
    assert_int_equal(ask(4), LEASE_ANSWERED);
    assert_true(lease_refund(leases, &limit, NO_SHARD, ALICE, 4, now));
    assert_false(lease_refund(leases, &limit, NO_SHARD, ALICE, 1, now)); /* nothing is spent */
    assert_int_equal(spendable(), 10);
    now += LIFE_US * 1000;
    assert_false(lease_refund(leases, &limit, NO_SHARD, ALICE, 1, now));
}

/* ---- L6 ---- */

static void a_dry_lease_asks_and_settles_in_one_call(void **state)
{
    have_lease(10);
    assert_int_equal(ask(8) & LEASE_ANSWERED, LEASE_ANSWERED);
    lease_unsent(leases, &call, now);
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
    assert_int_equal(ask(4), LEASE_SEND); /* a cheaper one may fit */
    lease_unsent(leases, &call, now);
    now += MS;
    assert_int_equal(ask(5), LEASE_SEND);
    deny(&call, 5000000);
    now += WEIR_SECOND - 1;
    assert_int_equal(ask(5), LEASE_ANSWERED);
    now += 1;
    assert_int_equal(ask(5), LEASE_SEND);
    lease_unsent(leases, &call, now);
}

static void a_short_denial_stands_until_there_is_something_to_find(void **state)
{
    assert_int_equal(ask(1), LEASE_SEND);
    deny(&call, 1000);
    now += WEIR_SECOND / 64 - 1; /* of a bucket that fills in a second */
    assert_int_equal(ask(1), LEASE_ANSWERED);
    assert_int_equal(answer.verdict, WEIR_DENY);
    now += 1;
    assert_int_equal(ask(1), LEASE_SEND);
    struct lease_call first = call;
    assert_int_equal(ask(1), LEASE_ANSWERED); /* until its answer is here */
    assert_int_equal(answer.verdict, WEIR_DENY);
    assert_true(answer.retry_after_ns > 0);
    struct store_reply r = reply_of(WEIR_ALLOW, 100, 0, 0, 0, 0, false);
    reply(&first, &r);
    assert_int_equal(ask(1), LEASE_SEND);
    lease_unsent(leases, &call, now);
}

static void without_a_call_nothing_is_sent_and_renewals_wait(void **state)
{
    struct lease_call next;
    assert_int_equal(lease_ask(leases, &limit, NO_SHARD, ALICE, 1, now, &answer, NULL), 0);
    have_lease(10);
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(lease_ask(leases, &limit, NO_SHARD, ALICE, 1, now, &answer, NULL),
                         LEASE_ANSWERED);
        assert_int_equal(answer.verdict, WEIR_ALLOW);
    }
    assert_int_equal(lease_ask(leases, &limit, NO_SHARD, ALICE, 1, now, &answer, NULL), 0);
    assert_int_equal(lease_due(leases), 0);
    assert_true(lease_next(leases, now, &next));
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
    struct leases *small;
    assert_int_equal(leases_create(&small, 1), 0); /* one for each stripe */
    unsigned leased = 0;
    for (unsigned i = 0; i < 2000; i++) {
        struct text key = {(const char *)&i, sizeof i};
        for (unsigned q = 0; q < 2; q++) {
            assert_int_equal(lease_ask(small, &limit, NO_SHARD, key, 1, now, &answer, &call),
                             LEASE_SEND);
            struct store_reply r = reply_of(WEIR_ALLOW, 500, 0, min_u64(call.want, 9),
                                            call.want != 0 ? MARK : 0, LIFE_US, false);
            leased += call.want != 0;
            assert_int_equal(lease_reply(small, &call, &r, now, &answer), 0);
        }
    }
    assert_true(leased > 32 && leased <= 64);
    leases_destroy(small);
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
        TEST(a_lease_is_renewed_before_it_is_dry_by_one_call),
        TEST(questions_go_to_the_store_while_the_one_call_is_on_its_way),
        TEST(a_size_follows_the_demand),
        TEST(a_key_that_is_rarely_asked_for_takes_out_no_lease),
        TEST(units_that_nobody_uses_are_returned_after_half_a_life),
        TEST(a_spent_lease_of_a_window_is_no_longer_worth_a_call),
        TEST(a_lease_in_use_is_carried_on_before_it_expires),
        TEST(a_node_that_ends_returns_everything),
        TEST(a_key_that_somebody_changed_returns_its_lease_at_once),
        TEST(units_that_nobody_used_come_back_to_the_lease),
        TEST(a_dry_lease_asks_and_settles_in_one_call),
        TEST(more_than_the_quota_is_asked_without_touching_the_lease),
        TEST(a_denial_stands_for_its_cost_until_its_retry_or_the_cache_ends),
        TEST(a_short_denial_stands_until_there_is_something_to_find),
        TEST(without_a_call_nothing_is_sent_and_renewals_wait),
        TEST(limits_that_are_too_small_are_not_worth_a_lease),
        TEST(a_full_table_forgets_what_is_not_outstanding_and_never_what_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
