/* The keys `expose` and `deny`: which limits replies name, and how /v1/auth denies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/server/server_http.h"

static const char rules[] =
    "attributes: {user: ['header:X-User']}\n"
    "limits:\n"
    "  - {name: fleet, when: {path: /both}, key: [], rate: 3/h}\n"
    "  - {name: user, when: {path: /both}, key: [user], rate: 4/h}\n"
    "  - {name: wide, when: {path: /both}, key: [user], rate: 100/h}\n"
    "  - {name: alone, when: {path: /alone}, key: [user], rate: 1/h, expose: false}\n"
    "  - {name: load, when: {path: /load}, key: [], rate: 1/h, expose: true}\n"
    "  - {name: paid, when: {path: /paid}, key: [user], rate: 1/h,\n"
    "     deny: {status: 402, message: 'Buy \"more\"'}}\n"
    "  - {name: words, when: {path: /words}, key: [user], rate: 1/h, deny: {message: later}}\n"
    "  - {name: must, when: {path: /must}, key: [user], rate: 1/h, on_missing: deny,\n"
    "     deny: {status: 401}}\n";

static struct http_server *server;
static struct http_answer a;

static int start(void **state)
{
    struct server_options options = {.auth_deny_status = 403};
    server = calloc(1, sizeof *server);
    assert_non_null(server);
    http_server_start(server, rules, &options);
    return 0;
}

static int stop(void **state)
{
    http_server_stop(server);
    free(server);
    return 0;
}

static int auth(const char *path, const char *user)
{
    char fields[128];
    (void)snprintf(fields, sizeof fields, "X-Original-URI: %s\r\n%s%s%s", path,
                   user[0] != 0 ? "X-User: " : "", user, user[0] != 0 ? "\r\n" : "");
    http_ask(server, "GET /v1/auth", fields, "", &a);
    return a.status;
}

static void assert_told(const char *part)
{
    if (strstr(a.text, part) == NULL) {
        fail_msg("not in the reply: %s\nfound: %s", part, a.text);
    }
}

static void assert_not_told(const char *part)
{
    if (strstr(a.text, part) != NULL) {
        fail_msg("in the reply: %s\nfound: %s", part, a.text);
    }
}

static void of_an_allowance_the_exposed_limit_with_the_least_remaining_is_told(void **state)
{
    assert_int_equal(auth("/both", "al"), 200);
    assert_told("RateLimit: \"user\";r=3;");
    assert_not_told("fleet");
    http_ask(server, "POST /v1/check", "", "{\"attributes\":{\"path\":\"/both\",\"user\":\"al\"}}",
             &a);
    assert_int_equal(a.status, 200);
    assert_told("RateLimit: \"user\";r=2;");
    assert_told("\"limit\":\"fleet\""); /* the program that asks is no client */
}

static void of_a_denial_only_limits_that_deny_are_told(void **state)
{
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(auth("/both", i == 0 ? "bo" : "al"), 200);
    }
    assert_int_equal(auth("/both", "cy"), 403);
    assert_true(http_retry_after(&a) > 0);
    assert_not_told("RateLimit");
    assert_not_told("fleet");
    assert_told("\"limit\":null,\"quota\":0,\"remaining\":-1,");
    assert_told("\"reason\":\"limit\"}");
}

static void the_exposed_limit_that_denies_is_told_with_the_longer_time(void **state)
{
    http_ask(server, "POST /v1/check", "",
             "{\"attributes\":{\"path\":\"/both\",\"user\":\"al\"},\"cost\":3}", &a);
    assert_int_equal(a.status, 200);
    http_ask(server, "POST /v1/check", "",
             "{\"attributes\":{\"path\":\"/both\",\"user\":\"al\"},\"cost\":3}", &a);
    assert_int_equal(a.status, 429);
    assert_int_equal(http_retry_after(&a), 3600); /* of the hidden limit: 3 at 3/h */
    assert_told("RateLimit: \"user\";r=1;");
    assert_not_told("\"fleet\";");
}

static void a_hidden_limit_is_not_told(void **state)
{
    assert_int_equal(auth("/alone", "al"), 200);
    assert_not_told("RateLimit");
    assert_int_equal(auth("/alone", "al"), 403);
    assert_not_told("alone");
    assert_not_told("RateLimit");
    assert_int_equal(http_retry_after(&a), 3600);
    assert_int_equal(auth("/load", ""), 200);
    assert_told("RateLimit: \"load\";r=0;");
    http_ask(server, "POST /v1/check", "", "{\"limit\":\"alone\",\"key\":\"al\"}", &a);
    assert_int_equal(a.status, 429);
    assert_not_told("RateLimit");
    assert_told("\"limit\":\"alone\"");
}

static void a_limit_has_a_status_and_words_of_its_own(void **state)
{
    assert_int_equal(auth("/paid", "al"), 200);
    assert_int_equal(auth("/paid", "al"), 402);
    assert_told("\"status\":402,\"detail\":\"Buy \\\"more\\\"\",");
    assert_told("RateLimit: \"paid\";r=0;");
    assert_int_equal(auth("/words", "al"), 200);
    assert_int_equal(auth("/words", "al"), 403); /* --auth-deny-status */
    assert_told("\"detail\":\"later\"");
    assert_int_equal(auth("/must", ""), 401);
    http_ask(server, "POST /v1/check", "", "{\"limit\":\"paid\",\"key\":\"al\"}", &a);
    assert_int_equal(a.status, 429);
    assert_not_told("detail");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            of_an_allowance_the_exposed_limit_with_the_least_remaining_is_told, start, stop),
        cmocka_unit_test_setup_teardown(of_a_denial_only_limits_that_deny_are_told, start, stop),
        cmocka_unit_test_setup_teardown(the_exposed_limit_that_denies_is_told_with_the_longer_time,
                                        start, stop),
        cmocka_unit_test_setup_teardown(a_hidden_limit_is_not_told, start, stop),
        cmocka_unit_test_setup_teardown(a_limit_has_a_status_and_words_of_its_own, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
