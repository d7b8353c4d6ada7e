/* Who decides, and what if the store does not: with calls, leases and exchanges in the test's hands. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "store/store.h"
#include "store_fakes.h"

#define MS WEIR_MILLISECOND
#define NOW (1000 * WEIR_SECOND)

static struct {
    struct store_shared *shared;
    struct store *store;
    struct store_url url;
    struct store_limit *limits[4];
    unsigned limits_count;
    unsigned answers;
    int error;
    struct remote_answer answer;
} t;

static int open_with(enum store_kind kind, uint64_t nodes)
{
    memset(&fake, 0, sizeof fake);
    memset(&t, 0, sizeof t);
    fake.lease_says = LEASE_ANSWERED;
    fake.sync_says = SYNC_ANSWERED;
    t.url.kind = kind;
    struct store_shared_options shared = {.prefix = TEXT("weir"), .fleet_size = nodes, .node = 1};
    struct client_options client = {.url = &t.url, .deadline_ns = 5 * MS};
    struct client_driver driver = {0};
    assert_int_equal(store_shared_create(&t.shared, &shared), 0);
    return store_create(&t.store, t.shared, &client, &driver, NOW);
}

static int open_store(void **state)
{
    return open_with(STORE_ALONE, 2);
}

static int open_cluster(void **state)
{
    return open_with(STORE_CLUSTER, 2);
}

static int close_store(void **state)
{
    store_destroy(t.store, NOW);
    for (unsigned i = 0; i < t.limits_count; i++) {
        assert_int_equal(t.limits[i]->references, 1); /* nobody holds it any more */
        store_limit_release(t.limits[i]);
    }
    store_shared_destroy(t.shared);
    return 0;
}

/* A bucket of `count` that refills in a second. */
static struct store_limit *limit(const char *name, uint64_t count, int mode, int on_failure)
{
    struct weir_error error;
    struct remote_spec spec = {.name = text_of(name),
                               .options = WEIR_OPTIONS_INIT,
                               .mode = mode,
                               .on_failure = on_failure,
                               .deny_cache_ns = WEIR_SECOND,
                               .sync_ns = 100 * MS};
    spec.options.algorithm = WEIR_TOKEN_BUCKET;
    spec.options.count = count;
    spec.options.period_ns = WEIR_SECOND;
    if (store_limit_open(t.shared, &spec, &t.limits[t.limits_count], &error) != 0) {
        fail_msg("%s", error.text);
    }
    return t.limits[t.limits_count++];
}

static void hear(void *arg, int error, const struct remote_answer *answer)
{
    t.answers++;
    t.error = error;
    t.answer = *answer;
}

static struct remote_part part(struct store_limit *l, const char *key, uint64_t cost)
{
    return (struct remote_part){.limit = l, .key = text_of(key), .cost = cost};
}

static int ask_parts(int verb, const struct remote_part *parts, size_t n, uint64_t time_ns,
                     uint64_t now_ns)
{
    struct remote_question q = {
        .verb = verb, .parts = parts, .n = n, .time_ns = time_ns, .now_ns = now_ns};
    t.answers = 0;
    return store_ask(t.store, &q, now_ns, &t.answer, hear, NULL);
}

static int ask(struct store_limit *l, uint64_t cost, uint64_t now_ns)
{
    struct remote_part p = part(l, "alice", cost);
    return ask_parts(REMOTE_CHECK, &p, 1, 0, now_ns);
}

static void reply(unsigned i, int verdict, int64_t remaining, int64_t retry_us, int64_t bound)
{
    struct store_reply r = fake_reply(verdict, remaining, retry_us, bound);
    fake_end(i, CLIENT_REPLIED, &r, NOW);
}

/* ---- one limit ---- */

static void an_exact_question_is_one_call_and_its_reply_the_answer(void **state)
{
    struct store_limit *l = limit("api", 10, REMOTE_EXACT, REMOTE_FAIL_LOCAL);
    assert_int_equal(ask(l, 2, NOW), REMOTE_PENDING);
    assert_int_equal(fake.count, 1);
    assert_string_equal(fake.calls[0].script, "token_bucket");
    assert_string_equal(fake.calls[0].arguments,
                        "1 weir:1:api:t:{ralice} check 1 10 10 100000 0 2 0 ");
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
                {REMOTE_FAIL_LOCAL, WEIR_DENY, REMOTE_DEGRADED, 0}};
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
    for (unsigned i = 0; i < 10; i++) { /* floor(10/2), and no more than 3 remained */
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
    assert_int_equal(allowed, 50); /* 10 per second, by two nodes */
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
    assert_int_equal(ask(l, 1, NOW + 30 * MS), REMOTE_PENDING); /* may pass */
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
    assert_non_null(strstr(fake.calls[0].arguments, " 9007199254740992 ")); /* just now */
    fake_end(0, CLIENT_UNKNOWN, NULL, NOW);
    assert_int_equal(t.error, WEIR_EIO);
    fake.refuse = WEIR_EIO;
    assert_int_equal(ask_parts(REMOTE_PENALISE, &p, 1, 0, NOW), WEIR_EIO);
    assert_int_equal(ask_parts(REMOTE_PEEK, &p, 1, 0, NOW), REMOTE_ANSWERED);
    assert_int_equal(t.answer.answer.flags, REMOTE_DEGRADED);
}

/* Or they would take what a fleet owes for an error of a clock: 1,000 units and as many of debt are all
 * that `exact` has. 16,000 more: twice the quota of each of 8 nodes. */
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
    assert_int_equal(ask_parts(REMOTE_CHECK, two, 2, MS, NOW), WEIR_EINVAL);
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

/* ---- waiting for another's call ---- */

/* Questions by number; the order in which they are answered. */
static struct {
    unsigned order[8];
    unsigned count;
    struct weir_answer answer[8];
    struct store_limit *again; /* who hears asks again of this */
} row;

static void hear_in_row(void *arg, int error, const struct remote_answer *answer)
{
    unsigned i = (unsigned)(uintptr_t)arg;
    assert_int_equal(error, 0);
    row.answer[i] = answer->answer;
    row.order[row.count++] = i;
    if (row.again != NULL) {
        struct remote_part p = part(row.again, "alice", 1);
        struct remote_question q = {.verb = REMOTE_CHECK, .parts = &p, .n = 1};
        row.again = NULL;
        fake.lease_says = LEASE_WAIT; /* of what the others need nothing is left */
        assert_int_equal(store_ask(t.store, &q, NOW, &t.answer, hear_in_row, (void *)(uintptr_t)7),
                         REMOTE_PENDING);
    }
}

static void ask_in_row(unsigned i, const struct remote_part *parts, size_t n)
{
    struct remote_question q = {.verb = REMOTE_CHECK, .parts = parts, .n = n};
    assert_int_equal(store_ask(t.store, &q, NOW, &t.answer, hear_in_row, (void *)(uintptr_t)i),
                     REMOTE_PENDING);
}

/* Number 0 makes the call, and `n` - 1 wait for it. */
static struct store_limit *have_row(unsigned n, int on_failure)
{
    memset(&row, 0, sizeof row);
    struct store_limit *l = limit("api", 1000, REMOTE_LEASED, on_failure);
    struct remote_part p = part(l, "alice", 1);
    fake.lease_id = 5;
    for (unsigned i = 0; i < n; i++) {
        fake.lease_says = i == 0 ? LEASE_SEND : LEASE_WAIT;
        ask_in_row(i, &p, 1);
    }
    assert_int_equal(fake.count, 1);
    return l;
}

static void who_waits_is_decided_before_anybody_hears_and_hears_in_order(void **state)
{
    row.again = have_row(4, REMOTE_FAIL_CLOSED);
    fake.lease_says = LEASE_ANSWERED;
    fake.lease_answer.remaining = 42;
    reply(0, WEIR_ALLOW, 8, 0, 0);
    assert_int_equal(row.count, 4);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(row.order[i], i);
        assert_int_equal(row.answer[i].remaining, 42);
        assert_int_equal(row.answer[i].flags, 0);
    }
    assert_int_equal(fake.count, 1); /* the one who asked in between: there is nobody to wait for */
    assert_int_equal(t.limits[0]->counts.allowed, 4);
}

static void who_waits_fails_with_the_call_by_its_policy(void **state)
{
    struct store_limit *l = have_row(4, REMOTE_FAIL_OPEN);
    fake_end(0, CLIENT_UNKNOWN, NULL, NOW);
    assert_int_equal(row.count, 4);
    assert_int_equal(row.answer[3].flags, REMOTE_DEGRADED);
    assert_int_equal(l->counts.degraded[REMOTE_FAIL_OPEN], 4);
    assert_int_equal(fake.leases_lost, 1); /* and nothing else was ever out */
}

static void who_has_waited_for_half_of_its_time_asks_alone(void **state)
{
    (void)have_row(2, REMOTE_FAIL_CLOSED);
    fake.lease_says = LEASE_WAIT;
    assert_int_equal(store_tick(t.store, NOW), NOW + 5 * MS / 2);
    unsigned before = fake.count;
    (void)store_tick(t.store, NOW + 5 * MS / 2);
    assert_int_equal(fake.count, before + 1);
    assert_int_equal(row.count, 0);
    fake_end(fake.count - 1, CLIENT_UNKNOWN, NULL, NOW + 5 * MS);
    assert_int_equal(row.count, 1);
    assert_int_equal(row.order[0], 1);
}

static void of_several_limits_each_waits_for_its_own_and_a_denial_gives_back(void **state)
{
    struct store_limit *l = have_row(1, REMOTE_FAIL_CLOSED);
    struct store_limit *e = limit("exact", 10, REMOTE_EXACT, REMOTE_FAIL_CLOSED);
    struct remote_part both[] = {part(l, "alice", 1), part(e, "alice", 1)};
    fake.lease_says = LEASE_WAIT;
    ask_in_row(1, both, 2);
    assert_int_equal(fake.count, 2);
    fake.lease_says = LEASE_ANSWERED;
    reply(0, WEIR_ALLOW, 8, 0, 0);
    assert_int_equal(row.count, 1);
    reply(0, WEIR_DENY, 0, 1000, 0);
    assert_int_equal(row.count, 2);
    assert_int_equal(row.answer[1].verdict, WEIR_DENY);
    assert_int_equal(row.answer[1].limit, 1);
    assert_int_equal(fake.lease_refunds, 1);
}

static void a_call_that_another_thread_has_left_is_sent_for_who_waits_for_it(void **state)
{
    memset(&row, 0, sizeof row);
    struct store_limit *l = limit("api", 1000, REMOTE_LEASED, REMOTE_FAIL_CLOSED);
    struct remote_part p = part(l, "alice", 1);
    struct remote_question q = {.verb = REMOTE_CHECK, .parts = &p, .n = 1};
    fake.lease_id = 5;
    fake.lease_says = LEASE_ANSWERED | LEASE_SEND;
    assert_int_equal(store_ask_here(&q, NOW, &t.answer), REMOTE_ANSWERED);
    fake.lease_says = LEASE_WAIT;
    assert_int_equal(store_ask_here(&q, NOW, &t.answer), REMOTE_PENDING);
    assert_int_equal(fake.leases_lost, 0);
    ask_in_row(0, &p, 1);
    assert_int_equal(fake.count, 1);
    fake.lease_says = LEASE_ANSWERED;
    reply(0, WEIR_ALLOW, 8, 0, 0);
    assert_int_equal(row.count, 1);
}

static void closing_fails_those_who_wait(void **state)
{
    (void)have_row(4, REMOTE_FAIL_CLOSED);
    store_destroy(t.store, NOW);
    t.store = NULL;
    assert_int_equal(row.count, 4);
    assert_int_equal(row.answer[3].flags, REMOTE_DEGRADED | REMOTE_CLOSED);
}

static void another_thread_leaves_what_is_to_be_sent_for_a_tick(void **state)
{
    struct store_limit *l = limit("api", 1000, REMOTE_LEASED, REMOTE_FAIL_CLOSED);
    struct remote_part p = part(l, "alice", 1);
    struct remote_question q = {.verb = REMOTE_CHECK, .parts = &p, .n = 1};
    fake.lease_says = LEASE_ANSWERED | LEASE_SEND;
    assert_int_equal(store_ask_here(&q, NOW, &t.answer), REMOTE_ANSWERED);
    assert_int_equal(fake.count, 0);
    (void)store_tick(t.store, NOW);
    assert_int_equal(fake.count, 2); /* and a heartbeat */
    assert_string_equal(fake.calls[0].arguments, "lease ");
    assert_string_equal(fake.calls[1].script, "members");
    fake.lease_says = LEASE_SEND;
    assert_int_equal(store_ask_here(&q, NOW, &t.answer), REMOTE_PENDING);
    assert_int_equal(fake.leases_lost, 1);
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

/* ---- several limits ---- */

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
                        "1 weir:1:a:t:{ralice} refund 1 10 10 100000 0 3 123456 ");
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

static void local_limits_go_first_and_get_their_units_back(void **state)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct weir *w;
    o.algorithm = WEIR_TOKEN_BUCKET;
    o.count = 5;
    o.period_ns = WEIR_HOUR;
    o.flags = WEIR_EXPLICIT_TIME;
    assert_int_equal(weir_open(&w, &o, NULL), 0);
    struct remote_part parts[] = {part(limit("a", 10, REMOTE_EXACT, REMOTE_FAIL_OPEN), "alice", 1),
                                  {.local = w, .key = TEXT("alice"), .cost = 2}};
    assert_int_equal(ask_parts(REMOTE_CHECK, parts, 2, 0, NOW), REMOTE_PENDING);
    assert_int_equal(local_remaining(w), 3);
    reply(0, WEIR_DENY, 0, 5000, 0);
    assert_int_equal(t.answer.answer.limit, 0);
    assert_int_equal(local_remaining(w), 5);
    parts[1].cost = 6; /* the local one says NEVER: nobody else is asked */
    assert_int_equal(ask_parts(REMOTE_CHECK, parts, 2, 0, NOW), REMOTE_ANSWERED);
    assert_int_equal(t.answer.answer.verdict, WEIR_NEVER);
    assert_int_equal(t.answer.answer.limit, 1);
    assert_int_equal(fake.count, 0);
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
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_store, close_store)
#define IN_CLUSTER(f) cmocka_unit_test_setup_teardown(f, open_cluster, close_store)
    const struct CMUnitTest tests[] = {
        TEST(an_exact_question_is_one_call_and_its_reply_the_answer),
        TEST(without_a_store_the_policy_decides_at_once),
        TEST(a_call_without_a_reply_is_not_made_again),
        TEST(local_goes_on_with_this_nodes_part_of_what_remained),
        TEST(a_denial_is_remembered_and_answers_without_a_call),
        TEST(verbs_go_to_the_store_and_fail_without_it),
        TEST(verbs_know_of_the_debts_that_synced_limits_have),
        TEST(bad_questions_change_nothing),
        TEST(a_leased_limit_whose_numbers_change_acts_by_the_new_ones),
        TEST(numbers_that_come_back_take_no_more_memory),
        TEST(a_lease_answers_at_once_and_renews_behind_the_answer),
        TEST(a_dry_lease_waits_for_the_store_or_its_policy),
        TEST(who_waits_is_decided_before_anybody_hears_and_hears_in_order),
        TEST(who_waits_fails_with_the_call_by_its_policy),
        TEST(who_has_waited_for_half_of_its_time_asks_alone),
        TEST(of_several_limits_each_waits_for_its_own_and_a_denial_gives_back),
        TEST(a_call_that_another_thread_has_left_is_sent_for_who_waits_for_it),
        TEST(closing_fails_those_who_wait),
        TEST(another_thread_leaves_what_is_to_be_sent_for_a_tick),
        TEST(an_exchange_that_is_overdue_is_a_failure),
        TEST(a_limit_too_small_for_leases_is_exact_and_bad_pairs_are_refused),
        TEST(limits_in_one_place_are_one_call),
        IN_CLUSTER(in_a_cluster_who_denies_gives_the_others_their_units_back),
        IN_CLUSTER(a_shard_keeps_limits_together_in_a_cluster),
        TEST(local_limits_go_first_and_get_their_units_back),
        TEST(mixed_modes_give_back_by_their_own_ways),
        TEST(the_end_answers_what_is_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
