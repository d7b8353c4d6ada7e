/*
 * Tests which limits nodes of `weir serve` tell their clients if the store decides them: never a
 * hidden one, and of the others the one that binds, whether one call decides all of them (Redis
 * alone) or several do (a Cluster), and beside a limit that the node decides itself.
 */
// test-timeout: 300
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/fleet/weir_nodes.h"
#include "support/store/redis_world.h"

/* The rates are so low that the test's own time does not matter. */
static const char rules[] =
    "store: {url: 'redis://overridden', deadline: 10s}\n"
    "attributes: {user: ['header:X-User']}\n"
    "limits:\n"
    "  - {name: load, when: {path: /shared}, key: [], rate: 3/week}\n"
    "  - {name: user, when: {path: /shared}, key: [user], rate: 4/week}\n"
    "  - {name: wide, when: {path: /shared}, key: [user], rate: 100/week,\n"
    "     algorithm: sliding_window}\n"
    "  - {name: sum, when: {path: /mixed}, key: [], rate: 3/week}\n"
    "  - {name: far, when: {path: /mixed}, key: [user], rate: 5/week}\n"
    "  - {name: near, when: {path: /mixed}, key: [user], rate: 9/week, consistency: local}\n"
    "  - {name: both, when: {path: /denied}, key: [], rate: 1/month, algorithm: fixed_window}\n"
    "  - {name: mine, when: {path: /denied}, key: [user], rate: 1/week}\n";

static struct redis_world world;
static struct weir_nodes nodes;

static const char *auth(unsigned node, const char *path, const char *user)
{
    char request[256];
    (void)snprintf(request, sizeof request,
                   "GET /v1/auth HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                   "X-Original-URI: %s\r\nX-User: %s\r\n\r\n",
                   path, user);
    return weir_nodes_http(&nodes, node, request);
}

static void assert_tells(const char *reply, const char *status, const char *part)
{
    if (strncmp(reply, status, strlen(status)) != 0 ||
        (part != NULL ? strstr(reply, part) == NULL : strstr(reply, "RateLimit") != NULL)) {
        fail_msg("expected %s and %s, found: %s", status, part != NULL ? part : "no RateLimit",
                 reply);
    }
}

static void assert_hides(const char *reply, const char *limit)
{
    if (strstr(reply, limit) != NULL) {
        fail_msg("expected nothing of %s, found: %s", limit, reply);
    }
}

static void the_exposed_limit_that_binds_is_told(void)
{
    weir_nodes_start(&nodes, 2, rules, world.url);
    assert_tells(auth(0, "/shared", "al"), "HTTP/1.1 200", "RateLimit: \"user\";r=3;");
    const char *reply = auth(1, "/shared", "al");
    assert_tells(reply, "HTTP/1.1 200", "RateLimit: \"user\";r=2;");
    assert_hides(reply, "load");
    assert_tells(auth(0, "/shared", "bo"), "HTTP/1.1 200", "RateLimit: \"user\";r=3;");
    reply = auth(1, "/shared", "al"); /* by the hidden limit: "user" would have allowed it */
    assert_tells(reply, "HTTP/1.1 429", NULL);
    assert_hides(reply, "load");
    assert_tells(reply, "HTTP/1.1 429", NULL);

    assert_tells(auth(0, "/mixed", "al"), "HTTP/1.1 200", "RateLimit: \"far\";r=4;");
    assert_tells(auth(1, "/mixed", "al"), "HTTP/1.1 200", "RateLimit: \"far\";r=3;");

    assert_tells(auth(0, "/denied", "al"), "HTTP/1.1 200", "RateLimit: \"mine\";r=0;");
    reply = auth(1, "/denied", "al"); /* both deny */
    assert_tells(reply, "HTTP/1.1 429", "RateLimit: \"mine\";r=0;");
    assert_hides(reply, "both");
    weir_nodes_finish(&nodes);
}

static void by_a_redis_alone(void **state)
{
    redis_world_alone(&world, NULL);
    the_exposed_limit_that_binds_is_told();
}

static void by_a_cluster(void **state)
{
    redis_world_cluster(&world, NULL);
    the_exposed_limit_that_binds_is_told();
}

static int stop(void **state)
{
    redis_world_stop(&world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(by_a_redis_alone, stop),
        cmocka_unit_test_teardown(by_a_cluster, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
