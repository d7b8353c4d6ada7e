#include "shared/core/script.h"
#include "support/store/lease_fleet.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/store/store_run.h"

#define BEGIN_US UINT64_C(1786400000000000)
#define NO_SHARD ((struct weir_text){NULL, 0})
#define THE_KEY TEXT("alice")

/* ---- start and end ---- */

void fleet_start(struct fleet *f, struct store_redis *redis, const struct weir_options *options,
                 unsigned nodes, uint64_t seed)
{
    *f = (struct fleet){.redis = redis, .nodes = nodes, .random = seed, .now_us = BEGIN_US};
    f->waiting = calloc(FLEET_WAITING, sizeof f->waiting[0]);
    assert_int_equal(store_params(options, &f->numbers.params, NULL), 0);
    store_params_lease(&f->numbers.params);
    f->limit = (struct store_limit){
        .references = 1,
        .mode = REMOTE_LEASED,
        .deny_cache_ns = WEIR_SECOND,
        .id = 1,
        .numbers = &f->numbers,
    };
    assert_int_equal(
        store_key_head(TEXT("t"), TEXT("limit"), &f->numbers.params, &f->limit.head, NULL), 0);
    for (unsigned i = 0; i < nodes; i++) {
        assert_int_equal(node_keys_of(&f->node[i].keys, KEY_LEASED, 1024), 0);
        f->node[i].ahead_ns = fleet_random(f, WEIR_DAY);
    }
    (void)store_redis_do(redis, "FLUSHALL");
    for (size_t i = 0; i < SCRIPT_COUNT; i++) {
        script_put_load(&redis->out, &clocked_scripts.row[i]);
        store_redis_send(redis);
        (void)store_redis_next(redis);
    }
}

void fleet_stop(struct fleet *f)
{
    for (unsigned i = 0; i < f->waiting_count; i++) {
        if (f->waiting[i].at_us != 0) {
            store_limit_release(f->waiting[i].call.limit);
        }
    }
    for (unsigned i = 0; i < f->nodes; i++) {
        node_keys_destroy(f->node[i].keys);
    }
    assert_int_equal(f->limit.references, 1); /* all other references are released */
    free(f->waiting);
}

uint64_t fleet_random(struct fleet *f, uint64_t below)
{
    f->random = f->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return mul_high(f->random ^ f->random >> 31, below);
}

static bool happens(struct fleet *f, unsigned thousandths)
{
    return fleet_random(f, 1000) < thousandths;
}

/* A node's clock runs faster or slower from the beginning. */
static uint64_t node_now(const struct fleet *f, const struct fleet_node *n)
{
    int64_t passed_ns = (int64_t)((f->now_us - BEGIN_US) * WEIR_MICROSECOND);
    return n->ahead_ns + (uint64_t)(passed_ns + passed_ns / 1000000 * n->drift_parts);
}

/* ---- measuring ---- */

static void measure_bucket(struct fleet *f, uint64_t units)
{
    const struct store_params *p = &f->numbers.params;
    u128 unit = (u128)p->a * STORE_PARTS + p->b;
    u128 now = (u128)f->now_us * STORE_PARTS;
    f->full_parts = (f->full_parts > now ? f->full_parts : now) + units * unit;
    u128 lead = f->full_parts - now;
    if (lead > p->quota * unit) {
        uint64_t over = (uint64_t)((lead - p->quota * unit + unit - 1) / unit);
        f->excess = max_u64(f->excess, over);
    }
}

static void measure_window(struct fleet *f, uint64_t units)
{
    const struct store_params *p = &f->numbers.params;
    uint64_t window = (f->now_us - p->b) / p->a;
    f->in_window = (window == f->window ? f->in_window : 0) + units;
    f->window = window;
    f->excess = max_u64(f->excess, sub_floor0(f->in_window, p->quota));
}

static void admit(struct fleet *f, uint64_t units)
{
    f->admitted += units;
    if (f->numbers.params.algorithm == WEIR_TOKEN_BUCKET) {
        measure_bucket(f, units);
    } else {
        measure_window(f, units);
    }
}

/* ---- calls ---- */

static void put_clock(struct fleet *f)
{
    store_run_clock(f->redis, (f->now_us + (uint64_t)f->step_us) * WEIR_MICROSECOND);
}

struct store_reply fleet_run(struct fleet *f, const struct lease_call *call)
{
    struct buffer arguments;
    unsigned count;
    buffer_init(&arguments, 65536);
    lease_put_arguments(call, &arguments, &count);
    put_clock(f);
    script_put_head(&f->redis->out, lease_script(&clocked_scripts, call), SCRIPT_BY_SHA, count);
    buffer_put(&f->redis->out, buffer_text(&arguments));
    buffer_finish(&arguments);
    store_redis_send(f->redis);
    (void)store_redis_next(f->redis);
    struct store_reply reply = *store_redis_next(f->redis);
    if (reply.type != ':' || reply.n != SCRIPT_LEASE_COUNT) {
        fail_msg("not a lease: %c with %zu numbers: %.*s", reply.type, reply.n,
                 TEXT_ARGS(reply.text));
    }
    f->calls++;
    return reply;
}

/* A waiting request is decided by the store's reply, as of the time of that reply. Returns whether
 * it was admitted. */
static bool decided(struct fleet *f, const struct lease_call *call, const struct store_reply *reply)
{
    bool yes = call->cost != 0 && reply->integers[0] == WEIR_ALLOW;
    if (yes) {
        admit(f, call->cost);
    } else if (call->cost != 0) {
        f->denied += call->cost;
    }
    return yes;
}

static void tell(struct fleet *f, unsigned node, const struct lease_call *call,
                 const struct store_reply *reply)
{
    struct fleet_node *n = &f->node[node];
    struct weir_answer answer;
    assert_int_equal(lease_reply(n->keys, call, reply, node_now(f, n), &answer), 0);
}

static void wait_for(struct fleet *f, unsigned node, const struct lease_call *call,
                     const struct store_reply *reply, uint64_t at_us)
{
    for (unsigned i = 0; i < FLEET_WAITING; i++) {
        struct fleet_waiting *w = &f->waiting[i];
        if (w->at_us == 0) {
            *w = (struct fleet_waiting){.node = node, .call = *call, .at_us = at_us};
            w->lost = reply == NULL;
            w->reply = w->lost ? w->reply : *reply;
            f->waiting_count = i + 1 > f->waiting_count ? i + 1 : f->waiting_count;
            return;
        }
    }
    fail_msg("too many calls wait");
}

static bool send(struct fleet *f, unsigned node, const struct lease_call *call)
{
    struct fleet_node *n = &f->node[node];
    const struct fleet_trouble *t = &f->trouble;
    if (happens(f, t->unsent)) {
        f->unanswered += call->cost;
        lease_unsent(n->keys, call, node_now(f, n));
        return false;
    }
    if (happens(f, t->lost)) {
        f->unanswered += call->cost;
        wait_for(f, node, call, NULL, f->now_us + 1 + fleet_random(f, t->late_us));
        return false;
    }
    struct store_reply reply = fleet_run(f, call);
    if (happens(f, t->unanswered)) { /* the node does not know whether it was admitted */
        f->unanswered += call->cost;
        wait_for(f, node, call, NULL, f->now_us + 1 + fleet_random(f, t->late_us));
        return false;
    }
    bool yes = decided(f, call, &reply);
    if (happens(f, t->twice)) {
        store_limit_hold(call->limit);
        wait_for(f, node, call, &reply, f->now_us + 1 + fleet_random(f, t->late_us));
    }
    if (happens(f, t->late)) {
        wait_for(f, node, call, &reply, f->now_us + 1 + fleet_random(f, t->late_us));
    } else {
        tell(f, node, call, &reply);
    }
    return yes;
}

static void arrive(struct fleet *f, struct fleet_waiting *w)
{
    struct fleet_node *n = &f->node[w->node];
    if (w->at_us == 0 || w->at_us > f->now_us) {
        return;
    }
    w->at_us = 0;
    if (n->dead) {
        store_limit_release(w->call.limit);
    } else if (w->lost) {
        lease_lost(n->keys, &w->call, node_now(f, n));
    } else {
        tell(f, w->node, &w->call, &w->reply);
    }
}

void fleet_pass(struct fleet *f, uint64_t us)
{
    struct lease_call call;
    f->now_us += us;
    for (unsigned i = 0; i < f->waiting_count; i++) {
        arrive(f, &f->waiting[i]);
    }
    for (unsigned i = 0; i < f->nodes; i++) {
        struct fleet_node *n = &f->node[i];
        while (!n->dead && lease_next(n->keys, node_now(f, n), &call)) {
            (void)send(f, i, &call);
        }
    }
}

bool fleet_ask(struct fleet *f, unsigned node, uint64_t cost)
{
    struct fleet_node *n = &f->node[node];
    struct weir_answer answer;
    struct lease_call call;
    f->asked += cost;
    unsigned said = lease_ask(n->keys, PART(&f->limit, THE_KEY, cost), LEASE_ASK, node_now(f, n),
                              &answer, &call);
    if (said == LEASE_WAIT) { /* requests do not wait here: that call may be lost */
        lease_alone(PART(&f->limit, THE_KEY, cost), node_now(f, n), &call);
        said = LEASE_SEND;
    }
    bool here = (said & LEASE_ANSWERED) != 0;
    bool yes = here && answer.verdict == WEIR_ALLOW;
    if (yes) {
        admit(f, cost);
    } else if (here) {
        f->denied += cost;
    }
    if ((said & LEASE_SEND) != 0) {
        yes |= send(f, node, &call);
    }
    return yes;
}

void fleet_end_node(struct fleet *f, unsigned node)
{
    node_keys_stop(f->node[node].keys);
    fleet_pass(f, 0);
    f->node[node].dead = true;
}

/* ---- verbs ---- */

static const struct store_reply *verb(struct fleet *f, unsigned v, struct store_part *part)
{
    put_clock(f);
    script_put_call(&f->redis->out, script_for(&clocked_scripts, part, 1), SCRIPT_BY_SHA, v, part,
                    1);
    store_redis_send(f->redis);
    (void)store_redis_next(f->redis);
    return store_redis_next(f->redis);
}

struct weir_answer fleet_verb(struct fleet *f, unsigned v, uint64_t cost, uint64_t time_ns)
{
    struct store_key key;
    struct weir_answer answer;
    store_key(&f->limit.head, NO_SHARD, THE_KEY, &key);
    struct store_part part = {&f->numbers.params, store_key_text(&key), cost, time_ns};
    const struct store_reply *r = verb(f, v, &part);
    if (script_answer(r, &part, 1, &answer, NULL) != 0) {
        fail_msg("not an answer: %.*s", TEXT_ARGS(r->text));
    }
    return answer;
}

int fleet_act(struct fleet *f, unsigned v, uint64_t time_ns)
{
    struct store_key key;
    store_key(&f->limit.head, NO_SHARD, THE_KEY, &key);
    struct store_part part = {&f->numbers.params, store_key_text(&key), 1, time_ns};
    return script_done(verb(f, v, &part), v);
}
