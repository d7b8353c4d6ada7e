/*
 * Tests the state of a leased key in a real redis-server: every verb respects what is outstanding,
 * lost data and clock steps cost no more than they may, and a key stays small.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/store/lease_fleet.h"
#include "support/store/lease_limit.h"
#include "support/store/store_run.h"

#define NO_SHARD ((struct weir_text){NULL, 0})
#define ALICE TEXT("alice")

static struct store_redis redis;
static struct fleet fleet;

static struct weir_options options(int algorithm, uint64_t count, uint64_t period_ns)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.algorithm = algorithm;
    o.count = count;
    o.period_ns = period_ns;
    o.burst = algorithm == WEIR_TOKEN_BUCKET ? count : 0;
    return o;
}

static void begin(int algorithm, uint64_t count, uint64_t period_ns, unsigned nodes)
{
    struct weir_options o = options(algorithm, count, period_ns);
    fleet_start(&fleet, &redis, &o, nodes, 1);
}

/* ---- calls by hand ---- */

struct lease {
    int64_t verdict, remaining, granted, mark, life_us, kept;
};

static struct lease lease(uint64_t cost, uint64_t want, int64_t mark, uint64_t held, uint64_t back,
                          uint64_t keep)
{
    struct lease_call call = {.limit = &fleet.limit,
                              .cost = cost,
                              .want = want,
                              .lease = (uint64_t)mark,
                              .held = held,
                              .back = back,
                              .keep = keep};
    store_key(&fleet.limit.head, NO_SHARD, ALICE, &call.key);
    struct store_reply r = fleet_run(&fleet, &call);
    return (struct lease){r.integers[0],  r.integers[2],  r.integers[9],
                          r.integers[10], r.integers[11], r.integers[12]};
}

static uint64_t room(void)
{
    return fleet_verb(&fleet, REMOTE_PEEK, 1, 0).remaining;
}

static int end(void **state)
{
    fleet_stop(&fleet);
    return 0;
}

/* ---- what is outstanding ---- */

static void a_bucket_fills_only_to_what_is_not_outstanding(void **state)
{
    begin(WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND, 1);
    struct lease a = lease(1, 100, 0, 0, 0, 0);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(a.granted, 100);
    assert_int_equal(a.life_us, 1000000);
    assert_int_equal(room(), 899);
    fleet_pass(&fleet, 999999);
    assert_int_equal(room(), 900);
    struct lease b = lease(0, 0, a.mark, 100, 30, 0); /* 70 units were spent */
    assert_int_equal(b.kept, 1);
    assert_int_equal(b.mark, 0);
    assert_int_equal(room(), 930);
    fleet_pass(&fleet, 70000);
    assert_int_equal(room(), 1000);
}

static void an_expired_lease_counts_as_spent_when_it_ended(void **state)
{
    begin(WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND, 1);
    struct lease a = lease(0, 100, 0, 0, 0, 0);
    fleet_pass(&fleet, 1000000 + 40000); /* 40 ms after its end */
    assert_int_equal(room(), 940);
    struct lease b = lease(0, 0, a.mark, 100, 100, 0);
    assert_int_equal(b.kept, 0);
    assert_int_equal(room(), 940);
    fleet_pass(&fleet, 60000);
    assert_int_equal(room(), 1000);
}

static void what_is_kept_goes_on_under_the_new_mark(void **state)
{
    begin(WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND, 1);
    struct lease a = lease(0, 100, 0, 0, 0, 0);
    fleet_pass(&fleet, 900000);
    struct lease b = lease(0, 120, a.mark, 100, 0, 40);
    assert_int_equal(b.kept, 1);
    assert_int_equal(b.granted, 80);
    assert_true(b.mark > a.mark);
    fleet_pass(&fleet, 500000); /* the old lease is over */
    assert_int_equal(room(), 880);
    struct lease c = lease(0, 0, b.mark, 120, 120, 0);
    assert_int_equal(c.kept, 1);
    assert_int_equal(room(), 1000);
}

static void a_mark_that_nobody_granted_settles_nothing(void **state)
{
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_FIXED_WINDOW; algorithm += 2) {
        begin(algorithm, 1000, 1000 * WEIR_SECOND, 1);
        struct lease a = lease(0, 100, 0, 0, 0, 0);
        assert_int_equal(a.granted, 100);
        assert_int_equal(lease(0, 0, a.mark + 1, 100, 100, 0).kept, 0);
        if (algorithm == WEIR_TOKEN_BUCKET) {
            assert_int_equal(lease(0, 0, a.mark, 101, 101, 0).kept, 0);
        }
        assert_int_equal(room(), 900);
        end(state);
    }
    begin(WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND, 1);
}

static void the_share_of_a_lease_shrinks_with_their_number(void **state)
{
    begin(WEIR_TOKEN_BUCKET, 1000, 1000 * WEIR_SECOND, 1);
    assert_int_equal(lease(0, 1000, 0, 0, 0, 0).granted, 250);
    assert_int_equal(lease(0, 1000, 0, 0, 0, 0).granted, 125);
    assert_int_equal(lease(0, 1000, 0, 0, 0, 0).granted, 83);
    assert_int_equal(room(), 1000 - 250 - 125 - 83);
}

/* Like 1,000 nodes: their leases share ten marks, and the value has some hundred bytes. */
static void a_key_stays_small_with_a_thousand_leases(void **state)
{
    begin(WEIR_TOKEN_BUCKET, 1000000, WEIR_SECOND, 1);
    struct store_key key;
    store_key(&fleet.limit.head, NO_SHARD, ALICE, &key);
    key.at[key.len] = '\0';
    for (unsigned i = 0; i < 3000; i++) {
        (void)lease(1, 100, 0, 0, 0, 0);
        fleet_pass(&fleet, 1000);
    }
    const struct store_reply *r = store_redis_do(&redis, "GET", key.at);
    unsigned marks = 0;
    for (size_t i = 0; i < r->text.len; i++) {
        marks += r->text.at[i] == ';';
    }
    print_message("%u marks: %.*s\n", marks, TEXT_ARGS(r->text));
    assert_true(marks <= 10);
    assert_true(store_redis_do(&redis, "MEMORY", "USAGE", key.at)->integers[0] <= 320);
    fleet_pass(&fleet, 5000000);
    (void)fleet_verb(&fleet, REMOTE_CHECK, 1, 0);
    assert_true(store_redis_do(&redis, "MEMORY", "USAGE", key.at)->integers[0] <= 104);
}

/* ---- verbs ---- */

static void no_verb_takes_or_gives_what_is_outstanding(void **state)
{
    begin(WEIR_TOKEN_BUCKET, 1000, 1000 * WEIR_SECOND, 1);
    struct lease a = lease(0, 250, 0, 0, 0, 0);
    assert_int_equal(fleet_verb(&fleet, REMOTE_UP_TO, 5000, 0).granted, 750);
    assert_int_equal(fleet_verb(&fleet, REMOTE_CHECK, 1, 0).verdict, WEIR_DENY);
    uint64_t now_ns = fleet.now_us * WEIR_MICROSECOND;
    assert_int_equal(fleet_verb(&fleet, REMOTE_REFUND, 900, now_ns).remaining, 750);
    assert_int_equal(fleet_verb(&fleet, REMOTE_PENALIZE, 700, 0).remaining, 50);
    assert_int_equal(fleet_act(&fleet, REMOTE_RESET, 0), 1);
    assert_int_equal(room(), 750);
    assert_int_equal(lease(0, 0, a.mark, 250, 250, 0).kept, 1);
    assert_int_equal(room(), 1000);
    assert_int_equal(fleet_act(&fleet, REMOTE_RESET, 0), 1);
    assert_int_equal(store_redis_do(&redis, "DBSIZE")->integers[0], 1); /* the test's clock */
}

static void a_block_is_heeded_and_leaves_the_leases_alone(void **state)
{
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_FIXED_WINDOW; algorithm += 2) {
        begin(algorithm, 1000, 1000 * WEIR_SECOND, 1);
        struct lease a = lease(0, 100, 0, 0, 0, 0);
        assert_int_equal(fleet_act(&fleet, SCRIPT_BLOCK_UNTIL, WEIR_FOREVER), 0);
        struct lease b = lease(1, 100, a.mark, 100, 60, 0);
        assert_int_equal(b.verdict, WEIR_DENY);
        assert_int_equal(b.granted, 0);
        assert_int_equal(b.kept, 1);
        assert_int_equal(lease(0, 100, 0, 0, 0, 0).granted, 0);
        assert_int_equal(fleet_act(&fleet, REMOTE_UNBLOCK, 0), 1);
        assert_int_equal(room(), 960);
        end(state);
    }
    begin(WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND, 1);
}

/* Otherwise a node that renews in time could continue for as long as the block lasts. */
static void a_block_ends_a_lease_that_would_be_renewed(void **state)
{
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_FIXED_WINDOW; algorithm += 2) {
        begin(algorithm, 1000, 1000 * WEIR_SECOND, 1);
        struct lease a = lease(0, 100, 0, 0, 0, 0);
        assert_int_equal(fleet_act(&fleet, SCRIPT_BLOCK_UNTIL, WEIR_FOREVER), 0);
        struct lease b = lease(0, 100, a.mark, 100, 0, 40);
        assert_int_equal(b.granted, 0);
        assert_int_equal(b.kept, 0);
        assert_int_equal(b.mark, 0);
        assert_int_equal(fleet_act(&fleet, REMOTE_UNBLOCK, 0), 1);
        assert_int_equal(room(), 900); /* all of it counts as spent */
        end(state);
    }
    begin(WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND, 1);
}

static void who_waits_takes_tokens_that_are_yet_to_come(void **state)
{
    struct weir_options o = options(WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND);
    o.max_debt = 100;
    fleet_start(&fleet, &redis, &o, 1, 1);
    (void)lease(0, 250, 0, 0, 0, 0);
    assert_int_equal(fleet_verb(&fleet, REMOTE_CHECK, 750, 0).verdict, WEIR_ALLOW);
    struct weir_answer a = fleet_verb(&fleet, REMOTE_CHECK, 50, WEIR_SECOND);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(a.delay_ns, 50 * WEIR_MILLISECOND);
    assert_int_equal(lease(0, 250, 0, 0, 0, 0).granted, 0);
}

static void several_limits_heed_it_too(void **state)
{
    begin(WEIR_TOKEN_BUCKET, 1000, 1000 * WEIR_SECOND, 1);
    (void)lease(0, 250, 0, 0, 0, 0);
    struct weir_options o = options(WEIR_SLIDING_LOG, 1000, WEIR_SECOND);
    struct store_params log;
    struct store_key head;
    struct store_key keys[2];
    assert_int_equal(store_params(&o, &log, NULL), 0);
    assert_int_equal(store_key_head(TEXT("t"), TEXT("log"), &log, &head, NULL), 0);
    store_key(&fleet.limit.head, NO_SHARD, ALICE, &keys[0]);
    store_key(&head, NO_SHARD, ALICE, &keys[1]);
    static const uint64_t costs[] = {751, 750, 1};
    static const int verdicts[] = {WEIR_DENY, WEIR_ALLOW, WEIR_DENY};
    for (unsigned i = 0; i < 3; i++) {
        struct store_part parts[2] = {
            {&fleet.numbers.params, store_key_text(&keys[0]), costs[i], 0},
            {&log, store_key_text(&keys[1]), 1, 0}};
        struct weir_answer a;
        script_put_call(&redis.out, script_for(&clocked_scripts, parts, 2), SCRIPT_BY_SHA,
                        REMOTE_CHECK, parts, 2);
        store_redis_send(&redis);
        assert_int_equal(script_answer(store_redis_next(&redis), parts, 2, &a, NULL), 0);
        assert_int_equal(a.verdict, verdicts[i]);
        assert_int_equal(a.limit, 0);
    }
}

static void a_quota_that_is_lowered_below_what_is_outstanding_waits_for_it(void **state)
{
    begin(WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND, 1);
    struct lease a = lease(0, 250, 0, 0, 0, 0);
    struct weir_options o = options(WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND);
    o.burst = 100;
    assert_int_equal(store_params(&o, &fleet.numbers.params, NULL), 0);
    store_params_lease(&fleet.numbers.params);
    fleet_pass(&fleet, 500000);
    assert_int_equal(room(), 0);
    assert_int_equal(lease(1, 10, 0, 0, 0, 0).verdict, WEIR_DENY);
    assert_int_equal(lease(0, 0, a.mark, 250, 250, 0).kept, 1);
    assert_int_equal(room(), 100);
}

/* Without leases it is a token bucket, with any verb, at any time. */
static void without_leases_it_decides_as_an_exact_bucket(void **state)
{
    static const unsigned verbs[] = {REMOTE_CHECK, REMOTE_CHECK,  REMOTE_PEEK,
                                     REMOTE_UP_TO, REMOTE_REFUND, REMOTE_PENALIZE};
    struct weir_options o = options(WEIR_TOKEN_BUCKET, 1700, WEIR_SECOND);
    o.max_debt = 300;
    fleet_start(&fleet, &redis, &o, 1, 5);
    struct store_params exact = fleet.numbers.params;
    exact.leased = false;
    for (unsigned i = 0; i < 2000; i++) {
        unsigned v = verbs[fleet_random(&fleet, 6)];
        uint64_t cost = 1 + fleet_random(&fleet, 400);
        uint64_t time_ns = v == REMOTE_REFUND               ? fleet.now_us * WEIR_MICROSECOND
                           : v <= REMOTE_PEEK && i % 5 == 0 ? 100 * WEIR_MILLISECOND
                                                            : 0;
        struct weir_answer own = fleet_verb(&fleet, v, cost, time_ns);
        struct fleet other = fleet;
        other.numbers.params = exact;
        other.limit.head.at[other.limit.head.len - 3] = 't';
        struct weir_answer theirs = fleet_verb(&other, v, cost, time_ns);
        assert_memory_equal(&own, &theirs, sizeof own);
        fleet_pass(&fleet, fleet_random(&fleet, 200000));
    }
}

/* ---- what goes wrong ---- */

static void lost_data_is_worth_one_full_limit_and_old_marks_nothing(void **state)
{
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_FIXED_WINDOW; algorithm += 2) {
        begin(algorithm, 10000, 1000 * WEIR_SECOND, 4);
        for (unsigned round = 0; round < 2; round++) {
            for (unsigned i = 0; i < 40000; i++) {
                if (round == 0 && i == 5000) { /* in the middle of the run */
                    (void)store_redis_do(&redis, "FLUSHDB");
                }
                (void)fleet_ask(&fleet, i % 4, 1);
                if (i % 1000 == 0) {
                    fleet_pass(&fleet, 10000);
                }
            }
            fleet_pass(&fleet, 1100000); /* so that denials are forgotten */
        }
        assert_true(fleet.admitted > 14000);
        assert_true(fleet.admitted <= 20000 + 100);
        end(state);
    }
    begin(WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND, 1);
}

static void a_clock_that_is_set_back_holds_leases_no_longer_than_they_live(void **state)
{
    begin(WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND, 1);
    (void)lease(0, 250, 0, 0, 0, 0);
    fleet.now_us -= 3600 * UINT64_C(1000000);
    assert_int_equal(fleet_verb(&fleet, REMOTE_CHECK, 1, 0).verdict, WEIR_DENY); /* locked out */
    fleet_pass(&fleet, 1999000); /* no longer than the time to full, including debt */
    assert_int_equal(room(), 999);
}

/* The step is a little more than the second that clocks may differ: some marks are then too far
 * ahead, others not. */
static void a_clock_that_is_set_back_a_little_loses_no_lease(void **state)
{
    begin(WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND, 1);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(lease(0, 10, 0, 0, 0, 0).granted, 10);
        fleet_pass(&fleet, 125000); /* each lease has its own mark */
    }
    fleet.now_us -= 1350000;
    assert_int_equal(fleet_act(&fleet, REMOTE_RESET, 0), 1); /* except what is outstanding */
    assert_int_equal(room(), 950);
    assert_int_equal(fleet_verb(&fleet, REMOTE_CHECK, 1, 0).verdict, WEIR_ALLOW);
    assert_int_equal(room(), 949);
    fleet_pass(&fleet, 100000);
    assert_int_equal(room(), 950);
}

static void a_state_of_somebody_else_is_an_error_and_stays(void **state)
{
    begin(WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND, 1);
    static const char *const values[] = {"somebody's", "12;", "12;x,1,1", ";1,1,1", "12;1,1"};
    struct store_key key;
    store_key(&fleet.limit.head, NO_SHARD, ALICE, &key);
    key.at[key.len] = '\0';
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        (void)store_redis_do(&redis, "SET", key.at, values[i]);
        assert_int_equal(fleet_act(&fleet, REMOTE_RESET, 0), WEIR_EIO);
        assert_true(text_is(store_redis_do(&redis, "GET", key.at)->text, values[i]));
    }
}

static int start(void **state)
{
    store_redis_start(&redis, NULL);
    return 0;
}

static int stop(void **state)
{
    store_redis_stop(&redis);
    return 0;
}

int main(void)
{
#define TEST(f) cmocka_unit_test_teardown(f, end)
    const struct CMUnitTest tests[] = {
        TEST(a_bucket_fills_only_to_what_is_not_outstanding),
        TEST(an_expired_lease_counts_as_spent_when_it_ended),
        TEST(what_is_kept_goes_on_under_the_new_mark),
        TEST(a_mark_that_nobody_granted_settles_nothing),
        TEST(the_share_of_a_lease_shrinks_with_their_number),
        TEST(a_key_stays_small_with_a_thousand_leases),
        TEST(no_verb_takes_or_gives_what_is_outstanding),
        TEST(a_block_is_heeded_and_leaves_the_leases_alone),
        TEST(a_block_ends_a_lease_that_would_be_renewed),
        TEST(who_waits_takes_tokens_that_are_yet_to_come),
        TEST(several_limits_heed_it_too),
        TEST(a_quota_that_is_lowered_below_what_is_outstanding_waits_for_it),
        TEST(without_leases_it_decides_as_an_exact_bucket),
        TEST(lost_data_is_worth_one_full_limit_and_old_marks_nothing),
        TEST(a_clock_that_is_set_back_holds_leases_no_longer_than_they_live),
        TEST(a_clock_that_is_set_back_a_little_loses_no_lease),
        TEST(a_state_of_somebody_else_is_an_error_and_stays),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
