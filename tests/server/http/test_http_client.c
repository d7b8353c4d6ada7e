/* Who the client behind a proxy is, by the fields that proxies write and anybody else too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "common/log.h"
#include "server/http/http_routes.h"
#include "support/server/server_http.h"

static const char rules[] = "limits:\n"
                            "  - {name: ips, key: [ip], rate: 1/day}\n";

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

static struct cidr_set *networks(const char *text)
{
    struct cidr cidr;
    struct cidr_set *set;
    assert_int_equal(cidr_parse(text_of(text), &cidr, NULL), 0);
    assert_int_equal(cidr_set_create(&cidr, 1, &set), 0);
    return set;
}

#define COUNT_OF(member)                                                                           \
    static uint64_t member(void)                                                                   \
    {                                                                                              \
        uint64_t n = 0;                                                                            \
        for (unsigned i = 0; i < server->server.workers_count; i++) {                              \
            n += load_relaxed(&server->server.workers[i].counts.forwarded_##member);               \
        }                                                                                          \
        return n;                                                                                  \
    }

COUNT_OF(ignored)
COUNT_OF(refused)

/* The log goes into this file until log_end(). */
static int log_begin(void)
{
    int fd = memfd_create("log", MFD_CLOEXEC);
    assert_true(fd >= 0);
    log_init(fd, LOG_AS_TEXT, LOG_KEYS_CUT);
    return fd;
}

/* How many lines of the log speak of it; it goes where it went before. */
static unsigned log_end(int fd, const char *what)
{
    static char text[1 << 16];
    unsigned n = 0;
    ssize_t got = pread(fd, text, sizeof text - 1, 0);
    assert_true(got >= 0);
    text[got] = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at++) {
        n++;
    }
    log_init(STDERR_FILENO, LOG_AS_TEXT, LOG_KEYS_CUT);
    (void)close(fd);
    return n;
}

static const char *verdict_of(const char *ip)
{
    char body[128];
    (void)snprintf(body, sizeof body, "{\"limit\":\"ips\",\"key\":\"%s\"}", ip);
    http_ask(server, "POST /v1/peek", "", body, &a);
    return strstr(a.body, "\"verdict\":\"deny\"") != NULL ? "deny" : "allow";
}

struct client_case {
    const char *fields;
    const char *ip;
};

/* Each is asked from loopback; each is a client that has not been here before. */
static void check_cases(const struct client_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        http_ask(server, "GET /v1/auth", cases[i].fields, "", &a);
        if (a.status != 200) {
            fail_msg("%s: not its first request: %s", cases[i].fields, a.text);
        }
        if (strcmp(verdict_of(cases[i].ip), "deny") != 0) {
            fail_msg("%s was not counted as %s", cases[i].fields, cases[i].ip);
        }
    }
    assert_string_equal(verdict_of("6.6.6.6"), "allow");
}

#define CHECK_CASES(cases) check_cases((cases), sizeof(cases) / sizeof(cases)[0])

static void the_client_is_counted_from_the_right_past_trusted_proxies(void **state)
{
    static const struct client_case cases[] = {
        {"", "127.0.0.1"},
        {"X-Forwarded-For: 192.0.2.1\r\n", "192.0.2.1"},
        {"X-Forwarded-For: 6.6.6.6, 192.0.2.2\r\n", "192.0.2.2"},
        {"X-Forwarded-For: 6.6.6.6, 192.0.2.3 , 127.0.0.9\r\n", "192.0.2.3"},
        {"X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-For: 192.0.2.4, 127.0.0.1\r\n", "192.0.2.4"},
        {"X-Forwarded-For: 192.0.2.5\r\nX-Forwarded-For: 127.0.0.1, ::1\r\n", "192.0.2.5"},
        {"X-Forwarded-For: 192.0.2.6:4711\r\n", "192.0.2.6"},
        {"X-Forwarded-For: [2001:db8::7]:4711\r\n", "2001:db8::7"},
        {"X-Forwarded-For: ::ffff:192.0.2.8\r\n", "192.0.2.8"},
        {"X-Forwarded-For: 127.0.0.10, 127.0.0.11\r\n", "127.0.0.10"},
        {"X-Forwarded-For: 6.6.6.6, unknown, 127.0.0.12\r\n", "127.0.0.12"},
        {"X-Forwarded-For: 6.6.6.6, , 192.0.2.13,\r\n", "192.0.2.13"},
        {"X-Forwarded-For: \", 192.0.2.14\r\n", "192.0.2.14"},
        {"X-Real-IP: 192.0.2.15\r\n", "192.0.2.15"},
        {"X_Forwarded_For: 6.6.6.6\r\nX-Forwarded-For: 192.0.2.16\r\n", "192.0.2.16"},
        {"x-forwarded-for: 192.0.2.17\r\n", "192.0.2.17"},
    };
    begin(NULL);
    CHECK_CASES(cases);
    assert_int_equal(ignored(), 0);
    end();
}

static void forwarded_of_rfc_7239_is_read_in_the_same_way(void **state)
{
    static const struct client_case cases[] = {
        {"Forwarded: for=192.0.2.1\r\n", "192.0.2.1"},
        {"Forwarded: For=\"[2001:db8:cafe::17]:4711\"\r\n", "2001:db8:cafe::17"},
        {"Forwarded: for=192.0.2.3;proto=http;by=203.0.113.43\r\n", "192.0.2.3"},
        {"Forwarded: for=6.6.6.6, for=192.0.2.4\r\n", "192.0.2.4"},
        {"Forwarded: for=6.6.6.6, for=192.0.2.5;proto=http, for=127.0.0.9\r\n", "192.0.2.5"},
        {"Forwarded: for=6.6.6.6\r\nForwarded: for=\"192.0.2.6:_web\"\r\n", "192.0.2.6"},
        {"Forwarded: for=6.6.6.6, for=unknown, for=127.0.0.12\r\n", "127.0.0.12"},
        {"Forwarded: for=6.6.6.6, for=_hidden, for=127.0.0.13\r\n", "127.0.0.13"},
        {"Forwarded: for=6.6.6.6, proto=https, for=127.0.0.14\r\n", "127.0.0.14"},
        {"Forwarded: for=\"6.6.6.6, for=192.0.2.7\r\n", "192.0.2.7"},
        {"Forwarded: for=\"6.6.6.6\\, for=\"[2001:db8:1::8]\"\r\n", "2001:db8:1::8"},
        {"Forwarded: for=\"6.6.6.6, for=127.0.0.15\", for=127.0.0.16\r\n", "127.0.0.16"},
        {"Forwarded: , for=192.0.2.9;, ,\r\n", "192.0.2.9"},
    };
    begin(NULL);
    CHECK_CASES(cases);
    assert_int_equal(ignored(), 0);
    end();
}

/* A proxy writes one of them and passes on what clients write into the others. */
static void fields_that_name_different_clients_are_refused(void **state)
{
    static const struct client_case agreeing[] = {
        {"X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.1\r\nX-Real-IP: 192.0.2.1\r\n",
         "192.0.2.1"},
        /* a proxy behind a proxy: who connected to it is the first */
        {"X-Real-IP: 127.0.0.9\r\nX-Forwarded-For: 192.0.2.2, 127.0.0.9\r\n", "192.0.2.2"},
        {"Forwarded: for=192.0.2.3\r\nX-Real-IP: 127.0.0.9\r\n", "192.0.2.3"},
    };
    static const char *const disagreeing[] = {
        "X-Forwarded-For: 192.0.2.9\r\nX-Real-IP: 6.6.6.6\r\n",
        "X-Forwarded-For: 6.6.6.6\r\nX-Real-IP: 192.0.2.9\r\n",
        "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=192.0.2.9\r\n",
        "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=_hidden\r\n",
        "X-Forwarded-For: 192.0.2.9\r\nForwarded: for=6.6.6.6\r\n",
    };
    static const char *const ips[] = {"127.0.0.1", "192.0.2.9", "6.6.6.6"};
    int log = log_begin();
    time_t began = time(NULL); /* a line a second */
    begin(NULL);
    CHECK_CASES(agreeing);
    assert_int_equal(refused(), 0);
    for (size_t i = 0; i < sizeof disagreeing / sizeof disagreeing[0]; i++) {
        http_ask(server, "GET /v1/auth", disagreeing[i], "", &a);
        assert_int_equal(a.status, 400);
        assert_non_null(strstr(a.body, "name different clients"));
        assert_int_equal(refused(), i + 1);
    }
    for (size_t i = 0; i < sizeof ips / sizeof ips[0]; i++) {
        assert_string_equal(verdict_of(ips[i]), "allow");
    }
    end();
    assert_in_range(log_end(log, "--client-field"), 1, 1 + (unsigned)(time(NULL) - began));
}

static void one_field_can_be_named_and_the_others_do_not_count(void **state)
{
    static const struct {
        int field;
        const char *ip;
    } cases[] = {{CLIENT_FIELD_X_FORWARDED_FOR, "192.0.2.1"},
                 {CLIENT_FIELD_FORWARDED, "192.0.2.2"},
                 {CLIENT_FIELD_X_REAL_IP, "192.0.2.3"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        begin(&(struct server_options){.client_field = cases[i].field});
        http_ask(server, "GET /v1/auth",
                 "X-Forwarded-For: 192.0.2.1\r\nForwarded: for=192.0.2.2\r\n"
                 "X-Real-IP: 192.0.2.3\r\n",
                 "", &a);
        assert_int_equal(a.status, 200);
        assert_string_equal(verdict_of(cases[i].ip), "deny");
        assert_int_equal(ignored() + refused(), 0);
        end();
    }
}

/* ---- a unix socket, which shows no address ---- */

static char socket_folder[] = "/tmp/weir-client-XXXXXX";
static char socket_address[64];

static int make_socket_folder(void **state)
{
    if (mkdtemp(socket_folder) == NULL) {
        return -1;
    }
    (void)snprintf(socket_address, sizeof socket_address, "unix:%s/http", socket_folder);
    return 0;
}

static int remove_socket_folder(void **state)
{
    return rmdir(socket_folder);
}

static void begin_on_socket(const char *text, int field)
{
    server = calloc(1, sizeof *server);
    assert_non_null(server);
    http_server_start(server, text,
                      &(struct server_options){.listen = {[PROTOCOL_HTTP] = socket_address},
                                               .client_field = field});
}

static int auth(const char *fields)
{
    http_ask(server, "GET /v1/auth", fields, "", &a);
    return a.status;
}

/* Behind nginx, `Forwarded: for=1.2.3.4` lifted limits by address, and a block by address. */
static void a_forged_field_lifts_no_limit_and_no_block_on_a_unix_socket(void **state)
{
    static const char blocking[] = "block: [{ip: [192.0.2.66]}]\n"
                                   "limits:\n"
                                   "  - {name: ips, key: [ip], rate: 1/day}\n";
    begin_on_socket(blocking, CLIENT_FIELD_X_FORWARDED_FOR);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(auth("X-Forwarded-For: 192.0.2.1\r\nForwarded: for=1.2.3.4\r\n"),
                         i == 0 ? 200 : 429);
    }
    assert_int_equal(auth("X-Forwarded-For: 192.0.2.66\r\nForwarded: for=1.2.3.4\r\n"), 403);
    end();
    begin_on_socket(blocking, CLIENT_FIELD_ANY); /* `weir serve` would not start so */
    assert_int_equal(auth("X-Forwarded-For: 192.0.2.1\r\nForwarded: for=1.2.3.4\r\n"), 400);
    assert_int_equal(auth("X-Forwarded-For: 192.0.2.66\r\nForwarded: for=1.2.3.4\r\n"), 400);
    end();
}

static void a_limit_is_not_skipped_because_the_address_is_missing(void **state)
{
    static const char *const texts[] = {
        "limits: [{name: ips, key: [ip], rate: 1/day}]\n",
        "limits: [{name: either, key: [user|ip], rate: 1/day}]\n",
        "limits: [{name: some, when: {ip: 10.0.0.0/8}, key: [], rate: 1/day}]\n",
        "block: [{ip: 10.0.0.0/8}]\nlimits: [{name: all, key: [], rate: 1/day}]\n",
    };
    static const char *const missing[] = {"", "X-Forwarded-For: unknown\r\n",
                                          "X-Real-IP: 10.0.0.1\r\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        int log = log_begin();
        begin_on_socket(texts[i], CLIENT_FIELD_X_FORWARDED_FOR);
        for (size_t j = 0; j < sizeof missing / sizeof missing[0]; j++) {
            assert_int_equal(auth(missing[j]), 400);
            assert_non_null(strstr(a.body, "expected it in x-forwarded-for"));
            assert_int_equal(refused(), j + 1);
        }
        end();
        (void)log_end(log, "found no address"); /* at most one a second */
    }
}

static void rules_without_ip_and_rules_with_a_source_for_it_need_no_field(void **state)
{
    begin_on_socket("limits: [{name: all, key: [], rate: 1/day}]\n", CLIENT_FIELD_ANY);
    assert_int_equal(auth(""), 200);
    assert_int_equal(auth(""), 429);
    assert_int_equal(refused(), 0);
    end();
    begin_on_socket("attributes: {ip: 'header:CF-Connecting-IP'}\n"
                    "limits: [{name: ips, key: [ip], rate: 1/day, on_missing: deny}]\n",
                    CLIENT_FIELD_ANY);
    assert_int_equal(auth("CF-Connecting-IP: 192.0.2.1\r\n"), 200);
    assert_int_equal(auth("CF-Connecting-IP: 192.0.2.1\r\n"), 429);
    assert_int_equal(auth("CF-Connecting-IP: 192.0.2.2\r\n"), 200);
    assert_int_equal(auth(""), 403);
    end();
}

/* ---- a peer that is not trusted ---- */

/* Ignored, counted, logged once. */
static void fields_of_an_untrusted_peer_are_ignored(void **state)
{
    static const char *const fields[] = {
        "X-Forwarded-For: 192.0.2.1\r\n",
        "X-Forwarded-For: 192.0.2.2\r\n",
        "X-Real-IP: 192.0.2.3\r\n",
        "Forwarded: for=192.0.2.4\r\n",
        "Forwarded: for=192.0.2.5\r\nX-Real-IP: 192.0.2.5\r\n", /* one request: counted once */
    };
    struct cidr_set *trusted = networks("10.0.0.0/8");
    int log = log_begin();
    begin(&(struct server_options){.trusted = trusted});
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        http_ask(server, "GET /v1/auth", fields[i], "", &a);
        assert_int_equal(a.status, i == 0 ? 200 : 429);
        assert_int_equal(ignored(), i + 1);
    }
    http_ask(server, "GET /v1/auth", "", "", &a);
    assert_int_equal(ignored(), sizeof fields / sizeof fields[0]);
    end();
    assert_int_equal(log_end(log, "not a trusted proxy"), 1);
    cidr_set_destroy(trusted);
}

/* ---- hostile ---- */

static void a_field_of_sixteen_kilobytes_changes_nothing_but_itself(void **state)
{
    static const struct {
        const char *begin;
        const char *repeated;
        const char *end;
        const char *ip;
    } cases[] = {
        {"X-Forwarded-For: ", "6.6.6.6,", "192.0.2.1", "192.0.2.1"},
        {"X-Forwarded-For: ", ",", "192.0.2.2", "192.0.2.2"},
        {"X-Forwarded-For: 192.0.2.3", ",127.0.0.1", "", "192.0.2.3"},
        {"Forwarded: ", "for=6.6.6.6,", "for=192.0.2.4", "192.0.2.4"},
        {"Forwarded: ", "\"", ",for=192.0.2.5", "192.0.2.5"},
        {"Forwarded: ", "\\\"", ",for=\"192.0.2.6\"", "192.0.2.6"},
        {"Forwarded: ", ";", "for=192.0.2.7", "192.0.2.7"},
        {"Forwarded: for=192.0.2.8", ",for=\"127.0.0.1\"", "", "192.0.2.8"},
    };
    static char fields[16384];
    begin(NULL);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        strcpy(fields, cases[i].begin);
        char *at = fields + strlen(fields);
        for (size_t n = strlen(cases[i].repeated); at - fields < 15000; at += n) {
            memcpy(at, cases[i].repeated, n);
        }
        (void)sprintf(at, "%s\r\n", cases[i].end);
        const struct client_case one = {fields, cases[i].ip};
        check_cases(&one, 1);
    }
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_client_is_counted_from_the_right_past_trusted_proxies),
        cmocka_unit_test(forwarded_of_rfc_7239_is_read_in_the_same_way),
        cmocka_unit_test(fields_that_name_different_clients_are_refused),
        cmocka_unit_test(one_field_can_be_named_and_the_others_do_not_count),
        cmocka_unit_test(a_forged_field_lifts_no_limit_and_no_block_on_a_unix_socket),
        cmocka_unit_test(a_limit_is_not_skipped_because_the_address_is_missing),
        cmocka_unit_test(rules_without_ip_and_rules_with_a_source_for_it_need_no_field),
        cmocka_unit_test(fields_of_an_untrusted_peer_are_ignored),
        cmocka_unit_test(a_field_of_sixteen_kilobytes_changes_nothing_but_itself),
    };
    return cmocka_run_group_tests(tests, make_socket_folder, remove_socket_folder);
}
