/* Nodes that exchange with a real redis-server, through its scripts, at times that the test
 * chooses. */
#ifndef WEIR_TESTS_STORE_SYNC_FLEET_H
#define WEIR_TESTS_STORE_SYNC_FLEET_H

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/maths.h"
#include "support/oracle/oracle_trace.h"
#include "support/store/store_run.h"
#include "support/store/sync_fakes.h"

#define NODES_MAX 6
#define STORE_US UINT64_C(1700000000000000)
#define KEY "alice"

static struct store_redis redis;

/* ---- a fleet ---- */

struct node {
    struct node_keys *keys;
    uint64_t ahead_ns; /* offset of its clock */
    int64_t drift_ppm; /* drift of its clock */
    /* A call in flight: when it runs and ends, in true time. */
    struct sync_call call;
    struct store_reply reply;
    bool out, ran, lost_there, lost_back, again;
    uint64_t runs_ns, ends_ns;
    /* Units offered to this node: in total, when the current call was made, when the last answered
     * exchange was made, and the maximum between that and the next reply. */
    uint64_t offered, offered_at_call, offered_at_known, unheard;
    bool busy; /* the node is being asked, for a while */
    uint64_t until_ns;
};

static struct fake_limit fake;
static struct node nodes[NODES_MAX];
static unsigned node_count;

static inline void start(unsigned n)
{
    node_count = n;
    fleet_size = n;
    (void)store_redis_do(&redis, "FLUSHALL");
    for (size_t i = 0; i < SCRIPT_COUNT; i++) {
        script_put_load(&redis.out, &clocked_scripts.row[i]);
        store_redis_send(&redis);
        (void)store_redis_next(&redis);
    }
    memset(nodes, 0, sizeof nodes);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(node_keys_of(&nodes[i].keys, KEY_SYNCED, 64), 0);
        nodes[i].ahead_ns = (i * 977 + 1) * WEIR_SECOND; /* all clocks differ */
    }
}

static inline void stop(void)
{
    for (unsigned i = 0; i < node_count; i++) {
        if (nodes[i].out) {
            sync_lost(nodes[i].keys, &nodes[i].call, 0);
        }
        node_keys_destroy(nodes[i].keys);
    }
    assert_int_equal(fake.limit.references, 0);
}

/* True time counts from 0, when the store's clock says STORE_US. */
static inline uint64_t store_ns(uint64_t now_ns)
{
    return STORE_US * WEIR_MICROSECOND + now_ns;
}

static inline void run_script(const struct sync_call *call, uint64_t now_ns,
                              struct store_reply *reply)
{
    unsigned count;
    struct buffer arguments;
    buffer_init(&arguments, 4096);
    sync_put_arguments(call, 1, &arguments, &count);
    store_run_clock(&redis, store_ns(now_ns));
    script_put_head(&redis.out, sync_script(&clocked_scripts, call), SCRIPT_BY_SHA, count);
    buffer_put(&redis.out, buffer_text(&arguments));
    store_redis_send(&redis);
    assert_int_equal(store_redis_next(&redis)->type, '+');
    *reply = *store_redis_next(&redis);
    if (reply->type != ':') {
        fail_msg("%.*s", TEXT_ARGS(reply->text));
    }
    buffer_finish(&arguments);
}

/* Returns the store's state, as `exact` would see it. */
static inline struct weir_answer peek(uint64_t now_ns)
{
    struct store_key key;
    struct weir_answer a;
    store_key(&fake.limit.head, NO_SHARD, TEXT(KEY), &key);
    struct store_part part = {&fake.numbers.params, store_key_text(&key), 1, 0};
    store_run_clock(&redis, store_ns(now_ns));
    script_put_call(&redis.out, script_for(&clocked_scripts, &part, 1), SCRIPT_BY_SHA, REMOTE_PEEK,
                    &part, 1);
    store_redis_send(&redis);
    (void)store_redis_next(&redis);
    assert_int_equal(script_answer(store_redis_next(&redis), &part, 1, &a, NULL), 0);
    return a;
}

static inline struct weir_text state_of_key(void)
{
    struct store_key key;
    store_key(&fake.limit.head, NO_SHARD, TEXT(KEY), &key);
    key.at[key.len] = '\0';
    const struct store_reply *v = store_redis_do(&redis, "GET", key.at);
    return v->type == '$' ? v->text : TEXT("0:0");
}

static inline int64_t units_of(const struct sync_call *call)
{
    return call->delta + (fake.numbers.params.algorithm == WEIR_TOKEN_BUCKET ? 0 : call->extra);
}

/* Makes an exchange at once, without delays. Returns its units. */
static inline int64_t exchange(struct node *n, uint64_t now_ns)
{
    struct sync_call call;
    struct store_reply reply;
    if (!sync_next(n->keys, now_ns + n->ahead_ns, &call)) {
        return 0;
    }
    run_script(&call, now_ns, &reply);
    assert_int_equal(sync_reply(n->keys, &call, &reply, now_ns + n->ahead_ns), 0);
    return units_of(&call);
}

static inline int start_store(void **state)
{
    store_redis_start(&redis, NULL);
    return 0;
}

static inline int stop_store(void **state)
{
    store_redis_stop(&redis);
    return 0;
}

#endif
