/* What RFC 9112 and RFC 8259 say of a request, byte by byte: which are answered or refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/server/server_http.h"

static const char rules[] =
    "limits:\n"
    "  - {name: api, key: [user], rate: 100/day}\n"
    "  - {name: deep, when: {path: /deep/**, host: shop.example}, key: [method],\n"
    "     rate: 1/day}\n";

static struct http_server *server;
static struct http_answer a;

static int start(void **state)
{
    server = calloc(1, sizeof *server);
    assert_non_null(server);
    http_server_start(server, rules, NULL);
    return 0;
}

static int stop(void **state)
{
    http_server_stop(server);
    free(server);
    return 0;
}

/* Sends the bytes on a connection of their own, and returns the status of the first answer. */
static int send_bytes(const char *bytes)
{
    int fd = http_connect(server);
    http_send(fd, bytes, strlen(bytes));
    assert_true(http_receive(fd, &a));
    (void)close(fd);
    return a.status;
}

static void assert_answer(const char *bytes, int status)
{
    if (send_bytes(bytes) != status) {
        fail_msg("%s: expected %d, found %s", bytes, status, a.text);
    }
}

#define HEAD " HTTP/1.1\r\nHost: localhost\r\n"
#define CHUNKED "POST /v1/check" HEAD "Transfer-Encoding: chunked\r\n\r\n"
#define ASK "{\"limit\":\"api\",\"key\":\"a\"}" /* 25 bytes, 0x19 */

static void a_body_ends_with_two_line_ends(void **state)
{
    assert_answer(CHUNKED "19\r\n" ASK "\r\n0\r\n\r\n", 200);
    assert_answer(CHUNKED "19\r\n" ASK "\r\n0\r\n\n", 400);
    assert_true(http_has_line(&a, "Connection: close"));
    assert_answer(CHUNKED "19\r\n" ASK "\r\n0\r\n\nGET /healthz HTTP/1.1\r\n", 400);
}

static void extensions_of_chunks_are_ignored(void **state)
{
    assert_answer(CHUNKED "19;a=b\r\n" ASK "\r\n0\r\n\r\n", 200);
    assert_answer(CHUNKED "19;a=\"b;c\"\r\n" ASK "\r\n0;last\r\n\r\n", 200);
}

static void a_target_may_have_a_host(void **state)
{
    assert_answer("GET http://localhost/healthz" HEAD "\r\n", 200);
    assert_answer("POST http://127.0.0.1:8080/v1/check" HEAD "Content-Length: 25\r\n\r\n" ASK, 200);
    /* its host counts, not the field's */
    assert_answer("POST http://evil.example/v1/check" HEAD "Content-Length: 25\r\n\r\n" ASK, 403);
    assert_answer("GET http://shop.example/v1/auth/deep/a" HEAD "X-Real-IP: 192.0.2.1\r\n\r\n",
                  200);
    assert_answer("GET http://shop.example/v1/auth/deep/a" HEAD "X-Real-IP: 192.0.2.1\r\n\r\n",
                  429);
    assert_answer("GET http://user@localhost/healthz" HEAD "\r\n", 400);
}

static void a_request_may_follow_an_empty_line(void **state)
{
    int fd = http_connect(server);
    static const char *const pieces[] = {"\r\n", "\r", "\nGET /healthz" HEAD "\r\n\r\n",
                                         "\r\n\r\nGET /healthz" HEAD "\r\n"};
    assert_answer("\r\nGET /healthz" HEAD "\r\n", 200);
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        http_send(fd, pieces[i], strlen(pieces[i]));
        if (i >= 2) {
            assert_true(http_receive(fd, &a));
            assert_int_equal(a.status, 200);
        }
    }
    (void)close(fd);
}

static void a_method_that_is_not_known_is_no_other_protocol(void **state)
{
    assert_answer("BREW /v1/check" HEAD "\r\n", 405);
    assert_true(http_has_line(&a, "Allow: POST"));
    assert_answer("post /v1/check" HEAD "Content-Length: 25\r\n\r\n" ASK, 405);
    assert_answer("BREW /none" HEAD "\r\n", 404);
    /* Envoy asks with its client's method, which may be any */
    assert_answer(
        "BREW /v1/auth/deep/a HTTP/1.1\r\nHost: shop.example\r\nX-Real-IP: 192.0.2.1\r\n\r\n", 200);
    assert_answer(
        "BREW /v1/auth/deep/a HTTP/1.1\r\nHost: shop.example\r\nX-Real-IP: 192.0.2.1\r\n\r\n", 429);
    assert_answer("CONNECT shop.example:443 HTTP/1.1\r\nHost: shop.example:443\r\n\r\n", 501);
    assert_true(http_has_line(&a, "Connection: close"));
    assert_answer("CONNECT /v1/check" HEAD "\r\n", 405);
    assert_answer("BREW(1) /v1/check" HEAD "\r\n", 400);
}

static void allow_names_head_where_get_is_allowed(void **state)
{
    assert_answer("POST /healthz" HEAD "Content-Length: 0\r\n\r\n", 405);
    assert_true(http_has_line(&a, "Allow: GET, HEAD"));
    assert_answer("POST /none" HEAD "Content-Length: 0\r\n\r\n", 404);
    assert_null(strstr(a.text, "Allow:"));
}

static int check_cost(const char *cost)
{
    char text[256];
    char body[128];
    int n = snprintf(body, sizeof body, "{\"limit\":\"api\",\"key\":\"b\",\"cost\":%s}", cost);
    (void)snprintf(text, sizeof text, "POST /v1/peek" HEAD "Content-Length: %d\r\n\r\n%s", n, body);
    return send_bytes(text);
}

static void a_number_is_whole_however_it_is_written(void **state)
{
    static const char *const whole[] = {"1", "1.0", "1e0", "1.5e1", "100.00", "10e-1", "1E2"};
    static const char *const not_whole[] = {
        "1.5", "0.0", "-1.0", "1e-1", "1e300", "1e19", "9007199254740994.0"};
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++) {
        assert_int_equal(check_cost(whole[i]), 200);
    }
    for (size_t i = 0; i < sizeof not_whole / sizeof not_whole[0]; i++) {
        assert_int_equal(check_cost(not_whole[i]), 400);
        assert_non_null(strstr(a.body, "expected a whole number"));
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_body_ends_with_two_line_ends),
        TEST(extensions_of_chunks_are_ignored),
        TEST(a_target_may_have_a_host),
        TEST(a_request_may_follow_an_empty_line),
        TEST(a_method_that_is_not_known_is_no_other_protocol),
        TEST(allow_names_head_where_get_is_allowed),
        TEST(a_number_is_whole_however_it_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
