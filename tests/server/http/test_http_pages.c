/* A web page cannot ask for the person whose browser shows it; programs and gateways can. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "rules/file/config.h"
#include "server/access/access.h"
#include "support/server/server_http.h"

static const char rules[] = "limits: [{name: api, key: [user], rate: 3/day}]\n";

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

/* Sends a request line with these fields, Host among them, and a body. */
static int ask(const char *line, const char *fields, const char *body)
{
    char text[1024];
    int n = snprintf(text, sizeof text, "%s HTTP/1.1\r\n%sContent-Length: %zu\r\n\r\n%s", line,
                     fields, strlen(body), body);
    int fd = http_connect(server);
    http_send(fd, text, (size_t)n);
    assert_true(http_receive(fd, &a));
    (void)close(fd);
    return a.status;
}

static void check(const char *fields, int status)
{
    static const char body[] = "{\"limit\":\"api\",\"key\":\"visitor\"}";
    if (ask("POST /v1/peek", fields, body) != status) {
        fail_msg("%s: expected %d, found %s", fields, status, a.text);
    }
}

static const char visitor[] = "{\"limit\":\"api\",\"key\":\"visitor\"}";

static void a_page_of_another_site_cannot_spend_a_visitors_quota(void **state)
{
    static const char *const foreign[] = {
        "Host: 127.0.0.1:8080\r\nOrigin: https://evil.example\r\nContent-Type: text/plain\r\n",
        "Host: 127.0.0.1:8080\r\nOrigin: null\r\n",
        "Host: 127.0.0.1:8080\r\nOrigin:\r\n",
        "Host: localhost\r\nOrigin: http://localhost:3000\r\n",
        "Host: localhost\r\nSec-Fetch-Site: cross-site\r\n",
        "Host: localhost\r\nSec-Fetch-Site: same-site\r\n",
        /* a host name of the page that points here: of the same origin */
        "Host: evil.example\r\nOrigin: http://evil.example\r\n",
        "Host: evil.example:8080\r\n",
        "Host: localhost.evil.example\r\n",
        "Host: 127.0.0.1.evil.example\r\n",
    };
    begin(NULL);
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        for (int j = 0; j < 3; j++) {
            assert_int_equal(ask("POST /v1/check", foreign[i], visitor), 403);
        }
        assert_int_equal(ask("POST /v1/check/batch", foreign[i], "{}"), 403);
        assert_int_equal(ask("GET /v1/auth", foreign[i], ""), 403);
        assert_int_equal(ask("OPTIONS /v1/auth", foreign[i], ""), 403); /* the question of CORS */
    }
    assert_int_equal(ask("POST /v1/peek", "Host: localhost\r\n", visitor), 200);
    assert_non_null(strstr(a.body, "\"remaining\":3"));
    end();
}

static void a_host_with_something_after_its_brackets_is_no_address(void **state)
{
    begin(NULL);
    check("Host: [::1]evil.example\r\n", 400);
    check("Host: [::1]:8080\r\n", 200);
    end();
}

static void programs_and_pages_of_the_server_itself_are_answered(void **state)
{
    static const char *const own[] = {
        "Host: localhost:8080\r\n",
        "Host: LOCALHOST\r\n",
        "Host: 127.0.0.1\r\nContent-Type: application/x-www-form-urlencoded\r\n", /* curl -d */
        "Host: [::1]:8080\r\nContent-Type: text/plain\r\n",
        "Host: 192.0.2.1\r\n",
        "Host: localhost:80\r\nOrigin: http://localhost:80\r\nSec-Fetch-Site: same-origin\r\n",
        "Host: localhost\r\nSec-Fetch-Site: none\r\n",
        "Host:\r\n",
    };
    begin(NULL);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        check(own[i], 200);
    }
    assert_int_equal(
        ask("GET /healthz", "Host: evil.example\r\nOrigin: http://evil.example\r\n", ""), 200);
    end();
}

static void server_hosts_adds_names(void **state)
{
    struct weir_text names[] = {TEXT("weir.example"), TEXT("Gate")};
    struct texts hosts = {names, 2};
    begin(&(struct server_options){.hosts = &hosts});
    check("Host: weir.example:8080\r\n", 200);
    check("Host: WEIR.example\r\n", 200);
    check("Host: gate\r\nOrigin: http://gate\r\n", 200);
    check("Host: gate\r\nOrigin: http://weir.example\r\n", 403);
    check("Host: a.weir.example\r\n", 403);
    end();
}

/* Gateways pass on what their clients send; browsers do not send these fields unasked. */
static void a_gateway_may_pass_on_the_origin_and_host_of_its_client(void **state)
{
    static const char *const fields[] = {
        "X-Forwarded-For: 192.0.2.1\r\n", "Forwarded: for=192.0.2.1\r\n",
        "X-Real-IP: 192.0.2.1\r\n",       "X-Original-URI: /a\r\n",
        "X-Forwarded-Uri: /a\r\n",        "X-Forwarded-Host: shop.example\r\n"};
    begin(NULL);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        char text[256];
        (void)snprintf(text, sizeof text,
                       "Host: shop.example\r\nOrigin: https://other.example\r\n"
                       "Sec-Fetch-Site: cross-site\r\n%s",
                       fields[i]);
        assert_int_equal(ask("GET /v1/auth", text, ""), 200);
        assert_int_equal(ask("POST /v1/auth/a", text, ""), 200);
        assert_int_equal(ask("POST /v1/check", text, visitor), 403);
    }
    end();
}

/* Asks /v1/auth with a field that a page may set for its own origin. A '#' at the end of `host`
 * stands for the port of the listener. */
static int ask_as_gateway(const char *host, const char *more)
{
    char fields[256];
    size_t n = strcspn(host, "#");
    (void)snprintf(fields, sizeof fields, "Host: %.*s%s\r\nX-Forwarded-For: 192.0.2.1\r\n%s",
                   (int)n, host, host[n] == '#' ? strrchr(server->address, ':') + 1 : "", more);
    return ask("GET /v1/auth", fields, "");
}

/* A page on evil.example:8080 whose name has come to point to this machine is of one origin with
 * this server, and sets any field. What it cannot choose is the port in Host. */
static void a_rebound_page_cannot_pass_for_a_gateway(void **state)
{
    static const char *const rebound[] = {"evil.example:#", "evil.example:0#", "EVIL:#",
                                          "localhost.evil.example:#", "shop.example:#"};
    begin(NULL);
    for (size_t i = 0; i < sizeof rebound / sizeof rebound[0]; i++) {
        assert_int_equal(ask_as_gateway(rebound[i], ""), 403);
        assert_non_null(strstr(a.body, "server.hosts"));
        assert_int_equal(ask_as_gateway(rebound[i], "Origin: http://other.example\r\n"), 403);
        assert_int_equal(ask_as_gateway(rebound[i], "Sec-Fetch-Site: cross-site\r\n"), 403);
    }
    end();
}

static void a_gateway_on_another_port_or_with_a_known_name_may_ask(void **state)
{
    static const char *const hosts[] = {"shop.example",  "shop.example:80", "shop.example:1#",
                                        "shop.example:", "localhost:#",     "127.0.0.1:#",
                                        "[::1]:#",       "known.example:#"};
    struct weir_text name = TEXT("known.example");
    struct texts names = {&name, 1};
    begin(&(struct server_options){.hosts = &names});
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        assert_int_equal(ask_as_gateway(hosts[i], ""), 200);
        assert_int_equal(ask_as_gateway(hosts[i], "Origin: http://other.example\r\n"), 200);
        assert_int_equal(ask_as_gateway(hosts[i], "Sec-Fetch-Site: cross-site\r\n"), 200);
    }
    end();
}

/* Returns whether this process may bind the port of this address, and no other has it. */
static bool can_bind(const char *host, uint16_t port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(inet_pton(AF_INET, host, &to.sin_addr), 1);
    bool can = bind(fd, (const struct sockaddr *)&to, sizeof to) == 0;
    (void)close(fd);
    return can;
}

/* Browsers leave out the port of http, 80, and that of https, 443. */
static void a_host_without_a_port_has_port_80_or_443(void **state)
{
    static const uint16_t ports[] = {80, 443};
    for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++) {
        char listen[32];
        (void)snprintf(listen, sizeof listen, "127.84.3.7:%d", ports[i]);
        if (!can_bind("127.84.3.7", ports[i])) {
            skip();
        }
        begin(&(struct server_options){.listen = {[PROTOCOL_HTTP] = listen}});
        assert_int_equal(ask_as_gateway("evil.example", ""), 403);
        assert_int_equal(ask_as_gateway("evil.example:", ""), 403);
        assert_int_equal(ask_as_gateway("evil.example:#", ""), 403);
        assert_int_equal(ask_as_gateway("shop.example:8443", ""), 200);
        end();
    }
}

/* Nobody but the operator knows the names of a server that has secrets or that others can reach. */
static void a_server_with_secrets_has_any_name(void **state)
{
    struct access_sources sources = {.text = {[ROLE_CHECK] = "a-secret-of-clients"}};
    struct access *access = NULL;
    assert_int_equal(access_open(&access, &sources, NULL), 0);
    begin(&(struct server_options){.access = access});
    check("Host: weir.example\r\nAuthorization: Bearer a-secret-of-clients\r\n", 200);
    check("Host: weir.example\r\nOrigin: http://evil.example\r\n"
          "Authorization: Bearer a-secret-of-clients\r\n",
          403);
    assert_int_equal(ask_as_gateway("shop.example:#", "Origin: http://other.example\r\n"
                                                      "Weir-Secret: a-secret-of-clients\r\n"),
                     200); /* a page has no secret, so the port tells nothing */
    end();
    access_close(access);
    begin(&(struct server_options){
        .listen = {[PROTOCOL_HTTP] = "0.0.0.0:0", [PROTOCOL_ADMIN] = "0.0.0.0:0"},
        .insecure = true});
    check("Host: weir.example\r\n", 200);
    check("Host: weir.example\r\nOrigin: http://evil.example\r\n", 403);
    (void)server_address(&server->server, PROTOCOL_ADMIN, server->address, sizeof server->address);
    assert_int_equal(ask("GET /v1/status", "Host: weir.example\r\n", ""), 200);
    assert_int_equal(
        ask("GET /v1/status", "Host: weir.example\r\nOrigin: http://evil.example\r\n", ""), 403);
    end();
}

static void no_reply_is_sniffed(void **state)
{
    static const char *const lines[] = {"GET /healthz", "POST /v1/check",    "GET /v1/auth",
                                        "GET /none",    "GET /openapi.json", "GET /v1/check"};
    begin(NULL);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        (void)ask(lines[i], "Host: localhost\r\n", "");
        assert_true(http_has_line(&a, "X-Content-Type-Options: nosniff"));
        (void)ask(lines[i], "Host: localhost\r\nHost: localhost\r\n", ""); /* 400 */
        assert_true(http_has_line(&a, "X-Content-Type-Options: nosniff"));
    }
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_of_another_site_cannot_spend_a_visitors_quota),
        cmocka_unit_test(a_host_with_something_after_its_brackets_is_no_address),
        cmocka_unit_test(programs_and_pages_of_the_server_itself_are_answered),
        cmocka_unit_test(server_hosts_adds_names),
        cmocka_unit_test(a_gateway_may_pass_on_the_origin_and_host_of_its_client),
        cmocka_unit_test(a_rebound_page_cannot_pass_for_a_gateway),
        cmocka_unit_test(a_gateway_on_another_port_or_with_a_known_name_may_ask),
        cmocka_unit_test(a_host_without_a_port_has_port_80_or_443),
        cmocka_unit_test(a_server_with_secrets_has_any_name),
        cmocka_unit_test(no_reply_is_sniffed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
