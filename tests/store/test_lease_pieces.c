/*
 * Compares the two ways in which scripts decide a lease: in one piece without functions, as a rule
 * (lua/single_lease.lua, single_window.lua), and by the pieces that serve every state, which alone
 * are in the script for several algorithms. Each gets the same random calls, about a key of its
 * own: the replies, the states and their expiry are the same.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/oracle/oracle_trace.h"
#include "support/store/store_run.h"

#define NODES 3
#define CALLS 1500
#define SEEDS 12

static struct store_redis redis;

/* The lease that a node holds. */
struct holder {
    uint64_t mark, held, left;
};

struct call {
    unsigned verb;
    uint64_t cost;
    int64_t numbers[SCRIPT_LEASE_NUMBERS];
};

static void key_of(const struct store_params *p, bool whole, struct store_key *key)
{
    struct store_key head;
    assert_int_equal(store_key_head(TEXT("t"), TEXT("api"), p, &head, NULL), 0);
    store_key(&head, (struct weir_text){NULL, 0}, whole ? TEXT("b") : TEXT("a"), key);
}

/* Makes the call and copies its reply. whole: by the script for several algorithms. */
static void make(const struct store_params *p, bool whole, const struct call *c, uint64_t now_us,
                 struct store_reply *out)
{
    struct store_key key;
    struct buffer arguments;
    key_of(p, whole, &key);
    bool until = c->verb == SCRIPT_BLOCK_UNTIL;
    struct store_part part = {p, store_key_text(&key), c->cost,
                              until ? (now_us + 100000) * WEIR_MICROSECOND : 0};
    bool bucket = p->algorithm == WEIR_TOKEN_BUCKET;
    unsigned row = whole ? 0 : bucket ? SCRIPT_LEASED_BUCKET : SCRIPT_LEASED_WINDOW;
    buffer_init(&arguments, 4096);
    unsigned count = script_put_arguments(&arguments, c->verb, &part, 1);
    if (c->verb == SCRIPT_LEASE) {
        count += script_put_numbers(&arguments, c->numbers, SCRIPT_LEASE_NUMBERS);
    }
    store_run_clock(&redis, now_us * WEIR_MICROSECOND);
    script_put_head(&redis.out, &clocked_scripts.row[row], SCRIPT_BY_SHA, count);
    buffer_put(&redis.out, buffer_text(&arguments));
    buffer_finish(&arguments);
    store_redis_send(&redis);
    (void)store_redis_next(&redis);
    *out = *store_redis_next(&redis);
}

static int64_t expiry_of(const struct store_key *key)
{
    char name[STORE_KEY_MAX + 1] = {0};
    memcpy(name, key->at, key->len);
    return store_redis_do(&redis, "PEXPIRETIME", name)->integers[0];
}

static void assert_same_state(const struct store_params *p, uint64_t seed, unsigned i)
{
    struct store_key keys[2];
    char values[2][512] = {"", ""};
    for (int whole = 0; whole < 2; whole++) {
        char name[STORE_KEY_MAX + 1] = {0};
        key_of(p, whole == 1, &keys[whole]);
        memcpy(name, keys[whole].at, keys[whole].len);
        const struct store_reply *r = store_redis_do(&redis, "GET", name);
        (void)snprintf(values[whole], sizeof values[whole], "%.*s", TEXT_ARGS(r->text));
    }
    if (strcmp(values[0], values[1]) != 0) {
        fail_msg("seed %" PRIu64 " call %u: in one piece %s, by the others %s", seed, i, values[0],
                 values[1]);
    }
    int64_t apart = expiry_of(&keys[0]) - expiry_of(&keys[1]);
    assert_in_range(apart + 5000, 0, 10000); /* written one after the other, on a busy machine */
}

static void random_lease(struct oracle_random *g, const struct store_params *p,
                         const struct holder *h, struct call *c)
{
    uint64_t left = oracle_between(g, 0, h->left);
    uint64_t back = oracle_between(g, 0, left);
    uint64_t mark = oracle_once_in(g, 20) ? h->mark + 1 : h->mark;
    c->verb = SCRIPT_LEASE;
    c->cost = oracle_once_in(g, 3) ? 0 : oracle_magnitude(g, 1, p->quota + p->quota / 4 + 1);
    c->numbers[0] = (int64_t)oracle_magnitude(g, 1, p->quota);
    c->numbers[1] = (int64_t)mark;
    c->numbers[2] = (int64_t)h->held;
    c->numbers[3] = (int64_t)back;
    c->numbers[4] = (int64_t)(left - back);
}

static void random_other(struct oracle_random *g, struct call *c)
{
    static const unsigned verbs[] = {REMOTE_CHECK,   REMOTE_PEEK,        REMOTE_UP_TO,
                                     REMOTE_RESET,   SCRIPT_BLOCK_UNTIL, REMOTE_UNBLOCK,
                                     REMOTE_PENALIZE};
    c->verb = verbs[oracle_between(g, 0, sizeof verbs / sizeof verbs[0] - 1)];
    c->cost = oracle_between(g, 1, 5);
}

static void take(struct holder *h, const struct call *c, const struct store_reply *r)
{
    bool kept = r->integers[12] != 0;
    h->left = (uint64_t)r->integers[9] + (kept ? (uint64_t)c->numbers[4] : 0);
    h->held = h->left;
    h->mark = (uint64_t)r->integers[10];
}

static bool same(const struct store_reply *a, const struct store_reply *b)
{
    return a->type == ':' && b->type == ':' && a->n == b->n &&
           memcmp(a->integers, b->integers, a->n * sizeof a->integers[0]) == 0;
}

/* One script answers a plain check with three numbers, the other with nine. */
static bool is_plain_answer(const struct store_reply *a)
{
    return a->type == ':' && a->n == SCRIPT_PLAIN_COUNT;
}

static void compare(const struct store_params *p, uint64_t seed)
{
    struct oracle_random g = {seed};
    struct holder nodes[NODES] = {{0}};
    uint64_t now_us = UINT64_C(1700000000000000);
    (void)store_redis_do(&redis, "FLUSHALL");
    for (unsigned i = 0; i < CALLS; i++) {
        struct holder *h = &nodes[oracle_between(&g, 0, NODES - 1)];
        struct call c;
        struct store_reply a;
        struct store_reply b;
        now_us += oracle_once_in(&g, 30) ? oracle_magnitude(&g, 100000, 10000000)
                                         : oracle_between(&g, 0, 50000);
        now_us -= oracle_once_in(&g, 200) ? oracle_magnitude(&g, 1, 5000000) : 0;
        if (oracle_once_in(&g, 10)) {
            random_other(&g, &c);
        } else {
            random_lease(&g, p, h, &c);
        }
        make(p, false, &c, now_us, &a);
        make(p, true, &c, now_us, &b);
        if (!same(&a, &b) && !is_plain_answer(&a)) {
            for (size_t k = 0; k < a.n || k < b.n; k++) {
                print_message("%zu: %" PRId64 " %" PRId64 "\n", k, a.integers[k], b.integers[k]);
            }
            fail_msg("seed %" PRIu64 " call %u verb %u: the replies differ", seed, i, c.verb);
        }
        if (c.verb == SCRIPT_LEASE) {
            take(h, &c, &a);
        }
        assert_same_state(p, seed, i);
    }
}

static void compare_all(int algorithm)
{
    static const uint64_t counts[] = {100, 7, 3000, 333333};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct weir_options o = WEIR_OPTIONS_INIT;
        struct store_params p;
        o.algorithm = algorithm;
        o.count = counts[seed % 4];
        o.period_ns = seed % 3 == 0 ? 3 * WEIR_SECOND : WEIR_SECOND;
        o.max_debt = seed % 2 == 0 ? 50 : 0;
        assert_int_equal(store_params(&o, &p, NULL), 0);
        store_params_lease(&p);
        compare(&p, seed);
    }
}

static void leases_of_buckets_are_the_same(void **state)
{
    compare_all(WEIR_TOKEN_BUCKET);
}

static void leases_of_windows_are_the_same(void **state)
{
    compare_all(WEIR_FIXED_WINDOW);
}

static int start(void **state)
{
    store_redis_start(&redis, NULL);
    store_run_load(&redis, &clocked_scripts);
    return 0;
}

static int stop(void **state)
{
    store_redis_stop(&redis);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leases_of_buckets_are_the_same),
        cmocka_unit_test(leases_of_windows_are_the_same),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
