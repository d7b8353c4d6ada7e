/*
 * Which ways there are to raise what a key has left, and who may use them: every operation, every
 * command of RESP, every route, every method of gRPC and every command of `weir ctl` has a
 * statement here. A new one without a statement fails, and so does a statement that is not true.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/ctl/ctl.h"
#include "server/operations/operations.h"
#include "server/grpc/grpc.h"
#include "server/http/http_routes.h"
#include "server/resp/resp_commands.h"
#include "support/server/access_secrets.h"
#include "support/server/server_admin.h"

enum raises {
    UNSTATED,
    NOTHING,  /* it tells, takes or denies only, or it changes nothing about keys */
    OWN,      /* units that were taken by the reservation whose secret id the caller shows */
    SWITCHED, /* what the rule file allows: envoy.negative_hits; everything with the role admin */
    ANYBODYS  /* units of any key: needs the role admin */
};

/* ---- the statements ---- */

static const enum raises of_operation[OPERATIONS] = {
    [OPERATION_CHECK] = NOTHING,    [OPERATION_PEEK] = NOTHING,     [OPERATION_ASK] = NOTHING,
    [OPERATION_THROTTLE] = NOTHING, /* its rate is the caller's, not that of rules */
    [OPERATION_RESERVE] = NOTHING,  [OPERATION_SETTLE] = OWN,       [OPERATION_CANCEL] = OWN,
    [OPERATION_INSPECT] = NOTHING,  [OPERATION_REFUND] = ANYBODYS,  [OPERATION_PENALIZE] = NOTHING,
    [OPERATION_BLOCK] = NOTHING,    [OPERATION_UNBLOCK] = ANYBODYS, [OPERATION_RESET] = ANYBODYS};

/* Everything that is not named after an operation. */
static const struct statement {
    const char *way;
    enum raises raises;
} statements[] = {
    {"resp CL.THROTTLE", NOTHING},
    {"resp EVAL", NOTHING},
    {"resp EVALSHA", NOTHING},
    {"resp DEL", ANYBODYS}, /* a reset of CL.THROTTLE's keys */
    {"resp PING", NOTHING},
    {"resp ECHO", NOTHING},
    {"resp HELLO", NOTHING},
    {"resp AUTH", NOTHING},
    {"resp SELECT", NOTHING},
    {"resp CLIENT", NOTHING},
    {"resp COMMAND", NOTHING},
    {"resp INFO", NOTHING},
    {"resp CONFIG", NOTHING},
    {"resp MODULE", NOTHING},
    {"resp CLUSTER", NOTHING},
    {"resp MULTI", NOTHING},
    {"resp EXEC", NOTHING}, /* each queued command needs its own role */
    {"resp DISCARD", NOTHING},
    {"resp WATCH", NOTHING},
    {"resp UNWATCH", NOTHING},
    {"resp QUIT", NOTHING},
    {"resp RESET", NOTHING}, /* of the connection */
    {"http POST /v1/check/batch", NOTHING},
    {"http any /v1/auth", NOTHING},
    {"http POST /json", SWITCHED}, /* isNegativeHits */
    {"http GET /healthz", NOTHING},
    {"http GET /readyz", NOTHING},
    {"http GET /openapi.json", NOTHING},
    {"admin GET /metrics", NOTHING},
    {"admin GET /v1/status", NOTHING},
    {"admin GET /v1/top", NOTHING},
    {"admin GET /v1/limits", NOTHING},
    {"admin PUT /v1/limits", ANYBODYS},    /* higher numbers, overrides, a limit of another shape */
    {"admin DELETE /v1/limits", ANYBODYS}, /* the limit ends, and its keys are forgotten */
    {"admin POST /v1/reload", ANYBODYS},   /* what the files say by then */
    {"admin GET /v1/config", NOTHING},
    {"admin GET /v1/keys", NOTHING},
    {"admin GET /v1/blocks", NOTHING},
    {"admin GET /v1/log-level", NOTHING},
    {"admin PUT /v1/log-level", NOTHING},
    {"admin GET /v1/mode", NOTHING},
    {"admin PUT /v1/mode", ANYBODYS}, /* shadow lets everything pass */
    {"admin GET /healthz", NOTHING},
    {"admin GET /readyz", NOTHING},
    {"admin POST /v1/config/check", NOTHING},
    {"admin POST /v1/sandbox", NOTHING}, /* limits of its own (twice: with and without a name) */
    {"admin DELETE /v1/sandbox", NOTHING},
    {"admin POST /v1/demo", NOTHING}, /* likewise */
    {"admin DELETE /v1/demo", NOTHING},
    {"admin POST /v1/explain", NOTHING},
    {"admin GET /openapi.json", NOTHING},
    {"admin GET /", NOTHING},
    {"admin GET /page", NOTHING},
    {"admin GET /v1/history", NOTHING},
    {"admin GET /v1/events", NOTHING},
    {"metrics GET /metrics", NOTHING},
    {"metrics GET /healthz", NOTHING},
    {"metrics GET /readyz", NOTHING},
    {"grpc weir.v1.Limiter/Batch", NOTHING},
    {"grpc envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit", SWITCHED},
    {"grpc grpc.health.v1.Health/Check", NOTHING},
    {"grpc grpc.health.v1.Health/Watch", NOTHING},
};

#define STATEMENTS (sizeof statements / sizeof statements[0])

static bool used[STATEMENTS];
static unsigned wrong;

static void complain(const char *way, const char *what)
{
    print_error("%s: %s\n", way, what);
    wrong++;
}

static void check_role(const char *way, enum raises raises, enum role role)
{
    if (raises == ANYBODYS && role != ROLE_ADMIN) {
        complain(way, "raises anybody's units and does not need the role admin");
    }
}

/* Finds the statement for one way, that of its operation or by its name. */
static void state_way(const char *way, enum operation operation, enum role role)
{
    if (operation != OPERATIONS) {
        check_role(way, of_operation[operation], role);
        return;
    }
    size_t i = 0;
    while (i < STATEMENTS && strcmp(statements[i].way, way) != 0) {
        i++;
    }
    if (i == STATEMENTS) {
        complain(way, "says nowhere whether it raises what a key has left");
        return;
    }
    used[i] = true;
    check_role(way, statements[i].raises, role);
}

/* ---- the ways ---- */

static void each_command(void)
{
    char way[128];
    for (const struct command_row *const *table = resp_commands(); *table != NULL; table++) {
        for (const struct command_row *row = *table; row->name != NULL; row++) {
            bool operation = strncmp(row->name, "WEIR.", 5) == 0;
            (void)snprintf(way, sizeof way, "resp %s", row->name);
            state_way(way, operation ? row->operation : OPERATIONS, row->role);
        }
    }
}

static void each_route(enum server_protocol listener, const char *name)
{
    char way[128];
    for (const struct http_route *const *table = http_routes(listener); *table != NULL; table++) {
        for (const struct http_route *row = *table; row->path != NULL; row++) {
            bool operation = row->run == http_run_operation;
            (void)snprintf(way, sizeof way, "%s %s %s", name,
                           row->method != NULL ? row->method : "any", row->path);
            state_way(way,
                      operation ? operation_by_name(text_of(strrchr(row->path, '/') + 1))
                                : OPERATIONS,
                      row->role);
        }
    }
}

static void each_method(const struct grpc_method *methods, size_t n, bool operations)
{
    char way[128];
    for (size_t i = 0; i < n; i++) {
        const struct grpc_method *m = &methods[i];
        (void)snprintf(way, sizeof way, "grpc %s/%s", m->service, m->name);
        state_way(way,
                  operations && strcmp(m->name, "Batch") != 0 ? (enum operation)m->operation
                                                              : OPERATIONS,
                  m->role);
    }
}

static void every_way_says_whether_it_raises_units_and_needs_the_role_for_it(void **state)
{
    size_t count;
    const struct grpc_method *limiter = grpc_limiter_methods(&count);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        if (of_operation[i] == UNSTATED) {
            complain(operation_rows[i].name, "is an operation without a statement");
        }
        check_role(operation_rows[i].name, of_operation[i], operation_rows[i].role);
    }
    each_command();
    each_route(PROTOCOL_HTTP, "http");
    each_route(PROTOCOL_ADMIN, "admin");
    each_route(PROTOCOL_METRICS, "metrics");
    each_method(limiter, count, true);
    each_method(grpc_rls_methods, GRPC_RLS_METHODS, false);
    each_method(grpc_health_methods, GRPC_HEALTH_METHODS, false);
    for (size_t i = 0; i < STATEMENTS; i++) {
        if (!used[i]) {
            complain(statements[i].way, "has a statement, and does not exist");
        }
    }
    assert_int_equal(wrong, 0);
}

/* `weir ctl` has no power of its own: each of its commands is a call of the admin listener. */
static void every_command_of_ctl_uses_a_route_of_the_admin_listener(void **state)
{
    const struct ctl_row *const lists[] = {ctl_limit_rows, ctl_key_rows, ctl_block_rows,
                                           ctl_explain_rows, ctl_server_rows};
    unsigned calls = 0;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        for (const struct ctl_row *row = lists[i]; row->name != NULL; row++) {
            bool found = row->run != NULL; /* it composes its call, which the routes answer too */
            const struct http_route *const *table = http_routes(PROTOCOL_ADMIN);
            for (; !found && *table != NULL; table++) {
                for (const struct http_route *r = *table; r->path != NULL; r++) {
                    found |= http_leads_to(r, text_before(text_of(row->call.target), '?')) &&
                             strcmp(r->method, row->call.method) == 0;
                }
            }
            calls += row->run == NULL;
            assert_true(found);
        }
    }
    assert_true(calls > 0);
}

/* ---- that the statements are true ---- */

#define RULES "limits: [{name: l, key: [user], rate: 5/day}]\n"
#define CHECK_SECRET "Authorization: Bearer check-1\r\n"
#define ADMIN_SECRET "Authorization: Bearer admin-1\r\n"

static struct admin_world world;
static struct http_server clients; /* its listener for clients; only the address is used */
static struct http_answer a;

static void start(void)
{
    struct server_options o = {.access = secrets("check-1", "admin-1")};
    admin_world_start(&world, RULES, &o);
    (void)snprintf(clients.address, sizeof clients.address, "%s", world.address[PROTOCOL_HTTP]);
}

static void stop(void)
{
    struct access *access = world.server.options.access;
    admin_world_stop(&world);
    access_close(access);
}

/* Sends a question about the key to the listener for clients; more begins with a comma. */
static void post(const char *path, const char *key, const char *more)
{
    char line[64];
    char body[256];
    (void)snprintf(line, sizeof line, "POST %s", path);
    (void)snprintf(body, sizeof body, "{\"limit\":\"l\",\"key\":\"%s\"%s}", key, more);
    http_ask(&clients, line, CHECK_SECRET, body, &a);
}

static long long left_of(const char *key)
{
    post("/v1/peek", key, "");
    return admin_number(&a, "remaining");
}

/* Runs an operation on the key. Returns the status. */
static int run(enum operation operation, const char *key, const char *id, const char *secret)
{
    const struct operation_row *row = &operation_rows[operation];
    unsigned m = row->members;
    char line[64];
    char body[512];
    (void)snprintf(body, sizeof body, "{%s%s%s%s%s%s%s%s}",
                   (m & ASK_BIT(ASK_LIMIT)) != 0 ? "\"limit\":\"l\",\"key\":\"" : "",
                   (m & ASK_BIT(ASK_LIMIT)) != 0 ? key : "",
                   (m & ASK_BIT(ASK_LIMIT)) != 0 ? "\"" : "",
                   (m & ASK_BIT(ASK_UNITS)) != 0 ? ",\"units\":1" : "",
                   (m & ASK_BIT(ASK_RESERVATION)) != 0 ? "\"reservation\":\"" : "",
                   (m & ASK_BIT(ASK_RESERVATION)) != 0 ? id : "",
                   (m & ASK_BIT(ASK_RESERVATION)) != 0 ? "\"" : "",
                   (m & ASK_BIT(ASK_ACTUAL)) != 0 ? ",\"actual\":0" : "");
    if (operation == OPERATION_THROTTLE) {
        (void)snprintf(body, sizeof body,
                       "{\"key\":\"%s\",\"burst\":9,\"count\":9,\"period_ms\":1000}", key);
    }
    if ((row->reach & BY_CLIENTS) != 0) {
        (void)snprintf(line, sizeof line, "POST /v1/%s", row->name);
        http_ask(&clients, line, secret, body, &a);
    } else {
        (void)snprintf(line, sizeof line, "POST /v1/keys/%s", row->name);
        admin_ask(&world, line, secret, body, &a);
    }
    return a.status;
}

/* Takes 3 of 5 units of the key, and prepares what the operation is about. Returns the id of a
 * reservation. */
static const char *prepare(enum operation operation, const char *key)
{
    static char id[64];
    post("/v1/check", key, ",\"cost\":3");
    assert_int_equal(a.status, 200);
    id[0] = 0;
    if (of_operation[operation] == OWN) {
        post("/v1/reserve", key, ",\"cost\":1");
        const char *at = strstr(a.body, "\"reservation\":\"");
        assert_non_null(at);
        (void)snprintf(id, sizeof id, "%.*s", (int)strcspn(at + 15, "\""), at + 15);
    } else if (operation == OPERATION_UNBLOCK) {
        assert_int_equal(run(OPERATION_BLOCK, key, "", ADMIN_SECRET), 200);
    }
    return id;
}

static void each_operation_raises_what_its_statement_says_and_nothing_without_its_role(void **state)
{
    start();
    for (unsigned i = 0; i < OPERATIONS; i++) {
        const struct operation_row *row = &operation_rows[i];
        if ((row->reach & (BY_CLIENTS | BY_OPERATORS)) == 0) {
            continue;
        }
        const char *id = prepare((enum operation)i, row->name);
        long long before = left_of(row->name);
        bool admin = row->role == ROLE_ADMIN;
        int status = run((enum operation)i, row->name, id, CHECK_SECRET);
        bool raised = left_of(row->name) > before;
        bool refused = status == 403;
        if (admin) {
            assert_false(raised);
            (void)run((enum operation)i, row->name, id, ADMIN_SECRET);
            raised = left_of(row->name) > before;
        }
        if (refused != admin || raised != (of_operation[i] >= OWN)) {
            fail_msg("%s: status %d, %s what is left", row->name, status,
                     raised ? "raises" : "does not raise");
        }
    }
    stop();
}

static void routes_that_raise_units_refuse_clients(void **state)
{
    unsigned tried = 0;
    start();
    for (size_t i = 0; i < STATEMENTS; i++) {
        const char *line = statements[i].way + strlen("admin ");
        if (statements[i].raises == ANYBODYS && strncmp(statements[i].way, "admin ", 6) == 0) {
            char full[64];
            (void)snprintf(full, sizeof full, "%s%s", line,
                           strstr(line, "/v1/limits") != NULL ? "/l" : "");
            admin_ask(&world, full, CHECK_SECRET, "{}", &a);
            assert_int_equal(a.status, 403);
            admin_ask(&world, full, "", "{}", &a);
            assert_int_equal(a.status, 401);
            tried++;
        }
    }
    assert_int_equal(tried, 4);
    stop();
}

#define CALL(hits, negative)                                                                       \
    "{\"domain\":\"d\",\"descriptors\":[{\"entries\":[{\"key\":\"user\",\"value\":\"x\"}],"        \
    "\"hitsAddend\":" hits ",\"isNegativeHits\":" negative "}]}"

static void calls_of_the_rate_limit_service_raise_units_only_for_admins_or_if_switched_on(
    void **state)
{
    static const char take[] = CALL("3", "false");
    static const char give[] = CALL("2", "true");
    start();
    http_ask(&clients, "POST /json", CHECK_SECRET, take, &a);
    assert_int_equal(left_of("x"), 2);
    http_ask(&clients, "POST /json", CHECK_SECRET, give, &a);
    assert_int_equal(a.status, 200);
    assert_int_equal(left_of("x"), 2);
    admin_world_write(&world, "envoy: {negative_hits: true}\n" RULES);
    admin_ask(&world, "POST /v1/reload", ADMIN_SECRET, "", &a);
    assert_int_equal(a.status, 200);
    http_ask(&clients, "POST /json", CHECK_SECRET, give, &a);
    assert_int_equal(left_of("x"), 2); /* not a limit of Envoy's files */
    http_ask(&clients, "POST /json", ADMIN_SECRET, give, &a);
    assert_int_equal(left_of("x"), 4);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_says_whether_it_raises_units_and_needs_the_role_for_it),
        cmocka_unit_test(every_command_of_ctl_uses_a_route_of_the_admin_listener),
        cmocka_unit_test(
            each_operation_raises_what_its_statement_says_and_nothing_without_its_role),
        cmocka_unit_test(routes_that_raise_units_refuse_clients),
        cmocka_unit_test(
            calls_of_the_rate_limit_service_raise_units_only_for_admins_or_if_switched_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
