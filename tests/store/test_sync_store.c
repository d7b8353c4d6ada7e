/*
 * Nodes that exchange with a real redis-server, by its scripts, at times that the test chooses. One
 * seed is one run: who asks when, what gets lost on the way there or back, how far clocks are apart.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "support/oracle_trace.h"
#include "support/store_run.h"
#include "support/sync_fakes.h"

#define NODES_MAX 6
#define STORE_US UINT64_C(1700000000000000)
#define KEY "alice"

static struct store_redis redis;
static struct scripts scripts;

/* ---- a fleet ---- */

/* A call on its way, and its reply. */
struct flight {
    struct sync_call call;
    uint64_t runs_ns; /* on the true line */
    uint64_t ends_ns;
    bool out, ran, lost_there, lost_back;
    struct store_reply reply;
};

struct node {
    struct syncs *syncs;
    uint64_t ahead_ns; /* of its clock */
    struct flight flight;
};

static struct fake_limit fake;
static struct node nodes[NODES_MAX];
static unsigned node_count;

static void start(unsigned n)
{
    node_count = n;
    fleet_size = n;
    (void)store_redis_do(&redis, "FLUSHALL");
    for (size_t i = 0; i < SCRIPT_COUNT; i++) {
        script_put_load(&redis.out, &scripts.row[i]);
        store_redis_send(&redis);
        (void)store_redis_next(&redis);
    }
    memset(nodes, 0, sizeof nodes);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(syncs_create(&nodes[i].syncs, 64), 0);
        nodes[i].ahead_ns = (i * 977 + 1) * WEIR_SECOND; /* nobody's clock is another's */
    }
}

static void stop(void)
{
    for (unsigned i = 0; i < node_count; i++) {
        if (nodes[i].flight.out) {
            store_limit_release(nodes[i].flight.call.limit);
        }
        syncs_destroy(nodes[i].syncs);
    }
    assert_int_equal(fake.limit.references, 0);
}

/* True time counts from 0, when the store's clock says STORE_US. */
static uint64_t store_ns(uint64_t now_ns)
{
    return STORE_US * WEIR_MICROSECOND + now_ns;
}

static void run_script(const struct sync_call *call, uint64_t now_ns, struct store_reply *reply)
{
    unsigned count;
    struct buffer arguments;
    buffer_init(&arguments, 4096);
    sync_put_arguments(call, &arguments, &count);
    store_run_clock(&redis, store_ns(now_ns));
    script_put_head(&redis.out, sync_script(&scripts, call), SCRIPT_BY_SHA, count);
    buffer_put(&redis.out, buffer_text(&arguments));
    store_redis_send(&redis);
    assert_int_equal(store_redis_next(&redis)->type, '+');
    *reply = *store_redis_next(&redis);
    if (reply->type != ':') {
        fail_msg("%.*s", TEXT_ARGS(reply->text));
    }
    buffer_finish(&arguments);
}

/* What the store has, as `exact` would see it. */
static struct weir_answer peek(uint64_t now_ns)
{
    struct store_key key;
    struct weir_answer a;
    store_key(&fake.limit.head, NO_SHARD, TEXT(KEY), &key);
    struct store_part part = {&fake.numbers.params, store_key_text(&key), 1, 0};
    store_run_clock(&redis, store_ns(now_ns));
    script_put_call(&redis.out, script_for(&scripts, &part, 1), SCRIPT_BY_SHA, STORE_PEEK, &part,
                    1);
    store_redis_send(&redis);
    (void)store_redis_next(&redis);
    assert_int_equal(script_answer(store_redis_next(&redis), &part, 1, &a, NULL), 0);
    return a;
}

/* At once, with nothing on the way. */
static int64_t exchange(struct node *n, uint64_t now_ns)
{
    struct sync_call call;
    struct store_reply reply;
    if (!sync_next(n->syncs, now_ns + n->ahead_ns, &call)) {
        return 0;
    }
    run_script(&call, now_ns, &reply);
    assert_int_equal(sync_reply(n->syncs, &call, &reply, now_ns + n->ahead_ns), 0);
    return call.delta + (fake.numbers.params.algorithm == WEIR_TOKEN_BUCKET ? 0 : call.extra);
}

/* ---- what the script does ---- */

static void what_two_nodes_tell_is_what_exact_sees(void **state)
{
    static const int algorithms[] = {WEIR_TOKEN_BUCKET, WEIR_FIXED_WINDOW, WEIR_SLIDING_WINDOW};
    for (unsigned i = 0; i < 3; i++) {
        struct store_limit *l = fake_limit(&fake, algorithms[i], 100, WEIR_MINUTE, 0);
        start(2);
        assert_int_equal(fake_admit(nodes[0].syncs, l, KEY, 30, nodes[0].ahead_ns), 30);
        assert_int_equal(fake_admit(nodes[1].syncs, l, KEY, 25, nodes[1].ahead_ns), 25);
        assert_int_equal(exchange(&nodes[0], 0), 30);
        assert_int_equal(peek(0).remaining, 70);
        assert_int_equal(exchange(&nodes[1], 0), 25);
        assert_int_equal(peek(0).remaining, 45);
        assert_int_equal(fake_ask(nodes[1].syncs, l, KEY, 1, nodes[1].ahead_ns).remaining, 44);
        assert_int_equal(fake_ask(nodes[0].syncs, l, KEY, 1, nodes[0].ahead_ns).remaining, 69);
        assert_int_equal(exchange(&nodes[0], S_NS), 1);
        uint64_t left = fake_ask(nodes[0].syncs, l, KEY, 1, S_NS + nodes[0].ahead_ns).remaining;
        assert_int_equal(left, 43); /* does not know of the other's last */
        stop();
    }
}

static void the_store_goes_into_debt_and_nobody_admits_until_it_is_paid(void **state)
{
    struct store_limit *l = fake_limit(&fake, WEIR_TOKEN_BUCKET, 10, WEIR_SECOND, 10);
    start(3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(fake_admit(nodes[i].syncs, l, KEY, 20, nodes[i].ahead_ns), 10);
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(exchange(&nodes[i], 0), 10);
    }
    struct weir_answer a = peek(0);
    assert_int_equal(a.remaining, 0);
    assert_int_equal(a.reset_after_ns, 3 * WEIR_SECOND); /* 30 units, not cut off */
    a = fake_ask(nodes[2].syncs, l, KEY, 1, nodes[2].ahead_ns);
    assert_int_equal(a.verdict, WEIR_DENY);
    assert_int_equal(a.retry_after_ns, 2100 * MS);
    stop();
}

static void a_windows_debt_stays_in_its_window(void **state)
{
    struct store_limit *l = fake_limit(&fake, WEIR_FIXED_WINDOW, 10, WEIR_SECOND, 0);
    start(3);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(fake_admit(nodes[i].syncs, l, KEY, 20, nodes[i].ahead_ns), 10);
        assert_int_equal(exchange(&nodes[i], 0), 10);
    }
    assert_int_equal(fake_admit(nodes[0].syncs, l, KEY, 5, 990 * MS + nodes[0].ahead_ns), 0);
    assert_int_equal(fake_admit(nodes[0].syncs, l, KEY, 20, 1010 * MS + nodes[0].ahead_ns), 10);
    stop();
}

/* ---- */

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_two_nodes_tell_is_what_exact_sees),
        cmocka_unit_test(the_store_goes_into_debt_and_nobody_admits_until_it_is_paid),
        cmocka_unit_test(a_windows_debt_stays_in_its_window),
    };
    store_redis_start(&redis, NULL);
    store_run_scripts(&scripts);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    scripts_finish(&scripts);
    store_redis_stop(&redis);
    return failed;
}
