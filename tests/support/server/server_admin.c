#include "support/server/server_admin.h"

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
#include <unistd.h>

#include <cmocka.h>

#include "server/record/denied_log.h"

void admin_world_write(const struct admin_world *w, const char *rules)
{
    FILE *f = fopen(w->file, "w");
    assert_non_null(f);
    assert_true(fputs(rules, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

void admin_world_start(struct admin_world *w, const char *rules,
                       const struct server_options *options)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_error error = {0};
    *w = (struct admin_world){.file = "/tmp/weir-admin-XXXXXX"};
    int fd = mkstemp(w->file);
    assert_true(fd >= 0);
    (void)close(fd);
    admin_world_write(w, rules);
    if (options != NULL) {
        w->server.options = *options;
    }
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        const char *given = w->server.options.listen[i];
        w->server.options.listen[i] = given != NULL ? given : "127.0.0.1:0";
    }
    w->server.options.threads = 2;
    w->server.options.connections = 1000;
    w->server.options.adhoc_keys = 1000;
    o.denied = denied_note;
    o.message = server_log_message;
    if (weir_rules_open(&w->server.rules, w->file, &o, &error) != 0 ||
        server_start(&w->server, &error) != 0) {
        fail_msg("%s", error.text);
    }
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        (void)server_address(&w->server, (enum server_protocol)i, w->address[i],
                             sizeof w->address[i]);
    }
}

void admin_world_stop(struct admin_world *w)
{
    server_stop(&w->server);
    weir_rules_close(w->server.rules);
    (void)unlink(w->file);
}

/* `from` is the last byte of the client's address, 127.0.0.x. */
static int connect_from(const char *address, unsigned from)
{
    const char *port = strrchr(address, ':');
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)strtoul(port + 1, NULL, 10))};
    struct timeval patience = {.tv_sec = 60};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr = {htonl(0x7f000000u + from)}};
    assert_int_equal(bind(fd, (const struct sockaddr *)&here, sizeof here), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

static int connect_to(const char *address)
{
    return connect_from(address, 1);
}

int admin_connect(const struct admin_world *w, unsigned from)
{
    return connect_from(w->address[PROTOCOL_ADMIN], from);
}

static void ask(const char *address, const char *line, const char *fields, const char *body,
                struct http_answer *a)
{
    char *text = malloc(strlen(body) + strlen(fields) + strlen(line) + 256);
    assert_non_null(text);
    int n = sprintf(text, "%s HTTP/1.1\r\n%s%s%sContent-Length: %zu\r\n\r\n%s", line,
                    strstr(fields, "Host: ") == NULL ? "Host: localhost\r\n" : "", fields,
                    body[0] != 0 && strstr(fields, "Content-Type") == NULL
                        ? "Content-Type: application/json\r\n"
                        : "",
                    strlen(body), body);
    int fd = connect_to(address);
    http_send(fd, text, (size_t)n);
    assert_true(http_receive(fd, a));
    (void)close(fd);
    free(text);
}

void admin_ask(const struct admin_world *w, const char *line, const char *fields, const char *body,
               struct http_answer *a)
{
    ask(w->address[PROTOCOL_ADMIN], line, fields, body, a);
}

void metrics_ask(const struct admin_world *w, const char *line, struct http_answer *a)
{
    ask(w->address[PROTOCOL_METRICS], line, "", "", a);
}

void admin_check(const struct admin_world *w, const char *body, struct http_answer *a)
{
    ask(w->address[PROTOCOL_HTTP], "POST /v1/check", "", body, a);
}

void admin_check_batch(const struct admin_world *w, const char *body, struct http_answer *a)
{
    ask(w->address[PROTOCOL_HTTP], "POST /v1/check/batch", "", body, a);
}

long long admin_number(const struct http_answer *a, const char *name)
{
    char quoted[128];
    (void)snprintf(quoted, sizeof quoted, "\"%s\":", name);
    const char *at = strstr(a->body, quoted);
    if (at == NULL) {
        fail_msg("no %s in: %s", name, a->body);
    }
    return strtoll(at + strlen(quoted), NULL, 10);
}

double admin_metric(const struct admin_world *w, const char *series)
{
    struct http_answer *a = malloc(sizeof *a);
    char line[256];
    assert_non_null(a);
    (void)snprintf(line, sizeof line, "\n%s ", series);
    admin_ask(w, "GET /metrics", "", "", a);
    const char *at = strstr(a->body, line);
    if (at == NULL) {
        fail_msg("no %s in: %s", series, a->body);
    }
    double value = strtod(at + strlen(line), NULL);
    free(a);
    return value;
}
