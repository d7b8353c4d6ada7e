/* Rates without a count, and attributes from cookies and paths, over the wire. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/server/server_client.h"
#include "support/server/server_http.h"

static const char rules[] =
    "attributes: {user: 'path:{user}', sid: 'cookie:sid', tier: request, name: request}\n"
    "limits:\n"
    "- {name: tiers, when: {path: /tiers}, key: [name], rate: 2/h, algorithm: leaky_bucket,\n"
    "   tiers: {vip: {rate: unlimited}, out: {rate: 0/s}}}\n"
    "- {name: users, when: {path: '/users/{user}/**'}, key: [user], rate: 1/day}\n"
    "- {name: shut, when: {path: /shut}, key: [], rate: 0/s}\n"
    "- {name: open, when: {path: /open}, key: [ip], rate: unlimited}\n"
    "- {name: sids, when: {path: /sid}, key: [sid], rate: 1/day}\n";

/* ---- by name and by attributes, over RESP ---- */

static struct server_world world;
static struct server_client client;

static int start_resp(void **state)
{
    struct server_options options = server_world_options();
    server_world_start(&world, rules, &options);
    server_connect(&client, world.address);
    return 0;
}

static int stop_resp(void **state)
{
    server_disconnect(&client);
    server_world_stop(&world);
    return 0;
}

#define UNLIMITED "['allow' 'tiers' 0 -1 0 0 0 '' 'limit']"
#define NEVER "['never' 'tiers' 0 0 -1 0 0 '' 'limit']"

static void a_limit_by_its_name_has_the_rate_of_its_tier(void **state)
{
    for (int i = 0; i < 9; i++) {
        assert_string_equal(server_ask(&client, "WEIR.CHECK tiers ann TIER vip COST 1000"),
                            UNLIMITED);
        assert_string_equal(server_ask(&client, "WEIR.CHECK tiers ann TIER out"), NEVER);
    }
    assert_string_equal(server_ask(&client, "WEIR.CHECK tiers ann TIER vip MAXWAIT 5"), UNLIMITED);
    assert_string_equal(server_ask(&client, "WEIR.PEEK tiers ann TIER out"), NEVER);
    assert_string_equal(server_ask(&client, "WEIR.ASK path /tiers name ann tier vip"), UNLIMITED);
    assert_string_equal(server_ask(&client, "WEIR.ASK path /tiers name ann tier out"), NEVER);
}

static void a_reservation_of_rate_0_is_never_made(void **state)
{
    const char *said = server_ask(&client, "WEIR.RESERVE tiers ann TIER out");
    assert_int_equal(strncmp(said, "['never' 'tiers' 0 0", 20), 0);
    said = server_ask(&client, "WEIR.RESERVE tiers ann TIER vip COST 77");
    assert_int_equal(strncmp(said, "['allow' 'tiers' 0 -1", 21), 0);
}

static void a_part_of_the_path_is_an_attribute_of_every_question(void **state)
{
    const char *said = server_ask(&client, "WEIR.ASK path /users/ann/x");
    assert_int_equal(strncmp(said, "['allow' 'users' 1 0", 20), 0);
    said = server_ask(&client, "WEIR.CHECK users ann");
    assert_int_equal(strncmp(said, "['deny' 'users' 1 0", 19), 0);
}

/* ---- a gateway's questions ---- */

static struct http_server *server;
static struct http_answer a;

static int start_http(void **state)
{
    server = calloc(1, sizeof *server);
    http_server_start(server, rules, NULL);
    return 0;
}

static int stop_http(void **state)
{
    http_server_stop(server);
    free(server);
    return 0;
}

static void assert_auth(const char *fields, int status)
{
    http_ask(server, "GET /v1/auth", fields, "", &a);
    if (a.status != status) {
        fail_msg("%s: expected %d, found: %s", fields, status, a.text);
    }
}

static void cookies_and_segments_are_keys_of_a_gateways_request(void **state)
{
    assert_auth("X-Original-URI: /users/ann/x\r\n", 200);
    assert_auth("X-Original-URI: /users/ann?y\r\n", 429);
    assert_auth("X-Original-URI: /users/bob\r\n", 200);
    assert_auth("X-Original-URI: /sid\r\nCookie: lang=en; sid=1\r\n", 200);
    assert_auth("X-Original-URI: /sid\r\nCookie: sid=\"1\"; lang=en\r\n", 429);
    assert_auth("X-Original-URI: /sid\r\nCookie: sid=2\r\n", 200);
    assert_auth("X-Original-URI: /sid\r\nCookie: sid=2; sid=3\r\n", 400);
    assert_auth("X-Original-URI: /sid\r\nCookie: sid=4\r\nCookie: sid=5\r\n", 400);
}

static void a_rate_of_0_is_403_and_an_unlimited_one_has_no_fields(void **state)
{
    assert_auth("X-Original-URI: /shut\r\n", 403);
    assert_null(strstr(a.text, "Retry-After"));
    assert_auth("X-Original-URI: /open\r\n", 200);
    assert_null(strstr(a.text, "RateLimit"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_limit_by_its_name_has_the_rate_of_its_tier, start_resp,
                                        stop_resp),
        cmocka_unit_test_setup_teardown(a_reservation_of_rate_0_is_never_made, start_resp,
                                        stop_resp),
        cmocka_unit_test_setup_teardown(a_part_of_the_path_is_an_attribute_of_every_question,
                                        start_resp, stop_resp),
        cmocka_unit_test_setup_teardown(cookies_and_segments_are_keys_of_a_gateways_request,
                                        start_http, stop_http),
        cmocka_unit_test_setup_teardown(a_rate_of_0_is_403_and_an_unlimited_one_has_no_fields,
                                        start_http, stop_http),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
