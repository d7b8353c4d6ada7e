/* What the status and /readyz say of notices, on every listener. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/atomic.h"
#include "support/server/server_admin.h"

#define RULES                                                                                      \
    "limits: [{name: secret-limit, key: [user], rate: 1000/day, max_keys: 64, on_full: deny}]\n"

static struct admin_world *world;
static struct http_answer a;
static json_t *status;

static int start(void **state)
{
    struct server_options o = {.sample_ms = 10, .write_ms = 40}; /* it looks every 10 ms */
    world = calloc(1, sizeof *world);
    admin_world_start(world, RULES, &o);
    return 0;
}

static int stop(void **state)
{
    admin_world_stop(world);
    json_decref(status);
    status = NULL;
    free(world);
    return 0;
}

/* Returns the only notice of the status; NULL if there is none. */
static const json_t *notice(void)
{
    admin_ask(world, "GET /v1/status", "", "", &a);
    assert_int_equal(a.status, 200);
    json_decref(status);
    status = json_loads(a.body, 0, NULL);
    const json_t *all = json_object_get(status, "notices");
    assert_true(json_array_size(all) <= 1);
    return json_array_get(all, 0);
}

static void expect(const char *name, const char *text)
{
    const json_t *found = notice();
    assert_non_null(found);
    assert_string_equal(json_string_value(json_object_get(found, "name")), name);
    assert_string_equal(json_string_value(json_object_get(found, "text")), text);
}

static void expect_answer(int code, const char *words)
{
    assert_int_equal(a.status, code);
    assert_memory_equal(a.body, words, strlen(words));
    assert_null(strstr(a.body, "secret-limit"));
}

/* Requires what /readyz says at each listener, or the beginning of it. */
static void expect_ready(int code, const char *words)
{
    struct http_server clients = {.address = ""};
    (void)snprintf(clients.address, sizeof clients.address, "%s", world->address[PROTOCOL_HTTP]);
    admin_ask(world, "GET /readyz", "", "", &a);
    expect_answer(code, words);
    metrics_ask(world, "GET /readyz", &a);
    expect_answer(code, words);
    http_ask(&clients, "GET /readyz", "", "", &a);
    expect_answer(code, words);
}

static void a_server_without_trouble_is_ready_and_says_no_more(void **state)
{
    assert_null(notice());
    expect_ready(200, "ready\n");
    assert_string_equal(a.body, "ready\n");
}

static void the_kill_switch_is_told_and_the_server_stays_ready(void **state)
{
    admin_ask(world, "PUT /v1/mode", "", "{\"mode\":\"shadow\",\"limit\":\"secret-limit\"}", &a);
    assert_int_equal(a.status, 200);
    expect("kill_switch", "secret-limit denies nothing");
    expect_ready(200, "ready\nkill switch since 20");
    store_release(&world->server.state, SERVER_STARTING);
    expect_ready(503, "not ready\nkill switch since 20");
    store_release(&world->server.state, SERVER_READY);
    admin_ask(world, "PUT /v1/mode", "", "{\"mode\":\"enforce\"}", &a);
    assert_null(notice());
    expect_ready(200, "ready\n");
    assert_string_equal(a.body, "ready\n");
}

static void a_failed_reload_is_told_until_one_succeeds(void **state)
{
    admin_world_write(world, "limits: [{name: secret-limit, key: [user], rate: often}]\n");
    admin_ask(world, "POST /v1/reload", "", "", &a);
    assert_int_equal(a.status, 422);
    expect("reload_failed", "the old rules stay");
    assert_non_null(
        strstr(json_string_value(json_object_get(notice(), "why")), ":1:50: found 'often'"));
    expect_ready(200, "ready\nreload failed since 20");
    admin_world_write(world, RULES);
    admin_ask(world, "POST /v1/reload", "", "", &a);
    assert_int_equal(a.status, 200);
    assert_null(notice());
}

static void a_full_table_is_told_on_its_own(void **state)
{
    char body[128];
    assert_null(notice());
    for (int i = 0; i < 400; i++) {
        (void)snprintf(body, sizeof body, "{\"limit\":\"secret-limit\",\"key\":\"k%d\"}", i);
        admin_check(world, body, &a);
    }
    expect("table_full", "secret-limit denies new keys");
    expect_ready(200, "ready\na table is full since 20");
}

/* Nobody asks for the status: the operators' thread looks by itself. */
static void notices_come_without_being_asked_for(void **state)
{
    admin_ask(world, "PUT /v1/mode", "", "{\"mode\":\"shadow\"}", &a);
    do {
        (void)usleep(1000);
        metrics_ask(world, "GET /readyz", &a);
    } while (strstr(a.body, "kill switch") == NULL);
    assert_true(admin_metric(world, "weir_kill_switch{limit=\"secret-limit\"}") == 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        TEST(a_server_without_trouble_is_ready_and_says_no_more),
        TEST(the_kill_switch_is_told_and_the_server_stays_ready),
        TEST(a_failed_reload_is_told_until_one_succeeds),
        TEST(a_full_table_is_told_on_its_own),
        TEST(notices_come_without_being_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
