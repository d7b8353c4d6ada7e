/*
 * Tests that `weir serve` can reload its rules, by SIGHUP and by `weir ctl reload`, while questions
 * to the store are pending: one limit stays, one changes, one comes and goes. Every question is
 * answered once and in order, and the limit that stays counts on without interruption.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/store/fault_proxy.h"
#include "support/store/redis_world.h"
#include "support/engine/threads_run.h"
#include "support/fleet/weir_nodes.h"

#define NODES 2
#define CONNECTIONS 4
#define BATCH 30 /* a third of each limit */
#define RELOADS 20
#define QUOTA 300
#define ROUNDS_LEAST 12 /* CONNECTIONS * ROUNDS_LEAST * BATCH / 3 > QUOTA */

#define RULES(changed, more)                                                                       \
    "store: {url: 'redis://overridden', deadline: 10s}\n"                                          \
    "limits:\n"                                                                                    \
    "  - {name: kept, key: [user], rate: 300/day, deny_cache: 0s, on_store_failure: closed}\n"     \
    "  - {name: changed, key: [user], rate: " changed ", on_store_failure: closed}\n" more

static const char *const rules[] = {
    RULES("1M/day", "  - {name: gone, key: [user], rate: 1M/day, on_store_failure: closed}\n"),
    RULES("2M/day", ""),
};

static struct redis_world world;
static struct fault_proxy *proxy;
static struct weir_nodes nodes;

static int begin(void **state)
{
    char url[64];
    redis_world_alone(&world, NULL);
    proxy = fault_proxy_start(world.node[0].port);
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%u", fault_proxy_port(proxy));
    weir_nodes_start(&nodes, NODES, rules[0], url);
    fault_proxy_set(proxy, &(struct faults){.delay_us = 10000, .jitter_us = 5000});
    return 0;
}

static int end(void **state)
{
    weir_nodes_finish(&nodes);
    fault_proxy_stop(proxy);
    redis_world_stop(&world);
    return 0;
}

/* ---- questions ---- */

static const char *const limits[] = {"kept", "changed", "gone"};

struct crowd {
    uint64_t done;     /* reloading has ended */
    uint64_t allowed;  /* admitted by `kept` */
    uint64_t asked;    /* questions about `kept` */
    uint64_t no_limit; /* answers while `gone` did not exist */
};

static void take_reply(struct crowd *all, const char *limit, const char *reply)
{
    char allow[64];
    char deny[64];
    bool gone = strcmp(limit, "gone") == 0;
    bool kept = strcmp(limit, "kept") == 0;
    (void)snprintf(allow, sizeof allow, "['allow' '%s' ", limit);
    (void)snprintf(deny, sizeof deny, "['deny' '%s' ", limit);
    bool allowed = strncmp(reply, allow, strlen(allow)) == 0;
    bool denied = strncmp(reply, deny, strlen(deny)) == 0;
    bool missing = reply[0] == '-';
    if (strstr(reply, "degraded") != NULL || !(allowed || (denied && kept) || (missing && gone))) {
        threads_fail(__FILE__, __LINE__, reply);
    }
    (void)threads_add(&all->allowed, kept && allowed);
    (void)threads_add(&all->asked, kept);
    (void)threads_add(&all->no_limit, missing);
}

static void ask_on(unsigned node, struct crowd *all)
{
    struct server_client c;
    char words[64];
    weir_nodes_connect(&nodes, node, &c);
    for (unsigned i = 0; i < ROUNDS_LEAST || threads_get(&all->done) == 0; i++) {
        for (unsigned k = 0; k < BATCH; k++) {
            (void)snprintf(words, sizeof words, "WEIR.CHECK %s alice", limits[k % 3]);
            threads_require(server_say(&c, words));
        }
        for (unsigned k = 0; k < BATCH; k++) {
            take_reply(all, limits[k % 3], server_reply(&c));
        }
    }
    threads_require(strcmp(server_ask(&c, "PING"), "+PONG") == 0); /* no reply is left over */
    server_disconnect(&c);
}

/* ---- reloads ---- */

#define RELOADED "weir_config_reloads_total{result=\"success\"}"

static void await_metric(unsigned node, const char *series, double least)
{
    uint64_t began = redis_now_ms();
    while (weir_nodes_metric(&nodes, node, series) < least) {
        threads_require(redis_now_ms() - began < 60000);
        redis_look_again_soon();
    }
}

/* Reloads only when questions have waited for the store since the last reload. */
static void reload_all(struct crowd *all)
{
    char command[400];
    (void)snprintf(command, sizeof command,
                   "XDG_RUNTIME_DIR=\"%s\" \"%s/weir\" ctl --admin \"unix:%s/admin.1\" reload "
                   ">/dev/null",
                   nodes.folder, WEIR_BUILD_DIR, nodes.folder);
    for (unsigned i = 1; i <= RELOADS; i++) {
        for (unsigned node = 0; node < NODES; node++) {
            await_metric(node, "weir_pending_total",
                         weir_nodes_metric(&nodes, node, "weir_pending_total") + 1);
        }
        weir_nodes_write_rules(&nodes, rules[i % 2]);
        threads_require(kill(nodes.pid[0], SIGHUP) == 0);
        threads_require(system(command) == 0); /* NOLINT: a command of our own */
        await_metric(0, RELOADED, i);
        await_metric(1, RELOADED, i);
    }
    threads_set(&all->done, 1);
}

static void take_part(unsigned index, void *arg)
{
    if (index == 0) {
        reload_all(arg);
    } else {
        ask_on(index % NODES, arg);
    }
}

static void a_reload_while_questions_are_out_loses_none_and_doubles_none(void **state)
{
    struct crowd all = {.done = 0};
    threads_run(1 + CONNECTIONS, take_part, &all);
    print_message("%llu questions of each limit, %llu of them without it\n",
                  (unsigned long long)all.asked, (unsigned long long)all.no_limit);
    assert_true(all.asked > QUOTA);
    assert_int_equal(all.allowed, QUOTA);
    assert_true(all.no_limit > 0 && all.no_limit < all.asked);
    for (unsigned i = 0; i < NODES; i++) {
        assert_true(weir_nodes_metric(&nodes, i, "weir_config_reloads_total{result=\"failure\"}") ==
                    0);
        assert_true(weir_nodes_metric(&nodes, i, "weir_store_ended_total{result=\"unknown\"}") ==
                    0);
        assert_true(weir_nodes_metric(&nodes, i, "weir_pending_abandoned_total") == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reload_while_questions_are_out_loses_none_and_doubles_none),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
