/*
 * Tests `weir serve` without its store: paused, killed, restarted empty. Every request is answered,
 * in time, and says whether the store decided; the server neither grows nor hangs, and recovers by
 * itself.
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

#include "base/maths.h"
#include "support/store/redis_world.h"
#include "support/server/run_delay.h"
#include "support/engine/threads_run.h"
#include "support/fleet/weir_nodes.h"

#define NODES 2
#define CONNECTIONS 4
#define DEADLINE_MS 100
#define BATCH 250
#define PATIENCE_MS 60000

static const char rules[] =
    "store: {url: 'redis://overridden', deadline: 100ms, memory_high: off}\n"
    "limits:\n"
    "  - {name: open, key: [user], rate: 1M/day, on_store_failure: open}\n"
    "  - {name: shut, key: [user], rate: 1M/day, on_store_failure: closed}\n";

static struct redis_world world;
static struct weir_nodes nodes;

static int begin(void **state)
{
    redis_world_alone(&world, NULL);
    weir_nodes_start(&nodes, NODES, rules, world.url);
    return 0;
}

/* Restores the store, which a failed test may have left paused or dead. */
static int have_store(void **state)
{
    redis_node_resume(&world.node[0]);
    if (!redis_node_runs(&world.node[0])) {
        redis_node_restart_empty(&world.node[0]);
    }
    return 0;
}

static int end(void **state)
{
    weir_nodes_finish(&nodes);
    redis_world_stop(&world);
    return 0;
}

/* ---- requests ---- */

struct crowd {
    const char *limit;
    const char *verdict; /* the verdict that all requests must get */
    uint64_t rounds;
    uint64_t wrong;      /* number of requests with another answer */
    uint64_t slowest_ms; /* without the time spent waiting for a processor */
};

static void take_replies(struct crowd *all, struct server_client *c)
{
    for (unsigned k = 0; k < BATCH; k++) {
        const char *reply = server_reply(c);
        if (strncmp(reply, all->verdict, strlen(all->verdict)) != 0 ||
            strstr(reply, "'degraded'") == NULL) {
            (void)threads_add(&all->wrong, 1);
        }
    }
}

/* Returns how long the calling thread and those of the node have waited for a processor. */
static uint64_t starved_ms(unsigned node)
{
    return (run_delay_ns() + run_delay_of_process_ns(nodes.pid[node])) / WEIR_MILLISECOND;
}

static void ask(unsigned index, void *arg)
{
    struct crowd *all = arg;
    struct server_client c;
    char words[64];
    (void)snprintf(words, sizeof words, "WEIR.CHECK %s alice", all->limit);
    weir_nodes_connect(&nodes, index % NODES, &c);
    for (uint64_t i = 0; i < all->rounds; i++) {
        uint64_t starved = starved_ms(index % NODES);
        uint64_t began = redis_now_ms();
        for (unsigned k = 0; k < BATCH; k++) {
            threads_require(server_say(&c, words));
        }
        take_replies(all, &c);
        uint64_t took = redis_now_ms() - began;
        took = sub_floor0(took, sub_floor0(starved_ms(index % NODES), starved));
        if (took > threads_get(&all->slowest_ms)) {
            threads_set(&all->slowest_ms, took);
        }
    }
    server_disconnect(&c);
}

/* Checks that every request gets this verdict, degraded, within ten deadlines. */
static void assert_degraded(const char *limit, const char *verdict, uint64_t rounds)
{
    struct crowd all = {.limit = limit, .verdict = verdict, .rounds = rounds};
    threads_run(NODES * CONNECTIONS, ask, &all);
    assert_int_equal(all.wrong, 0);
    assert_in_range(all.slowest_ms, 0,
                    10 * DEADLINE_MS * (THREADS_ASAN || THREADS_TSAN ? 10 : 1) - 1);
}

/* Asks until the store answers again. */
static void await_store(unsigned node)
{
    struct server_client c;
    uint64_t began = redis_now_ms();
    weir_nodes_connect(&nodes, node, &c);
    while (strstr(server_ask(&c, "WEIR.CHECK shut bob"), "'allow' 'shut'") == NULL ||
           strstr(c.reply, "degraded") != NULL) {
        threads_require(redis_now_ms() - began < PATIENCE_MS);
        redis_look_again_soon();
    }
    print_message("the store is found again after %llu ms\n",
                  (unsigned long long)(redis_now_ms() - began));
    server_disconnect(&c);
}

/* ---- tests ---- */

static void a_store_that_is_held_leaves_nobody_without_an_answer(void **state)
{
    await_store(0);
    redis_node_pause(&world.node[0]);
    assert_degraded("open", "['allow' 'open'", 4);
    assert_degraded("shut", "['deny' 'shut'", 4);
    redis_node_resume(&world.node[0]);
    await_store(0);
    await_store(1);
}

static void a_store_that_is_killed_comes_back_empty(void **state)
{
    redis_node_kill(&world.node[0]);
    assert_degraded("shut", "['deny' 'shut'", 2);
    redis_node_restart_empty(&world.node[0]);
    await_store(0);
    await_store(1);
}

static void who_decides_without_the_store_does_not_grow(void **state)
{
    redis_node_kill(&world.node[0]);
    assert_degraded("open", "['allow' 'open'", 4);
    double before = weir_nodes_metric(&nodes, 0, "process_resident_memory_bytes");
    assert_degraded("open", "['allow' 'open'", 60);
    double after = weir_nodes_metric(&nodes, 0, "process_resident_memory_bytes");
    assert_true(THREADS_ASAN || THREADS_TSAN || after - before < 4e6);
    assert_true(weir_nodes_metric(&nodes, 0, "weir_store_up") == 0);
    redis_node_restart_empty(&world.node[0]);
    await_store(0);
}

static unsigned count_in_log(unsigned node, const char *text)
{
    char *log = weir_nodes_log(&nodes, node);
    unsigned n = 0;
    for (const char *at = log; (at = strstr(at, text)) != NULL; at++) {
        n++;
    }
    free(log);
    return n;
}

static void await_log(const char *text, unsigned n)
{
    uint64_t began = redis_now_ms();
    while (count_in_log(0, text) < n) {
        threads_require(redis_now_ms() - began < 30000);
        redis_look_again_soon();
    }
}

/* Waits until the last log line about the store says that it is there. */
static void await_calm(void)
{
    bool calm = false;
    uint64_t began = redis_now_ms();
    while (!calm) {
        threads_require(redis_now_ms() - began < PATIENCE_MS);
        char *log = weir_nodes_log(&nodes, 0);
        const char *last = NULL;
        for (const char *at = log; (at = strstr(at, "the store is ")) != NULL; at++) {
            last = at;
        }
        calm = last != NULL && strncmp(last, "the store is there", 18) == 0;
        free(log);
        redis_look_again_soon();
    }
}

static void the_log_tells_once_that_the_store_has_gone_or_come_back(void **state)
{
    await_calm();
    unsigned away = count_in_log(0, "the store is away");
    unsigned there = count_in_log(0, "the store is there");
    redis_node_kill(&world.node[0]);
    await_log("the store is away", away + 1);
    assert_degraded("shut", "['deny' 'shut'", 8);
    redis_node_restart_empty(&world.node[0]);
    await_store(0);
    await_log("the store is there", there + 1);
    assert_int_equal(count_in_log(0, "the store is away"), away + 1);
    assert_int_equal(count_in_log(0, "the store is there"), there + 1);
}

/* The store answers PING. Its memory is not watched (memory_high), so that it refuses calls. */
static void a_store_that_refuses_every_call_is_away_and_stays_so(void **state)
{
    await_calm();
    unsigned away = count_in_log(0, "the store is away");
    unsigned there = count_in_log(0, "the store is there");
    assert_string_equal(redis_node_run(&world.node[0], "CONFIG SET maxmemory 1"), "OK");
    uint64_t refused = redis_now_ms();
    while (count_in_log(0, "the store is away") == away) {
        threads_require(redis_now_ms() - refused < PATIENCE_MS);
        assert_degraded("shut", "['deny' 'shut'", 1);
        redis_look_again_soon();
    }
    for (uint64_t began = redis_now_ms(); redis_now_ms() - began < 2500;) { /* two checks */
        assert_int_equal(weir_nodes_metric(&nodes, 0, "weir_store_up"), 0);
        redis_look_again_soon();
    }
    assert_int_equal(count_in_log(0, "the store is away"), away + 1);
    assert_int_equal(count_in_log(0, "the store is there"), there);
    assert_string_equal(redis_node_run(&world.node[0], "CONFIG SET maxmemory 0"), "OK");
    await_log("the store is there", there + 1);
}

static void a_node_ends_without_its_store(void **state)
{
    struct server_client c;
    redis_node_pause(&world.node[0]);
    weir_nodes_connect(&nodes, 1, &c);
    threads_require(server_say(&c, "WEIR.CHECK open alice"));
    uint64_t began = redis_now_ms();
    weir_nodes_end(&nodes, 1, SIGTERM);
    assert_true(redis_now_ms() - began < 4000);
    assert_non_null(strstr(server_reply(&c), "'allow' 'open'"));
    assert_string_equal(server_reply(&c), "end");
    server_disconnect(&c);
    redis_node_resume(&world.node[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_store_that_is_held_leaves_nobody_without_an_answer, have_store),
        cmocka_unit_test_setup(a_store_that_is_killed_comes_back_empty, have_store),
        cmocka_unit_test_setup(who_decides_without_the_store_does_not_grow, have_store),
        cmocka_unit_test_setup(the_log_tells_once_that_the_store_has_gone_or_come_back, have_store),
        cmocka_unit_test_setup(a_store_that_refuses_every_call_is_away_and_stays_so, have_store),
        cmocka_unit_test_setup(a_node_ends_without_its_store, have_store),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
