/* Tests who decides about one limit, and what happens without the store. Several limits are in
 * test_store_several.c. */
#include "unit/shared/store_story.h"

/* ---- one limit ---- */

static void an_exact_question_is_one_call_and_its_reply_the_answer(void **state)
{
    struct store_limit *l = limit("api", 10, REMOTE_EXACT, REMOTE_FAIL_LOCAL);
    assert_int_equal(ask(l, 2, NOW), REMOTE_PENDING);
    assert_int_equal(fake.count, 1);
    assert_string_equal(fake.calls[0].script, "token_bucket");
    assert_string_equal(fake.calls[0].arguments,
                        "1 weir:1:api:t:{ralice} plain 1 10 10 100000 0 2 0 ");
    assert_int_equal(t.answers, 0);
    reply(0, WEIR_ALLOW, 8, 0, 0);
    assert_int_equal(t.answers, 1);
    assert_int_equal(t.error, 0);
    assert_int_equal(t.answer.answer.verdict, WEIR_ALLOW);
    assert_int_equal(t.answer.answer.remaining, 8);
    assert_int_equal(t.answer.answer.flags, 0);
    assert_int_equal(t.answer.stamp, 123456 * WEIR_MICROSECOND);
    assert_int_equal(l->counts.allowed, 1);
}

static void without_a_store_the_policy_decides_at_once(void **state)
{
    static const struct {
        int policy;
        int verdict;
        unsigned flags;
        uint64_t remaining;
    } rows[] = {{REMOTE_FAIL_OPEN, WEIR_ALLOW, REMOTE_DEGRADED, 9},
                {REMOTE_FAIL_CLOSED, WEIR_DENY, REMOTE_DEGRADED | REMOTE_CLOSED, 0},
                {REMOTE_FAIL_LOCAL, WEIR_ALLOW, REMOTE_DEGRADED, 4}};
    fake.refuse = WEIR_EIO;
    for (unsigned i = 0; i < 3; i++) {
        struct store_limit *l = limit("api", 10, REMOTE_EXACT, rows[i].policy);
        assert_int_equal(ask(l, 1, NOW), REMOTE_ANSWERED);
        assert_int_equal(t.answer.answer.verdict, rows[i].verdict);
        assert_int_equal(t.answer.answer.flags, rows[i].flags);
        assert_int_equal(t.answer.answer.remaining, rows[i].remaining);
        assert_int_equal(l->counts.degraded[rows[i].policy], 1);
        assert_int_equal(ask(l, 11, NOW), REMOTE_ANSWERED);
        assert_int_equal(t.answer.answer.verdict, WEIR_NEVER);
    }
}

static void a_call_without_a_reply_is_not_made_again(void **state)
{
    struct store_limit *l = limit("api", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN);
    assert_int_equal(ask(l, 1, NOW), REMOTE_PENDING);
    fake_end(0, CLIENT_UNKNOWN, NULL, NOW);
    assert_int_equal(t.answers, 1);
    assert_int_equal(fake.count, 0);
    assert_int_equal(t.answer.answer.verdict, WEIR_ALLOW);
    assert_int_equal(t.answer.answer.flags, REMOTE_DEGRADED);
    assert_int_equal(ask(l, 1, NOW), REMOTE_PENDING);
    struct store_reply damaged = {.type = '-', .text = TEXT("WRONGTYPE"), .refusal = STORE_REFUSED};
    fake_end(0, CLIENT_REPLIED, &damaged, NOW);
    assert_int_equal(t.answer.answer.flags, REMOTE_DEGRADED);
}

static void local_goes_on_with_this_nodes_part_of_what_remained(void **state)
{
    struct store_limit *l = limit("api", 10, REMOTE_EXACT, REMOTE_FAIL_LOCAL);
    assert_int_equal(ask(l, 1, NOW), REMOTE_PENDING);
    reply(0, WEIR_ALLOW, 3, 0, 0);
    fake.refuse = WEIR_EIO;
    unsigned allowed = 0;
    for (unsigned i = 0; i < 10; i++) { /* floor(10/2), but only 3 remained */
        assert_int_equal(ask(l, 1, NOW), REMOTE_ANSWERED);
        allowed += t.answer.answer.verdict == WEIR_ALLOW;
        assert_int_equal(t.answer.answer.flags, REMOTE_DEGRADED);
    }
    assert_int_equal(allowed, 3);
    allowed = 0;
    for (uint64_t now = NOW; now <= NOW + 10 * WEIR_SECOND; now += 10 * MS) {
        assert_int_equal(ask(l, 1, now), REMOTE_ANSWERED);
        allowed += t.answer.answer.verdict == WEIR_ALLOW;
    }
    assert_int_equal(allowed, 50); /* 10 per second, divided by two nodes */
}

static void a_denial_is_remembered_and_answers_without_a_call(void **state)
{
    struct store_limit *l = limit("api", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN);
    assert_int_equal(ask(l, 2, NOW), REMOTE_PENDING);
    reply(0, WEIR_DENY, 1, 100000, 0);
    assert_int_equal(ask(l, 2, NOW + 30 * MS), REMOTE_ANSWERED);
    assert_int_equal(t.answer.answer.verdict, WEIR_DENY);
    assert_int_equal(t.answer.answer.retry_after_ns, 70 * MS);
    assert_int_equal(t.answer.answer.flags, 0);
    assert_int_equal(l->counts.remembered, 1);
    assert_int_equal(l->counts.denied, 2);
    assert_int_equal(ask(l, 1, NOW + 30 * MS), REMOTE_PENDING); /* this cost may pass */
    struct remote_part p = part(l, "alice", 2);
    assert_int_equal(ask_parts(REMOTE_RESET, &p, 1, 0, NOW), REMOTE_PENDING);
    struct store_reply one = {.type = ':', .n = 1, .integers = {1}};
    fake_end(1, CLIENT_REPLIED, &one, NOW);
    assert_int_equal(t.answer.found, 1);
    assert_int_equal(ask(l, 2, NOW + 30 * MS), REMOTE_PENDING);
}

static void verbs_go_to_the_store_and_fail_without_it(void **state)
{
    struct store_limit *l = limit("api", 1000, REMOTE_LEASED, REMOTE_FAIL_OPEN);
    struct remote_part p = part(l, "alice", 5);
    assert_int_equal(ask_parts(REMOTE_BLOCK, &p, 1, WEIR_SECOND, NOW), REMOTE_PENDING);
    assert_non_null(strstr(fake.calls[0].arguments, " blockfor "));
    assert_non_null(strstr(fake.calls[0].arguments, " 1000000 "));
    struct store_reply one = {.type = ':', .n = 1, .integers = {1}};
    fake_end(0, CLIENT_REPLIED, &one, NOW);
    assert_int_equal(t.error, 0);
    assert_int_equal(fake.lease_forgets, 1);
    struct store_limit *synced = limit("synced", 1000, REMOTE_SYNCED, REMOTE_FAIL_OPEN);
    struct remote_part q = part(synced, "alice", 1);
    assert_int_equal(ask_parts(REMOTE_RESET, &q, 1, 0, NOW), REMOTE_PENDING);
    fake_end(0, CLIENT_REPLIED, &one, NOW);
    assert_int_equal(fake.sync_hurries, 1);
    assert_int_equal(ask_parts(REMOTE_REFUND, &p, 1, 0, NOW), REMOTE_PENDING);
    assert_non_null(strstr(fake.calls[0].arguments, " 9007199254740992 ")); /* now */
    fake_end(0, CLIENT_UNKNOWN, NULL, NOW);
    assert_int_equal(t.error, WEIR_EIO);
    fake.refuse = WEIR_EIO;
    assert_int_equal(ask_parts(REMOTE_PENALIZE, &p, 1, 0, NOW), WEIR_EIO);
    assert_int_equal(ask_parts(REMOTE_PEEK, &p, 1, 0, NOW), REMOTE_ANSWERED);
    assert_int_equal(t.answer.answer.flags, REMOTE_DEGRADED);
}

/* Without them the scripts would take a fleet's debt for an error of a clock: `exact` allows 1,000
 * units and as many of debt. 16,000 more are twice the quota of each of 8 nodes. */
static void verbs_know_of_the_debts_that_synced_limits_have(void **state)
{
    struct remote_part parts[] = {
        part(limit("e", 1000, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 5),
        part(limit("s", 1000, REMOTE_SYNCED, REMOTE_FAIL_OPEN), "alice", 5),
    };
    assert_int_equal(ask_parts(REMOTE_REFUND, &parts[1], 1, MS, NOW), REMOTE_PENDING);
    assert_string_equal(fake.calls[0].arguments,
                        "1 weir:1:s:t:{ralice} refund 1 1000 1000 1000 0 5 1000 16000 ");
    assert_int_equal(ask_parts(REMOTE_PEEK, parts, 2, 0, NOW), REMOTE_PENDING);
    assert_string_equal(fake.calls[1].arguments,
                        "2 weir:1:e:t:{ralice} weir:1:s:t:{ralice} peek "
                        "1 1000 1000 1000 0 5 0 1 1000 1000 1000 0 5 0 0 16000 ");
    assert_int_equal(ask_parts(REMOTE_REFUND, &parts[0], 1, MS, NOW), REMOTE_PENDING);
    assert_string_equal(fake.calls[2].arguments,
                        "1 weir:1:e:t:{ralice} refund 1 1000 1000 1000 0 5 1000 ");
}

static void bad_questions_change_nothing(void **state)
{
    struct store_limit *l = limit("api", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN);
    struct remote_part two[] = {part(l, "a", 1), part(l, "b", 1)};
    struct remote_part empty = part(l, "", 1);
    struct remote_part nothing = part(l, "a", 0);
    assert_int_equal(ask_parts(REMOTE_CHECK, &empty, 1, 0, NOW), WEIR_EKEY);
    assert_int_equal(ask_parts(REMOTE_CHECK, &nothing, 1, 0, NOW), WEIR_ECOST);
    assert_int_equal(ask_parts(REMOTE_REFUND, two, 2, 0, NOW), WEIR_EINVAL);
    assert_int_equal(ask_parts(REMOTE_CHECK, two, 0, 0, NOW), WEIR_EINVAL);
    assert_int_equal(fake.count, 0);
}

/* ---- leases and exchanges ---- */

static void a_lease_answers_at_once_and_renews_behind_the_answer(void **state)
{
    struct store_limit *l = limit("api", 1000, REMOTE_LEASED, REMOTE_FAIL_OPEN);
    fake.lease_says = LEASE_ANSWERED | LEASE_SEND;
    assert_int_equal(ask(l, 1, NOW), REMOTE_ANSWERED);
    assert_int_equal(fake.count, 1);
    reply(0, WEIR_ALLOW, 8, 0, 0);
    assert_int_equal(fake.leases_replied, 1);
    assert_int_equal(t.answers, 0);
}

static void a_dry_lease_waits_for_the_store_or_its_policy(void **state)
{
    struct store_limit *l = limit("api", 1000, REMOTE_LEASED, REMOTE_FAIL_CLOSED);
    fake.lease_says = LEASE_SEND;
    assert_int_equal(ask(l, 1, NOW), REMOTE_PENDING);
    fake.lease_answer.remaining = 77;
    reply(0, WEIR_ALLOW, 8, 0, 0);
    assert_int_equal(t.answers, 1);
    assert_int_equal(t.answer.answer.remaining, 77);
    assert_int_equal(ask(l, 1, NOW), REMOTE_PENDING);
    fake_end(0, CLIENT_UNKNOWN, NULL, NOW);
    assert_int_equal(fake.leases_lost, 1);
    assert_int_equal(t.answer.answer.flags, REMOTE_DEGRADED | REMOTE_CLOSED);
    fake.refuse = WEIR_EIO;
    assert_int_equal(ask(l, 1, NOW), REMOTE_ANSWERED);
    assert_int_equal(fake.leases_lost, 2);
    assert_int_equal(l->counts.degraded[REMOTE_FAIL_CLOSED], 2);
}

static void another_thread_leaves_a_renewal_for_a_tick(void **state)
{
    struct store_limit *l = limit("api", 1000, REMOTE_LEASED, REMOTE_FAIL_CLOSED);
    struct remote_part p = part(l, "alice", 1);
    struct remote_question q = {.verb = REMOTE_CHECK, .parts = &p, .n = 1};
    fake.lease_says = LEASE_ANSWERED | LEASE_DUE;
    fake.due = l;
    assert_int_equal(store_ask_here(&q, NOW, &t.answer), REMOTE_ANSWERED);
    assert_int_equal(fake.count, 0);
    assert_int_equal(t.wakes, 1);
    (void)store_tick(t.store, NOW);
    assert_int_equal(fake.count, 2); /* plus a heartbeat */
    assert_string_equal(fake.calls[0].arguments, "lease ");
    assert_string_equal(fake.calls[1].script, "members");
    fake.lease_says = LEASE_SEND;
    assert_int_equal(store_ask_here(&q, NOW, &t.answer), REMOTE_PENDING);
    assert_int_equal(fake.leases_lost, 0); /* no call was made */
}

static void an_exchange_that_is_overdue_is_a_failure(void **state)
{
    struct store_limit *l = limit("api", 1000, REMOTE_SYNCED, REMOTE_FAIL_CLOSED);
    assert_int_equal(ask(l, 1, NOW), REMOTE_ANSWERED);
    assert_int_equal(t.answer.answer.flags, 0);
    fake.sync_says = SYNC_DEGRADED;
    assert_int_equal(ask(l, 1, NOW), REMOTE_ANSWERED);
    assert_int_equal(t.answer.answer.flags, REMOTE_DEGRADED | REMOTE_CLOSED);
}

static void a_limit_too_small_for_leases_is_exact_and_bad_pairs_are_refused(void **state)
{
    assert_int_equal(limit("tiny", 5, REMOTE_LEASED, REMOTE_FAIL_OPEN)->mode, REMOTE_EXACT);
    struct weir_error error;
    struct store_limit *l;
    struct remote_spec spec = {
        .name = TEXT("log"), .options = WEIR_OPTIONS_INIT, .mode = REMOTE_LEASED};
    spec.options.algorithm = WEIR_SLIDING_LOG;
    spec.options.count = 10;
    spec.options.period_ns = WEIR_SECOND;
    assert_int_equal(store_limit_open(t.shared, &spec, &l, &error), WEIR_EINVAL);
    assert_string_equal(error.text, "sliding_log cannot be leased");
}

/* ---- a full store ---- */

/* The limit's own numbers only say how long the longest of the rates takes to refill. */
static void a_full_store_answers_a_question_that_brings_a_rate_by_that_rate(void **state)
{
    static const struct {
        int on_full;
        int verdict;
        uint64_t cost;
    } rows[] = {{WEIR_DENY_NEW, WEIR_DENY, 1},
                {WEIR_ALLOW_NEW, WEIR_ALLOW, 1},
                {WEIR_EVICT, WEIR_ALLOW, 1},
                {WEIR_ALLOW_NEW, WEIR_NEVER, 6}};
    struct store_reply full = {.type = ':', .n = 2, .integers = {-1, 1}};
    for (unsigned i = 0; i < 4; i++) {
        struct remote_spec spec = {.name = TEXT("adhoc"),
                                   .options = WEIR_OPTIONS_INIT,
                                   .mode = REMOTE_EXACT,
                                   .on_failure = REMOTE_FAIL_CLOSED,
                                   .any_rate = true};
        spec.options.algorithm = WEIR_TOKEN_BUCKET;
        spec.options.count = 1000000;
        spec.options.period_ns = WEIR_DAY;
        spec.options.on_full = rows[i].on_full;
        struct store_limit *l = NULL;
        assert_int_equal(store_limit_open(t.shared, &spec, &l, NULL), 0);
        t.limits[t.limits_count++] = l;
        struct remote_part p = part(l, "alice", rows[i].cost);
        p.rate = (struct remote_rate){.interval_ns = WEIR_SECOND, .burst = 5};
        assert_int_equal(ask_parts(REMOTE_CHECK, &p, 1, 0, NOW), REMOTE_PENDING);
        fake_end(0, CLIENT_REPLIED, &full, NOW);
        assert_int_equal(t.answer.answer.verdict, rows[i].verdict);
        assert_int_equal(t.answer.answer.quota, rows[i].on_full == WEIR_EVICT ? 2 : 5);
        bool never = rows[i].verdict == WEIR_NEVER; /* by every policy, so it is not marked */
        assert_int_equal(t.answer.answer.flags, never ? 0 : REMOTE_DEGRADED | WEIR_FLAG_FULL);
    }
}

/* ---- new numbers ---- */

static struct weir_options bucket_of(const struct store_limit *l, uint64_t count)
{
    struct weir_options o = store_limit_numbers(l)->options;
    o.count = count;
    return o;
}

static void a_leased_limit_whose_numbers_change_acts_by_the_new_ones(void **state)
{
    struct store_limit *l = limit("l", 1000, REMOTE_LEASED, REMOTE_FAIL_OPEN);
    struct weir_options few = bucket_of(l, 10);
    struct weir_options many = bucket_of(l, 2000);
    assert_int_equal(store_limit_mode(l), REMOTE_LEASED);
    assert_int_equal(store_limit_change(l, &few, NULL), 0);
    assert_int_equal(store_limit_mode(l), REMOTE_EXACT);
    assert_int_equal(store_limit_change(l, &many, NULL), 0);
    assert_int_equal(store_limit_mode(l), REMOTE_LEASED);
}

static void numbers_that_come_back_take_no_more_memory(void **state)
{
    struct store_limit *l = limit("l", 1000, REMOTE_EXACT, REMOTE_FAIL_OPEN);
    const struct store_numbers *first = store_limit_numbers(l);
    struct weir_options one = bucket_of(l, 1000);
    struct weir_options other = bucket_of(l, 2000);
    assert_int_equal(store_limit_change(l, &other, NULL), 0);
    assert_int_equal(store_limit_numbers(l)->params.quota, 2000);
    assert_int_equal(store_limit_change(l, &one, NULL), 0);
    assert_ptr_equal(store_limit_numbers(l), first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_exact_question_is_one_call_and_its_reply_the_answer),
        TEST(without_a_store_the_policy_decides_at_once),
        TEST(a_call_without_a_reply_is_not_made_again),
        TEST(local_goes_on_with_this_nodes_part_of_what_remained),
        TEST(a_denial_is_remembered_and_answers_without_a_call),
        TEST(verbs_go_to_the_store_and_fail_without_it),
        TEST(verbs_know_of_the_debts_that_synced_limits_have),
        TEST(bad_questions_change_nothing),
        TEST(a_full_store_answers_a_question_that_brings_a_rate_by_that_rate),
        TEST(a_leased_limit_whose_numbers_change_acts_by_the_new_ones),
        TEST(numbers_that_come_back_take_no_more_memory),
        TEST(a_lease_answers_at_once_and_renews_behind_the_answer),
        TEST(a_dry_lease_waits_for_the_store_or_its_policy),
        TEST(another_thread_leaves_a_renewal_for_a_tick),
        TEST(an_exchange_that_is_overdue_is_a_failure),
        TEST(a_limit_too_small_for_leases_is_exact_and_bad_pairs_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
