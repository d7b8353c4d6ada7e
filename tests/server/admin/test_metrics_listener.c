/* The listener for metrics has them and the health checks, without a secret, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "server/access/access.h"
#include "support/server/server_admin.h"

#define RULES "limits: [{name: api, key: [user], rate: 3/day}]\n"

static struct admin_world *world;
static struct access *access_made;
static struct http_answer a;

static int stop(void **state)
{
    admin_world_stop(world);
    access_close(access_made);
    free(world);
    return 0;
}

/* Starts a server whose other listeners need secrets, with metrics at every address. */
static int start(void **state)
{
    struct access_sources from = {
        .text = {[ROLE_CHECK] = "a-secret-of-clients", [ROLE_ADMIN] = "a-secret-of-operators"}};
    struct weir_error error = {0};
    assert_int_equal(access_open(&access_made, &from, &error), 0);
    struct server_options o = {.access = access_made, .listen[PROTOCOL_METRICS] = "0.0.0.0:0"};
    world = calloc(1, sizeof *world);
    admin_world_start(world, RULES, &o);
    return 0;
}

static void metrics_and_health_need_no_secret(void **state)
{
    admin_ask(world, "GET /metrics", "", "", &a);
    assert_int_equal(a.status, 401);
    metrics_ask(world, "GET /metrics", &a);
    assert_int_equal(a.status, 200);
    assert_non_null(strstr(a.body, "weir_decisions_total{limit=\"api\",verdict=\"allow\"} 0\n"));
    metrics_ask(world, "GET /healthz", &a);
    assert_int_equal(a.status, 200);
    metrics_ask(world, "GET /readyz", &a);
    assert_int_equal(a.status, 200);
    metrics_ask(world, "GET /metrics", &a);
    assert_non_null(
        strstr(a.body, "weir_requests_total{listener=\"metrics\",result=\"other\"} 3\n"));
}

static void nothing_else_is_there(void **state)
{
    static const char *const lines[] = {"GET /v1/status", "GET /v1/limits",    "POST /v1/check",
                                        "GET /v1/auth",   "GET /openapi.json", "PUT /v1/mode"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        metrics_ask(world, lines[i], &a);
        assert_int_equal(a.status, 404);
    }
    metrics_ask(world, "POST /metrics", &a);
    assert_int_equal(a.status, 405);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(metrics_and_health_need_no_secret, start, stop),
        cmocka_unit_test_setup_teardown(nothing_else_is_there, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
