/*
 * Nodes of `weir serve` with one store: the denials that one node counts ban a key on all of them,
 * whatever the consistency of the limit, and one node lifts the ban for all.
 */
// test-timeout: 120
#include <setjmp.h>
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

#define SECRET "a-secret-of-operators"

static const char form[] =
    "server: {admin_secrets: %s}\n"
    "store: {url: 'redis://overridden', deadline: 10s}\n"
    "limits:\n"
    "  - {name: exact, key: [user], rate: 1/day, consistency: exact,\n"
    "     ban: {denials: 20, within: 365day, for: 1h}}\n"
    "  - {name: leased, key: [user], rate: 1k/day, consistency: leased,\n"
    "     ban: {denials: 20, within: 365day, for: 2day}}\n"
    "  - {name: synced, key: [user], rate: 1/day, consistency: synced, sync: 10ms,\n"
    "     ban: {denials: 20, within: 365day, for: 2day}}\n";

static struct redis_world world;
static struct weir_nodes nodes;

static char secrets[] = "/tmp/weir-bans-XXXXXX";

static int start(void **state)
{
    char rules[sizeof form + sizeof secrets];
    (void)memcpy(strchr(secrets, '-') + 6, "XXXXXX", 6);
    int fd = mkstemp(secrets);
    threads_require(fd >= 0 && write(fd, SECRET, strlen(SECRET)) == (ssize_t)strlen(SECRET));
    (void)close(fd);
    (void)snprintf(rules, sizeof rules, form, secrets);
    redis_world_alone(&world, NULL);
    weir_nodes_start(&nodes, 2, rules, world.url);
    return 0;
}

static int stop(void **state)
{
    (void)unlink(secrets);
    weir_nodes_finish(&nodes);
    redis_world_stop(&world);
    return 0;
}

static double bans(unsigned node, const char *limit)
{
    char series[128];
    (void)snprintf(series, sizeof series, "weir_bans_total{limit=\"%s\",result=\"made\"}", limit);
    return weir_nodes_metric(&nodes, node, series);
}

static bool is_denied(struct server_client *c, const char *limit)
{
    char words[64];
    (void)snprintf(words, sizeof words, "WEIR.CHECK %s al", limit);
    const char *reply = server_ask(c, words);
    threads_require(strncmp(reply, "['deny'", 7) == 0 || strncmp(reply, "['allow'", 8) == 0);
    return reply[2] == 'd';
}

/* Checks until the first denial, and returns how many were allowed. */
static unsigned use_up(struct server_client *c, const char *limit)
{
    unsigned n = 0;
    while (!is_denied(c, limit)) {
        n++;
    }
    return n;
}

/* Asks until the answer has a retry of more than a day: only a ban lasts so long. */
static void await_ban(struct server_client *c, const char *verb, const char *limit)
{
    char words[64];
    long long retry_ms = 0;
    (void)snprintf(words, sizeof words, "WEIR.%s %s al", verb, limit);
    while (retry_ms < 90000000) {
        const char *reply = server_ask(c, words);
        for (int i = 0; i < 4; i++) { /* after verdict, limit, quota and remaining */
            reply = strchr(reply + 1, ' ');
        }
        retry_ms = strtoll(reply, NULL, 10);
    }
}

/* A node that hears of a synced key only from now and then may ban it by its own count too. */
static void assert_banned_on_both(const char *limit, bool hears_later)
{
    struct server_client c[2];
    for (unsigned i = 0; i < 2; i++) {
        weir_nodes_connect(&nodes, i, &c[i]);
    }
    assert_in_range(use_up(&c[0], limit), 1, 1000); /* and that was the first denial */
    for (unsigned i = 1; i < 19; i++) {
        assert_true(is_denied(&c[0], limit));
    }
    assert_true(bans(0, limit) == 0);
    assert_true(is_denied(&c[0], limit));
    await_ban(&c[0], "PEEK", limit);
    assert_true(bans(0, limit) == 1);
    await_ban(&c[1], hears_later ? "CHECK" : "PEEK", limit);
    for (unsigned i = 0; i < 50; i++) {
        assert_true(is_denied(&c[1], limit));
    }
    assert_true(hears_later || bans(1, limit) == 0); /* blocked calls do not count */
    for (unsigned i = 0; i < 2; i++) {
        server_disconnect(&c[i]);
    }
}

static void a_ban_of_a_leased_limit_holds_on_every_node(void **state)
{
    assert_banned_on_both("leased", false);
}

static void a_ban_of_a_synced_limit_holds_on_every_node(void **state)
{
    assert_banned_on_both("synced", true);
}

/* The denials are answered by the node, which remembers the first of them. */
static void remembered_denials_ban_and_another_node_lifts_the_ban(void **state)
{
    struct server_client c[2];
    for (unsigned i = 0; i < 2; i++) {
        weir_nodes_connect(&nodes, i, &c[i]);
    }
    assert_int_equal(use_up(&c[0], "exact"), 1);
    for (unsigned i = 1; i < 20; i++) {
        assert_true(is_denied(&c[0], "exact"));
    }
    while (bans(0, "exact") < 1) {
    }
    assert_true(weir_nodes_metric(&nodes, 0, "weir_denials_remembered_total{limit=\"exact\"}") > 0);
    assert_true(is_denied(&c[1], "exact"));
    assert_string_equal(server_ask(&c[1], "AUTH " SECRET), "+OK");
    (void)server_ask(&c[1], "WEIR.RESET exact al"); /* forgets the units, not the ban */
    assert_true(is_denied(&c[1], "exact"));
    assert_int_equal(strncmp(server_ask(&c[1], "WEIR.UNBLOCK exact al"), "['allow'", 8), 0);
    assert_false(is_denied(&c[0], "exact"));
    for (unsigned i = 0; i < 2; i++) {
        server_disconnect(&c[i]);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_ban_of_a_leased_limit_holds_on_every_node),
        TEST(a_ban_of_a_synced_limit_holds_on_every_node),
        TEST(remembered_denials_ban_and_another_node_lifts_the_ban),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
