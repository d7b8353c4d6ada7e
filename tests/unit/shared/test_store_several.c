/* Tests questions about several limits, in one call or in parallel: S5 of shared/store/store.h. */
#include "unit/shared/store_story.h"

static void limits_in_one_place_are_one_call(void **state)
{
    struct remote_part parts[] = {
        part(limit("a", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 1),
        part(limit("b", 20, REMOTE_EXACT, REMOTE_FAIL_OPEN), "tenant", 1)};
    assert_int_equal(ask_parts(REMOTE_CHECK, parts, 2, 0, NOW), REMOTE_PENDING);
    assert_int_equal(fake.count, 1);
    reply(0, WEIR_DENY, 0, 5000, 1);
    assert_int_equal(t.answer.answer.limit, 1);
    assert_int_equal(t.answer.answer.quota, 20);
    assert_int_equal(fake.count, 0);
    assert_int_equal(t.limits[0]->counts.denied, 0);
    assert_int_equal(t.limits[1]->counts.denied, 1);
}

static void each_bucket_of_a_call_is_told_how_long_the_caller_would_wait(void **state)
{
    struct remote_part parts[] = {
        part(limit("a", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 1),
        part(limit("b", 20, REMOTE_LEASED, REMOTE_FAIL_OPEN), "tenant", 1)};
    assert_int_equal(ask_parts(REMOTE_CHECK, parts, 2, 7 * MS, NOW), REMOTE_PENDING);
    assert_int_equal(fake.count, 1);
    assert_non_null(strstr(fake.calls[0].arguments, " check 1 10 10 100000 0 1 7000 "));
    assert_non_null(strstr(fake.calls[0].arguments, " 20 20 50000 0 1 7000 "));
    reply(0, WEIR_ALLOW, 5, 0, 0);
    assert_int_equal(t.limits[0]->counts.allowed, 1);
    assert_int_equal(t.limits[1]->counts.allowed, 1);
}

static void in_a_cluster_who_denies_gives_the_others_their_units_back(void **state)
{
    struct remote_part parts[] = {
        part(limit("a", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 3),
        part(limit("b", 20, REMOTE_EXACT, REMOTE_FAIL_OPEN), "tenant", 1)};
    assert_int_equal(ask_parts(REMOTE_CHECK, parts, 2, 0, NOW), REMOTE_PENDING);
    assert_int_equal(fake.count, 2);
    assert_true(fake.calls[0].slot != fake.calls[1].slot);
    reply(0, WEIR_ALLOW, 7, 0, 0);
    assert_int_equal(t.answers, 0);
    reply(0, WEIR_DENY, 0, 5000, 0);
    assert_int_equal(t.answers, 1);
    assert_int_equal(t.answer.answer.verdict, WEIR_DENY);
    assert_int_equal(t.answer.answer.limit, 1);
    assert_int_equal(fake.count, 1);
    assert_string_equal(fake.calls[0].arguments,
                        "1 weir:1:a:t:{ralice} undo 1 10 10 100000 0 3 1123456 ");
}

static void the_stamp_is_that_of_the_group_that_binds(void **state)
{
    struct remote_part parts[] = {
        part(limit("a", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 1),
        part(limit("b", 20, REMOTE_EXACT, REMOTE_FAIL_OPEN), "tenant", 1)};
    struct store_reply scarce = fake_reply(WEIR_ALLOW, 3, 0, 0);
    scarce.integers[7] = 111111; /* when the store has charged it, in us */
    assert_int_equal(ask_parts(REMOTE_CHECK, parts, 2, 0, NOW), REMOTE_PENDING);
    fake_end(0, CLIENT_REPLIED, &scarce, NOW);
    reply(0, WEIR_ALLOW, 19, 0, 0);
    assert_int_equal(t.answers, 1);
    assert_int_equal(t.answer.answer.limit, 0);
    assert_int_equal(t.answer.stamp, 111111 * WEIR_MICROSECOND);
}

static void a_shard_keeps_limits_together_in_a_cluster(void **state)
{
    struct remote_part parts[] = {
        part(limit("a", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 3),
        part(limit("b", 20, REMOTE_EXACT, REMOTE_FAIL_OPEN), "tenant", 1)};
    parts[0].shard = TEXT("acme");
    parts[1].shard = TEXT("acme");
    assert_int_equal(ask_parts(REMOTE_CHECK, parts, 2, 0, NOW), REMOTE_PENDING);
    assert_int_equal(fake.count, 1);
}

static uint64_t local_remaining(struct weir *w)
{
    struct weir_answer a;
    struct weir_question peek = {.key = "alice", .key_len = 5, .cost = 1, .mode = WEIR_PEEK};
    assert_int_equal(weir_ask_at(w, &peek, NOW, &a), 0);
    return a.remaining;
}

static struct weir *local_limit(uint64_t max_keys, int on_full)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct weir *w;
    o.algorithm = WEIR_TOKEN_BUCKET;
    o.count = 5;
    o.period_ns = WEIR_HOUR;
    o.flags = WEIR_EXPLICIT_TIME;
    o.max_keys = max_keys;
    o.on_full = on_full;
    assert_int_equal(weir_open(&w, &o, NULL), 0);
    return w;
}

static void local_limits_go_first_and_get_their_units_back(void **state)
{
    struct weir *w = local_limit(100, WEIR_EVICT);
    struct remote_part parts[] = {part(limit("a", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 1),
                                  {.local = w, .key = TEXT("alice"), .cost = 2}};
    assert_int_equal(ask_parts(REMOTE_CHECK, parts, 2, 0, NOW), REMOTE_PENDING);
    assert_int_equal(local_remaining(w), 3);
    reply(0, WEIR_DENY, 0, 5000, 0);
    assert_int_equal(t.answer.answer.limit, 0);
    assert_int_equal(local_remaining(w), 5);
    parts[1].cost = 6; /* the local limit says NEVER: the store is not asked */
    assert_int_equal(ask_parts(REMOTE_CHECK, parts, 2, 0, NOW), REMOTE_ANSWERED);
    assert_int_equal(t.answer.answer.verdict, WEIR_NEVER);
    assert_int_equal(t.answer.answer.limit, 1);
    assert_int_equal(fake.count, 0);
    weir_close(w);
}

/* Fills a small table with other keys; with `again` it resets them. */
static void fill(struct weir *w, bool again)
{
    struct weir_answer a;
    for (unsigned i = 0; i < 5000; i++) {
        int e = again ? weir_reset(w, &i, sizeof i) : weir_check_at(w, &i, sizeof i, 1, NOW, &a);
        assert_true(e >= 0);
    }
}

static void a_full_local_limit_that_charged_nothing_says_so_and_gets_nothing_back(void **state)
{
    struct weir *w = local_limit(1, WEIR_ALLOW_NEW);
    struct weir_answer a;
    struct remote_part parts[] = {part(limit("a", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 1),
                                  {.local = w, .key = TEXT("alice"), .cost = 2}};
    fill(w, false);
    assert_int_equal(ask_parts(REMOTE_CHECK, parts, 2, 0, NOW), REMOTE_PENDING);
    reply(0, WEIR_ALLOW, 1, 0, 0);
    assert_int_equal(t.answer.answer.limit, 0);
    assert_int_equal(t.answer.answer.flags, WEIR_FLAG_FULL);

    assert_int_equal(ask_parts(REMOTE_CHECK, parts, 2, 0, NOW), REMOTE_PENDING);
    fill(w, true);
    assert_int_equal(weir_check_at(w, "alice", 5, 2, NOW, &a), 0); /* by another caller */
    reply(0, WEIR_DENY, 0, 5000, 0);
    assert_int_equal(t.answer.answer.flags, 0);
    assert_int_equal(local_remaining(w), 3);
    weir_close(w);
}

/* A refund tells a queue which place is returned: the one that ends when, according to the reply,
 * the queue is empty. */
static void a_place_in_a_queue_is_given_back_by_its_end(void **state)
{
    struct remote_part parts[] = {
        part(limit_of(WEIR_LEAKY_BUCKET, "a", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 3),
        part(limit("b", 20, REMOTE_EXACT, REMOTE_FAIL_OPEN), "tenant", 1)};
    assert_int_equal(ask_parts(REMOTE_CHECK, parts, 2, 0, NOW), REMOTE_PENDING);
    reply(0, WEIR_ALLOW, 7, 0, 0);
    reply(0, WEIR_DENY, 0, 5000, 0);
    assert_string_equal(fake.calls[0].arguments,
                        "1 weir:1:a:l:{ralice} undo 2 10 10 100000 0 3 1123456 ");
}

static void a_local_queue_gets_its_place_back(void **state)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct weir *w;
    o.algorithm = WEIR_LEAKY_BUCKET;
    o.count = 5;
    o.period_ns = WEIR_SECOND;
    o.queue = 4;
    o.flags = WEIR_EXPLICIT_TIME;
    assert_int_equal(weir_open(&w, &o, NULL), 0);
    struct remote_part parts[] = {part(limit("a", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 1),
                                  {.local = w, .queue = true, .key = TEXT("alice"), .cost = 2}};
    assert_int_equal(ask_parts(REMOTE_CHECK, parts, 2, 0, NOW), REMOTE_PENDING);
    assert_int_equal(local_remaining(w), 3);
    reply(0, WEIR_DENY, 0, 5000, 0);
    assert_int_equal(local_remaining(w), 5);
    weir_close(w);
}

static void mixed_modes_give_back_by_their_own_ways(void **state)
{
    struct remote_part parts[] = {
        part(limit("a", 1000, REMOTE_LEASED, REMOTE_FAIL_OPEN), "alice", 3),
        part(limit("b", 1000, REMOTE_SYNCED, REMOTE_FAIL_OPEN), "alice", 4),
        part(limit("c", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 1)};
    assert_int_equal(ask_parts(REMOTE_CHECK, parts, 3, 0, NOW), REMOTE_PENDING);
    assert_int_equal(fake.count, 1);
    reply(0, WEIR_DENY, 0, 5000, 0);
    assert_int_equal(t.answer.answer.limit, 2);
    assert_int_equal(fake.lease_refunds, 3);
    assert_int_equal(fake.sync_refunds, 4);
}

static void the_end_answers_what_is_out(void **state)
{
    struct store_limit *l = limit("api", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN);
    assert_int_equal(ask(l, 1, NOW), REMOTE_PENDING);
    store_destroy(t.store, NOW);
    assert_int_equal(t.answers, 1);
    assert_int_equal(t.answer.answer.flags, REMOTE_DEGRADED);
    t.store = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(limits_in_one_place_are_one_call),
        TEST(each_bucket_of_a_call_is_told_how_long_the_caller_would_wait),
        IN_CLUSTER(in_a_cluster_who_denies_gives_the_others_their_units_back),
        IN_CLUSTER(the_stamp_is_that_of_the_group_that_binds),
        IN_CLUSTER(a_shard_keeps_limits_together_in_a_cluster),
        TEST(local_limits_go_first_and_get_their_units_back),
        TEST(a_full_local_limit_that_charged_nothing_says_so_and_gets_nothing_back),
        IN_CLUSTER(a_place_in_a_queue_is_given_back_by_its_end),
        TEST(a_local_queue_gets_its_place_back),
        TEST(mixed_modes_give_back_by_their_own_ways),
        TEST(the_end_answers_what_is_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
