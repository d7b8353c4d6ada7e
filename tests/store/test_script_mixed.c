/*
 * Tests nodes that do not agree on a limit, as while a change is rolled out. They share the states,
 * and for a node that knows a small bucket the state of a large one looks as if a clock had been
 * set back. Keys must not get more from that than the largest bucket gives.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/maths.h"
#include "support/store/store_run.h"

#define NODES 3
#define CALLS 4000
#define LARGEST 1000 /* quota */

static struct store_redis redis;

/* ---- asking ---- */

struct kind {
    const char *name;
    int algorithm;
    uint64_t per_second;
    bool leased, no_debt, faster; /* faster: the smaller buckets also fill more quickly */
};

static const struct kind kinds[] = {
    {"token_bucket", WEIR_TOKEN_BUCKET, 10, .leased = false},
    {"token_bucket, no debt", WEIR_TOKEN_BUCKET, 10, .no_debt = true},
    {"token_bucket, a remainder", WEIR_TOKEN_BUCKET, 7, .leased = false},
    {"token_bucket, leased", WEIR_TOKEN_BUCKET, 7, .leased = true},
    {"token_bucket, another rate", WEIR_TOKEN_BUCKET, 10, .faster = true},
    {"leaky_bucket", WEIR_LEAKY_BUCKET, 10, .leased = false},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static struct store_params params_of(const struct kind *k, uint64_t quota)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    struct store_params p;
    o.algorithm = k->algorithm;
    o.count = k->per_second * (k->faster && quota < LARGEST ? 3 : 1);
    o.period_ns = WEIR_SECOND;
    o.burst = k->algorithm == WEIR_LEAKY_BUCKET ? 0 : quota;
    o.queue = k->algorithm == WEIR_LEAKY_BUCKET ? quota - 1 : 0;
    o.max_debt = k->no_debt ? WEIR_NO_DEBT : 0;
    assert_int_equal(store_params(&o, &p, NULL), 0);
    if (k->leased) {
        store_params_lease(&p);
    }
    return p;
}

static void put(const struct store_params *p, uint64_t cost, uint64_t now_us)
{
    struct store_key head;
    struct store_key key;
    assert_int_equal(store_key_head(TEXT("weir"), TEXT("api"), p, &head, NULL), 0);
    store_key(&head, (struct weir_text){NULL, 0}, TEXT("alice"), &key);
    struct store_part part = {p, store_key_text(&key), cost, 0};
    store_run_clock(&redis, now_us * WEIR_MICROSECOND);
    script_put_call(&redis.out, script_for(&clocked_scripts, &part, 1), SCRIPT_BY_SHA, REMOTE_CHECK,
                    &part, 1);
}

static struct weir_answer next_answer(const struct store_params *p, uint64_t cost)
{
    struct store_part part = {.params = p, .cost = cost};
    struct weir_answer a;
    (void)store_redis_next(&redis);
    const struct store_reply *r = store_redis_next(&redis);
    if (script_answer(r, &part, 1, &a, NULL) != 0) {
        fail_msg("not an answer: %.*s", TEXT_ARGS(r->text));
    }
    return a;
}

static struct weir_answer ask(const struct store_params *p, uint64_t cost, uint64_t now_us)
{
    put(p, cost, now_us);
    store_redis_send(&redis);
    return next_answer(p, cost);
}

/* ---- what the largest bucket gives ---- */

/* All admissions, by any node, in one bucket. Times are in parts of a microsecond. */
struct total {
    uint64_t full_at;
};

static uint64_t parts(const struct store_params *p, uint64_t units)
{
    return units * (p->a * STORE_PARTS + p->b);
}

static bool fits(struct total *t, const struct store_params *largest, uint64_t taken,
                 uint64_t now_us)
{
    uint64_t now = now_us * STORE_PARTS;
    t->full_at = (t->full_at > now ? t->full_at : now) + taken;
    return t->full_at <= now + parts(largest, largest->quota);
}

struct question {
    uint64_t now_us, cost;
    unsigned node;
};

/* Makes bursts of questions, mostly to one node that changes, and pauses. */
static struct question next_question(struct oracle_random *g, const struct question *last)
{
    struct question q = *last;
    if (oracle_once_in(g, 20)) {
        q.node = (unsigned)oracle_between(g, 0, NODES - 1);
    }
    q.now_us += oracle_once_in(g, 100) ? oracle_magnitude(g, 1000000, 200000000)
                                       : oracle_between(g, 0, 100000);
    q.cost = oracle_once_in(g, 4) ? oracle_between(g, 1, 10) : 1;
    if (oracle_once_in(g, 3)) {
        q.node = (unsigned)oracle_between(g, 0, NODES - 1);
        q.cost = oracle_once_in(g, 2) ? 100 : 1;
    }
    return q;
}

static void run_mixed(const struct kind *k, uint64_t seed)
{
    static struct question asked[CALLS];
    const uint64_t quotas[NODES] = {LARGEST, 150, 10};
    struct store_params nodes[NODES];
    struct oracle_random g = {seed};
    struct question q = {.now_us = 1000000000};
    struct total total = {0};
    for (unsigned i = 0; i < NODES; i++) {
        nodes[i] = params_of(k, quotas[i]);
    }
    store_redis_put(&redis, "FLUSHALL", NULL);
    for (size_t i = 0; i < CALLS; i++) {
        q = asked[i] = next_question(&g, &q);
        put(&nodes[q.node], q.cost, q.now_us);
    }
    store_redis_send(&redis);
    (void)store_redis_next(&redis);
    uint64_t admitted[NODES] = {0};
    for (size_t i = 0; i < CALLS; i++) {
        const struct question *at = &asked[i];
        struct weir_answer a = next_answer(&nodes[at->node], at->cost);
        if (a.verdict == WEIR_ALLOW) {
            admitted[at->node] += at->cost;
            if (!fits(&total, &nodes[0], parts(&nodes[at->node], at->cost), at->now_us)) {
                fail_msg("%s, seed %" PRIu64 ", question %zu: node %u lets in %" PRIu64
                         " more than the largest bucket gives",
                         k->name, seed, i, at->node, at->cost);
            }
        }
    }
    assert_true(admitted[0] > 0 && admitted[1] > 0 && admitted[2] > 0);
}

static void keys_get_no_more_than_the_largest_bucket_gives(void **state)
{
    for (size_t i = 0; i < KINDS; i++) {
        for (uint64_t seed = 1; seed <= 10; seed++) {
            run_mixed(&kinds[i], seed);
        }
    }
}

/* ---- leases ---- */

#define LEASE_MOST_US UINT64_C(2250000) /* no lease lives longer: see lua/leased_bucket.lua */

/* What a node holds: the lease of its last call. */
struct holder {
    struct store_params params;
    uint64_t mark, held, left, ends_us;
};

static const struct store_reply *call_lease(const struct holder *h, uint64_t cost, uint64_t want,
                                            uint64_t now_us)
{
    struct store_key head;
    struct store_key key;
    struct buffer arguments;
    buffer_init(&arguments, 4096);
    assert_int_equal(store_key_head(TEXT("weir"), TEXT("api"), &h->params, &head, NULL), 0);
    store_key(&head, (struct weir_text){NULL, 0}, TEXT("alice"), &key);
    struct store_part part = {&h->params, store_key_text(&key), cost, 0};
    uint64_t back = want == 0 && cost == 0 ? h->left : 0;
    const int64_t numbers[SCRIPT_LEASE_NUMBERS] = {(int64_t)want, (int64_t)h->mark,
                                                   (int64_t)h->held, (int64_t)back,
                                                   (int64_t)(h->left - back)};
    store_run_clock(&redis, now_us * WEIR_MICROSECOND);
    unsigned count = script_put_arguments(&arguments, SCRIPT_LEASE, &part, 1);
    count += script_put_numbers(&arguments, numbers, SCRIPT_LEASE_NUMBERS);
    bool bucket = h->params.algorithm == WEIR_TOKEN_BUCKET;
    const struct script *script =
        &clocked_scripts.row[bucket ? SCRIPT_LEASED_BUCKET : SCRIPT_LEASED_WINDOW];
    script_put_head(&redis.out, script, SCRIPT_BY_SHA, count);
    buffer_put(&redis.out, buffer_text(&arguments));
    buffer_finish(&arguments);
    store_redis_send(&redis);
    (void)store_redis_next(&redis);
    return store_redis_next(&redis);
}

/* Returns the units of the question that are spent now, from the store or from the lease. */
static uint64_t ask_holder(struct holder *h, uint64_t cost, uint64_t want, uint64_t now_us)
{
    if (now_us >= h->ends_us) {
        h->mark = h->held = h->left = 0;
    }
    if (h->left >= cost) {
        h->left -= cost;
        return cost;
    }
    const struct store_reply *r = call_lease(h, cost, want, now_us);
    assert_int_equal(r->type, ':');
    assert_int_equal(r->n, SCRIPT_LEASE_COUNT);
    const int64_t *x = r->integers;
    h->left = (uint64_t)x[9] + (x[12] != 0 ? h->left : 0);
    h->held = h->left;
    h->mark = (uint64_t)x[10];
    h->ends_us = now_us + (uint64_t)x[11];
    return x[0] == WEIR_ALLOW ? cost : 0;
}

/* The smaller bucket takes marks that it cannot have made for those of a clock that was set back,
 * so a lease of the larger one may count as spent too early. */
static void so_it_is_with_leases_but_for_what_refills_while_they_live(void **state)
{
    const struct kind kind = {"leased", WEIR_TOKEN_BUCKET, 100, .leased = true};
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct holder nodes[2] = {{.params = params_of(&kind, LARGEST)},
                                  {.params = params_of(&kind, 40)}};
        struct oracle_random g = {seed};
        struct total total = {0};
        uint64_t now_us = 1000000000;
        uint64_t leased = 0;
        (void)store_redis_do(&redis, "FLUSHALL");
        for (unsigned i = 0; i < 3000; i++) {
            struct holder *h = &nodes[oracle_once_in(&g, 2)];
            uint64_t cost = oracle_once_in(&g, 5) ? oracle_between(&g, 1, 40) : 1;
            now_us += oracle_once_in(&g, 100) ? oracle_magnitude(&g, 100000, 20000000)
                                              : oracle_between(&g, 0, 10000);
            uint64_t spent = ask_holder(h, cost, oracle_between(&g, 0, 400), now_us);
            leased += h->left;
            struct total with_leases = {sub_floor0(total.full_at, LEASE_MOST_US * STORE_PARTS)};
            assert_true(fits(&with_leases, &nodes[0].params, parts(&h->params, spent), now_us));
            (void)fits(&total, &nodes[0].params, parts(&h->params, spent), now_us);
        }
        assert_true(leased > 0);
    }
}

static const struct kind leased = {"leased", WEIR_TOKEN_BUCKET, 1, .leased = true, .no_debt = true};

static void what_a_lease_gives_back_is_there_for_who_knows_a_larger_bucket(void **state)
{
    struct store_params large = params_of(&leased, LARGEST);
    struct holder small = {.params = params_of(&leased, 100)};
    uint64_t now_us = 1000000000;
    assert_int_equal(ask(&large, 900, now_us).verdict, WEIR_ALLOW);
    assert_int_equal(ask(&small.params, 1, now_us).verdict, WEIR_DENY);
    now_us += 90000000;
    assert_int_equal(ask_holder(&small, 1, 40, now_us), 1);
    assert_true(small.held > 0);
    uint64_t there = 190 - 1 - small.held;
    assert_int_equal(ask(&large, there + 1, now_us).verdict, WEIR_DENY);
    (void)call_lease(&small, 0, 0, now_us);
    assert_int_equal(ask(&large, 190, now_us).verdict, WEIR_DENY);
    assert_int_equal(ask(&large, 189, now_us).verdict, WEIR_ALLOW);
}

/* Outstanding units stay so, but not those that the larger bucket had spent before. */
static void a_reset_by_who_knows_a_small_bucket_is_one_of_the_larger(void **state)
{
    struct holder large = {.params = params_of(&leased, LARGEST)};
    struct store_params small = params_of(&leased, 10);
    struct store_key head;
    struct store_key key;
    uint64_t now_us = 1000000000;
    assert_int_equal(ask(&large.params, 900, now_us).verdict, WEIR_ALLOW);
    assert_int_equal(ask_holder(&large, 1, 20, now_us), 1);
    assert_int_equal(ask(&small, 1, now_us).verdict, WEIR_DENY);
    assert_int_equal(store_key_head(TEXT("weir"), TEXT("api"), &small, &head, NULL), 0);
    store_key(&head, (struct weir_text){NULL, 0}, TEXT("alice"), &key);
    struct store_part part = {&small, store_key_text(&key), 0, 0};
    script_put_call(&redis.out, script_for(&clocked_scripts, &part, 1), SCRIPT_BY_SHA, REMOTE_RESET,
                    &part, 1);
    store_redis_send(&redis);
    assert_int_equal(store_redis_next(&redis)->integers[0], 1);
    assert_true(large.held > 0);
    assert_int_equal(ask(&large.params, LARGEST - large.held + 1, now_us).verdict, WEIR_DENY);
    assert_int_equal(ask(&large.params, LARGEST - large.held, now_us).verdict, WEIR_ALLOW);
}

/* ---- the time until it ends ---- */

static void who_knows_the_smaller_bucket_is_let_in_within_its_time_to_full(void **state)
{
    for (size_t i = 0; i < KINDS; i++) {
        struct store_params large = params_of(&kinds[i], LARGEST);
        struct store_params small = params_of(&kinds[i], 10);
        uint64_t now_us = 1000000000;
        uint64_t full_us = parts(&small, small.quota) / STORE_PARTS;
        (void)store_redis_do(&redis, "FLUSHALL");
        assert_int_equal(ask(&large, LARGEST, now_us).verdict, WEIR_ALLOW);
        uint64_t since_us = ++now_us;
        struct weir_answer a = ask(&small, 1, now_us);
        assert_int_equal(a.verdict, WEIR_DENY);
        now_us += a.retry_after_ns / WEIR_MICROSECOND;
        assert_int_equal(ask(&small, 1, now_us - 1).verdict, WEIR_DENY);
        assert_int_equal(ask(&small, 1, now_us).verdict, WEIR_ALLOW);
        assert_true(now_us - since_us <= full_us + parts(&small, 1) / STORE_PARTS + 1);
        /* It continues at its rate, with or without the larger node. */
        a = ask(&small, 1, now_us);
        assert_int_equal(a.verdict, WEIR_DENY);
        assert_true(a.retry_after_ns / WEIR_MICROSECOND <= parts(&small, 1) / STORE_PARTS + 1);
    }
}

static void the_larger_bucket_keeps_what_it_knew_and_counts_what_others_let_in(void **state)
{
    for (size_t i = 0; i < KINDS; i++) {
        struct store_params large = params_of(&kinds[i], LARGEST);
        struct store_params small = params_of(&kinds[i], 10);
        uint64_t now_us = 1000000000;
        (void)store_redis_do(&redis, "FLUSHALL");
        assert_int_equal(ask(&large, LARGEST, now_us).verdict, WEIR_ALLOW);
        uint64_t let_in = 0;
        for (unsigned second = 0; second < 60; second++) {
            let_in += ask(&small, 1, now_us).verdict == WEIR_ALLOW;
            now_us += 1000000;
        }
        assert_true(let_in > 40);
        uint64_t passed = UINT64_C(60000000) * STORE_PARTS;
        uint64_t left = (passed - parts(&small, let_in)) / parts(&large, 1);
        assert_int_equal(ask(&large, left + 1, now_us).verdict, WEIR_DENY);
        assert_int_equal(ask(&large, left, now_us).verdict, WEIR_ALLOW);
        assert_int_equal(ask(&large, 1, now_us).verdict, WEIR_DENY);
    }
}

static void a_state_is_met_once(void **state)
{
    struct store_params large = params_of(&kinds[0], LARGEST);
    struct store_params small = params_of(&kinds[0], 10);
    const char *changes = "local n = redis.call('INFO', 'persistence') "
                          "return tonumber(n:match('rdb_changes_since_last_save:(%d+)'))";
    assert_int_equal(ask(&large, LARGEST, 1000000000).verdict, WEIR_ALLOW);
    assert_int_equal(ask(&small, 1, 1000000000).verdict, WEIR_DENY);
    int64_t before = store_redis_do(&redis, "EVAL", changes, "0")->integers[0];
    for (unsigned i = 1; i <= 10; i++) {
        assert_int_equal(ask(&small, 1, 1000000000 + i).verdict, WEIR_DENY);
    }
    /* Only the test's clock was written. */
    assert_int_equal(store_redis_do(&redis, "EVAL", changes, "0")->integers[0], before + 10);
}

static int fresh(void **state)
{
    (void)store_redis_do(&redis, "FLUSHALL");
    store_run_load(&redis, &clocked_scripts);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(keys_get_no_more_than_the_largest_bucket_gives, fresh),
        cmocka_unit_test_setup(so_it_is_with_leases_but_for_what_refills_while_they_live, fresh),
        cmocka_unit_test_setup(what_a_lease_gives_back_is_there_for_who_knows_a_larger_bucket,
                               fresh),
        cmocka_unit_test_setup(a_reset_by_who_knows_a_small_bucket_is_one_of_the_larger, fresh),
        cmocka_unit_test_setup(who_knows_the_smaller_bucket_is_let_in_within_its_time_to_full,
                               fresh),
        cmocka_unit_test_setup(the_larger_bucket_keeps_what_it_knew_and_counts_what_others_let_in,
                               fresh),
        cmocka_unit_test_setup(a_state_is_met_once, fresh),
    };
    store_redis_start(&redis, NULL);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    store_redis_stop(&redis);
    return failed;
}
