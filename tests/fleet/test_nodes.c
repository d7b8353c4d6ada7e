/*
 * Tests eight processes of `weir serve` with four connections to each, one key and one Redis:
 * together they admit exactly the limit, with a connection to Redis for each thread, and with one
 * that all threads of a process share.
 */
// test-timeout: 600
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/store/redis_world.h"
#include "support/engine/threads_run.h"
#include "support/fleet/weir_nodes.h"

#define NODES 8
#define CONNECTIONS 4
#define QUOTA 2000
#define EACH 80 /* of 32: 2560 */
#define DEPTH 16

/* Less than a unit refills in the seconds of a test. The deadline is long, so that no answer is
 * degraded on a busy machine. */
#define STORE(connections)                                                                         \
    "store: {url: 'redis://overridden', deadline: 10s, connections: " connections "}\n"
#define LIMITS                                                                                     \
    "limits:\n"                                                                                    \
    "  - {name: token, key: [user], rate: 2000/week, burst: 2000}\n"                               \
    "  - {name: leaky, key: [user], rate: 2000/week, algorithm: leaky_bucket, queue: 1999}\n"      \
    "  - {name: fixed, key: [user], rate: 2000/week, algorithm: fixed_window}\n"                   \
    "  - {name: sliding, key: [user], rate: 2000/week, algorithm: sliding_window}\n"               \
    "  - {name: log, key: [user], rate: 2000/week, algorithm: sliding_log}\n"                      \
    "  - {name: leased, key: [user], rate: 2000/week, algorithm: fixed_window, consistency: "      \
    "leased}\n"                                                                                    \
    "  - {name: alone, key: [user], rate: 2000/week, consistency: local}\n"

static struct redis_world world;
static struct weir_nodes nodes;

static int begin(void **state)
{
    redis_world_alone(&world, NULL);
    weir_nodes_start(&nodes, NODES, STORE("thread") LIMITS, world.url);
    return 0;
}

static int begin_sharing(void **state)
{
    redis_world_alone(&world, NULL);
    weir_nodes_start_sharing(&nodes, NODES, STORE("1") LIMITS, world.url, 4, 1);
    return 0;
}

static int end(void **state)
{
    weir_nodes_finish(&nodes);
    redis_world_stop(&world);
    return 0;
}

struct crowd {
    const char *limit;
    uint64_t allowed;
    uint64_t denied;
    uint64_t other; /* degraded, errors */
};

static void count(struct crowd *all, const char *reply)
{
    bool plain = strstr(reply, " '' 'limit']") != NULL;
    if (plain && strncmp(reply, "['allow'", 8) == 0) {
        (void)threads_add(&all->allowed, 1);
    } else if (plain && strncmp(reply, "['deny'", 7) == 0) {
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
    char words[64];
    (void)snprintf(words, sizeof words, "WEIR.CHECK %s alice", all->limit);
    weir_nodes_connect(&nodes, index % NODES, &c);
    for (unsigned i = 0; i < EACH; i += DEPTH) {
        for (unsigned k = 0; k < DEPTH; k++) {
            threads_require(server_say(&c, words));
        }
        for (unsigned k = 0; k < DEPTH; k++) {
            count(all, server_reply(&c));
        }
    }
    server_disconnect(&c);
}

static struct crowd rush(const char *limit)
{
    struct crowd all = {.limit = limit};
    threads_run(NODES * CONNECTIONS, ask, &all);
    assert_int_equal(all.other, 0);
    assert_int_equal(all.allowed + all.denied, NODES * CONNECTIONS * EACH);
    return all;
}

static void eight_nodes_let_through_exactly_the_limit(void **state)
{
    static const char *const limits[] = {"token", "leaky", "fixed", "sliding", "log"};
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        assert_int_equal(rush(limits[i]).allowed, QUOTA);
    }
}

static void with_leases_never_more_and_nearly_all(void **state)
{
    struct crowd all = rush("leased");
    assert_true(all.allowed <= QUOTA);
    assert_true(all.allowed >= QUOTA / 2);
}

static void without_a_store_each_node_counts_alone(void **state)
{
    assert_int_equal(rush("alone").denied, 0);
}

static void a_node_that_ends_while_asked_answers_what_it_has_read(void **state)
{
    struct server_client c;
    weir_nodes_connect(&nodes, 7, &c);
    for (unsigned i = 0; i < 200; i++) {
        threads_require(server_say(&c, "WEIR.PEEK token bob"));
    }
    assert_non_null(strstr(server_reply(&c), "'allow' 'token'"));
    weir_nodes_end(&nodes, 7, SIGTERM);
    unsigned n = 1;
    for (const char *reply = server_reply(&c); reply[0] == '['; reply = server_reply(&c)) {
        n++;
    }
    assert_int_equal(n, 200);
    server_disconnect(&c);
}

static void metrics_of_a_node_know_the_store_and_the_others(void **state)
{
    assert_true(weir_nodes_metric(&nodes, 0, "weir_store_up") == 1);
    for (int i = 0; i < 1000 && weir_nodes_metric(&nodes, 0, "weir_fleet_nodes") < 2; i++) {
        usleep(10000); /* it learns of the others with its next heartbeat */
    }
    assert_true(weir_nodes_metric(&nodes, 0, "weir_fleet_nodes") >= 2);
    assert_true(weir_nodes_metric(&nodes, 0, "weir_store_duration_seconds_count") > 0);
    assert_true(weir_nodes_metric(&nodes, 0,
                                  "weir_decisions_total{limit=\"token\",verdict=\"allow\"}") > 0);
    assert_true(
        weir_nodes_metric(&nodes, 0, "weir_degraded_total{limit=\"token\",policy=\"local\"}") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eight_nodes_let_through_exactly_the_limit),
        cmocka_unit_test(with_leases_never_more_and_nearly_all),
        cmocka_unit_test(without_a_store_each_node_counts_alone),
        cmocka_unit_test(metrics_of_a_node_know_the_store_and_the_others),
        cmocka_unit_test(a_node_that_ends_while_asked_answers_what_it_has_read),
    };
    int failed = cmocka_run_group_tests(tests, begin, end);
    return failed + cmocka_run_group_tests(tests, begin_sharing, end);
}
