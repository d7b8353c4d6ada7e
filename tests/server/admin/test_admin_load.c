/* The operators' listener while the rest of the server has much to do, or ends. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "server/access/access.h"
#include "server/loop/worker.h"
#include "support/server/server_admin.h"
#include "support/server/server_client.h"
#include "support/engine/threads_run.h"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ROUNDS 20
#else
#define ROUNDS 100
#endif

#define CLIENTS 4
#define DEPTH 64 /* commands in one go */
#define QUOTA 5000

static const char rules[] = "limits:\n"
                            "  - {name: kept, when: {path: /kept}, key: [user], rate: 5000/week,\n"
                            "     algorithm: fixed_window, max_keys: 1000}\n"
                            "  - {name: other, when: {path: /other}, key: [user], rate: 1/day}\n";

static struct admin_world *world;
static struct http_answer a;

static int start(void **state)
{
    world = calloc(1, sizeof *world);
    admin_world_start(world, rules, NULL);
    return 0;
}

static int stop(void **state)
{
    admin_world_stop(world);
    free(world);
    return 0;
}

static void ask(const char *line, const char *body, int status)
{
    admin_ask(world, line, "", body, &a);
    if (a.status != status) {
        fail_msg("%s: expected %d, found %s", line, status, a.text);
    }
}

/* ---- clients that do not stop ---- */

struct client {
    pthread_t thread;
    uint64_t allowed, denied; /* read when it has ended */
    uint64_t said;
};

static struct client clients[CLIENTS];
static uint64_t enough;

static void *hammer(void *arg)
{
    struct client *c = arg;
    struct server_client line;
    char bytes[DEPTH * 128];
    size_t n = 0;
    for (unsigned i = 0; i < DEPTH; i++) {
        n += server_pack("WEIR.CHECK kept ann", bytes + n, sizeof bytes - n);
    }
    server_connect(&line, world->address[PROTOCOL_RESP]);
    while (load_acquire(&enough) == 0) {
        threads_require(server_send(&line, bytes, n));
        for (unsigned i = 0; i < DEPTH; i++) {
            const char *reply = server_reply(&line);
            c->allowed += strncmp(reply, "['allow'", 8) == 0;
            c->denied += strncmp(reply, "['deny'", 7) == 0;
        }
        count_own(&c->said, DEPTH);
    }
    server_disconnect(&line);
    return NULL;
}

static void begin(void)
{
    memset(clients, 0, sizeof clients);
    store_release(&enough, 0);
    for (unsigned i = 0; i < CLIENTS; i++) {
        assert_int_equal(pthread_create(&clients[i].thread, NULL, hammer, &clients[i]), 0);
    }
}

/* Until every client has said so much. */
static void wait_for(uint64_t said)
{
    for (unsigned i = 0; i < CLIENTS; i++) {
        while (load_relaxed(&clients[i].said) < said) {
            (void)usleep(1000);
        }
    }
}

/* All that was allowed; every command has got its answer. */
static uint64_t end(void)
{
    uint64_t allowed = 0;
    store_release(&enough, 1);
    for (unsigned i = 0; i < CLIENTS; i++) {
        assert_int_equal(pthread_join(clients[i].thread, NULL), 0);
        assert_int_equal(clients[i].allowed + clients[i].denied, clients[i].said);
        allowed += clients[i].allowed;
    }
    return allowed;
}

static uint64_t said(void)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < CLIENTS; i++) {
        sum += clients[i].said;
    }
    return sum;
}

/* ---- while others are busy ---- */

static void operators_are_answered_while_the_other_threads_are_flooded(void **state)
{
    static const char *const lines[] = {"GET /metrics", "GET /v1/limits", "GET /v1/status",
                                        "GET /v1/top", "GET /readyz"};
    begin();
    wait_for(DEPTH);
    for (unsigned i = 0; i < ROUNDS; i++) {
        ask(lines[i % 5], "", 200);
    }
    wait_for(QUOTA);
    assert_int_equal(end(), QUOTA);
    ask("GET /v1/top", "", 200);
    assert_int_equal(admin_number(&a, "count"), said() - QUOTA);
    assert_int_equal(admin_number(&a, "error"), 0);
    ask("GET /v1/limits/kept", "", 200);
    assert_int_equal(admin_number(&a, "allowed"), QUOTA);
    assert_int_equal(admin_number(&a, "denied"), said() - QUOTA);
}

static void reloads_under_load_admit_exactly_the_quota(void **state)
{
    begin();
    for (unsigned i = 0; i < ROUNDS / 5; i++) {
        ask("POST /v1/reload", "", 200);
    }
    wait_for(QUOTA);
    assert_int_equal(end(), QUOTA);
}

static void limits_come_and_go_under_load_and_the_others_stay_exact(void **state)
{
    begin();
    for (unsigned i = 0; i < ROUNDS / 5; i++) {
        ask("PUT /v1/limits/guest", "{\"name\":\"guest\",\"key\":[\"user\"],\"rate\":\"7/day\"}",
            201);
        ask("PUT /v1/limits/kept",
            "{\"name\":\"kept\",\"when\":{\"path\":\"/kept\"},\"key\":[\"user\"],"
            "\"rate\":\"5000/week\",\"algorithm\":\"fixed_window\",\"max_keys\":1000}",
            200);
        ask("DELETE /v1/limits/guest", "", 204);
    }
    wait_for(QUOTA);
    assert_int_equal(end(), QUOTA);
}

static void the_kill_switch_under_load_loses_no_answer(void **state)
{
    begin();
    for (unsigned i = 0; i < ROUNDS / 5; i++) {
        ask("PUT /v1/mode", "{\"mode\":\"shadow\"}", 200);
        ask("PUT /v1/mode", "{\"mode\":\"enforce\"}", 200);
    }
    wait_for(QUOTA);
    assert_true(end() >= QUOTA);
    ask("GET /v1/limits/kept", "", 200);
    assert_int_equal(admin_number(&a, "allowed"), QUOTA);
}

/* Requires that `n` clients are counted in the end: the server counts a refused one until it has
 * closed its socket, which may take a moment. */
static void assert_connected(long long n)
{
    ask("GET /v1/status", "", 200);
    for (unsigned i = 0; i < 10000 && admin_number(&a, "resp") != n; i++) {
        (void)usleep(1000);
        ask("GET /v1/status", "", 200);
    }
    assert_int_equal(admin_number(&a, "resp"), n);
}

static void operators_have_places_of_their_own(void **state)
{
    struct server_options few = {0};
    struct server_client operators[10];
    struct server_client crowd[1000];
    admin_world_stop(world);
    admin_world_start(world, rules, &few);
    for (unsigned i = 0; i < 10; i++) { /* who do not take those of the others */
        server_connect(&operators[i], world->address[PROTOCOL_ADMIN]);
    }
    ask("GET /healthz", "", 200); /* they are in by now */
    for (unsigned i = 0; i < 1000; i++) {
        server_connect(&crowd[i], world->address[PROTOCOL_RESP]);
        assert_string_equal(server_ask(&crowd[i], "PING"), "+PONG");
    }
    struct server_client late;
    server_connect(&late, world->address[PROTOCOL_RESP]);
    assert_string_equal(server_ask(&late, "PING"), "+PONG"); /* an idle one has made room */
    assert_connected(1000);
    server_disconnect(&late);
    for (unsigned i = 0; i < 1000; i++) {
        server_disconnect(&crowd[i]);
    }
    for (unsigned i = 0; i < 10; i++) {
        server_disconnect(&operators[i]);
    }
}

/* ---- beginning and ending ---- */

static void ready_is_said_only_between_the_beginning_and_the_end(void **state)
{
    ask("GET /readyz", "", 200);
    store_release(&world->server.state, SERVER_STARTING);
    ask("GET /readyz", "", 503);
    ask("GET /healthz", "", 200);
    ask("GET /v1/status", "", 200);
    assert_non_null(strstr(a.body, "\"state\":\"starting\""));
    store_release(&world->server.state, SERVER_READY);
}

static void *end_server(void *arg)
{
    admin_world_stop(arg);
    return NULL;
}

/* A client that has not fetched its replies holds up the end; operators hear that it has come. */
static void while_the_server_drains_it_is_alive_and_not_ready(void **state)
{
    struct server_client slow;
    pthread_t ender;
    char bytes[4096];
    size_t n = server_pack("COMMAND", bytes, sizeof bytes);
    server_connect(&slow, world->address[PROTOCOL_RESP]);
    for (unsigned i = 0; i < 5000; i++) { /* replies for more than the network takes */
        threads_require(server_send(&slow, bytes, n));
    }
    assert_int_equal(pthread_create(&ender, NULL, end_server, world), 0);
    while (load_acquire(&world->server.state) != SERVER_DRAINING) {
        (void)usleep(1000);
    }
    ask("GET /readyz", "", 503);
    ask("GET /healthz", "", 200);
    server_disconnect(&slow);
    assert_int_equal(pthread_join(ender, NULL), 0);
    admin_world_start(world, rules, NULL);
}

/* ---- sockets in the file system ---- */

static void a_server_that_cannot_start_leaves_the_sockets_of_another_alone(void **state)
{
    char folder[] = "/tmp/weir-admin-XXXXXX";
    char path[128];
    struct stat st;
    struct admin_world first;
    struct server second = {.rules = NULL};
    struct weir_error error = {0};
    assert_non_null(mkdtemp(folder));
    (void)snprintf(path, sizeof path, "unix:%s/admin", folder);
    struct server_options o = {.listen = {NULL, NULL, path}};
    admin_world_start(&first, rules, &o);
    second.options = first.server.options;
    second.options.listen[PROTOCOL_RESP] = "127.0.0.1:0";
    second.rules = first.server.rules;
    assert_true(server_start(&second, &error) != 0);
    assert_int_equal(stat(path + 5, &st), 0);
    admin_world_stop(&first);
    assert_int_not_equal(stat(path + 5, &st), 0);
    assert_int_equal(rmdir(folder), 0);
}

/* ---- secrets ---- */

static void roles_open_what_they_should(void **state)
{
    static const struct {
        const char *line, *secret;
        int status;
    } rows[] = {
        {"GET /healthz", "", 200},
        {"GET /readyz", "", 200},
        {"GET /metrics", "", 401},
        {"GET /metrics", "Authorization: Bearer wrong\r\n", 401},
        {"GET /metrics", "Authorization: Bearer looking\r\n", 200},
        {"GET /v1/status", "Authorization: Bearer looking\r\n", 200},
        {"GET /v1/limits", "Authorization: Bearer looking\r\n", 403},
        {"GET /v1/keys?limit=kept&key=x", "Authorization: Bearer looking\r\n", 403},
        {"GET /v1/top", "Authorization: Bearer looking\r\n", 403},
        {"GET /v1/config", "Authorization: Bearer looking\r\n", 403},
        {"GET /v1/mode", "Authorization: Bearer looking\r\n", 403},
        {"GET /v1/log-level", "Authorization: Bearer looking\r\n", 403},
        {"POST /v1/reload", "Authorization: Bearer looking\r\n", 403},
        {"DELETE /v1/limits/other", "Authorization: Bearer looking\r\n", 403},
        {"POST /v1/reload", "", 401},
        {"POST /v1/reload", "Authorization: Bearer changing\r\n", 200},
        {"GET /v1/limits", "Authorization: Bearer changing\r\n", 200},
        {"GET /v1/limits", "Authorization: Bearer changing\r\nHost: weir.example\r\n", 200},
        {"POST /v1/reload", "Authorization: Bearer changing\r\nOrigin: http://evil.example\r\n",
         403},
    };
    struct access *access = NULL;
    struct weir_error error = {0};
    struct access_sources from = {.text = {[ROLE_CHECK] = "looking", [ROLE_ADMIN] = "changing"}};
    assert_int_equal(access_open(&access, &from, &error), 0);
    struct server_options o = {.access = access};
    admin_world_stop(world);
    admin_world_start(world, rules, &o);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        admin_ask(world, rows[i].line, rows[i].secret, "", &a);
        if (a.status != rows[i].status) {
            fail_msg("%s %s: expected %d, found %s", rows[i].line, rows[i].secret, rows[i].status,
                     a.text);
        }
    }
    admin_world_stop(world);
    access_close(access);
    admin_world_start(world, rules, NULL);
}

/* Health, metrics and counts need no secret; keys, rules, settings and changes do. */
static void without_check_secrets_counts_are_open_and_the_rest_is_for_admins(void **state)
{
    static const struct {
        const char *line;
        int open; /* status without a secret */
    } rows[] = {
        {"GET /healthz", 200},        {"GET /readyz", 200},
        {"GET /openapi.json", 200},   {"GET /metrics", 200},
        {"GET /v1/status", 200},      {"GET /v1/limits", 401},
        {"GET /v1/limits/kept", 401}, {"GET /v1/keys?limit=kept&key=x", 401},
        {"GET /v1/top", 401},         {"GET /v1/config", 401},
        {"GET /v1/log-level", 401},   {"GET /v1/mode", 401},
        {"POST /v1/reload", 401},     {"DELETE /v1/limits/kept", 401},
    };
    struct access *access = NULL;
    struct weir_error error = {0};
    struct access_sources from = {.text = {[ROLE_ADMIN] = "changing"}};
    assert_int_equal(access_open(&access, &from, &error), 0);
    struct server_options o = {.access = access};
    admin_world_stop(world);
    admin_world_start(world, rules, &o);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        admin_ask(world, rows[i].line, "", "", &a);
        if (a.status != rows[i].open) {
            fail_msg("%s: expected %d, found %s", rows[i].line, rows[i].open, a.text);
        }
        admin_ask(world, rows[i].line, "Authorization: Bearer changing\r\n", "", &a);
        if (a.status != 200 && a.status != 204) {
            fail_msg("%s with the secret: found %s", rows[i].line, a.text);
        }
    }
    admin_ask(world, "GET /v1/status", "", "", &a);
    assert_non_null(strstr(a.body, "\"config\":null"));
    admin_ask(world, "GET /v1/status", "Authorization: Bearer changing\r\n", "", &a);
    assert_non_null(strstr(a.body, world->file));
    admin_ask(world, "GET /v1/status", "Authorization: Bearer wrong\r\n", "", &a);
    assert_int_equal(a.status, 401);
    admin_world_stop(world);
    access_close(access);
    admin_world_start(world, rules, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(operators_are_answered_while_the_other_threads_are_flooded),
        TEST(reloads_under_load_admit_exactly_the_quota),
        TEST(limits_come_and_go_under_load_and_the_others_stay_exact),
        TEST(the_kill_switch_under_load_loses_no_answer),
        TEST(operators_have_places_of_their_own),
        TEST(ready_is_said_only_between_the_beginning_and_the_end),
        TEST(while_the_server_drains_it_is_alive_and_not_ready),
        TEST(a_server_that_cannot_start_leaves_the_sockets_of_another_alone),
        TEST(roles_open_what_they_should),
        TEST(without_check_secrets_counts_are_open_and_the_rest_is_for_admins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
