/*
 * Tests nodes of `weir serve` with every kind of store: a single Redis, one with Sentinels, a
 * Cluster. With one limit and with two at once, exactly the limit passes.
 */
// test-timeout: 300
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/redis_world.h"
#include "support/threads_run.h"
#include "support/weir_nodes.h"

#define NODES 3
#define CONNECTIONS 4
#define EACH 96 /* of 12: 1152 */
#define DEPTH 16

static const char rules[] =
    "store: {url: 'redis://overridden', deadline: 10s}\n"
    "limits:\n"
    "  - {name: one, when: {path: /one}, key: [user], rate: 700/week}\n"
    "  - {name: wide, when: {path: /two}, key: [tenant], rate: 600/week, shard_by: [tenant]}\n"
    "  - {name: narrow, when: {path: /two}, key: [tenant, user], rate: 500/week,\n"
    "     shard_by: [tenant]}\n";

static struct redis_world world;
static struct weir_nodes nodes;

struct crowd {
    const char *words;
    uint64_t allowed;
    uint64_t denied;
};

static void ask(unsigned index, void *arg)
{
    struct crowd *all = arg;
    struct server_client c;
    weir_nodes_connect(&nodes, index % NODES, &c);
    for (unsigned i = 0; i < EACH; i += DEPTH) {
        for (unsigned k = 0; k < DEPTH; k++) {
            threads_require(server_say(&c, all->words));
        }
        for (unsigned k = 0; k < DEPTH; k++) {
            const char *reply = server_reply(&c);
            bool plain = strstr(reply, " '']") != NULL;
            (void)threads_add(&all->allowed, plain && strncmp(reply, "['allow'", 8) == 0);
            (void)threads_add(&all->denied, plain && strncmp(reply, "['deny'", 7) == 0);
        }
    }
    server_disconnect(&c);
}

static void assert_passes(const char *words, uint64_t allowed)
{
    struct crowd all = {.words = words};
    threads_run(NODES * CONNECTIONS, ask, &all);
    assert_int_equal(all.allowed + all.denied, NODES * CONNECTIONS * EACH);
    assert_int_equal(all.allowed, allowed);
}

static void as_many_pass_as_should(void)
{
    weir_nodes_start(&nodes, NODES, rules, world.url);
    assert_passes("WEIR.ASK path /one user alice", 700);
    assert_passes("WEIR.ASK path /two tenant t user bob", 500);
    weir_nodes_finish(&nodes);
    redis_world_stop(&world);
}

static void at_a_redis_alone(void **state)
{
    redis_world_alone(&world, NULL);
    as_many_pass_as_should();
}

static void at_one_that_sentinels_know(void **state)
{
    redis_world_sentinel(&world, NULL);
    as_many_pass_as_should();
}

static void at_a_cluster(void **state)
{
    redis_world_cluster(&world, NULL);
    as_many_pass_as_should();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_a_redis_alone),
        cmocka_unit_test(at_one_that_sentinels_know),
        cmocka_unit_test(at_a_cluster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
