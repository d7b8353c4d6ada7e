/* Questions of gateways, and the fields that tell how much is left. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/server/server_http.h"
#include "wire/ratelimit.h"

static const char rules[] =
    "allow: [{path: /free}]\n"
    "block: [{user: [mallory]}]\n"
    "attributes: {user: ['header:X-User'], api_key: ['header:X-Api-Key', 'query:api_key']}\n"
    "limits:\n"
    "  - {name: ips, when: {path: /ip}, key: [ip], rate: 1/day}\n"
    "  - {name: posts, when: {path: /method, method: POST}, key: [user], rate: 1/day}\n"
    "  - {name: hosts, when: {path: /host}, key: [host], rate: 1/day}\n"
    "  - {name: keys, when: {path: /key}, key: [api_key], on_missing: deny, rate: 1/day}\n"
    "  - {name: shop, when: {path: /shop/**, method: POST, host: shop.example}, key: [ip],\n"
    "     rate: 1/day}\n"
    "  - {name: late, when: {path: /late}, key: [user], rate: 1/h, retry_jitter: 50%}\n"
    "  - {name: five, when: {path: /five}, key: [user], rate: 10/min, burst: 5}\n"
    "  - {name: users, when: {path: /deep/**}, key: [user], rate: 1/day}\n";

static struct http_server *server;
static struct http_answer a;

static void begin(const struct server_options *options)
{
    server = calloc(1, sizeof *server);
    assert_non_null(server);
    http_server_start(server, rules, options);
}

static void end(void)
{
    http_server_stop(server);
    free(server);
}

static int ask(const char *line, const char *fields)
{
    http_ask(server, line, fields, "", &a);
    return a.status;
}

static int auth(const char *fields)
{
    return ask("GET /v1/auth", fields);
}

static void assert_status(int found, int expected)
{
    if (found != expected) {
        fail_msg("expected %d, found: %s", expected, a.text);
    }
}

/* ---- the request that is asked about ---- */

static void each_proxy_tells_the_uri_in_its_own_field(void **state)
{
    static const char *const fields[] = {
        "X-Forwarded-Uri: /deep/er?x=y\r\nX-User: traefik\r\n",
        "X-Original-URI: /deep/er?x=y\r\nX-User: nginx\r\n",
        "X-Original-URL: https://shop.example/deep/er?x=y\r\nX-User: ingress\r\n",
    };
    begin(NULL);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        assert_status(auth(fields[i]), 200);
        assert_true(http_has_line(&a, "RateLimit: \"users\";r=0;t=86400"));
        assert_status(auth(fields[i]), 429);
    }
    assert_status(ask("POST /v1/auth/deep/er?x=y", "X-User: envoy\r\n"), 200);
    assert_status(ask("POST /v1/auth/deep/er?x=y", "X-User: envoy\r\n"), 429);
    assert_status(ask("GET /v1/authx", ""), 404);
    end();
}

/* As they send it; each for another client. docs/guide/gateways */
static void each_gateway_asks_in_its_own_words(void **state)
{
    static const struct {
        const char *question;
        const char *ip;
    } cases[] = {
        {"HEAD /v1/auth HTTP/1.1\r\nHost: weir\r\nX-Original-Method: POST\r\n" /* nginx */
         "X-Original-URI: /shop/1?q=x\r\nX-Forwarded-Host: shop.example\r\n"
         "X-Forwarded-For: 203.0.113.1\r\n\r\n",
         "203.0.113.1"},
        {"GET /v1/auth HTTP/1.1\r\nHost: 10.0.0.5:8080\r\nUser-Agent: curl/7.88.1\r\n" /* Traefik */
         "Accept: */*\r\nX-Forwarded-For: 203.0.113.2\r\nX-Forwarded-Host: shop.example\r\n"
         "X-Forwarded-Method: POST\r\nX-Forwarded-Port: 80\r\nX-Forwarded-Proto: http\r\n"
         "X-Forwarded-Server: 8f1a\r\nX-Forwarded-Uri: /shop/1?q=x\r\n"
         "X-Real-Ip: 203.0.113.2\r\nAccept-Encoding: gzip\r\n\r\n",
         "203.0.113.2"},
        {"GET /v1/auth HTTP/1.1\r\nHost: shop.example\r\nUser-Agent: curl/7.88.1\r\n" /* Caddy */
         "Accept: */*\r\nContent-Type: application/json\r\nX-Forwarded-For: 203.0.113.3\r\n"
         "X-Forwarded-Host: shop.example\r\nX-Forwarded-Method: POST\r\n"
         "X-Forwarded-Proto: http\r\nX-Forwarded-Uri: /shop/1?q=x\r\n"
         "Accept-Encoding: gzip\r\n\r\n",
         "203.0.113.3"},
        {"POST /v1/auth/shop/1?q=x HTTP/1.1\r\nhost: shop.example\r\n" /* Envoy */
         "x-forwarded-for: 6.6.6.6,203.0.113.4\r\nx-envoy-internal: true\r\n"
         "x-envoy-expected-rq-timeout-ms: 250\r\ncontent-length: 0\r\n\r\n",
         "203.0.113.4"},
        {"GET /v1/auth HTTP/1.1\r\nHost: weir.default.svc.cluster.local\r\n" /* ingress-nginx */
         "X-Request-ID: 5f2d\r\nX-Original-URL: https://shop.example/shop/1?q=x\r\n"
         "X-Original-Method: POST\r\nX-Sent-From: nginx-ingress-controller\r\n"
         "X-Real-IP: 203.0.113.5\r\nX-Forwarded-For: 203.0.113.5\r\n"
         "X-Auth-Request-Redirect: /shop/1?q=x\r\nUser-Agent: curl/7.88.1\r\n"
         "Accept: */*\r\n\r\n",
         "203.0.113.5"},
    };
    begin(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char body[128];
        int fd = http_connect(server);
        http_send(fd, cases[i].question, strlen(cases[i].question));
        assert_true(http_receive(fd, &a));
        (void)close(fd);
        assert_status(a.status, 200);
        assert_true(http_has_line(&a, "RateLimit: \"shop\";r=0;t=86400"));
        (void)snprintf(body, sizeof body, "{\"limit\":\"shop\",\"key\":\"%s\"}", cases[i].ip);
        http_ask(server, "POST /v1/check", "", body, &a);
        assert_status(a.status, 429);
    }
    end();
}

static void the_method_is_that_of_the_client_not_of_the_proxy(void **state)
{
    begin(NULL);
    for (int i = 0; i < 3; i++) { /* a GET, whatever the proxy says to us */
        assert_status(ask("POST /v1/auth", "X-Forwarded-Uri: /method\r\nX-Forwarded-Method: GET\r\n"
                                           "X-User: a\r\n"),
                      200);
    }
    assert_status(auth("X-Original-URI: /method\r\nX-Original-Method: POST\r\nX-User: a\r\n"), 200);
    assert_status(auth("X-Original-URI: /method\r\nX-Original-Method: POST\r\nX-User: a\r\n"), 429);
    assert_status(ask("POST /v1/auth/method", "X-User: a\r\n"), 429);
    end();
}

static void the_host_is_the_forwarded_one_or_that_of_the_uri_or_our_own(void **state)
{
    begin(NULL);
    assert_status(auth("X-Forwarded-Uri: /host\r\nX-Forwarded-Host: A.example:80\r\n"), 200);
    assert_status(auth("X-Original-URL: http://a.example/host\r\n"), 429);
    assert_status(auth("X-Original-URL: http://b.example/host\r\n"), 200);
    assert_status(auth("X-Original-URI: /host\r\n"), 200); /* Host: localhost */
    assert_status(auth("X-Original-URI: /host\r\nX-Forwarded-Host: localhost\r\n"), 429);
    end();
}

static void a_host_that_gateways_read_in_different_ways_is_refused_or_the_same(void **state)
{
    static const char *const refused[] = {"a.example, b.example", "a.example?",   "a.example#x",
                                          "u@a.example",          "a.example\\",  "a.example/x",
                                          "a.example b.example",  "\"a.example\""};
    char fields[128];
    begin(NULL);
    assert_status(auth("X-Original-URI: /host\r\nX-Forwarded-Host: a.example\r\n"), 200);
    assert_status(auth("X-Original-URI: /host\r\nX-Forwarded-Host: a.example:x\r\n"), 429);
    assert_status(auth("X-Original-URI: /host\r\nX-Forwarded-Host: a.example:8\"\r\n"), 429);
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        (void)snprintf(fields, sizeof fields, "X-Original-URI: /host\r\nX-Forwarded-Host: %s\r\n",
                       refused[i]);
        assert_status(auth(fields), 400);
        assert_non_null(strstr(a.body, "expected a host"));
    }
    assert_status(auth("X-Original-URI: /host\r\nX-Forwarded-Host: b\xc3\xbc.example\r\n"), 200);
    end();
}

/* A proxy passes on the fields that it does not write itself, with what a client put into them. */
static void fields_that_describe_different_requests_are_refused(void **state)
{
    static const char *const forged[] = {
        "X-Original-URI: /ip\r\nX-Forwarded-Uri: /free\r\n",
        "X-Forwarded-Uri: /free\r\nX-Original-URL: http://weir/ip\r\n",
        "X-Original-URI: /ip\r\nX-Original-URI: /free\r\n",
        "X-Original-URI: /key?api_key=a\r\nX-Forwarded-Uri: /key?api_key=b\r\n",
        "X-Original-Method: POST\r\nX-Forwarded-Method: GET\r\n",
        "X-Original-URL: http://a.example/host\r\nX-Forwarded-Host: b.example\r\n",
    };
    begin(NULL);
    for (size_t i = 0; i < sizeof forged / sizeof forged[0]; i++) {
        assert_status(auth(forged[i]), 400);
        assert_non_null(strstr(a.body, "describe different requests"));
    }
    assert_status(ask("GET /v1/auth/ip", "X-Forwarded-Uri: /free\r\n"), 400); /* Envoy */
    assert_status(ask("POST /v1/auth/method", "X-Forwarded-Method: GET\r\n"), 400);
    assert_status(auth("X-Original-URI: /ip\r\nX-Forwarded-Uri: /ip\r\n"), 200);
    assert_status(auth("X-Original-URL: http://a.example:80/host\r\nX-Forwarded-Host: A.example\r\n"
                       "X-Original-URI: /host\r\nX-Forwarded-Uri:\r\n"),
                  200);
    end();
}

/* ingress-nginx writes the client's Host into X-Original-URL as it is, and nginx lets a
 * question mark pass there: what follows is a query for those who read the whole, and the
 * path for the application. */
static void a_host_that_would_hide_the_path_is_refused(void **state)
{
    static const char *const hosts[] = {"a.example?", "a.example?x=", "?", "a.example:80?", "a?b#"};
    char fields[128];
    begin(NULL);
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        (void)snprintf(fields, sizeof fields, "X-Original-URL: http://%s/ip\r\n", hosts[i]);
        assert_status(auth(fields), 400);
        assert_non_null(strstr(a.body, "expected a path after the host"));
    }
    assert_status(auth("X-Original-URL: http://a.example\r\n"),
                  200); /* only a host is a whole URL */
    assert_status(auth("X-Original-URL: http:///ip\r\n"), 200);
    assert_status(auth("X-Original-URI: /ip?u=http://b.example?x\r\n"), 429);
    assert_status(auth("X-Original-URI: ip?u=http://b.example/free\r\n"), 429);
    end();
}

static void attributes_come_from_fields_and_queries_as_the_rules_say(void **state)
{
    begin(NULL);
    assert_status(auth("X-Original-URI: /key\r\nX-API-KEY: k1\r\n"), 200);
    assert_status(auth("X-Original-URI: /key?a=b&api%5fkey=k%31\r\n"), 429);
    assert_status(auth("X-Original-URI: /key?api_key=k2\r\nX-Api-Key: k3\r\n"), 200);
    assert_status(auth("X-Original-URI: /key\r\nX-Api-Key: k3\r\n"), 429);
    assert_status(auth("X-Original-URI: /key?api_key=k2\r\n"), 200);
    end();
}

/* Else a client could choose which of two keys it is counted under, or none. */
static void a_key_that_is_given_twice_or_after_too_many_parameters_is_refused(void **state)
{
    char fields[1024] = "X-Original-URI: /key?";
    begin(NULL);
    assert_status(auth("X-Original-URI: /key\r\nX-Api-Key: k1\r\nX-Api-Key: k2\r\n"), 400);
    for (int i = 0; i < 128; i++) {
        strcat(fields, "a=b&");
    }
    strcat(fields, "api_key=k1\r\n");
    assert_status(auth(fields), 400);
    end();
}

/* ---- the answer ---- */

static void allow_lists_and_block_lists_count_here_too(void **state)
{
    begin(NULL);
    assert_status(auth("X-Forwarded-Uri: /free\r\n"), 200);
    assert_status(auth("X-Forwarded-Uri: /ip\r\nX-User: mallory\r\n"), 403);
    end();
}

/* nginx and Caddy close a connection with a body on it that they do not want. */
static void a_yes_has_no_body(void **state)
{
    begin(NULL);
    assert_status(auth("X-Forwarded-Uri: /ip\r\n"), 200);
    assert_true(http_has_line(&a, "Content-Length: 0"));
    assert_null(strstr(a.text, "Content-Type:"));
    assert_status(auth("X-Forwarded-Uri: /ip\r\n"), 429);
    assert_non_null(strstr(a.body, "\"verdict\":\"deny\""));
    end();
}

/* Else it would come again for ever. */
static void a_request_that_can_never_pass_gets_no_retry_time(void **state)
{
    begin(NULL);
    assert_status(auth("X-Original-URI: /key\r\n"), 403); /* without the key that it needs */
    assert_int_equal(http_retry_after(&a), 0);
    assert_non_null(strstr(a.body, "\"verdict\":\"never\""));
    end();
}

/* nginx takes no status for no but 401 and 403. */
static void the_status_of_a_denial_can_be_chosen(void **state)
{
    begin(&(struct server_options){.auth_deny_status = 403});
    assert_status(auth("X-Original-URI: /ip\r\n"), 200);
    assert_status(auth("X-Original-URI: /ip\r\n"), 403);
    assert_in_range(http_retry_after(&a), 86000, 86400);
    assert_non_null(strstr(a.body, "\"verdict\":\"deny\""));
    assert_status(auth("X-Original-URI: /key\r\n"), 403); /* never: a no like others */
    assert_null(strstr(a.text, "Retry-After"));
    http_ask(server, "POST /v1/check", "", "{\"limit\":\"ips\",\"key\":\"127.0.0.1\"}", &a);
    assert_status(a.status, 429); /* only of /v1/auth */
    end();
}

static void a_malformed_question_is_answered_with_400(void **state)
{
    begin(NULL);
    assert_status(auth("X-Original-URI: /a%2Fb/../login\r\n"), 400);
    assert_status(auth("X-Original-URI: /a%00b\r\n"), 400);
    end();
}

/* ---- how much is left ---- */

static void the_fields_have_the_format_that_was_chosen(void **state)
{
    static const char *const expected[RATELIMIT_FORMATS] = {
        [RATELIMIT_IETF] = "RateLimit: \"ips\";r=0;t=86400",
        [RATELIMIT_X_EPOCH] = "X-RateLimit-Remaining: 0",
        [RATELIMIT_X_DELTA] = "X-RateLimit-Reset: 86400",
        [RATELIMIT_OFF] = NULL,
    };
    for (int i = 0; i < RATELIMIT_FORMATS; i++) {
        begin(&(struct server_options){.headers = i});
        assert_status(auth("X-Forwarded-Uri: /ip\r\n"), 200);
        if (expected[i] != NULL) {
            assert_true(http_has_line(&a, expected[i]));
        } else {
            assert_null(strstr(a.text, "RateLimit"));
        }
        end();
    }
}

/* What the body says is exact. */
static void retry_jitter_is_added_to_the_field_alone(void **state)
{
    unsigned long least = ULONG_MAX;
    unsigned long most = 0;
    begin(NULL);
    assert_status(auth("X-Original-URI: /late\r\nX-User: a\r\n"), 200);
    for (int i = 0; i < 60; i++) {
        assert_status(auth("X-Original-URI: /late\r\nX-User: a\r\n"), 429);
        const char *exact = strstr(a.body, "\"retry_after_ms\":");
        assert_non_null(exact);
        unsigned long ms = strtoul(exact + 17, NULL, 10);
        unsigned long told = http_retry_after(&a);
        assert_in_range(ms, 3500000, 3600000);
        assert_in_range(told, (ms + 999) / 1000, (ms + ms / 2 + 999) / 1000);
        least = told < least ? told : least;
        most = told > most ? told : most;
    }
    assert_in_range(least, 3500, 4200); /* of 3600 to 5400: each missed once in 10^10 runs */
    assert_in_range(most, 4800, 5400);
    end();
}

/* RFC 9651: what fits into the quota, and into which time; for a bucket, that which fills it. */
static void a_policy_has_its_window(void **state)
{
    begin(NULL);
    assert_status(auth("X-Original-URI: /five\r\nX-User: a\r\n"), 200);
    assert_true(http_has_line(&a, "RateLimit-Policy: \"five\";q=5;w=30"));
    assert_true(http_has_line(&a, "RateLimit: \"five\";r=4;t=6"));
    http_ask(server, "POST /v1/check", "", "{\"limit\":\"five\",\"key\":\"b\"}", &a);
    assert_true(http_has_line(&a, "RateLimit-Policy: \"five\";q=5;w=30"));
    end();
}

/* RFC 6585: a 429 must not be stored; and who was let in once is not let in by a copy. */
static void no_answer_may_be_stored(void **state)
{
    begin(NULL);
    assert_status(auth("X-Forwarded-Uri: /ip\r\n"), 200);
    assert_true(http_has_line(&a, "Cache-Control: no-store"));
    assert_status(auth("X-Forwarded-Uri: /ip\r\n"), 429);
    assert_true(http_has_line(&a, "Cache-Control: no-store"));
    assert_true(http_has_line(&a, "Content-Type: application/problem+json"));
    assert_non_null(strstr(a.body, "\"type\":\"https://iana.org/assignments/"
                                   "http-problem-types#quota-exceeded\""));
    assert_non_null(strstr(a.body, "\"violated-policies\":[\"ips\"]"));
    end();
}

static void a_reset_in_unix_time_is_the_clocks(void **state)
{
    begin(&(struct server_options){.headers = RATELIMIT_X_EPOCH});
    time_t before = time(NULL);
    assert_status(auth("X-Forwarded-Uri: /ip\r\n"), 200);
    const char *reset = strstr(a.text, "X-RateLimit-Reset: ");
    assert_non_null(reset);
    long long at = atoll(reset + strlen("X-RateLimit-Reset: "));
    assert_true(at >= before + 86399 && at <= time(NULL) + 86401);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_proxy_tells_the_uri_in_its_own_field),
        cmocka_unit_test(each_gateway_asks_in_its_own_words),
        cmocka_unit_test(the_method_is_that_of_the_client_not_of_the_proxy),
        cmocka_unit_test(the_host_is_the_forwarded_one_or_that_of_the_uri_or_our_own),
        cmocka_unit_test(fields_that_describe_different_requests_are_refused),
        cmocka_unit_test(a_host_that_gateways_read_in_different_ways_is_refused_or_the_same),
        cmocka_unit_test(a_host_that_would_hide_the_path_is_refused),
        cmocka_unit_test(attributes_come_from_fields_and_queries_as_the_rules_say),
        cmocka_unit_test(a_key_that_is_given_twice_or_after_too_many_parameters_is_refused),
        cmocka_unit_test(allow_lists_and_block_lists_count_here_too),
        cmocka_unit_test(a_yes_has_no_body),
        cmocka_unit_test(a_request_that_can_never_pass_gets_no_retry_time),
        cmocka_unit_test(the_status_of_a_denial_can_be_chosen),
        cmocka_unit_test(a_malformed_question_is_answered_with_400),
        cmocka_unit_test(the_fields_have_the_format_that_was_chosen),
        cmocka_unit_test(retry_jitter_is_added_to_the_field_alone),
        cmocka_unit_test(a_policy_has_its_window),
        cmocka_unit_test(no_answer_may_be_stored),
        cmocka_unit_test(a_reset_in_unix_time_is_the_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
