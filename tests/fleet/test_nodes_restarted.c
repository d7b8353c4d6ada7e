/*
 * Tests nodes of `weir serve` that are started while their store is away: they know how many they
 * are from before, and together admit the limit once; a client that no node has seen is served.
 */
// test-timeout: 120
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/engine/threads_run.h"
#include "support/fleet/weir_nodes.h"
#include "support/store/redis_world.h"

#define NODES 4
#define LIMIT 100
#define PATIENCE_MS 60000

static const char rules[] = "store: {url: 'redis://overridden', deadline: 20ms}\n"
                            "adhoc: off\n"
                            "limits:\n"
                            "  - {name: api, key: [user], rate: 100/day}\n";

static struct redis_world world;
static struct weir_nodes nodes;

static int begin(void **state)
{
    redis_world_alone(&world, NULL);
    weir_nodes_start_kept(&nodes, NODES, rules, world.url);
    return 0;
}

static int end(void **state)
{
    weir_nodes_finish(&nodes);
    redis_world_stop(&world);
    return 0;
}

static void await_nodes(unsigned node, double n)
{
    uint64_t began = redis_now_ms();
    while (weir_nodes_metric(&nodes, node, "weir_fleet_nodes") != n) {
        threads_require(redis_now_ms() - began < PATIENCE_MS);
        redis_look_again_soon();
    }
}

/* Returns how many of 2 LIMIT requests for the client a node allows. */
static unsigned allowed_by(unsigned node, const char *client)
{
    unsigned allowed = 0;
    struct server_client c;
    char words[64];
    (void)snprintf(words, sizeof words, "WEIR.CHECK api %s", client);
    weir_nodes_connect(&nodes, node, &c);
    for (unsigned i = 0; i < 2 * LIMIT; i++) {
        const char *said = server_ask(&c, words);
        assert_non_null(strstr(said, "'degraded'"));
        allowed += strstr(said, "'allow' 'api'") != NULL;
    }
    server_disconnect(&c);
    return allowed;
}

static unsigned allowed_by_all(const char *client)
{
    unsigned allowed = 0;
    for (unsigned i = 0; i < NODES; i++) {
        allowed += allowed_by(i, client);
    }
    return allowed;
}

static void nodes_that_start_without_a_store_admit_the_limit_once(void **state)
{
    for (unsigned i = 0; i < NODES; i++) {
        await_nodes(i, NODES);
    }
    redis_node_kill(&world.node[0]);
    for (unsigned i = 0; i < NODES; i++) {
        weir_nodes_end(&nodes, i, i % 2 == 0 ? SIGKILL : SIGTERM);
        weir_nodes_restart(&nodes, i, world.url);
        assert_true(weir_nodes_metric(&nodes, i, "weir_fleet_nodes") == NODES);
    }
    assert_int_equal(allowed_by_all("alice"), LIMIT);
    assert_int_equal(allowed_by_all("bob"), LIMIT);
}

/* The first nodes that find the store again are fewer than there are. */
static void a_store_that_comes_back_empty_does_not_make_the_fleet_smaller(void **state)
{
    weir_nodes_end(&nodes, 3, SIGKILL); /* counts for 10 s more */
    redis_node_restart_empty(&world.node[0]);
    uint64_t began = redis_now_ms();
    while (redis_now_ms() - began < 8000) {
        for (unsigned i = 0; i < 3; i++) {
            assert_true(weir_nodes_metric(&nodes, i, "weir_fleet_nodes") == NODES);
        }
        redis_look_again_soon();
    }
    await_nodes(0, 3);
    print_message("counted as gone after %llu ms\n", (unsigned long long)(redis_now_ms() - began));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_that_start_without_a_store_admit_the_limit_once),
        cmocka_unit_test(a_store_that_comes_back_empty_does_not_make_the_fleet_smaller),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
