/*
 * Tests `store.connections`: threads of `weir serve` that share a connection to the store, which
 * breaks, comes back, or does not answer while the node ends.
 */
// test-timeout: 300
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/engine/threads_run.h"
#include "support/fleet/weir_nodes.h"
#include "support/store/redis_world.h"

#define THREADS 4
#define CLIENTS 12
#define EACH 100

#define STORE(settings) "store: {url: 'redis://overridden', " settings "}\n"
#define LIMITS                                                                                     \
    "limits:\n"                                                                                    \
    "  - {name: one, when: {path: /one}, key: [user], rate: 500/week}\n"                           \
    "  - {name: leased, when: {path: /leased}, key: [user], rate: 50k/week, consistency: "         \
    "leased}\n"                                                                                    \
    "  - {name: synced, when: {path: /synced}, key: [user], rate: 500/week, consistency: "         \
    "synced}\n"                                                                                    \
    "  - {name: wide, when: {path: /both}, key: [user], rate: 600/week}\n"                         \
    "  - {name: narrow, when: {path: /both}, key: [user], rate: 500/week, consistency: local}\n"

static struct redis_world world;
static struct weir_nodes nodes;

static int stop(void **state)
{
    weir_nodes_finish(&nodes);
    redis_world_stop(&world);
    return 0;
}

static void start(const char *rules, unsigned links)
{
    redis_world_alone(&world, NULL);
    weir_nodes_start_sharing(&nodes, 1, rules, world.url, THREADS, links);
}

/* Returns how many connections of nodes the primary has. */
static unsigned links_of(struct redis_node *primary)
{
    unsigned n = 0;
    const char *line = redis_node_run(primary, "CLIENT LIST TYPE normal");
    threads_require(line != NULL);
    for (; (line = strstr(line, "id=")) != NULL; line++) {
        const char *cmd = strstr(line, " cmd=");
        n += cmd != NULL && strncmp(cmd, " cmd=client", 11) != 0;
    }
    return n;
}

static void await_links(struct redis_node *primary, unsigned wanted)
{
    uint64_t end = redis_now_ms() + 20000;
    while (links_of(primary) != wanted) {
        assert_true(redis_now_ms() < end);
        redis_look_again_soon();
    }
}

/* ---- asking ---- */

struct crowd {
    const char *words;
    uint64_t allowed, denied, degraded, other;
};

static void count(struct crowd *all, const char *reply)
{
    if (strstr(reply, "degraded") != NULL) {
        (void)threads_add(&all->degraded, 1);
    } else if (strncmp(reply, "['allow'", 8) == 0) {
        (void)threads_add(&all->allowed, 1);
    } else if (strncmp(reply, "['deny'", 7) == 0) {
        (void)threads_add(&all->denied, 1);
    } else {
        (void)fprintf(stderr, "%s\n", reply);
        (void)threads_add(&all->other, 1);
    }
}

static void ask(unsigned index, void *arg)
{
    struct crowd *all = arg;
    struct server_client c;
    weir_nodes_connect(&nodes, 0, &c);
    for (unsigned i = 0; i < EACH; i += 10) {
        for (unsigned k = 0; k < 10; k++) {
            threads_require(server_say(&c, all->words));
        }
        for (unsigned k = 0; k < 10; k++) {
            count(all, server_reply(&c));
        }
    }
    server_disconnect(&c);
}

static struct crowd rush(const char *words)
{
    struct crowd all = {.words = words};
    threads_run(CLIENTS, ask, &all);
    assert_int_equal(all.other, 0);
    assert_int_equal(all.allowed + all.denied + all.degraded, CLIENTS * EACH);
    return all;
}

static void assert_exact(const char *words)
{
    struct crowd all = rush(words);
    assert_int_equal(all.degraded, 0);
    assert_int_equal(all.allowed, 500);
}

/* ---- totals ---- */

static void all_modes_keep_their_limits(void)
{
    assert_exact("WEIR.CHECK one alice");
    assert_exact("WEIR.ASK path /one user bob");
    assert_exact("WEIR.ASK path /both user carol"); /* the local one binds: its units are exact */
    assert_exact("WEIR.CHECK synced alice");
    struct crowd leased = rush("WEIR.CHECK leased alice");
    assert_int_equal(leased.allowed, CLIENTS * EACH); /* leases reach every thread */
    assert_true(weir_nodes_metric(&nodes, 0, "weir_store_calls_total") < 6 * CLIENTS * EACH);
}

static void threads_share_one_connection(void **state)
{
    start(STORE("deadline: 10s, connections: 1") LIMITS, 1);
    all_modes_keep_their_limits();
    assert_int_equal(links_of(&world.node[0]), 1);
    assert_true(weir_nodes_metric(&nodes, 0, "weir_store_connections") == 1);
}

static void or_two(void **state)
{
    start(STORE("deadline: 10s, connections: 2") LIMITS, 2);
    all_modes_keep_their_limits();
    assert_int_equal(links_of(&world.node[0]), 2);
}

static void more_than_there_are_threads_is_one_for_each(void **state)
{
    start(STORE("deadline: 10s, connections: 64") LIMITS, THREADS + 1);
    assert_exact("WEIR.CHECK one alice");
    assert_int_equal(links_of(&world.node[0]), THREADS + 1);
}

static void each_primary_of_a_cluster_has_one(void **state)
{
    redis_world_cluster(&world, NULL);
    weir_nodes_start_sharing(&nodes, 1, STORE("deadline: 10s, connections: 1") LIMITS, world.url,
                             THREADS, 1);
    assert_exact("WEIR.CHECK one alice");
    assert_exact("WEIR.CHECK one bob");
    assert_exact("WEIR.CHECK one carol");
    for (int i = 0; i < REDIS_PRIMARIES; i++) {
        assert_true(links_of(&world.node[i]) <= 1);
    }
}

/* ---- faults ---- */

static void a_broken_connection_is_made_again_by_one(void **state)
{
    start(STORE("deadline: 100ms, connections: 1") LIMITS, 1);
    struct crowd before = rush("WEIR.CHECK one alice");
    for (int i = 0; i < 5; i++) {
        assert_non_null(redis_node_run(&world.node[0], "CLIENT KILL TYPE normal SKIPME yes"));
        await_links(&world.node[0], 1);
    }
    struct crowd after = rush("WEIR.CHECK one alice");
    assert_true(before.allowed + after.allowed <= 500);
    assert_int_equal(rush("WEIR.CHECK one bob").other, 0);
    redis_node_restart_empty(&world.node[0]);
    await_links(&world.node[0], 1);
    uint64_t end = redis_now_ms() + 20000;
    while (rush("WEIR.PEEK one dave").degraded > 0) {
        assert_true(redis_now_ms() < end);
    }
    assert_exact("WEIR.CHECK one dave");
}

static void without_the_store_all_threads_answer_by_their_deadline(void **state)
{
    start(STORE("deadline: 1s, connections: 1, fleet_size: 1") LIMITS, 1);
    assert_exact("WEIR.CHECK one alice");
    redis_node_pause(&world.node[0]);
    struct crowd all = rush("WEIR.CHECK one bob");
    assert_int_equal(all.degraded, CLIENTS * EACH);
    redis_node_resume(&world.node[0]);
    struct crowd again = {.degraded = 1};
    for (uint64_t end = redis_now_ms() + 20000; again.degraded > 0;) {
        assert_true(redis_now_ms() < end);
        again = rush("WEIR.PEEK one carol");
    }
}

/* ---- the end ---- */

/* Half of the clients wait for their answers, which are degraded; the others have gone. */
static void a_node_that_ends_answers_what_the_store_has_not(void **state)
{
    struct server_client c[CLIENTS];
    start(STORE("deadline: 2s, connections: 1") LIMITS, 1);
    redis_node_pause(&world.node[0]);
    for (unsigned i = 0; i < CLIENTS; i++) {
        weir_nodes_connect(&nodes, 0, &c[i]);
        for (unsigned k = 0; k < 50; k++) {
            threads_require(server_say(&c[i], "WEIR.CHECK one alice"));
        }
        threads_require(server_say(&c[i], "WEIR.ASK path /both user alice"));
    }
    while (weir_nodes_metric(&nodes, 0, "weir_store_calls_total") < CLIENTS * 50) {
        redis_look_again_soon();
    }
    for (unsigned i = 0; i < CLIENTS; i += 2) {
        server_disconnect(&c[i]);
    }
    weir_nodes_end(&nodes, 0, SIGTERM);
    for (unsigned i = 1; i < CLIENTS; i += 2) {
        for (unsigned k = 0; k < 51; k++) {
            assert_non_null(strstr(server_reply(&c[i]), "degraded"));
        }
        server_disconnect(&c[i]);
    }
    redis_node_resume(&world.node[0]);
}

static void units_that_were_leased_come_back_at_the_end(void **state)
{
    struct server_client c;
    start(STORE("deadline: 1s, connections: 2") LIMITS, 2);
    weir_nodes_connect(&nodes, 0, &c);
    for (int i = 0; i < 20; i++) {
        assert_memory_equal(server_ask(&c, "WEIR.CHECK leased alice"), "['allow'", 8);
    }
    server_disconnect(&c);
    weir_nodes_end(&nodes, 0, SIGTERM);
    weir_nodes_restart(&nodes, 0, world.url);
    weir_nodes_connect(&nodes, 0, &c);
    assert_memory_equal(server_ask(&c, "WEIR.PEEK leased alice"), "['allow' 'leased' 50000 49980",
                        29);
    server_disconnect(&c);
}

/* ---- the check ---- */

static void a_node_warns_if_the_store_takes_fewer_connections(void **state)
{
    static const char *const extra[] = {"--maxclients", "30", NULL};
    redis_world_alone(&world, &(struct redis_world_options){.extra = extra});
    weir_nodes_start_sharing(&nodes, 1,
                             STORE("deadline: 1s, connections: 2, fleet_size: 16") LIMITS,
                             world.url, THREADS, 2);
    uint64_t end = redis_now_ms() + 20000;
    for (bool told = false; !told;) {
        char *log = weir_nodes_log(&nodes, 0);
        told = strstr(log, "takes fewer connections than the fleet makes") != NULL &&
               strstr(log, "maxclients=30 nodes=16 connections_of_each=2") != NULL;
        free(log);
        assert_true(redis_now_ms() < end);
        redis_look_again_soon();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(threads_share_one_connection, stop),
        cmocka_unit_test_teardown(or_two, stop),
        cmocka_unit_test_teardown(more_than_there_are_threads_is_one_for_each, stop),
        cmocka_unit_test_teardown(each_primary_of_a_cluster_has_one, stop),
        cmocka_unit_test_teardown(a_broken_connection_is_made_again_by_one, stop),
        cmocka_unit_test_teardown(without_the_store_all_threads_answer_by_their_deadline, stop),
        cmocka_unit_test_teardown(a_node_that_ends_answers_what_the_store_has_not, stop),
        cmocka_unit_test_teardown(units_that_were_leased_come_back_at_the_end, stop),
        cmocka_unit_test_teardown(a_node_warns_if_the_store_takes_fewer_connections, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
