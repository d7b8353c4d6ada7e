/*
 * Exchanges at times that the test chooses, with a store that says what the test makes it say. Each
 * rule of store/sync.h is a test; what real scripts say is in tests/store/test_sync_store.c.
 */
#include <stdio.h>
#include <string.h>

#include "support/oracle_trace.h"
#include "support/sync_fakes.h"

#define T0 (1000 * WEIR_SECOND)
#define STORE_US UINT64_C(1700000000000000) /* a whole second; what the store says at T0 */
#define RTT (2 * MS)

static struct syncs *node;
static struct fake_limit fake;

static int fresh(void **state)
{
    assert_int_equal(syncs_create(&node, 64), 0);
    syncs_seed(node, 1);
    return 0;
}

static int done(void **state)
{
    syncs_destroy(node);
    assert_int_equal(fake.limit.references, 0);
    return 0;
}

static bool text_has(struct text text, const char *what)
{
    return memmem(text.at, text.len, what, strlen(what)) != NULL;
}

static struct sync_call next(uint64_t now_ns)
{
    struct sync_call c;
    assert_true(sync_next(node, now_ns, &c));
    assert_int_equal(c.made_ns, now_ns);
    return c;
}

static void none(uint64_t now_ns)
{
    struct sync_call c;
    assert_false(sync_next(node, now_ns, &c));
}

/* The store says this, at its time of `at_ns` here. */
static int say(const struct sync_call *c, uint64_t at_ns, int64_t x, int64_t y, int64_t z,
               uint64_t now_ns)
{
    int64_t now_us = (int64_t)(STORE_US + (at_ns - T0) / WEIR_MICROSECOND);
    struct store_reply r = {.type = ':', .n = 6, .integers = {now_us, x, y, z, 0, 0}};
    return sync_reply(node, c, &r, now_ns);
}

static struct store_limit *bucket(void)
{
    return fake_limit(&fake, WEIR_TOKEN_BUCKET, 10, WEIR_SECOND, 10);
}

static struct store_limit *window(int algorithm)
{
    return fake_limit(&fake, algorithm, 10, WEIR_SECOND, 0);
}

#define WINDOW ((int64_t)(STORE_US / 1000000)) /* that of T0 */

/* ---- Y1 ---- */

static void a_decision_counts_what_was_heard_and_what_was_admitted_since(void **state)
{
    struct store_limit *l = bucket();
    assert_int_equal(fake_ask(node, l, "k", 3, T0).remaining, 7);
    struct sync_call c = next(T0);
    assert_int_equal(c.delta, 3);
    assert_int_equal(fake_ask(node, l, "k", 2, T0 + MS).remaining, 5);
    /* Others have taken 4: the lead is 7 units of 100 ms, our last 2 come on top. */
    assert_int_equal(say(&c, T0 + MS, 700000, 0, 0, T0 + RTT), 0);
    struct weir_answer a = fake_ask(node, l, "k", 2, T0 + RTT);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.remaining, 1);
    assert_int_equal(a.retry_after_ns, 100 * MS);
    assert_int_equal(a.reset_after_ns, 900 * MS);
    a = fake_ask(node, l, "k", 1, T0 + RTT);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(a.granted, 1);
    assert_int_equal(a.quota, 10);
    assert_int_equal(a.flags, 0);
    assert_int_equal(next(T0 + S_NS).delta, 3);
    store_limit_release(l); /* that call's */
}

static void a_cost_that_never_fits_is_no_key(void **state)
{
    struct store_limit *l = bucket();
    struct weir_answer a = fake_ask(node, l, "k", 11, T0);
    assert_int_equal(a.verdict, WEIR_NEVER);
    assert_int_equal(a.retry_after_ns, WEIR_FOREVER);
    none(T0 + WEIR_SECOND);
    assert_int_equal(fake_ask(node, l, "k", 1, T0).verdict, WEIR_ALLOW);
    a = fake_ask(node, l, "k", 11, T0);
    assert_int_equal(a.verdict, WEIR_NEVER);
    assert_int_equal(a.remaining, 9);
}

static void keys_limits_and_shards_are_apart(void **state)
{
    struct fake_limit second;
    struct store_limit *l = window(WEIR_FIXED_WINDOW);
    struct store_limit *m = fake_limit(&second, WEIR_FIXED_WINDOW, 10, WEIR_SECOND, 0);
    struct weir_answer a;
    assert_int_equal(fake_admit(node, l, "k", 20, T0), 10);
    assert_int_equal(fake_admit(node, l, "j", 20, T0), 10);
    assert_int_equal(fake_admit(node, m, "k", 20, T0), 10);
    (void)sync_ask(node, l, TEXT("s"), TEXT("k"), 1, T0, &a);
    assert_int_equal(a.remaining, 9);
    for (size_t i = 0; i < 4; i++) {
        struct sync_call c = next(T0);
        bool sharded = text_has(store_key_text(&c.key), "{rs}rk");
        assert_int_equal(c.delta, sharded ? 1 : 10);
        sync_lost(node, &c, T0);
    }
    none(T0);
    syncs_destroy(node);
    assert_int_equal(second.limit.references, 0);
    assert_int_equal(syncs_create(&node, 1), 0);
}

/* ---- Y2, Y3 ---- */

static void one_exchange_is_in_flight_and_the_next_comes_after_s(void **state)
{
    struct store_limit *l = bucket();
    (void)fake_ask(node, l, "k", 1, T0);
    assert_int_equal(sync_due(node), T0);
    struct sync_call c = next(T0);
    (void)fake_ask(node, l, "k", 1, T0 + MS);
    none(T0 + 2 * S_NS);
    assert_int_equal(sync_due(node), UINT64_MAX);
    assert_int_equal(say(&c, T0, 100000, 0, 0, T0 + RTT), 0);
    assert_int_equal(sync_due(node), T0 + S_NS);
    none(T0 + S_NS - 1);
    c = next(T0 + S_NS);
    assert_int_equal(c.delta, 1);
    sync_lost(node, &c, T0 + S_NS);
}

static void a_lost_exchange_is_sent_again_with_its_own_delta(void **state)
{
    struct store_limit *l = bucket();
    (void)fake_ask(node, l, "k", 3, T0);
    struct sync_call c = next(T0);
    (void)fake_ask(node, l, "k", 2, T0 + MS);
    sync_lost(node, &c, T0 + 5 * MS);
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + 5 * MS).remaining, 4);
    for (unsigned i = 1; i <= 3; i++) {
        none(T0 + i * S_NS - 1);
        c = next(T0 + i * S_NS);
        assert_int_equal(c.delta, 3);
        sync_lost(node, &c, T0 + i * S_NS + 5 * MS);
    }
    c = next(T0 + 4 * S_NS);
    assert_int_equal(c.delta, 3);
    assert_int_equal(say(&c, T0, 300000, 0, 0, T0 + 4 * S_NS + RTT), 0);
    c = next(T0 + 4 * S_NS + RTT); /* has waited long enough */
    assert_int_equal(c.delta, 3);
    assert_int_equal(say(&c, T0, 300000, 0, 0, T0 + 5 * S_NS), 0);
    struct sync_counts n;
    sync_counts(node, &n);
    assert_int_equal(n.exchanges, 6);
    assert_int_equal(n.lost, 4);
    assert_int_equal(n.dropped, 0);
}

/* The units were spread over the time since the last exchange, and have drained in part. */
static void a_bucket_tells_how_far_its_units_lead_by_themselves(void **state)
{
    struct store_limit *l = bucket();
    (void)fake_ask(node, l, "k", 1, T0);
    struct sync_call c = next(T0);
    assert_int_equal(c.window, 100000); /* us: one unit, just now */
    assert_int_equal(say(&c, T0, 100000, 0, 0, T0), 0);
    (void)fake_ask(node, l, "k", 1, T0 + 10 * MS);
    (void)fake_ask(node, l, "k", 1, T0 + 70 * MS);
    c = next(T0 + S_NS);
    assert_int_equal(c.delta, 2);
    /* Full again at 10 ms + 2 units = 210 ms, and 1/128 of the 90 ms for clocks that drift. */
    assert_int_equal(c.window, 110704);
    assert_int_equal(c.extra, 0);
    assert_int_equal(say(&c, T0, 0, 0, 0, T0 + S_NS), 0);
}

static void units_that_come_back_are_told_as_less(void **state)
{
    struct store_limit *l = bucket();
    assert_int_equal(fake_ask(node, l, "k", 5, T0).remaining, 5);
    sync_refund(node, l, NO_SHARD, TEXT("k"), 2, T0);
    assert_int_equal(fake_ask(node, l, "k", 1, T0).remaining, 6);
    struct sync_call c = next(T0);
    assert_int_equal(c.delta, 4);
    assert_int_equal(say(&c, T0, 400000, 0, 0, T0), 0);
    sync_refund(node, l, NO_SHARD, TEXT("k"), 3, T0);
    assert_int_equal(fake_ask(node, l, "k", 1, T0).remaining, 8);
    c = next(T0 + S_NS);
    assert_int_equal(c.delta, -2);
    assert_int_equal(say(&c, T0, 200000, 0, 0, T0 + S_NS), 0);
    sync_refund(node, l, NO_SHARD, TEXT("nobody"), 3, T0);
}

static void a_lost_refund_is_dropped_because_twice_would_be_too_much(void **state)
{
    struct store_limit *l = bucket();
    (void)fake_ask(node, l, "k", 5, T0);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0, 500000, 0, 0, T0), 0);
    sync_refund(node, l, NO_SHARD, TEXT("k"), 5, T0);
    c = next(T0 + S_NS);
    assert_int_equal(c.delta, -5);
    sync_lost(node, &c, T0 + S_NS);
    struct sync_counts n;
    sync_counts(node, &n);
    assert_int_equal(n.dropped, 5);
    none(T0 + 2 * S_NS);
}

/* ---- Y4 ---- */

static void a_node_that_has_heard_nothing_leaves_the_window_to_the_store(void **state)
{
    for (int algorithm = WEIR_FIXED_WINDOW; algorithm <= WEIR_SLIDING_WINDOW; algorithm++) {
        struct store_limit *l = window(algorithm);
        assert_int_equal(fake_admit(node, l, "k", 7, T0), 7);
        struct sync_call c = next(T0);
        assert_int_equal(c.delta, 7);
        assert_int_equal(c.window, -1);
        assert_int_equal(c.extra, 0);
        assert_int_equal(fake_ask(node, l, "k", 1, T0 + MS).remaining, 2);
        assert_int_equal(say(&c, T0 + 200 * MS, WINDOW, 8, 0, T0 + RTT), 0);
        struct weir_answer a = fake_ask(node, l, "k", 2, T0 + RTT);
        assert_int_equal(a.verdict, WEIR_DENY);
        assert_int_equal(a.remaining, 1);
        if (algorithm == WEIR_FIXED_WINDOW) {
            assert_int_equal(a.retry_after_ns, 800 * MS);
            assert_int_equal(a.reset_after_ns, 800 * MS);
        }
        c = next(T0 + S_NS);
        assert_int_equal(c.delta, 1);
        assert_int_equal(c.window, WINDOW);
        sync_lost(node, &c, T0 + S_NS);
        syncs_destroy(node);
        assert_int_equal(syncs_create(&node, 64), 0);
    }
}

/* The clock here is anywhere: T0 is in the middle of one of its own seconds or not. */
static void windows_begin_by_the_stores_time(void **state)
{
    struct store_limit *l = window(WEIR_FIXED_WINDOW);
    assert_int_equal(fake_admit(node, l, "k", 20, T0), 10);
    struct sync_call c = next(T0);
    uint64_t late = 990 * MS; /* of the store's second */
    assert_int_equal(say(&c, T0 + late, WINDOW, 10, 0, T0), 0);
    assert_int_equal(fake_admit(node, l, "k", 20, T0 + 9 * MS), 0);
    assert_int_equal(fake_admit(node, l, "k", 20, T0 + 11 * MS), 10);
    c = next(T0 + S_NS);
    assert_int_equal(c.delta, 10);
    assert_int_equal(c.window, WINDOW + 1);
    assert_int_equal(say(&c, T0 + late + S_NS, WINDOW + 1, 10, 0, T0 + S_NS), 0);
}

static void a_call_in_doubt_about_its_window_must_fit_into_both(void **state)
{
    struct store_limit *l = window(WEIR_FIXED_WINDOW);
    assert_int_equal(fake_admit(node, l, "k", 1, T0), 1);
    struct sync_call c = next(T0);
    /* Made at T0 and heard 20 ms later, it ran 10 ms before the window's end: which is between 10 and
     * 30 ms from T0. 8 are taken by all. */
    assert_int_equal(say(&c, T0 + 990 * MS, WINDOW, 8, 0, T0 + 20 * MS), 0);
    /* Nor is it as good as new before that, and could be forgotten. */
    uint64_t reset_ns = fake_ask(node, l, "k", 11, T0 + 20 * MS).reset_after_ns;
    assert_in_range(reset_ns, 10 * MS, 11 * MS);
    assert_int_equal(fake_admit(node, l, "k", 20, T0 + 20 * MS), 2);
    assert_int_equal(fake_admit(node, l, "k", 20, T0 + 29 * MS), 0);
    struct weir_answer a = fake_ask(node, l, "k", 1, T0 + 29 * MS);
    assert_int_equal(a.remaining, 0);
    assert_in_range(a.retry_after_ns, MS, 2 * MS);
    /* Told under the later one. */
    assert_int_equal(fake_admit(node, l, "k", 20, T0 + 31 * MS), 8);
    c = next(T0 + S_NS);
    assert_int_equal(c.window, WINDOW + 1);
    assert_int_equal(c.delta, 10);
    sync_lost(node, &c, T0 + S_NS);
}

/* Windows of 10 ms, and a round trip of 35: it may be the one that was heard of, or one of three others. */
static void a_round_trip_of_several_windows_makes_a_call_fit_into_each(void **state)
{
    for (int algorithm = WEIR_FIXED_WINDOW; algorithm <= WEIR_SLIDING_WINDOW; algorithm++) {
        struct store_limit *l = fake_limit(&fake, algorithm, 10, 10 * MS, 0);
        int64_t heard = (int64_t)(STORE_US / 10000);
        assert_int_equal(fake_admit(node, l, "k", 1, T0), 1);
        struct sync_call c = next(T0);
        assert_int_equal(fake_admit(node, l, "k", 3, T0 + MS), 3);
        assert_int_equal(say(&c, T0, heard, 5, 0, T0 + 35 * MS), 0);
        assert_int_equal(fake_admit(node, l, "k", 20, T0 + 35 * MS), 2);
        assert_int_equal(fake_admit(node, l, "k", 20, T0 + 42 * MS), 0);
        /* And what was admitted then is told, as long as its window may not be over. */
        sync_hurry(node, l, NO_SHARD, TEXT("k"));
        c = next(T0 + 42 * MS);
        assert_int_equal(c.window, heard + 4);
        assert_int_equal(c.delta + c.extra, 5);
        assert_int_equal(say(&c, T0 + 43 * MS, heard + 4, 5, 5, T0 + 43 * MS), 0);
        struct sync_counts n;
        sync_counts(node, &n);
        assert_int_equal(n.dropped, 0);
        (void)done(state);
        (void)fresh(state);
    }
}

static void a_sliding_windows_older_part_is_told_beside(void **state)
{
    struct store_limit *l = window(WEIR_SLIDING_WINDOW);
    (void)fake_ask(node, l, "k", 1, T0);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0 + 950 * MS, WINDOW, 1, 0, T0), 0);
    assert_int_equal(fake_admit(node, l, "k", 3, T0 + MS), 3);
    struct weir_answer a = fake_ask(node, l, "k", 2, T0 + 60 * MS); /* 10 ms into the next */
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(a.remaining, 4); /* 10 - 2 - 4 * 0.99..., rounded up */
    c = next(T0 + S_NS);
    assert_int_equal(c.window, WINDOW + 1);
    assert_int_equal(c.delta, 2);
    assert_int_equal(c.extra, 3);
    assert_int_equal(say(&c, T0 + 950 * MS + S_NS, WINDOW + 1, 2, 4, T0 + S_NS), 0);
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + S_NS).remaining, 3);
}

static void units_of_windows_that_nobody_knows_are_dropped_and_counted(void **state)
{
    struct store_limit *l = window(WEIR_SLIDING_WINDOW);
    l->sync_ns = 10 * WEIR_SECOND;
    (void)fake_ask(node, l, "k", 1, T0);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0, WINDOW, 1, 0, T0), 0);
    assert_int_equal(fake_admit(node, l, "k", 3, T0 + MS), 3);
    (void)fake_ask(node, l, "k", 1, T0 + 4 * WEIR_SECOND);
    c = next(T0 + 10 * WEIR_SECOND);
    assert_int_equal(c.delta, 0);
    assert_int_equal(c.extra, 0);
    assert_int_equal(say(&c, T0 + 10 * WEIR_SECOND, WINDOW + 10, 0, 0, T0 + 10 * WEIR_SECOND), 0);
    struct sync_counts n;
    sync_counts(node, &n);
    assert_int_equal(n.dropped, 4);
}

/* Of a key that was new: they may be of the window before. */
static void units_admitted_before_the_window_was_known_count_in_both(void **state)
{
    struct store_limit *l = window(WEIR_FIXED_WINDOW);
    (void)fake_ask(node, l, "k", 1, T0);
    struct sync_call c = next(T0);
    assert_int_equal(fake_admit(node, l, "k", 6, T0 + MS), 6);
    assert_int_equal(say(&c, T0 + 995 * MS, WINDOW, 1, 0, T0 + 10 * MS), 0);
    assert_int_equal(fake_admit(node, l, "k", 20, T0 + 11 * MS), 3);
    assert_int_equal(fake_admit(node, l, "k", 20, T0 + 16 * MS), 1);
}

/* After some time without an exchange it was in doubt, and went ahead. */
static void a_node_that_was_ahead_of_the_store_comes_back_with_its_units(void **state)
{
    struct store_limit *l = window(WEIR_FIXED_WINDOW);
    (void)fake_ask(node, l, "k", 1, T0);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0 + 500 * MS, WINDOW, 1, 0, T0), 0);
    (void)fake_ask(node, l, "k", 1, T0 + 495 * MS);
    c = next(T0 + 495 * MS);
    assert_int_equal(c.window, WINDOW);
    assert_int_equal(fake_admit(node, l, "k", 4, T0 + 495 * MS), 4);
    assert_int_equal(fake_admit(node, l, "k", 2, T0 + 497 * MS), 2); /* of the next, perhaps */
    assert_int_equal(say(&c, T0 + 995 * MS, WINDOW, 2, 0, T0 + 497 * MS), 0);
    assert_int_equal(fake_ask(node, l, "k", 3, T0 + 497 * MS).remaining, 2);
    assert_int_equal(fake_admit(node, l, "k", 20, T0 + 497 * MS), 2);
}

/* An exchange ran at an unknown time between its making and its reply, and clocks drift by 1/128. */
static void what_was_taken_drains_late_rather_than_early(void **state)
{
    struct store_limit *l = bucket();
    (void)fake_ask(node, l, "k", 1, T0);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0, 1000000, 0, 0, T0 + 50 * MS), 0);
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + 50 * MS).retry_after_ns, 100 * MS);
    struct weir_answer a = fake_ask(node, l, "k", 1, T0 + 114 * MS);
    assert_int_equal(a.retry_after_ns, 36 * MS + 64 * MS / 128);
    struct fake_limit sliding;
    l = fake_limit(&sliding, WEIR_SLIDING_WINDOW, 10, WEIR_SECOND, 0);
    (void)fake_ask(node, l, "k", 1, T0);
    c = next(T0);
    assert_int_equal(say(&c, T0 + 400 * MS, WINDOW, 0, 10, T0 + 50 * MS), 0);
    a = fake_ask(node, l, "k", 5, T0 + 50 * MS);
    assert_int_equal(a.remaining, 4);
    assert_int_equal(a.retry_after_ns, 100 * MS);
    syncs_destroy(node); /* before the second limit */
    assert_int_equal(syncs_create(&node, 1), 0);
}

/* ---- Y5 ---- */

static void five_s_without_an_answer_are_degraded_until_there_is_one(void **state)
{
    struct store_limit *l = bucket();
    struct weir_answer a;
    (void)fake_ask(node, l, "k", 1, T0);
    for (unsigned i = 0; i < 5; i++) {
        struct sync_call c = next(T0 + i * S_NS);
        sync_lost(node, &c, T0 + i * S_NS + MS);
    }
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + 5 * S_NS - 1).verdict, WEIR_ALLOW);
    assert_int_equal(sync_ask(node, l, NO_SHARD, TEXT("k"), 1, T0 + 5 * S_NS, &a), SYNC_DEGRADED);
    struct sync_call c = next(T0 + 50 * S_NS);
    assert_int_equal(c.delta, 1);
    assert_int_equal(sync_ask(node, l, NO_SHARD, TEXT("k"), 1, T0 + 50 * S_NS, &a), SYNC_DEGRADED);
    assert_int_equal(say(&c, T0 + 50 * S_NS, 100000, 0, 0, T0 + 50 * S_NS), 0);
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + 50 * S_NS).remaining, 7);
    c = next(T0 + 51 * S_NS);
    assert_int_equal(c.delta, 2); /* what was degraded is not told */
    struct sync_counts n;
    sync_counts(node, &n);
    assert_int_equal(n.degraded, 2);
    sync_lost(node, &c, T0 + 51 * S_NS);
}

static void a_reply_that_is_none_counts_as_lost(void **state)
{
    struct store_limit *l = bucket();
    struct store_reply bad[] = {
        {.type = '-', .refusal = STORE_REFUSED},
        {.type = ':', .n = 5},
        {.type = ':', .n = 6, .integers = {-1}},
        {.type = ':', .n = 6, .integers = {1, 0, -1}},
        {.type = ':', .n = 6, .integers = {1, INT64_MAX}},
    };
    (void)fake_ask(node, l, "k", 4, T0);
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct sync_call c = next(T0 + i * S_NS);
        assert_int_equal(c.delta, 4);
        assert_int_equal(sync_reply(node, &c, &bad[i], T0 + i * S_NS), WEIR_EIO);
    }
}

static void who_sleeps_is_told_once_that_a_key_has_become_due(void **state)
{
    struct store_limit *l = bucket();
    struct weir_answer a;
    assert_int_equal(sync_ask(node, l, NO_SHARD, TEXT("k"), 1, T0, &a), SYNC_ANSWERED | SYNC_DUE);
    assert_int_equal(sync_ask(node, l, NO_SHARD, TEXT("k"), 1, T0, &a), SYNC_ANSWERED);
    struct sync_call c = next(T0);
    assert_int_equal(sync_ask(node, l, NO_SHARD, TEXT("k"), 1, T0, &a), SYNC_ANSWERED);
    sync_lost(node, &c, T0);
}

/* Of any store that speaks so: a question is answered, with no more than there is. */
static void whatever_numbers_a_store_says_a_decision_is_one(void **state)
{
    static const int algorithms[] = {WEIR_TOKEN_BUCKET, WEIR_FIXED_WINDOW, WEIR_SLIDING_WINDOW};
    struct oracle_random g = {7};
    for (unsigned i = 0; i < 3000; i++) {
        struct store_limit *l = fake_limit(&fake, algorithms[i % 3], oracle_magnitude(&g, 1, 1000),
                                           oracle_magnitude(&g, 10, 1000000) * MS, 0);
        (void)fake_ask(node, l, "k", 1, T0);
        for (unsigned n = 0; n < 4; n++) {
            uint64_t now_ns = T0 + n * S_NS;
            struct sync_call c = next(now_ns);
            struct store_reply r = {.type = ':', .n = 6};
            for (unsigned at = 0; at < 6; at++) {
                int64_t x = (int64_t)oracle_magnitude(&g, 0, STORE_MOST);
                r.integers[at] = at == 1 && oracle_once_in(&g, 2) ? -x : x;
            }
            assert_int_equal(sync_reply(node, &c, &r, now_ns), 0);
            struct weir_answer a = fake_ask(node, l, "k", 1, now_ns);
            assert_true(a.remaining <= l->numbers->params.quota);
            assert_int_equal(a.granted, a.verdict == WEIR_ALLOW);
            sync_refund(node, l, NO_SHARD, TEXT("k"), 1, now_ns);
            (void)fake_ask(node, l, "k", l->numbers->params.quota, now_ns + S_NS / 2);
        }
        syncs_destroy(node);
        assert_int_equal(syncs_create(&node, 4), 0);
    }
}

static void a_key_that_was_idle_is_not_degraded_by_that(void **state)
{
    struct store_limit *l = bucket();
    (void)fake_ask(node, l, "k", 1, T0);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0, 100000, 0, 0, T0), 0);
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + 7 * S_NS).verdict, WEIR_ALLOW);
    assert_int_equal(sync_due(node), T0 + 7 * S_NS); /* and is exchanged at once */
}

/* Also if the exchange had nothing to tell, and nobody asked for a while. */
static void a_key_is_degraded_until_an_exchange_is_answered(void **state)
{
    struct store_limit *l = bucket();
    struct weir_answer a;
    assert_int_equal(fake_admit(node, l, "k", 10, T0), 10);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0, 1000000, 0, 0, T0), 0);
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + MS).verdict, WEIR_DENY);
    c = next(T0 + S_NS);
    assert_int_equal(c.delta, 0);
    sync_lost(node, &c, T0 + S_NS + MS);
    int e = sync_ask(node, l, (struct text){NULL, 0}, TEXT("k"), 1, T0 + 9 * S_NS, &a);
    assert_int_equal(e & (SYNC_ANSWERED | SYNC_DEGRADED), SYNC_DEGRADED);
    c = next(T0 + 9 * S_NS);
    assert_int_equal(say(&c, T0 + 9 * S_NS, 0, 0, 0, T0 + 9 * S_NS), 0);
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + 10 * S_NS).verdict, WEIR_ALLOW);
}

/* ---- Y6, Y7 ---- */

static void a_key_is_exchanged_while_it_is_used_and_then_forgotten(void **state)
{
    struct store_limit *l = bucket();
    struct sync_counts n;
    assert_int_equal(fake_admit(node, l, "k", 10, T0), 10);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0, 1000000, 0, 0, T0), 0);
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + MS).verdict, WEIR_DENY);
    c = next(T0 + S_NS); /* nothing to tell, but somebody asks */
    assert_int_equal(c.delta, 0);
    assert_int_equal(say(&c, T0 + S_NS, 800000, 0, 0, T0 + S_NS), 0);
    assert_int_equal(sync_due(node), T0 + MS + 10 * S_NS);
    none(T0 + MS + 10 * S_NS - 1);
    sync_counts(node, &n);
    assert_int_equal(n.keys, 1);
    none(T0 + MS + 10 * S_NS);
    sync_counts(node, &n);
    assert_int_equal(n.keys, 0);
    assert_int_equal(l->references, 0);
    assert_int_equal(sync_due(node), UINT64_MAX);
}

/* Or who asks every 11 S would always find a new one. */
static void an_idle_key_is_kept_until_it_is_as_good_as_new(void **state)
{
    struct store_limit *l = bucket();
    struct sync_counts n;
    assert_int_equal(fake_ask(node, l, "k", 1, T0).verdict, WEIR_ALLOW);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0, 30 * 1000000, 0, 0, T0), 0); /* the others have taken far more */
    none(T0 + 11 * S_NS);
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + 11 * S_NS).verdict, WEIR_DENY);
    c = next(T0 + 11 * S_NS);
    assert_int_equal(say(&c, T0 + 11 * S_NS, 29 * 1000000, 0, 0, T0 + 11 * S_NS), 0);
    none(T0 + 29 * WEIR_SECOND);
    sync_counts(node, &n);
    assert_int_equal(n.keys, 1);
    none(T0 + 32 * WEIR_SECOND);
    sync_counts(node, &n);
    assert_int_equal(n.keys, 0);
}

static void a_full_table_forgets_who_is_idle_and_else_says_so(void **state)
{
    struct store_limit *l = bucket();
    struct weir_answer a;
    struct sync_counts n;
    char key[8];
    syncs_destroy(node);
    assert_int_equal(syncs_create(&node, 8), 0);
    for (unsigned i = 0; i < 8; i++) {
        (void)snprintf(key, sizeof key, "%u", i);
        assert_int_equal(fake_ask(node, l, key, 1, T0).verdict, WEIR_ALLOW);
    }
    assert_int_equal(sync_ask(node, l, NO_SHARD, TEXT("new"), 1, T0, &a), SYNC_DEGRADED);
    struct sync_call c = next(T0);
    assert_int_equal(sync_ask(node, l, NO_SHARD, TEXT("new"), 1, T0, &a), SYNC_DEGRADED);
    assert_int_equal(say(&c, T0, 100000, 0, 0, T0), 0);
    assert_int_equal(fake_ask(node, l, "new", 1, T0).verdict, WEIR_ALLOW);
    sync_counts(node, &n);
    assert_int_equal(n.full, 2);
    assert_int_equal(n.keys, 8);
    unsigned due = 0;
    while (sync_next(node, T0, &c)) { /* nobody's units were forgotten */
        assert_int_equal(c.delta, 1);
        sync_lost(node, &c, T0);
        due++;
    }
    assert_int_equal(due, 8);
}

static void many_keys_are_due_in_the_order_of_their_times(void **state)
{
    struct store_limit *l = bucket();
    char key[16];
    syncs_destroy(node);
    assert_int_equal(syncs_create(&node, 4096), 0);
    for (unsigned i = 0; i < 2000; i++) {
        (void)snprintf(key, sizeof key, "key %u", i);
        (void)fake_ask(node, l, key, 1, T0 + i * 7919 % 2000 * MS);
    }
    for (unsigned i = 0; i < 2000; i++) {
        uint64_t now = T0 + i * MS;
        assert_int_equal(sync_due(node), now);
        struct sync_call c = next(now);
        none(now);
        assert_int_equal(say(&c, now, 0, 0, 0, now), 0);
    }
}

static void a_key_that_was_changed_by_hand_is_exchanged_at_once(void **state)
{
    struct store_limit *l = bucket();
    (void)fake_ask(node, l, "k", 10, T0);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0, 1000000, 0, 0, T0), 0);
    none(T0 + MS);
    sync_hurry(node, l, NO_SHARD, TEXT("k"));
    sync_hurry(node, l, NO_SHARD, TEXT("nobody"));
    c = next(T0 + MS);
    sync_hurry(node, l, NO_SHARD, TEXT("k")); /* once more, while that is on its way */
    assert_int_equal(say(&c, T0, 1000000, 0, 0, T0 + RTT), 0);
    c = next(T0 + RTT);
    assert_int_equal(say(&c, T0, 0, 0, 0, T0 + 2 * RTT), 0);
    none(T0 + 2 * RTT);
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + 2 * RTT).remaining, 9);
}

static void after_stop_every_delta_is_due_at_once(void **state)
{
    struct store_limit *l = bucket();
    (void)fake_ask(node, l, "k", 1, T0);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0, 100000, 0, 0, T0), 0);
    (void)fake_ask(node, l, "k", 1, T0 + MS);
    none(T0 + MS);
    sync_stop(node);
    c = next(T0 + MS);
    assert_int_equal(c.delta, 1);
    assert_int_equal(say(&c, T0, 100000, 0, 0, T0 + MS), 0);
    none(T0 + MS);
}

/* ---- blocks, the bound ---- */

static void a_block_in_the_store_denies_here(void **state)
{
    struct store_limit *l = bucket();
    (void)fake_ask(node, l, "k", 1, T0);
    struct sync_call c = next(T0);
    struct store_reply r = {
        .type = ':',
        .n = 6,
        .integers = {(int64_t)STORE_US, 100000, 0, 0, (int64_t)STORE_US + 50000, 0}};
    assert_int_equal(sync_reply(node, &c, &r, T0), 0);
    struct weir_answer a = fake_ask(node, l, "k", 1, T0);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.flags, WEIR_FLAG_BLOCKED);
    assert_int_equal(a.remaining, 0);
    assert_int_equal(a.retry_after_ns, 50 * MS);
    assert_int_equal(fake_ask(node, l, "k", 11, T0).verdict, WEIR_NEVER);
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + 51 * MS).verdict, WEIR_ALLOW);
    c = next(T0 + S_NS);
    r.integers[4] = (int64_t)STORE_MOST;
    assert_int_equal(sync_reply(node, &c, &r, T0 + S_NS), 0);
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + S_NS).retry_after_ns, WEIR_FOREVER);
}

static void the_bound_is_far_above_short_windows_and_small_bursts(void **state)
{
    const struct store_params *p = &fake.numbers.params;
    (void)fake_limit(&fake, WEIR_FIXED_WINDOW, 1000, WEIR_SECOND, 0);
    assert_int_equal(sync_bound(p, 1, S_NS, 5 * MS, 10), 1000);
    assert_int_equal(sync_bound(p, 10, S_NS, 0, 1), 1000 + 9 * 10);
    assert_int_equal(sync_bound(p, 10, S_NS, 0, 1000000), 10000);
    assert_true(sync_is_loose(p, 10, S_NS, 5 * MS));
    assert_false(sync_is_loose(p, 1, S_NS, 5 * MS));
    (void)fake_limit(&fake, WEIR_SLIDING_WINDOW, 1000, WEIR_MINUTE, 0);
    assert_false(sync_is_loose(p, 1000, S_NS, 5 * MS));
    (void)fake_limit(&fake, WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND, 100);
    assert_int_equal(sync_bound(p, 10, S_NS, 0, 1), 100 + 9 * 10);
    assert_true(sync_is_loose(p, 10, S_NS, 5 * MS));
    (void)fake_limit(&fake, WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND, 10000);
    assert_false(sync_is_loose(p, 10, S_NS, 5 * MS));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fresh, done)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_decision_counts_what_was_heard_and_what_was_admitted_since),
        TEST(a_cost_that_never_fits_is_no_key),
        TEST(keys_limits_and_shards_are_apart),
        TEST(one_exchange_is_in_flight_and_the_next_comes_after_s),
        TEST(a_lost_exchange_is_sent_again_with_its_own_delta),
        TEST(a_bucket_tells_how_far_its_units_lead_by_themselves),
        TEST(units_that_come_back_are_told_as_less),
        TEST(a_lost_refund_is_dropped_because_twice_would_be_too_much),
        TEST(a_node_that_has_heard_nothing_leaves_the_window_to_the_store),
        TEST(windows_begin_by_the_stores_time),
        TEST(a_call_in_doubt_about_its_window_must_fit_into_both),
        TEST(a_round_trip_of_several_windows_makes_a_call_fit_into_each),
        TEST(a_sliding_windows_older_part_is_told_beside),
        TEST(units_of_windows_that_nobody_knows_are_dropped_and_counted),
        TEST(units_admitted_before_the_window_was_known_count_in_both),
        TEST(a_node_that_was_ahead_of_the_store_comes_back_with_its_units),
        TEST(what_was_taken_drains_late_rather_than_early),
        TEST(five_s_without_an_answer_are_degraded_until_there_is_one),
        TEST(a_reply_that_is_none_counts_as_lost),
        TEST(who_sleeps_is_told_once_that_a_key_has_become_due),
        TEST(whatever_numbers_a_store_says_a_decision_is_one),
        TEST(a_key_that_was_idle_is_not_degraded_by_that),
        TEST(a_key_is_degraded_until_an_exchange_is_answered),
        TEST(a_key_is_exchanged_while_it_is_used_and_then_forgotten),
        TEST(an_idle_key_is_kept_until_it_is_as_good_as_new),
        TEST(a_full_table_forgets_who_is_idle_and_else_says_so),
        TEST(many_keys_are_due_in_the_order_of_their_times),
        TEST(a_key_that_was_changed_by_hand_is_exchanged_at_once),
        TEST(after_stop_every_delta_is_due_at_once),
        TEST(a_block_in_the_store_denies_here),
        TEST(the_bound_is_far_above_short_windows_and_small_bursts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
