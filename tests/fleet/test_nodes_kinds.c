/*
 * Tests nodes of `weir serve` with every kind of store: a single Redis, one with Sentinels, a
 * Cluster. With one limit and with two at once, in a pipeline and in a transaction,
 * exactly the limit passes.
 */
// test-timeout: 300
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/store/redis_world.h"
#include "support/engine/threads_run.h"
#include "support/fleet/weir_nodes.h"

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
    bool multi;
    uint64_t allowed;
    uint64_t denied;
};

/* Returns how often the reply has the text. */
static unsigned count(const char *reply, const char *text)
{
    unsigned n = 0;
    while ((reply = strstr(reply, text)) != NULL) {
        reply++;
        n++;
    }
    return n;
}

/* Counts the plain answers of a reply: one, or those of EXEC. */
static void note(struct crowd *all, const char *reply)
{
    unsigned answers = count(reply, "['");
    if (answers == count(reply, " '' 'limit']")) {
        (void)threads_add(&all->allowed, count(reply, "['allow'"));
        (void)threads_add(&all->denied, count(reply, "['deny'"));
    }
}

static void ask_many(struct crowd *all, struct server_client *c)
{
    threads_require(!all->multi || server_say(c, "MULTI"));
    for (unsigned k = 0; k < DEPTH; k++) {
        threads_require(server_say(c, all->words));
    }
    threads_require(!all->multi || server_say(c, "EXEC"));
    for (unsigned k = 0; k < DEPTH + (all->multi ? 2 : 0); k++) {
        note(all, server_reply(c));
    }
}

static void ask(unsigned index, void *arg)
{
    struct server_client c;
    weir_nodes_connect(&nodes, index % NODES, &c);
    for (unsigned i = 0; i < EACH; i += DEPTH) {
        ask_many(arg, &c);
    }
    server_disconnect(&c);
}

static void assert_passes(const char *words, bool multi, uint64_t allowed)
{
    struct crowd all = {.words = words, .multi = multi};
    threads_run(NODES * CONNECTIONS, ask, &all);
    assert_int_equal(all.allowed + all.denied, NODES * CONNECTIONS * EACH);
    assert_int_equal(all.allowed, allowed);
}

static void as_many_pass_as_should(void)
{
    weir_nodes_start(&nodes, NODES, rules, world.url);
    assert_passes("WEIR.ASK path /one user alice", false, 700);
    assert_passes("WEIR.ASK path /two tenant t user bob", false, 500);
    assert_passes("WEIR.CHECK one carol", true, 700);
    assert_passes("WEIR.ASK path /two tenant u user dave", true, 500);
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
