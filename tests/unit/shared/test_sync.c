/*
 * Tests each rule of shared/synced/sync.h, except those of windows (Y4), which are in
 * test_sync_windows.c, and those of keys that come and go (Y6, Y7), which are in test_sync_keys.c.
 * What real scripts answer is in tests/store/test_sync_store.c.
 */
#include "unit/shared/sync_story.h"

/* ---- Y1 ---- */

static void a_decision_counts_what_was_heard_and_what_was_admitted_since(void **state)
{
    struct store_limit *l = bucket();
    assert_int_equal(fake_ask(node, l, "k", 3, T0).remaining, 7);
    struct sync_call c = next(T0);
    assert_int_equal(c.delta, 3);
    assert_int_equal(fake_ask(node, l, "k", 2, T0 + MS).remaining, 5);
    /* Other nodes have taken 4: the lead is 7 units of 100 ms, and our last 2 come on top. */
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
    store_limit_release(l); /* the reference of that call */
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
    (void)sync_ask(
        node, &(struct remote_part){.limit = l, .shard = TEXT("s"), .key = TEXT("k"), .cost = 1},
        T0, &a);
    assert_int_equal(a.remaining, 9);
    for (size_t i = 0; i < 4; i++) {
        struct sync_call c = next(T0);
        bool sharded = text_has(store_key_text(&c.key), "{rs}rk");
        assert_int_equal(c.delta, sharded ? 1 : 10);
        sync_lost(node, &c, T0);
    }
    none(T0);
    node_keys_destroy(node);
    assert_int_equal(second.limit.references, 0);
    assert_int_equal(node_keys_of(&node, KEY_SYNCED, 1), 0);
}

/* ---- Y2, Y3 ---- */

static void one_exchange_is_in_flight_and_the_next_comes_after_s(void **state)
{
    struct store_limit *l = bucket();
    (void)fake_ask(node, l, "k", 1, T0);
    assert_int_equal(node_keys_due(node), T0);
    struct sync_call c = next(T0);
    (void)fake_ask(node, l, "k", 1, T0 + MS);
    none(T0 + 2 * S_NS);
    assert_int_equal(node_keys_due(node), UINT64_MAX);
    assert_int_equal(say(&c, T0, 100000, 0, 0, T0 + RTT), 0);
    assert_int_equal(node_keys_due(node), T0 + S_NS);
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
    c = next(T0 + 4 * S_NS + RTT); /* it has waited long enough */
    assert_int_equal(c.delta, 3);
    assert_int_equal(say(&c, T0, 300000, 0, 0, T0 + 5 * S_NS), 0);
    struct sync_counts n;
    sync_counts(node, &n);
    assert_int_equal(n.exchanges, 6);
    assert_int_equal(n.lost, 4);
    assert_int_equal(n.dropped, 0);
}

/* The units were spread over the time since the last exchange, and have partly drained. */
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
    /* The bucket is full again at 10 ms + 2 units = 210 ms, plus 1/128 of the 90 ms for clocks that
     * drift. */
    assert_int_equal(c.window, 110704);
    assert_int_equal(c.extra, 0);
    assert_int_equal(say(&c, T0, 0, 0, 0, T0 + S_NS), 0);
}

static void units_that_come_back_are_told_as_less(void **state)
{
    struct store_limit *l = bucket();
    assert_int_equal(fake_ask(node, l, "k", 5, T0).remaining, 5);
    sync_refund(node, PART(l, TEXT("k"), 2), T0);
    assert_int_equal(fake_ask(node, l, "k", 1, T0).remaining, 6);
    struct sync_call c = next(T0);
    assert_int_equal(c.delta, 4);
    assert_int_equal(say(&c, T0, 400000, 0, 0, T0), 0);
    sync_refund(node, PART(l, TEXT("k"), 3), T0);
    assert_int_equal(fake_ask(node, l, "k", 1, T0).remaining, 8);
    c = next(T0 + S_NS);
    assert_int_equal(c.delta, -2);
    assert_int_equal(say(&c, T0, 200000, 0, 0, T0 + S_NS), 0);
    sync_refund(node, PART(l, TEXT("nobody"), 3), T0);
}

static void a_lost_refund_is_dropped_because_twice_would_be_too_much(void **state)
{
    struct store_limit *l = bucket();
    (void)fake_ask(node, l, "k", 5, T0);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0, 500000, 0, 0, T0), 0);
    sync_refund(node, PART(l, TEXT("k"), 5), T0);
    c = next(T0 + S_NS);
    assert_int_equal(c.delta, -5);
    sync_lost(node, &c, T0 + S_NS);
    struct sync_counts n;
    sync_counts(node, &n);
    assert_int_equal(n.dropped, 5);
    none(T0 + 2 * S_NS);
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
    assert_int_equal(sync_ask(node, PART(l, TEXT("k"), 1), T0 + 5 * S_NS, &a), SYNC_DEGRADED);
    struct sync_call c = next(T0 + 50 * S_NS);
    assert_int_equal(c.delta, 1);
    assert_int_equal(sync_ask(node, PART(l, TEXT("k"), 1), T0 + 50 * S_NS, &a), SYNC_DEGRADED);
    assert_int_equal(say(&c, T0 + 50 * S_NS, 100000, 0, 0, T0 + 50 * S_NS), 0);
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + 50 * S_NS).remaining, 7);
    c = next(T0 + 51 * S_NS);
    assert_int_equal(c.delta, 2); /* units of degraded answers are not reported */
    struct sync_counts n;
    sync_counts(node, &n);
    assert_int_equal(n.degraded, 2);
    sync_lost(node, &c, T0 + 51 * S_NS);
}

static void hear_left(void *arg, const struct node_key *k)
{
    *(uint64_t *)arg = k != NULL ? k->remaining : 0;
}

/* Returns what a fallback would begin the key with; UINT64_MAX if it began it before. */
static uint64_t left_for_fallback(struct store_limit *l, uint64_t now_ns)
{
    uint64_t left = UINT64_MAX;
    struct hash hash = node_key_hash(node, PART(l, TEXT("k"), 1));
    node_keys_once(node, hash, 1, now_ns, hear_left, &left);
    return left;
}

static void a_fallback_begins_once_with_what_a_degraded_key_had(void **state)
{
    struct store_limit *l = bucket();
    struct weir_answer a;
    (void)fake_ask(node, l, "k", 1, T0);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0, 400000, 0, 0, T0), 0);
    uint64_t had = fake_ask(node, l, "k", 1, T0).remaining;
    c = next(T0 + S_NS);
    int e = sync_ask(node, PART(l, TEXT("k"), 1), T0 + 5 * S_NS, &a);
    assert_int_equal(e, SYNC_DEGRADED);
    /* 10 per s for 5 S, a little less for clocks that drift */
    assert_int_equal(left_for_fallback(l, T0 + 5 * S_NS), had + 4);
    e = sync_ask(node, PART(l, TEXT("k"), 1), T0 + 6 * S_NS, &a);
    assert_int_equal(e, SYNC_DEGRADED);
    assert_true(left_for_fallback(l, T0 + 6 * S_NS) == UINT64_MAX);
    assert_int_equal(say(&c, T0 + 6 * S_NS, 400000, 0, 0, T0 + 6 * S_NS), 0);
    (void)fake_ask(node, l, "k", 1, T0 + 6 * S_NS);
    c = next(T0 + 7 * S_NS);
    e = sync_ask(node, PART(l, TEXT("k"), 1), T0 + 20 * S_NS, &a);
    assert_int_equal(e, SYNC_DEGRADED);
    assert_true(left_for_fallback(l, T0 + 20 * S_NS) <= 10);
    sync_lost(node, &c, T0 + 20 * S_NS);
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
    assert_int_equal(sync_ask(node, PART(l, TEXT("k"), 1), T0, &a), SYNC_ANSWERED | SYNC_DUE);
    assert_int_equal(sync_ask(node, PART(l, TEXT("k"), 1), T0, &a), SYNC_ANSWERED);
    struct sync_call c = next(T0);
    assert_int_equal(sync_ask(node, PART(l, TEXT("k"), 1), T0, &a), SYNC_ANSWERED);
    sync_lost(node, &c, T0);
}

/* For any store that replies in this format: a question is answered, with no more than the
 * quota. */
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
            sync_refund(node, PART(l, TEXT("k"), 1), now_ns);
            (void)fake_ask(node, l, "k", l->numbers->params.quota, now_ns + S_NS / 2);
        }
        node_keys_destroy(node);
        assert_int_equal(node_keys_of(&node, KEY_SYNCED, 4), 0);
    }
}

/* Otherwise a node that is cut off would admit each new key up to the limit. */
static void a_node_that_hears_nothing_is_degraded_also_for_keys_that_are_new(void **state)
{
    struct store_limit *l = bucket();
    struct weir_answer a;
    (void)fake_ask(node, l, "a", 1, T0);
    struct sync_call lost = next(T0);
    sync_lost(node, &lost, T0 + MS);
    assert_int_equal(fake_ask(node, l, "b", 1, T0 + 5 * S_NS - 1).verdict, WEIR_ALLOW);
    int e = sync_ask(node, PART(l, TEXT("c"), 1), T0 + 5 * S_NS, &a);
    assert_int_equal(e, SYNC_DEGRADED | SYNC_DUE); /* and the key is exchanged at once */
    for (unsigned i = 0; i < 3; i++) {             /* for a, b and c */
        struct sync_call c = next(T0 + 5 * S_NS);
        assert_int_equal(say(&c, T0 + 5 * S_NS, 0, 0, 0, T0 + 5 * S_NS), 0);
    }
    assert_int_equal(fake_ask(node, l, "c", 1, T0 + 5 * S_NS).verdict, WEIR_ALLOW);
    assert_int_equal(fake_ask(node, l, "d", 1, T0 + 50 * S_NS).verdict, WEIR_ALLOW);
}

static void what_was_lost_long_ago_does_not_degrade_who_is_new(void **state)
{
    struct store_limit *l = bucket();
    (void)fake_ask(node, l, "a", 1, T0);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0, 100000, 0, 0, T0), 0);
    assert_int_equal(fake_ask(node, l, "a", 10, T0 + MS).verdict, WEIR_DENY);
    c = next(T0 + S_NS);
    assert_int_equal(c.delta, 0); /* so that it is not sent again */
    sync_lost(node, &c, T0 + S_NS + MS);
    assert_int_equal(fake_ask(node, l, "b", 1, T0 + 7 * S_NS).verdict, WEIR_ALLOW);
}

/* The store answers for one key: the others become degraded each on its own. */
static void a_node_that_hears_of_one_key_is_not_degraded_for_others(void **state)
{
    struct store_limit *l = bucket();
    (void)fake_ask(node, l, "a", 1, T0);
    struct sync_call lost = next(T0);
    (void)fake_ask(node, l, "b", 1, T0 + 1);
    struct sync_call heard = next(T0 + 1);
    assert_int_equal(say(&heard, T0, 100000, 0, 0, T0 + MS), 0);
    sync_lost(node, &lost, T0 + MS);
    assert_int_equal(fake_ask(node, l, "c", 1, T0 + 5 * S_NS).verdict, WEIR_ALLOW);
}

static void a_key_that_was_idle_is_not_degraded_by_that(void **state)
{
    struct store_limit *l = bucket();
    (void)fake_ask(node, l, "k", 1, T0);
    struct sync_call c = next(T0);
    assert_int_equal(say(&c, T0, 100000, 0, 0, T0), 0);
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + 7 * S_NS).verdict, WEIR_ALLOW);
    assert_int_equal(node_keys_due(node), T0 + 7 * S_NS); /* and the key is exchanged at once */
}

/* This holds even if the exchange had nothing to report and the key was not asked for a while. */
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
    int e = sync_ask(node, PART(l, TEXT("k"), 1), T0 + 9 * S_NS, &a);
    assert_int_equal(e & (SYNC_ANSWERED | SYNC_DEGRADED), SYNC_DEGRADED);
    c = next(T0 + 9 * S_NS);
    assert_int_equal(say(&c, T0 + 9 * S_NS, 0, 0, 0, T0 + 9 * S_NS), 0);
    assert_int_equal(fake_ask(node, l, "k", 1, T0 + 10 * S_NS).verdict, WEIR_ALLOW);
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
    /* Ten times the rate offers 1000 units, of which nine nodes of ten do not hear: loose below
     * 1800. */
    (void)fake_limit(&fake, WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND, 1798);
    assert_true(sync_is_loose(p, 10, S_NS, 0));
    (void)fake_limit(&fake, WEIR_TOKEN_BUCKET, 1000, WEIR_SECOND, 1802);
    assert_false(sync_is_loose(p, 10, S_NS, 0));
}

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
        TEST(five_s_without_an_answer_are_degraded_until_there_is_one),
        TEST(a_fallback_begins_once_with_what_a_degraded_key_had),
        TEST(a_reply_that_is_none_counts_as_lost),
        TEST(who_sleeps_is_told_once_that_a_key_has_become_due),
        TEST(whatever_numbers_a_store_says_a_decision_is_one),
        TEST(a_node_that_hears_nothing_is_degraded_also_for_keys_that_are_new),
        TEST(what_was_lost_long_ago_does_not_degrade_who_is_new),
        TEST(a_node_that_hears_of_one_key_is_not_degraded_for_others),
        TEST(a_key_that_was_idle_is_not_degraded_by_that),
        TEST(a_key_is_degraded_until_an_exchange_is_answered),
        TEST(a_block_in_the_store_denies_here),
        TEST(the_bound_is_far_above_short_windows_and_small_bursts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
