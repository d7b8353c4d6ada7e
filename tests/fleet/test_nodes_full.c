/*
 * Tests `weir serve` with a store whose memory is nearly full: it warns, reports, decides keys that
 * the store does not have by on_full, and asks the store for the others of the same request.
 */
// test-timeout: 300
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/fleet/weir_nodes.h"
#include "support/store/redis_alone.h"

static const char rules[] =
    "store: {url: 'redis://overridden', deadline: 10s, memory_high: 1}\n"
    "limits:\n"
    "  - {name: wide, when: {path: /shared}, key: [tenant], rate: 100/week, shard_by: [tenant]}\n"
    "  - {name: narrow, when: {path: /shared}, key: [tenant, user], rate: 50/week, on_full: "
    "evict,\n"
    "     shard_by: [tenant]}\n"
    "  - {name: strict, when: {path: /strict}, key: [user], rate: 50/week, on_full: deny}\n"
    "  - {name: easy, when: {path: /easy}, key: [user], rate: 50/week, on_full: allow}\n";

#define STRICT_DENIED "weir_evictions_total{limit=\"strict\",kind=\"full_denied\"}"

static struct weir_nodes nodes;

static void await_metric(const char *series, double value)
{
    uint64_t end_ms = redis_now_ms() + 60000;
    while (weir_nodes_metric(&nodes, 0, series) != value) {
        assert_true(redis_now_ms() < end_ms);
        redis_look_again_soon();
    }
}

static void await_log(const char *words)
{
    uint64_t end_ms = redis_now_ms() + 60000;
    bool found = false;
    while (!found) {
        char *log = weir_nodes_log(&nodes, 0);
        found = strstr(log, words) != NULL;
        free(log);
        assert_true(found || redis_now_ms() < end_ms);
        redis_look_again_soon();
    }
}

static void endpoint_is(const char *metric, const char *more, double value)
{
    char series[160];
    (void)snprintf(series, sizeof series, "%s{endpoint=\"127.0.0.1:%u\"%s}", metric,
                   world.node[0].port, more);
    await_metric(series, value);
}

static void has(struct server_client *c, const char *words, const char *expected)
{
    const char *reply = server_ask(c, words);
    if (strstr(reply, expected) == NULL) {
        fail_msg("%s: found %s, expected %s", words, reply, expected);
    }
}

static void a_full_store_is_told_and_new_keys_are_decided_by_on_full(void **state)
{
    struct server_client c;
    struct redis_node *redis = &world.node[0];
    assert_string_equal(redis_node_run(redis, "CONFIG SET maxmemory-policy volatile-ttl"), "OK");
    weir_nodes_start(&nodes, 1, rules, world.url);
    weir_nodes_connect(&nodes, 0, &c);
    has(&c, "WEIR.ASK path /shared tenant t user old", "'allow'");
    assert_string_equal(redis_node_run(redis, "CONFIG SET maxmemory 50mb"), "OK");
    for (unsigned i = 0; weir_nodes_metric(&nodes, 0, STRICT_DENIED) < 1; i++) {
        char words[64];
        (void)snprintf(words, sizeof words, "WEIR.ASK path /strict user %u", i);
        assert_in_range(i, 0, 100000);
        (void)server_ask(&c, words);
        redis_look_again_soon();
    }
    has(&c, "WEIR.ASK path /strict user new", "'degraded,full' 'overload'");
    has(&c, "WEIR.ASK path /easy user new", "'degraded,full' 'degraded'");
    /* The tenant is in the store and goes on there; the user is not. */
    has(&c, "WEIR.ASK path /shared tenant t user new", "'degraded,full' 'degraded'");
    has(&c, "WEIR.ASK path /shared tenant t user old", "'' 'limit'");
    endpoint_is("weir_store_full", "", 1);
    endpoint_is("weir_store_policy", ",policy=\"volatile\"", 1);
    endpoint_is("weir_store_policy", ",policy=\"noeviction\"", 0);
    endpoint_is("weir_store_evicted_keys", "", 0);
    endpoint_is("weir_store_memory_max_bytes", "", 50 << 20);
    server_disconnect(&c);
    await_log("recommended is maxmemory-policy noeviction");
    await_log("the memory of the store is nearly full");
    weir_nodes_finish(&nodes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_full_store_is_told_and_new_keys_are_decided_by_on_full)};
    return cmocka_run_group_tests(tests, start_redis, stop_redis);
}
