/*
 * A limit that is skipped because its key is missing: what each protocol and the operator are told.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/server/server_admin.h"
#include "support/server/server_client.h"

static const char rules[] =
    "limits:\n"
    "  - {name: login, when: {path: /login}, key: [ip], rate: 5/min}\n"
    "  - {name: by-user, when: {path: /s}, key: [user], group: g, rate: 9/min}\n"
    "  - {name: by-ip, when: {path: /s}, key: [ip], group: g, rate: 9/min}\n";

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

static void assert_body_has(const char *part)
{
    if (strstr(a.body, part) == NULL) {
        fail_msg("not in the body: %s\nfound: %s", part, a.body);
    }
}

static void json_answers_are_flagged(void **state)
{
    admin_check(world, "{\"attributes\":{\"path\":\"/login\"}}", &a);
    assert_int_equal(a.status, 200);
    assert_body_has("\"flags\":[\"missing\"]");
    admin_check(world, "{\"attributes\":{\"path\":\"/s\",\"ip\":\"192.0.2.1\"}}", &a);
    assert_body_has("\"flags\":[]");
    admin_check_batch(world, "{\"requests\":[{\"attributes\":{\"path\":\"/s\"}}]}", &a);
    assert_body_has("\"flags\":[\"missing\"]");
}

static void answers_over_resp_are_flagged(void **state)
{
    struct server_client c;
    server_connect(&c, world->address[PROTOCOL_RESP]);
    SERVER_TALK(&c, {"WEIR.ASK path /login", "['allow' null 0 -1 0 0 0 'missing' 'unmatched']"},
                {"WEIR.ASK path /login ip 192.0.2.1", "['allow' 'login' 5 4 0 12000 0 '' 'limit']"},
                {"WEIR.ASK path /s ip 192.0.2.1", "['allow' 'by-ip' ..."});
    server_disconnect(&c);
}

static void a_call_of_envoy_is_told_in_its_metadata(void **state)
{
    struct http_server s = {.server = {.failed = 0}};
    (void)strcpy(s.address, world->address[PROTOCOL_HTTP]);
    http_ask(&s, "POST /json", "",
             "{\"domain\":\"d\",\"descriptors\":[{\"entries\":[{\"key\":\"path\",\"value\":\"/login"
             "\"}]}]}",
             &a);
    assert_int_equal(a.status, 200);
    assert_string_equal(a.body, "{\"overallCode\":\"OK\",\"statuses\":[{\"code\":\"OK\"}],"
                                "\"dynamicMetadata\":{\"missing\":true}}");
    http_ask(&s, "POST /json", "",
             "{\"domain\":\"d\",\"descriptors\":[{\"entries\":[{\"key\":\"path\",\"value\":\"/login"
             "\"},{\"key\":\"ip\",\"value\":\"192.0.2.1\"}]}]}",
             &a);
    assert_int_equal(a.status, 200);
    assert_null(strstr(a.body, "dynamicMetadata"));
}

static void operators_see_how_often(void **state)
{
    for (unsigned i = 0; i < 3; i++) {
        admin_check(world, "{\"attributes\":{\"path\":\"/s\",\"ip\":\"192.0.2.1\"}}", &a);
    }
    admin_check(world, "{\"attributes\":{\"path\":\"/s\"}}", &a);
    admin_ask(world, "GET /v1/limits/by-user", "", "", &a);
    assert_body_has("\"missing\":4,\"uncovered\":1,");
    assert_true(admin_metric(world, "weir_missing_key_total{limit=\"by-user\"}") == 4);
    assert_true(admin_metric(world, "weir_missing_key_uncovered_total{limit=\"by-user\"}") == 1);
    assert_true(admin_metric(world, "weir_missing_key_uncovered_total{limit=\"by-ip\"}") == 1);
}

static void an_explanation_names_the_misspelt_attribute(void **state)
{
    admin_ask(world, "POST /v1/explain", "", "{\"attributes\":{\"path\":\"/s\",\"usr\":\"u\"}}",
              &a);
    assert_body_has(
        "\"why\":\"its key needs user, which is missing (on_missing: skip); the request "
        "has 'usr', which no rule uses: did you mean 'user'?\"");
    assert_body_has("\"why\":\"its key needs ip, which is missing (on_missing: skip)\"");
    assert_body_has("\"flags\":[\"missing\"]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(json_answers_are_flagged, start, stop),
        cmocka_unit_test_setup_teardown(answers_over_resp_are_flagged, start, stop),
        cmocka_unit_test_setup_teardown(a_call_of_envoy_is_told_in_its_metadata, start, stop),
        cmocka_unit_test_setup_teardown(operators_see_how_often, start, stop),
        cmocka_unit_test_setup_teardown(an_explanation_names_the_misspelt_attribute, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
