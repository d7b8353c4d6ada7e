/* The client that commands use: against servers that behave, and servers that do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/http_client.h"

/* A server for one connection: reads a head, says something, and ends or waits for the other. */
struct server {
    int listener;
    pthread_t thread;
    const char *reply;
    bool stays; /* until the client ends */
    char request[4096];
    char address[160];
};

static void read_head(struct server *s, int fd)
{
    size_t used = 0;
    while (used < sizeof s->request - 1) {
        ssize_t n = read(fd, s->request + used, sizeof s->request - 1 - used);
        used += n > 0 ? (size_t)n : 0;
        s->request[used] = 0;
        if (n <= 0 || strstr(s->request, "\r\n\r\n") != NULL) {
            break;
        }
    }
}

static void *serve(void *arg)
{
    struct server *s = arg;
    char byte;
    int fd = accept(s->listener, NULL, NULL);
    if (fd >= 0) {
        read_head(s, fd);
        (void)!write(fd, s->reply, strlen(s->reply));
        while (s->stays && read(fd, &byte, 1) > 0) {
        }
        (void)close(fd);
    }
    return NULL;
}

static void start(struct server *s, const char *reply, bool stays)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    s->listener = socket(AF_INET, SOCK_STREAM, 0);
    s->reply = reply;
    s->stays = stays;
    assert_int_equal(bind(s->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(s->listener, 1), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&address, &size), 0);
    (void)snprintf(s->address, sizeof s->address, "127.0.0.1:%u", ntohs(address.sin_port));
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop(struct server *s)
{
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    (void)close(s->listener);
}

static struct http_result result;
static struct weir_error error;

static int call_to(const char *address, const char *secret, uint64_t timeout_ms)
{
    struct http_peer peer = {address, secret, timeout_ms, NULL};
    struct http_call call = {"PUT", "/v1/mode", "application/json", TEXT("{\"mode\":\"shadow\"}")};
    error = (struct weir_error){0};
    return http_call(&peer, &call, &result, &error);
}

static int call(const char *reply, bool stays, uint64_t timeout_ms)
{
    static struct server s;
    start(&s, reply, stays);
    int e = call_to(s.address, "secret", timeout_ms);
    stop(&s);
    return e;
}

static void assert_complaint(const char *text)
{
    if (strstr(error.text, text) == NULL) {
        fail_msg("'%s', expected '%s'", error.text, text);
    }
}

static void a_request_says_who_what_and_how_long(void **state)
{
    static struct server s;
    start(&s, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", false);
    assert_int_equal(call_to(s.address, "secret", 20000), 0);
    stop(&s);
    char host[200];
    (void)snprintf(host, sizeof host, "\r\nHost: %s\r\n", s.address);
    assert_true(strncmp(s.request, "PUT /v1/mode HTTP/1.1\r\n", 23) == 0);
    assert_non_null(strstr(s.request, host));
    assert_non_null(strstr(s.request, "\r\nAuthorization: Bearer secret\r\n"));
    assert_non_null(strstr(s.request, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(s.request, "\r\nContent-Length: 17\r\n"));
    assert_int_equal(result.response.status, 200);
    http_result_finish(&result);
}

static void an_answer_is_not_waited_for_longer_than_it_takes(void **state)
{
    assert_int_equal(call("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", true, 20000), 0);
    http_result_finish(&result);
    assert_int_equal(
        call("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", true,
             20000),
        0);
    assert_int_equal(result.response.body.len, 2);
    http_result_finish(&result);
}

static void who_says_nothing_is_not_waited_for_for_ever(void **state)
{
    static const char *const beginnings[] = {"", "HTTP/1.1 200 OK\r\n",
                                             "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}"};
    for (size_t i = 0; i < sizeof beginnings / sizeof beginnings[0]; i++) {
        assert_int_equal(call(beginnings[i], true, 50), WEIR_EIO);
        assert_complaint("no answer: Connection timed out");
        http_result_finish(&result);
    }
}

static void what_ends_early_or_is_no_http_is_told(void **state)
{
    assert_int_equal(call("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", false, 20000),
                     WEIR_EIO);
    assert_complaint("the connection ended in the middle of the answer");
    http_result_finish(&result);
    assert_int_equal(call("-ERR unknown command 'PUT'\r\n", true, 20000), WEIR_EIO);
    assert_complaint("the answer is not HTTP/1.1");
    http_result_finish(&result);
}

static void a_secret_cannot_begin_a_line_of_its_own(void **state)
{
    static const char *const secrets[] = {"", " a", "a b", "a\r\nX: y", "a\nb", "gr\xc3\xbcn"};
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        assert_int_equal(call_to("127.0.0.1:1", secrets[i], 1000), WEIR_EINVAL);
        assert_complaint("expected");
        http_result_finish(&result);
    }
}

static void what_is_no_address_is_refused(void **state)
{
    static const char *const addresses[] = {
        "",     "localhost", "1.2.3.4:",  "1.2.3.4:65536", ":80",
        "[]:1", "unix:",     "1.2.3.4:x", "1.2.3.4:123456"};
    char longer[512] = "unix:/";
    for (size_t i = 0; i < sizeof addresses / sizeof addresses[0]; i++) {
        assert_int_equal(call_to(addresses[i], NULL, 1000), WEIR_EINVAL);
        assert_complaint("expected");
        http_result_finish(&result);
    }
    memset(longer + 6, 'x', sizeof longer - 7);
    assert_int_equal(call_to(longer, NULL, 1000), WEIR_EINVAL);
    http_result_finish(&result);
}

static void ipv6_is_written_in_brackets(void **state)
{
    (void)call_to("[::1]:1", NULL, 1000);
    assert_complaint("[::1]:1: "); /* refused, or no IPv6 here: it was an address */
    assert_int_equal(error.code, WEIR_EIO);
    http_result_finish(&result);
}

static void what_is_no_letter_is_encoded(void **state)
{
    struct buffer b;
    buffer_init(&b, 4096);
    http_put_encoded(&b, TEXT("a-Z_0.~ /?&=+%\r\n\0\xff"));
    buffer_put_char(&b, 0);
    assert_string_equal(buffer_text(&b).at, "a-Z_0.~%20%2F%3F%26%3D%2B%25%0D%0A%00%FF");
    buffer_finish(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_says_who_what_and_how_long),
        cmocka_unit_test(an_answer_is_not_waited_for_longer_than_it_takes),
        cmocka_unit_test(who_says_nothing_is_not_waited_for_for_ever),
        cmocka_unit_test(what_ends_early_or_is_no_http_is_told),
        cmocka_unit_test(a_secret_cannot_begin_a_line_of_its_own),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(ipv6_is_written_in_brackets),
        cmocka_unit_test(what_is_no_letter_is_encoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
