/*
 * Compares several limits in one call of a script with weir_check_several_at(): all or nothing, and
 * the answer names the same limit. Buckets may have a wait. If clients may be told of some limits
 * only, the script has the numbers that a look at each of these would find.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "redis/slots.h"
#include "support/store/store_run.h"

#define LIMITS 5
#define CALLS 3000

static struct store_redis redis;
static unsigned told_count;  /* answers that had the numbers of a limit that clients may be told */
static unsigned told_denied; /* of these, limits that denied, too */

struct limit {
    struct weir *local;
    struct store_params params;
    struct store_key head;
};

static void open_limit(struct limit *l, int algorithm, uint64_t count)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    char name[] = "limit0";
    name[5] = (char)('0' + algorithm);
    o.algorithm = algorithm;
    o.count = count;
    o.period_ns = WEIR_SECOND;
    o.queue = algorithm == WEIR_LEAKY_BUCKET ? 5 : 0;
    o.undelayed = algorithm == WEIR_LEAKY_BUCKET ? 2 : 0;
    o.flags = WEIR_EXPLICIT_TIME;
    assert_int_equal(weir_open(&l->local, &o, NULL), 0);
    assert_int_equal(store_params(&o, &l->params, NULL), 0);
    assert_int_equal(store_key_head(TEXT("t"), text_of(name), &l->params, &l->head, NULL), 0);
}

/* A call on some of the limits. Each has its own key, and all keys are in the slot of the
 * tenant. */
struct call {
    struct weir_part local[LIMITS];
    struct store_part store[LIMITS];
    struct store_key keys[LIMITS];
    char names[LIMITS][2];
    size_t n;
    uint64_t now_ns;
    bool peek;
    int64_t exposed[LIMITS];
    size_t exposed_count;
};

/* Returns whether the script is told of which limits clients may be told. */
static bool is_mixed(const struct call *c)
{
    return c->exposed_count > 0 && c->exposed_count < c->n;
}

static void make_call(struct oracle_random *g, struct limit *limits, uint64_t now_ns,
                      struct call *c)
{
    c->n = 0;
    c->exposed_count = 0;
    c->now_ns = now_ns;
    c->peek = oracle_once_in(g, 5);
    for (size_t i = 0; i < LIMITS; i++) {
        if (oracle_once_in(g, 2)) {
            continue;
        }
        size_t at = c->n++;
        uint64_t cost = oracle_once_in(g, 30) ? 1000 : oracle_between(g, 1, 3);
        c->names[at][0] = (char)oracle_between(g, 'a', 'c');
        struct weir_text name = {c->names[at], 1};
        store_key(&limits[i].head, TEXT("acme"), name, &c->keys[at]);
        c->local[at] = (struct weir_part){
            limits[i].local,
            {.key = name.at, .key_len = 1, .cost = cost, .mode = c->peek ? WEIR_PEEK : WEIR_CHECK}};
        bool waits = i < WEIR_LEAKY_BUCKET && oracle_once_in(g, 3);
        uint64_t wait_ns = waits ? oracle_between(g, 1, 1500) * WEIR_MILLISECOND : 0;
        c->local[at].ask.max_wait_ns = wait_ns;
        c->store[at] =
            (struct store_part){&limits[i].params, store_key_text(&c->keys[at]), cost, wait_ns};
        c->exposed[at] = oracle_once_in(g, 2);
        c->exposed_count += (size_t)c->exposed[at];
    }
}

static void put_call(const struct call *c)
{
    static const int64_t beyond[LIMITS];
    struct buffer arguments;
    store_run_clock(&redis, c->now_ns);
    buffer_init(&arguments, 1 << 18);
    unsigned verb = c->peek ? REMOTE_PEEK : REMOTE_CHECK;
    unsigned count = script_put_arguments(&arguments, verb, c->store, c->n);
    if (is_mixed(c)) {
        count += script_put_numbers(&arguments, beyond, c->n);
        count += script_put_numbers(&arguments, c->exposed, c->n);
    }
    script_put_head(&redis.out, script_for(&clocked_scripts, c->store, c->n), SCRIPT_BY_SHA, count);
    buffer_put(&redis.out, buffer_text(&arguments));
    buffer_finish(&arguments);
}

/* Looks at each limit of which clients may be told, after the decision, and sets *told to
 * the answer of the one that binds: of an allowance, the one with the least remaining. */
static void look_at_exposed(const struct call *c, int verdict, struct weir_answer *told)
{
    size_t found = LIMITS;
    for (size_t i = 0; i < c->n; i++) {
        struct weir_question question = c->local[i].ask;
        struct weir_answer own;
        question.mode = WEIR_PEEK;
        if (!c->exposed[i]) {
            continue;
        }
        assert_int_equal(weir_ask_at(c->local[i].limiter, &question, c->now_ns, &own), 0);
        if (verdict == WEIR_ALLOW) { /* what the look says of one more call does not matter */
            own.verdict = WEIR_ALLOW;
            own.retry_after_ns = 0;
        }
        bool more = found == LIMITS || own.verdict > told->verdict;
        if (found != LIMITS && own.verdict == told->verdict) {
            more = own.verdict == WEIR_ALLOW ? own.remaining < told->remaining
                                             : own.retry_after_ns > told->retry_after_ns;
        }
        if (more) {
            *told = own;
            found = i;
        }
    }
    told->limit = (uint32_t)found;
}

static void compare_told(const struct call *c, const struct store_reply *reply, size_t i,
                         const struct weir_answer *answer)
{
    struct weir_answer local;
    struct weir_answer store;
    bool hidden = is_mixed(c) && !c->exposed[answer->limit];
    assert_int_equal(script_told(reply, c->store, &store), hidden);
    if (!hidden) {
        return;
    }
    look_at_exposed(c, answer->verdict, &local);
    told_count++;
    told_denied += store.verdict != WEIR_ALLOW;
    local.granted = 0;
    local.delay_ns = 0;
    const char *what = store_run_difference(&local, &store);
    if (what != NULL) {
        store_run_print(&local, &store);
        fail_msg("call %zu on %zu limits tells of %u, expected %u: %s differs", i, c->n,
                 store.limit, local.limit, what);
    }
}

static void compare_call(const struct call *c, size_t i)
{
    struct weir_answer local;
    struct weir_answer store;
    assert_int_equal(weir_check_several_at(c->local, c->n, c->now_ns, &local), 0);
    (void)store_redis_next(&redis);
    const struct store_reply *reply = store_redis_next(&redis);
    assert_int_equal(script_answer(reply, c->store, c->n, &store, NULL), 0);
    const char *what = store_run_difference(&local, &store);
    if (what != NULL) {
        store_run_print(&local, &store);
        fail_msg("call %zu on %zu limits at %" PRIu64 " ns: %s differs", i, c->n, c->now_ns, what);
    }
    compare_told(c, reply, i, &store);
}

/* A limit that was charged for a call that another limit denies would soon answer differently. */
static void several_limits_are_charged_together_or_not_at_all(void **state)
{
    static struct call calls[CALLS];
    static const uint64_t counts[] = {10, 8, 20, 20, 15};
    struct limit limits[LIMITS];
    struct oracle_random g = {5};
    uint64_t now_ns = 1000 * WEIR_SECOND;
    for (int i = 0; i < LIMITS; i++) {
        open_limit(&limits[i], i + 1, counts[i]);
    }
    for (size_t i = 0; i < CALLS; i++) {
        now_ns += oracle_between(&g, 0, 20000) * WEIR_MICROSECOND;
        uint64_t back = oracle_once_in(&g, 50) ? oracle_between(&g, 1, 3000000) : 0;
        do {
            make_call(&g, limits, now_ns - back * WEIR_MICROSECOND, &calls[i]);
        } while (calls[i].n == 0);
        put_call(&calls[i]);
    }
    store_redis_send(&redis);
    for (size_t i = 0; i < CALLS; i++) {
        compare_call(&calls[i], i);
    }
    assert_in_range(told_count, CALLS / 10, CALLS);
    assert_in_range(told_denied, CALLS / 100, CALLS);
    for (int i = 0; i < LIMITS; i++) {
        weir_close(limits[i].local);
    }
}

static void the_limits_of_one_tenant_share_a_slot(void **state)
{
    struct limit limits[2];
    struct store_key keys[2];
    for (int i = 0; i < 2; i++) {
        open_limit(&limits[i], i + 1, 1);
        weir_close(limits[i].local);
        store_key(&limits[i].head, TEXT("acme"), i == 0 ? TEXT("alice") : TEXT("bob"), &keys[i]);
    }
    assert_int_equal(cluster_slot(store_key_text(&keys[0])),
                     cluster_slot(store_key_text(&keys[1])));
}

static int load(void **state)
{
    store_run_load(&redis, &clocked_scripts);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(several_limits_are_charged_together_or_not_at_all),
        cmocka_unit_test(the_limits_of_one_tenant_share_a_slot),
    };
    store_redis_start(&redis, NULL);
    int failed = cmocka_run_group_tests(tests, load, NULL);
    store_redis_stop(&redis);
    return failed;
}
