#include "support/server/server_http.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

void http_server_start(struct http_server *s, const char *rules,
                       const struct server_options *options)
{
    struct weir_error error = {0};
    *s = (struct http_server){0};
    if (options != NULL) {
        s->server.options = *options;
    }
    s->server.options.listen[PROTOCOL_RESP] = "off";
    if (s->server.options.listen[PROTOCOL_HTTP] == NULL) {
        s->server.options.listen[PROTOCOL_HTTP] = "127.0.0.1:0";
    }
    if (s->server.options.listen[PROTOCOL_ADMIN] == NULL) {
        s->server.options.listen[PROTOCOL_ADMIN] = "off";
    }
    s->server.options.threads = 2;
    s->server.options.connections = 100;
    if (weir_rules_open_text(&s->server.rules, "test", rules, strlen(rules), NULL, &error) != 0 ||
        server_start(&s->server, &error) != 0) {
        fail_msg("%s", error.text);
    }
    (void)server_address(&s->server, PROTOCOL_HTTP, s->address, sizeof s->address);
}

void http_server_stop(struct http_server *s)
{
    server_stop(&s->server);
    weir_rules_close(s->server.rules);
}

static int connect_to(int family, const struct sockaddr *to, socklen_t size)
{
    struct timeval patience = {.tv_sec = 30};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    assert_int_equal(connect(fd, to, size), 0);
    return fd;
}

int http_connect(const struct http_server *s)
{
    const char *port = strrchr(s->address, ':');
    char host[sizeof s->address];
    struct sockaddr_in tcp = {.sin_family = AF_INET,
                              .sin_addr = {htonl(INADDR_LOOPBACK)},
                              .sin_port = htons((uint16_t)atoi(port + 1))};
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    if (strncmp(s->address, "unix:", 5) != 0) {
        (void)snprintf(host, sizeof host, "%.*s", (int)(port - s->address), s->address);
        (void)inet_pton(AF_INET, host, &tcp.sin_addr); /* not IPv4: 127.0.0.1 remains */
        return connect_to(AF_INET, (const struct sockaddr *)&tcp, sizeof tcp);
    }
    (void)snprintf(local.sun_path, sizeof local.sun_path, "%s", s->address + 5);
    return connect_to(AF_UNIX, (const struct sockaddr *)&local, sizeof local);
}

void http_send(int fd, const char *text, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, text, len, MSG_NOSIGNAL);
        assert_true(n > 0);
        text += n;
        len -= (size_t)n;
    }
}

/* Receives one more byte. Returns false at the end of the connection. */
static bool receive_byte(int fd, struct http_answer *a, size_t *n)
{
    assert_true(*n + 1 < sizeof a->text);
    ssize_t got = recv(fd, a->text + *n, 1, 0);
    if (got <= 0) {
        return false;
    }
    a->text[++*n] = 0;
    return true;
}

bool http_receive(int fd, struct http_answer *a)
{
    size_t n = 0;
    a->text[0] = 0;
    while (n < 4 || memcmp(a->text + n - 4, "\r\n\r\n", 4) != 0) {
        if (!receive_byte(fd, a, &n)) {
            return false;
        }
    }
    assert_int_equal(sscanf(a->text, "HTTP/1.1 %d ", &a->status), 1);
    const char *length = strstr(a->text, "\r\nContent-Length: ");
    size_t body = length != NULL ? strtoul(length + 18, NULL, 10) : 0;
    a->body = a->text + n;
    assert_true(n + body < sizeof a->text);
    if (body > 0) {
        assert_int_equal(recv(fd, a->text + n, body, MSG_WAITALL), (ssize_t)body);
    }
    a->text[n + body] = 0;
    return true;
}

void http_ask(const struct http_server *s, const char *line, const char *fields, const char *body,
              struct http_answer *a)
{
    static char text[1 << 18];
    int n = snprintf(text, sizeof text,
                     "%s HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %zu\r\n\r\n%s", line,
                     fields, strlen(body), body);
    int fd = http_connect(s);
    assert_in_range(n, 1, sizeof text - 1);
    http_send(fd, text, (size_t)n);
    assert_true(http_receive(fd, a));
    (void)close(fd);
}

bool http_has_line(const struct http_answer *a, const char *line)
{
    char whole[512];
    (void)snprintf(whole, sizeof whole, "\r\n%s\r\n", line);
    const char *found = strstr(a->text, whole);
    return found != NULL && found < a->body;
}

unsigned long http_retry_after(const struct http_answer *a)
{
    const char *found = strstr(a->text, "\r\nRetry-After: ");
    return found != NULL && found < a->body ? strtoul(found + 15, NULL, 10) : 0;
}
