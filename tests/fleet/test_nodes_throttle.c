/*
 * Nodes of `weir serve` share what CL.THROTTLE counts: with every form of the call exactly the
 * burst passes, whatever node is asked; DEL and blocks reach all nodes; on_store_failure decides
 * while the store is away; `consistency: local` shares nothing.
 */
// test-timeout: 300
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/engine/threads_run.h"
#include "support/fleet/weir_nodes.h"
#include "support/store/redis_world.h"

#define NODES 2
#define CONNECTIONS 3
#define EACH 96 /* of 6: 576 */
#define DEPTH 16

#define STORE "store: {url: 'redis://overridden', deadline: 10s, fleet_size: 2}\n"
#define HASTY "store: {url: 'redis://overridden', deadline: 100ms, fleet_size: 2}\n"
#define LIMITS "limits: [{name: one, key: [user], rate: 700/week}]\n"

#define SECRET "a-secret-of-operators"

static struct redis_world world;
static struct weir_nodes nodes;
static struct server_client clients[NODES];
static char secrets[] = "/tmp/weir-throttle-XXXXXX";

static void start(const char *sections)
{
    char rules[512];
    (void)memcpy(strrchr(secrets, '-') + 1, "XXXXXX", 6);
    int fd = mkstemp(secrets);
    threads_require(fd >= 0 && write(fd, SECRET, strlen(SECRET)) == (ssize_t)strlen(SECRET));
    (void)close(fd);
    (void)snprintf(rules, sizeof rules, "server: {admin_secrets: %s}\n%s" LIMITS, secrets,
                   sections);
    weir_nodes_start(&nodes, NODES, rules, world.url);
    for (unsigned i = 0; i < NODES; i++) {
        weir_nodes_connect(&nodes, i, &clients[i]);
        assert_string_equal(server_ask(&clients[i], "AUTH " SECRET), "+OK");
    }
}

static void stop(void)
{
    for (unsigned i = 0; i < NODES; i++) {
        server_disconnect(&clients[i]);
    }
    weir_nodes_finish(&nodes);
    redis_world_stop(&world);
    (void)unlink(secrets);
}

/* ---- totals ---- */

struct crowd {
    const char *words;
    bool multi;
    uint64_t allowed;
    uint64_t denied;
};

static unsigned count(const char *reply, const char *text)
{
    unsigned n = 0;
    while ((reply = strstr(reply, text)) != NULL) {
        reply++;
        n++;
    }
    return n;
}

static void ask_many(struct crowd *all, struct server_client *c)
{
    threads_require(!all->multi || server_say(c, "MULTI"));
    for (unsigned k = 0; k < DEPTH; k++) {
        threads_require(server_say(c, all->words));
    }
    threads_require(!all->multi || server_say(c, "EXEC"));
    for (unsigned k = 0; k < DEPTH + (all->multi ? 2 : 0); k++) {
        const char *reply = server_reply(c);
        (void)threads_add(&all->allowed, count(reply, "[0 300 "));
        (void)threads_add(&all->denied, count(reply, "[1 300 "));
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

static void assert_passes(const char *words, bool multi)
{
    struct crowd all = {.words = words, .multi = multi};
    threads_run(NODES * CONNECTIONS, ask, &all);
    assert_int_equal(all.allowed + all.denied, NODES * CONNECTIONS * EACH);
    assert_int_equal(all.allowed, 300);
}

static void every_form_admits_the_burst_once(void)
{
    start(STORE);
    assert_passes("CL.THROTTLE alice 299 1 604800", false);
    assert_passes("CL.THROTTLE bob 299 1 604800", true);
    assert_passes("EVAL return\tredis.call('CL.THROTTLE',KEYS[1],299,1,604800) 1 carol", false);
    assert_passes("EVAL return\tredis.call('CL.THROTTLE',KEYS[1],299,1,604800) 1 dave", true);
    double answers =
        weir_nodes_metric(&nodes, 0, "weir_decisions_total{limit=\"adhoc\",verdict=\"allow\"}") +
        weir_nodes_metric(&nodes, 1, "weir_decisions_total{limit=\"adhoc\",verdict=\"allow\"}");
    assert_int_equal((int)answers, 4 * 300);
    stop();
}

static void at_a_redis_alone(void **state)
{
    redis_world_alone(&world, NULL);
    every_form_admits_the_burst_once();
}

static void at_a_cluster(void **state)
{
    redis_world_cluster(&world, NULL);
    every_form_admits_the_burst_once();
}

/* ---- other commands ---- */

static void what_one_node_changes_holds_on_the_other(void **state)
{
    redis_world_alone(&world, NULL);
    start(STORE);
    assert_string_equal(server_ask(&clients[0], "CL.THROTTLE k 1 1 604800"), "[0 2 1 -1 604800]");
    assert_string_equal(server_ask(&clients[1], "CL.THROTTLE k 1 1 604800"), "[0 2 0 -1 1209600]");
    assert_memory_equal(server_ask(&clients[0], "CL.THROTTLE k 1 1 604800"), "[1 2 0 604800", 13);
    assert_memory_equal(server_ask(&clients[1], "CL.THROTTLE k 1 1 604800 0"), "[0 2 0 -1", 9);
    assert_string_equal(server_ask(&clients[1], "CL.THROTTLE k 1 1 604800 3"),
                        "[1 2 0 -1 1209600]"); /* never */
    /* Other numbers for the same key: its state is a time, which stays. */
    assert_memory_equal(server_ask(&clients[1], "CL.THROTTLE k 9 1 604800"), "[0 10 7 -1", 10);

    assert_string_equal(server_ask(&clients[1], "DEL k"), "1");
    assert_string_equal(server_ask(&clients[0], "CL.THROTTLE k 1 1 604800"), "[0 2 1 -1 604800]");
    assert_memory_equal(server_ask(&clients[0], "CL.THROTTLE l 1 1 604800"), "[0 2 1", 6);
    assert_string_equal(server_ask(&clients[0], "DEL k absent l"), "2");
    assert_string_equal(server_ask(&clients[0], "MULTI"), "+OK");
    assert_string_equal(server_ask(&clients[0], "CL.THROTTLE k 1 1 604800"), "+QUEUED");
    assert_string_equal(server_ask(&clients[0], "DEL k l"), "+QUEUED");
    assert_string_equal(server_ask(&clients[0], "CL.THROTTLE k 1 1 604800"), "+QUEUED");
    assert_string_equal(server_ask(&clients[0], "EXEC"), "[[0 2 1 -1 604800] 1 [0 2 1 -1 604800]]");

    assert_memory_equal(server_ask(&clients[0], "WEIR.BLOCK adhoc k FOR 600000"), "['deny'", 7);
    assert_memory_equal(server_ask(&clients[1], "CL.THROTTLE k 1 1 604800"), "[1 2 0 600 ", 11);
    assert_memory_equal(server_ask(&clients[1], "WEIR.UNBLOCK adhoc k"), "['allow'", 8);
    assert_memory_equal(server_ask(&clients[0], "CL.THROTTLE k 1 1 604800"), "[0 2 0", 6);
    stop();
}

/* Refusals need no store. */
static void wrong_calls_are_refused_as_without_a_store(void **state)
{
    redis_world_alone(&world, NULL);
    start(STORE);
    assert_memory_equal(server_ask(&clients[0], "CL.THROTTLE k 1 0 60"),
                        "-Cell error: Store error: Zero rates", 36);
    assert_memory_equal(server_ask(&clients[0], "CL.THROTTLE k 1000 1 604800000"),
                        "-Cell error: Store error: the burst takes longer than 36 years", 62);
    assert_memory_equal(server_ask(&clients[0], "CL.THROTTLE k x 1 60"), "-Cell error", 11);
    assert_string_equal(server_ask(&clients[0], "MULTI"), "+OK");
    assert_memory_equal(server_ask(&clients[0], "CL.THROTTLE k 1 0 60"), "-Cell error", 11);
    assert_memory_equal(server_ask(&clients[0], "EXEC"), "-EXECABORT", 10);
    stop();
}

static void local_shares_nothing(void **state)
{
    redis_world_alone(&world, NULL);
    start(STORE "adhoc: {consistency: local}\n");
    for (unsigned i = 0; i < NODES; i++) {
        assert_memory_equal(server_ask(&clients[i], "CL.THROTTLE k 0 1 604800"), "[0 1 0", 6);
        assert_memory_equal(server_ask(&clients[i], "CL.THROTTLE k 0 1 604800"), "[1 1 0", 6);
    }
    stop();
}

/* ---- without the store ---- */

static void await_outage(void)
{
    redis_node_kill(&world.node[0]);
    for (unsigned i = 0; i < NODES; i++) {
        while (weir_nodes_metric(&nodes, i, "weir_store_up") != 0) {
            threads_pause();
        }
    }
}

/* Returns how many of 300 calls pass. */
static unsigned passes(struct server_client *c, const char *words)
{
    unsigned n = 0;
    for (unsigned i = 0; i < 300; i++) {
        n += count(server_ask(c, words), "[0 ");
    }
    return n;
}

static void without_the_store_each_node_has_its_part(void **state)
{
    redis_world_alone(&world, NULL);
    start(HASTY);
    assert_memory_equal(server_ask(&clients[0], "CL.THROTTLE known 299 1 604800 220"), "[0 300 80",
                        9);
    await_outage();
    assert_int_equal(passes(&clients[0], "CL.THROTTLE stranger 299 1 604800"), 150);
    assert_int_equal(passes(&clients[1], "CL.THROTTLE stranger 299 1 604800"), 150);
    assert_int_equal(passes(&clients[0], "CL.THROTTLE known 299 1 604800"), 80);
    assert_true(weir_nodes_metric(&nodes, 0,
                                  "weir_degraded_total{limit=\"adhoc\",policy=\"local\"}") >= 600);
    assert_memory_equal(server_ask(&clients[0], "DEL known"), "-UNAVAILABLE", 12);
    stop();
}

static void or_it_is_closed(void **state)
{
    redis_world_alone(&world, NULL);
    start(HASTY "adhoc: {on_store_failure: closed}\n");
    await_outage();
    assert_string_equal(server_ask(&clients[0], "CL.THROTTLE k 299 1 604800"), "[1 300 0 1 1]");
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(at_a_redis_alone),
        cmocka_unit_test(at_a_cluster),
        cmocka_unit_test(what_one_node_changes_holds_on_the_other),
        cmocka_unit_test(wrong_calls_are_refused_as_without_a_store),
        cmocka_unit_test(local_shares_nothing),
        cmocka_unit_test(without_the_store_each_node_has_its_part),
        cmocka_unit_test(or_it_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
