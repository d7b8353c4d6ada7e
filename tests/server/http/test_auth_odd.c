/*
 * What /v1/auth answers to requests that clients of a gateway can cause: for a 5xx, or without an
 * answer, gateways that fail open let the request pass. So each gets an answer, and that is a
 * decision or a 4xx.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/server/server_http.h"

#define RULES                                                                                      \
    "attributes: {user: ['header:X-User-Id'], q: ['query:q'], sid: ['cookie:sid']}\n"              \
    "limits:\n"                                                                                    \
    "- {name: path, when: {path: '/**', method: '*', host: '*'}, key: [ip], rate: 0/day}\n"        \
    "- {name: user, key: [user], rate: 0/day}\n"                                                   \
    "- {name: q, key: [q], rate: 0/day}\n"                                                         \
    "- {name: sid, key: [sid], rate: 0/day}\n"

static struct http_answer a;

/* Returns the status of the answer to a request whose field has `len` times the byte; the head ends
 * with `more`. */
static int status_of(const struct http_server *s, const char *line, const char *field, char byte,
                     size_t len, const char *more)
{
    size_t room = strlen(line) + strlen(field) + len + strlen(more) + 64;
    char *text = malloc(room);
    assert_non_null(text);
    int n = snprintf(text, room, "%s\r\nHost: shop.example\r\n%s", line, field);
    memset(text + n, byte, len);
    n += (int)len;
    n += snprintf(text + n, room - (size_t)n, "\r\n%s\r\n", more);
    int fd = http_connect(s);
    http_send(fd, text, (size_t)n);
    if (!http_receive(fd, &a)) {
        fail_msg("%s, %s: there is no answer", line, field);
    }
    (void)close(fd);
    free(text);
    return a.status;
}

static void each_odd_request_gets_an_answer_that_stops_it(void **state)
{
    static const char *const fields[] = {"X-Original-URI: /",
                                         "X-Forwarded-Uri: /?q=",
                                         "X-Original-URI: /%00",
                                         "X-Original-URI: /a/..;/",
                                         "X-Original-Method: ",
                                         "X-Forwarded-Host: ",
                                         "X-User-Id: ",
                                         "Cookie: sid=",
                                         "X-Forwarded-For: ",
                                         "Content-Length: ",
                                         "Expect: ",
                                         "Transfer-Encoding: ",
                                         "Forwarded: for="};
    static const char bytes[] = {'x', '1', '\xff', '\1', 0, '%', '/', '&'};
    static const size_t sizes[] = {0, 1, 300, 5000, 17000, 200000};
    static const char *const more[] = {
        "", "X-User-Id: a\r\nX-User-Id: b\r\n", "X-Original-URI: /other\r\n",
        "X-Forwarded-For: 192.0.2.9\r\n", "Cookie: sid=1; sid=2\r\n"};
    struct http_server s;
    unsigned asked = 0;
    http_server_start(&s, RULES, NULL);
    for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++) {
        for (size_t b = 0; b < sizeof bytes; b++) {
            for (size_t n = 0; n < sizeof sizes / sizeof sizes[0]; n++) {
                int status = status_of(&s, "GET /v1/auth HTTP/1.1", fields[f], bytes[b], sizes[n],
                                       more[asked % (sizeof more / sizeof more[0])]);
                if (status < 400 || status > 499) {
                    fail_msg("'%s' and %zu times 0x%02x: %d", fields[f], sizes[n],
                             (unsigned char)bytes[b], status);
                }
                asked++;
            }
        }
    }
    assert_true(asked > 500);
    http_server_stop(&s);
}

/* Envoy asks with the client's method, and with its path after ours. */
static void odd_paths_and_methods_do_so_too(void **state)
{
    static const char *const lines[] = {"GET /v1/auth/../../healthz HTTP/1.1",
                                        "GET /v1/auth/%2e%2e/%2e%2e/readyz HTTP/1.1",
                                        "GET /v1/auth//healthz HTTP/1.1",
                                        "GET /v1/auth/%00 HTTP/1.1",
                                        "OPTIONS /v1/auth* HTTP/1.1",
                                        "CONNECT /v1/auth/x HTTP/1.1",
                                        "TRACE /v1/auth/x HTTP/1.1",
                                        "GET /v1/auth/\xff HTTP/1.1",
                                        "GET /v1/auth/a b HTTP/1.1",
                                        "GET /v1/auth/x HTTP/3.0",
                                        "GET /v1/auth/..%2f..%2fhealthz HTTP/1.1"};
    struct http_server s;
    http_server_start(&s, RULES, NULL);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        int status = status_of(&s, lines[i], "X-User-Id: ", 'u', 3, "");
        if (status < 400 || status > 499) {
            fail_msg("%s: %d", lines[i], status);
        }
    }
    http_server_stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_odd_request_gets_an_answer_that_stops_it),
        cmocka_unit_test(odd_paths_and_methods_do_so_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
