/* Bans and blocks as clients and operators see them: RESP, HTTP, /v1/auth, the list, lifting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/server/server_admin.h"
#include "support/server/server_client.h"

#define LIMITS(seconds)                                                                            \
    "limits:\n"                                                                                    \
    "  - {name: login, when: {path: /login}, key: [user], rate: 1/day, max_blocks: 1k,\n"          \
    "     ban: {denials: 3, within: 365day, for: " #seconds "}}\n"                                 \
    "  - {name: pair, when: {path: /pair}, key: [user, ip], rate: 10/day, max_blocks: 1k}\n"
#define RULES(seconds) "attributes: {user: ['header:X-User']}\n" LIMITS(seconds)

static struct admin_world *world;
static struct http_answer a;

static int start(void **state)
{
    world = calloc(1, sizeof *world);
    admin_world_start(world, RULES(1h), NULL);
    return 0;
}

static int stop(void **state)
{
    admin_world_stop(world);
    free(world);
    return 0;
}

static void ask(const char *line, const char *body)
{
    admin_ask(world, line, "", body, &a);
}

static void assert_body(const char *part, bool there)
{
    if ((strstr(a.body, part) != NULL) != there) {
        fail_msg("expected %s: %s\nfound: %s", there ? "in the body" : "not in the body", part,
                 a.text);
    }
}

/* Checks the key n times. */
static void check(const char *body, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        admin_check(world, body, &a);
    }
}

#define LOGIN(key) "{\"limit\":\"login\",\"key\":\"" key "\"}"

static void assert_banned(const char *key, bool banned)
{
    char part[128];
    ask("GET /v1/blocks", "");
    assert_int_equal(a.status, 200);
    (void)snprintf(part, sizeof part,
                   "{\"limit\":\"login\",\"tier\":\"\",\"key\":\"%s\",\"banned\":true,", key);
    assert_body(part, banned);
}

/* ---- what counts ---- */

static void denials_over_http_and_resp_ban_a_key(void **state)
{
    struct server_client c;
    check(LOGIN("ann"), 2);
    server_connect(&c, world->address[PROTOCOL_RESP]);
    assert_int_equal(strncmp(server_ask(&c, "WEIR.CHECK login ann"), "['deny' 'login'", 15), 0);
    assert_banned("ann", false);
    (void)server_ask(&c, "WEIR.PEEK login ann");
    assert_banned("ann", false);
    (void)server_ask(&c, "WEIR.ASK path /login user ann");
    assert_banned("ann", true);
    server_disconnect(&c);
    assert_body("\"by\":\"ban\",\"why\":\"3 denials within 365day\"}", true);
    assert_true(admin_metric(world, "weir_bans_total{limit=\"login\",result=\"made\"}") == 1);
    ask("GET /v1/limits/login", "");
    assert_int_equal(admin_number(&a, "bans"), 1);
}

static void denials_at_the_gateways_endpoint_and_of_reservations_count(void **state)
{
    static struct http_server gateway; /* only its address is used */
    struct server_client c;
    (void)snprintf(gateway.address, sizeof gateway.address, "%s", world->address[PROTOCOL_HTTP]);
    for (unsigned i = 0; i < 3; i++) {
        http_ask(&gateway, "GET /v1/auth", "X-Original-URI: /login\r\nX-User: bob\r\n", "", &a);
        assert_int_equal(a.status, i == 0 ? 200 : 429);
    }
    assert_banned("bob", false);
    server_connect(&c, world->address[PROTOCOL_RESP]);
    assert_int_equal(strncmp(server_ask(&c, "WEIR.RESERVE login bob"), "['deny'", 7), 0);
    assert_banned("bob", true);
    server_disconnect(&c);
}

/* ---- lifting ---- */

static void unblocking_lifts_a_ban_and_forgets_its_denials(void **state)
{
    check(LOGIN("eve"), 3);
    assert_body("\"reason\":\"limit\"", true);
    check(LOGIN("eve"), 1);
    assert_body("\"reason\":\"ban\"", true);
    assert_banned("eve", true);
    ask("POST /v1/keys/unblock", LOGIN("eve"));
    assert_int_equal(a.status, 200);
    assert_body("\"blocked_ms\":0", true);
    assert_banned("eve", false);
    check(LOGIN("eve"), 2); /* of the same window */
    assert_banned("eve", false);
    check(LOGIN("eve"), 1);
    assert_banned("eve", true);
}

static void a_reload_keeps_bans_counts_and_the_list(void **state)
{
    check(LOGIN("ida"), 3); /* one unit and two denials */
    check(LOGIN("joe"), 4);
    admin_world_write(world, RULES(2h));
    ask("POST /v1/reload", "");
    assert_int_equal(a.status, 200);
    assert_banned("joe", true);
    assert_banned("ida", false);
    check(LOGIN("ida"), 1);
    assert_banned("ida", true);
}

/* ---- the list ---- */

static void operators_blocks_are_listed_with_who_made_them_and_why(void **state)
{
    ask("POST /v1/keys/block", "{\"limit\":\"pair\",\"key\":[\"al\",\"192.0.2.1\"],"
                               "\"for_ms\":60000,\"why\":\"scrapes the shop\"}");
    assert_int_equal(a.status, 200);
    ask("POST /v1/keys/block", "{\"limit\":\"adhoc\",\"key\":\"al\"}");
    ask("GET /v1/blocks?limit=pair", "");
    assert_body("\"key\":\"al|192.0.2.1\",\"banned\":false", true);
    assert_body("\"by\":\"admin 127.0.0.1\",\"why\":\"scrapes the shop\"}", true);
    long long left = admin_number(&a, "blocked_ms");
    assert_true(left > 0 && left <= 60000);
    assert_int_equal(admin_number(&a, "until_ms") - admin_number(&a, "since_ms"), 60000);
    assert_body("adhoc", false);
    ask("GET /v1/blocks?limit=adhoc", "");
    assert_body("\"until_ms\":null,\"blocked_ms\":-1,", true);
    ask("POST /v1/keys/unblock", "{\"limit\":\"adhoc\",\"key\":\"al\"}");
    ask("GET /v1/blocks?limit=adhoc", "");
    assert_body("{\"blocks\":[],\"left_out\":0,\"unnamed\":0}", true);
}

static void bad_questions_about_blocks_are_refused(void **state)
{
    static const struct {
        const char *line;
        const char *body;
        int status;
    } rows[] = {
        {"GET /v1/blocks?limit=none", "", 404},
        {"GET /v1/blocks?limit=", "", 400},
        {"GET /v1/blocks?n=5", "", 400},
        {"GET /v1/blocks?limit=a&limit=b", "", 400},
        {"POST /v1/keys/block", "{\"limit\":\"pair\",\"key\":[\"a\",\"::1\"],\"why\":\"\"}", 400},
        {"POST /v1/keys/reset", "{\"limit\":\"pair\",\"key\":[\"a\",\"::1\"],\"why\":\"x\"}", 400},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ask(rows[i].line, rows[i].body);
        if (a.status != rows[i].status) {
            fail_msg("%s: expected %d, found %s", rows[i].line, rows[i].status, a.text);
        }
    }
    char body[400];
    (void)snprintf(body, sizeof body,
                   "{\"limit\":\"pair\",\"key\":[\"a\",\"::1\"],\"why\":\"%0200d\"}", 0);
    ask("POST /v1/keys/block", body);
    assert_int_equal(a.status, 400);
    assert_body("why: found 200 bytes, expected at most 127", true);
    ask("GET /v1/blocks", "");
    assert_body("{\"blocks\":[],\"left_out\":0,\"unnamed\":0}", true); /* nothing has changed */
}

static void a_list_that_is_too_long_says_how_much_is_left_out(void **state)
{
    char body[128];
    for (unsigned i = 0; i < 1100; i++) {
        (void)snprintf(body, sizeof body,
                       i % 2 != 0 ? "{\"limit\":\"login\",\"key\":\"k%u\"}"
                                  : "{\"limit\":\"pair\",\"key\":[\"k%u\",\"::1\"]}",
                       i);
        ask("POST /v1/keys/block", body);
        assert_int_equal(a.status, 200);
    }
    ask("GET /v1/blocks", "");
    assert_int_equal(admin_number(&a, "left_out"), 100);
    assert_int_equal(admin_number(&a, "unnamed"), 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(denials_over_http_and_resp_ban_a_key),
        TEST(denials_at_the_gateways_endpoint_and_of_reservations_count),
        TEST(unblocking_lifts_a_ban_and_forgets_its_denials),
        TEST(a_reload_keeps_bans_counts_and_the_list),
        TEST(operators_blocks_are_listed_with_who_made_them_and_why),
        TEST(bad_questions_about_blocks_are_refused),
        TEST(a_list_that_is_too_long_says_how_much_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
