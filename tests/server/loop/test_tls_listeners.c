/* TLS on listeners: every protocol, refusals, client certificates and roles, renewal, and the
 * bounds on clients that do not finish. */
// test-timeout: 300
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "rules/file/config.h"
#include "support/engine/threads_run.h"
#include "support/server/server_admin.h"
#include "support/server/server_client.h"
#include "support/tls/tls_client.h"

static const char rules[] = "limits: [{name: api, key: [user], rate: 1000/day}]";

static struct certificates files;
static struct admin_world world;
static struct tls_context *plain_client; /* it has no certificate */

static struct server_options options_of(int client_cert)
{
    struct server_options o = {.tls = {.cert = strdup(certificates_path(&files, "server.crt")),
                                       .key = strdup(certificates_path(&files, "server.key")),
                                       .client_cert = client_cert}};
    if (client_cert != CLIENT_CERT_NONE) {
        o.tls.client_ca = strdup(certificates_path(&files, "ca.crt"));
    }
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        o.tls.listener[i] = true;
    }
    return o;
}

static void start(const struct server_options *options)
{
    admin_world_start(&world, rules, options);
}

static void stop(struct server_options *o)
{
    admin_world_stop(&world);
    free((char *)o->tls.cert);
    free((char *)o->tls.key);
    free((char *)o->tls.client_ca);
}

static int set_up(void **state)
{
    certificates_make(&files);
    plain_client = tls_client_context(&files, "ca", NULL);
    return 0;
}

static int tear_down(void **state)
{
    tls_context_unref(plain_client);
    certificates_remove(&files);
    return 0;
}

/* Sends a GET and waits for a text in the answer. */
static bool get(struct tls_client *c, const char *path, const char *expected)
{
    char text[256];
    int n = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    buffer_take(&c->plain, buffer_len(&c->plain));
    return tls_client_say(c, (struct weir_text){text, (size_t)n}) && tls_client_await(c, expected);
}

static double counted(const char *series)
{
    struct tls_client c;
    char name[128];
    double value = -1;
    (void)snprintf(name, sizeof name, "\n%s ", series);
    tls_client_connect(&c, world.address[PROTOCOL_METRICS], plain_client);
    assert_true(tls_client_shake(&c));
    assert_true(get(&c, "/metrics", name) && tls_client_await(&c, "\nweir_build_info"));
    buffer_put_char(&c.plain, 0);
    value = strtod(strstr(buffer_text(&c.plain).at, name) + strlen(name), NULL);
    tls_client_close(&c);
    return value;
}

/* ---- what works ---- */

static void every_listener_answers_over_tls(void **state)
{
    struct server_options o = options_of(CLIENT_CERT_NONE);
    struct tls_client c;
    start(&o);
    tls_client_connect(&c, world.address[PROTOCOL_RESP], plain_client);
    assert_true(tls_client_shake(&c));
    assert_string_equal(tls_client_ask(&c, "PING"), "+PONG\r\n");
    tls_client_close(&c);
    for (unsigned i = PROTOCOL_HTTP; i < PROTOCOLS; i++) {
        tls_client_connect(&c, world.address[i], plain_client);
        assert_true(tls_client_shake(&c));
        if (i == PROTOCOL_GRPC) { /* the beginning of HTTP/2, and an empty frame of settings */
            assert_true(tls_client_say(
                &c, (struct weir_text){"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0", 33}));
            assert_true(tls_client_await_bytes(&c, 9));
        } else {
            assert_true(get(&c, "/readyz", "HTTP/1.1 200 OK"));
        }
        tls_client_close(&c);
    }
    assert_true(counted("weir_tls_handshakes_total{result=\"success\"}") >= 5);
    assert_true(counted("weir_tls_certificate_expiry_timestamp_seconds") > 1e9);
    stop(&o);
}

static void one_listener_can_stay_plain(void **state)
{
    struct server_options o = options_of(CLIENT_CERT_NONE);
    struct http_answer a;
    o.tls.listener[PROTOCOL_ADMIN] = false;
    start(&o);
    admin_ask(&world, "GET /readyz", "", "", &a);
    assert_int_equal(a.status, 200);
    stop(&o);
}

/* More replies than a socket takes, and a request larger than a record. */
static void a_long_pipeline_comes_back_whole(void **state)
{
    enum { REQUESTS = 20000 };
    static const char ping[] =
        "*2\r\n$4\r\nPING\r\n$40\r\n0123456789012345678901234567890123456789\r\n";
    static const char pong[] = "$40\r\n0123456789012345678901234567890123456789\r\n";
    struct server_options o = options_of(CLIENT_CERT_NONE);
    struct tls_client c;
    struct buffer all;
    start(&o);
    buffer_init(&all, 4u << 20);
    for (int i = 0; i < REQUESTS; i++) {
        buffer_put(&all, TEXT(ping));
    }
    tls_client_connect(&c, world.address[PROTOCOL_RESP], plain_client);
    assert_true(tls_client_shake(&c));
    assert_true(tls_client_say(&c, buffer_text(&all)));
    assert_true(tls_client_await_bytes(&c, REQUESTS * strlen(pong)));
    assert_int_equal(buffer_len(&c.plain), REQUESTS * strlen(pong));
    for (int i = 0; i < REQUESTS; i++) {
        assert_memory_equal(buffer_text(&c.plain).at + (size_t)i * strlen(pong), pong,
                            strlen(pong));
    }
    tls_client_close(&c);
    buffer_finish(&all);
    stop(&o);
}

/* The client says that it sends no more, and still gets every reply, and then the server's end. */
static void after_the_end_of_the_client_its_requests_are_answered(void **state)
{
    struct server_options o = options_of(CLIENT_CERT_NONE);
    struct tls_client c;
    char bytes[64];
    start(&o);
    tls_client_connect(&c, world.address[PROTOCOL_RESP], plain_client);
    assert_true(tls_client_shake(&c));
    for (int i = 0; i < 1000; i++) {
        assert_true(tls_client_say(
            &c, (struct weir_text){bytes, server_pack("PING", bytes, sizeof bytes)}));
    }
    assert_true(tls_client_end(&c));
    assert_true(tls_client_await_bytes(&c, 7000));
    while (!c.ended) {
        assert_true(tls_client_hear(&c));
    }
    assert_int_equal(buffer_len(&c.plain), 7000);
    tls_client_close(&c);
    stop(&o);
}

static void quit_ends_with_a_notice_of_tls(void **state)
{
    struct server_options o = options_of(CLIENT_CERT_NONE);
    struct tls_client c;
    start(&o);
    tls_client_connect(&c, world.address[PROTOCOL_RESP], plain_client);
    assert_true(tls_client_shake(&c));
    assert_string_equal(tls_client_ask(&c, "QUIT"), "+OK\r\n");
    while (!c.ended) {
        assert_true(tls_client_hear(&c));
    }
    tls_client_close(&c);
    stop(&o);
}

/* ---- refusals ---- */

static void plain_text_is_refused_in_its_own_protocol(void **state)
{
    struct server_options o = options_of(CLIENT_CERT_NONE);
    struct server_client c;
    struct http_answer a;
    start(&o);
    admin_ask(&world, "GET /readyz", "", "", &a);
    assert_int_equal(a.status, 400);
    assert_non_null(strstr(a.body, "this port speaks TLS; use https://"));
    server_connect(&c, world.address[PROTOCOL_RESP]);
    assert_string_equal(server_ask(&c, "PING"), "-ERR this port speaks TLS");
    assert_string_equal(server_reply(&c), "end");
    server_disconnect(&c);
    assert_true(counted("weir_tls_handshakes_total{result=\"failure\"}") == 2);
    stop(&o);
}

static void tls_on_a_plain_port_is_closed(void **state)
{
    struct server_options o = {0};
    struct tls_client c;
    start(&o);
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        tls_client_connect(&c, world.address[i], plain_client);
        assert_false(tls_client_shake(&c));
        assert_int_equal(buffer_len(&c.plain), 0);
        tls_client_close(&c);
    }
    admin_world_stop(&world);
}

static void a_broken_record_ends_the_connection_only(void **state)
{
    static const char broken[] = "\x17\x03\x03\x00\x20"
                                 "this is not what the keys make of it";
    struct server_options o = options_of(CLIENT_CERT_NONE);
    struct tls_client c;
    start(&o);
    tls_client_connect(&c, world.address[PROTOCOL_RESP], plain_client);
    assert_true(tls_client_shake(&c));
    assert_string_equal(tls_client_ask(&c, "PING"), "+PONG\r\n");
    assert_true(send(c.fd, broken, sizeof broken - 1, MSG_NOSIGNAL) > 0);
    while (tls_client_hear(&c)) {
    }
    assert_false(c.ended);
    tls_client_close(&c);
    assert_true(counted("weir_connections{listener=\"resp\"}") <= 1);
    stop(&o);
}

/* ---- clients that do not finish ---- */

static void a_handshake_that_does_not_end_is_cut_off(void **state)
{
    static const char begin[] = "\x16\x03\x01\x02"; /* of a client's first record */
    struct server_options o = options_of(CLIENT_CERT_NONE);
    char byte;
    o.request_ms = 100;
    start(&o);
    for (size_t sent = 0; sent < sizeof begin; sent += sizeof begin - 1) {
        int fd = admin_connect(&world, 1);
        assert_int_equal(send(fd, begin, sent, MSG_NOSIGNAL), sent);
        assert_int_equal(recv(fd, &byte, 1, 0), 0); /* waits for up to a minute */
        (void)close(fd);
    }
    assert_true(counted("weir_connections_timed_out_total") >= 2);
    stop(&o);
}

/* ---- certificates of clients ---- */

struct meeting {
    int client_cert;
    const char *own; /* certificate of the client */
    bool welcome;
};

static bool is_welcome(const char *own)
{
    struct tls_context *context = tls_client_context(&files, "ca", own);
    struct tls_client c;
    tls_client_connect(&c, world.address[PROTOCOL_RESP], context);
    /* In TLS 1.3 the client learns of a refusal when it reads. */
    bool welcome = tls_client_shake(&c) && strcmp(tls_client_ask(&c, "PING"), "+PONG\r\n") == 0;
    tls_client_close(&c);
    tls_context_unref(context);
    return welcome;
}

static void certificates_are_wanted_as_the_option_says(void **state)
{
    static const struct meeting meetings[] = {
        {CLIENT_CERT_NONE, NULL, true},           {CLIENT_CERT_NONE, "other", true},
        {CLIENT_CERT_OPTIONAL, NULL, true},       {CLIENT_CERT_OPTIONAL, "client", true},
        {CLIENT_CERT_OPTIONAL, "other", false},   {CLIENT_CERT_REQUIRED, NULL, false},
        {CLIENT_CERT_REQUIRED, "client", true},   {CLIENT_CERT_REQUIRED, "other", false},
        {CLIENT_CERT_REQUIRED, "expired", false},
    };
    for (size_t i = 0; i < sizeof meetings / sizeof meetings[0]; i++) {
        const struct meeting *m = &meetings[i];
        struct server_options o = options_of(m->client_cert);
        start(&o);
        if (is_welcome(m->own) != m->welcome) {
            fail_msg("row %zu: expected %s", i, m->welcome ? "a welcome" : "a refusal");
        }
        stop(&o);
    }
}

/* The role of a client with this certificate, found by a question that needs the role check and one
 * that needs admin. */
static const char *role_of(const char *own)
{
    struct tls_context *context = tls_client_context(&files, "ca", own);
    struct tls_client c;
    const char *role = "none";
    tls_client_connect(&c, world.address[PROTOCOL_RESP], context);
    assert_true(tls_client_shake(&c));
    if (tls_client_ask(&c, "WEIR.CHECK api alice")[0] == '*') {
        role = "check";
    }
    if (tls_client_ask(&c, "WEIR.RESET api alice")[0] != '-') {
        role = "admin";
    }
    (void)tls_client_ask(&c, "RESET"); /* ends what secrets gave, not what the certificate gives */
    if (tls_client_ask(&c, "WEIR.RESET api alice")[0] != '-') {
        assert_string_equal(role, "admin");
    }
    tls_client_close(&c);
    tls_context_unref(context);
    return role;
}

static void a_name_in_a_certificate_gives_a_role(void **state)
{
    static const struct {
        const char *check, *admin, *own, *role;
    } rows[] = {
        {"", "client", "client", "admin"},
        {"", "client.test", "client", "admin"},
        {"", "urn:test:client", "client", "admin"},
        {"", "other", "client", "check"},
        {"client", "", "client", "check"},
        {"other", "", "client", "none"},
        {"client", "root", NULL, "none"},
        {"", "client", NULL, "check"},
        {"client", "client.test", "client", "admin"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct server_options o = options_of(CLIENT_CERT_OPTIONAL);
        struct weir_text name[ROLES] = {TEXT(""), text_of(rows[i].check), text_of(rows[i].admin)};
        struct texts names[ROLES] = {{NULL, 0}, {&name[1], name[1].len > 0}, {&name[2], 1}};
        struct access_sources from = {.text = {[ROLE_ADMIN] = "secret-of-the-operator"},
                                      .named = name[1].len > 0};
        struct weir_error error;
        assert_int_equal(access_open(&o.access, &from, &error), 0);
        o.tls.names[ROLE_CHECK] = &names[ROLE_CHECK];
        o.tls.names[ROLE_ADMIN] = &names[ROLE_ADMIN];
        start(&o);
        const char *role = role_of(rows[i].own);
        if (strcmp(role, rows[i].role) != 0) {
            fail_msg("row %zu: found the role %s, expected %s", i, role, rows[i].role);
        }
        stop(&o);
        access_close(o.access);
    }
}

static void over_http_a_name_gives_a_role_beside_secrets(void **state)
{
    struct server_options o = options_of(CLIENT_CERT_OPTIONAL);
    struct weir_text name = TEXT("client");
    struct texts names = {&name, 1};
    struct access_sources from = {.text = {[ROLE_ADMIN] = "secret-of-the-operator"}};
    struct tls_context *context = tls_client_context(&files, "ca", "client");
    struct weir_error error;
    struct tls_client c;
    assert_int_equal(access_open(&o.access, &from, &error), 0);
    o.tls.names[ROLE_ADMIN] = &names;
    start(&o);
    tls_client_connect(&c, world.address[PROTOCOL_ADMIN], context);
    assert_true(tls_client_shake(&c));
    assert_true(get(&c, "/v1/limits", "HTTP/1.1 200 OK"));
    assert_true(get(&c, "/v1/events", "\"role\":\"admin\"")); /* a stream */
    tls_client_close(&c);
    tls_client_connect(&c, world.address[PROTOCOL_ADMIN], plain_client);
    assert_true(tls_client_shake(&c));
    assert_true(get(&c, "/v1/limits", "HTTP/1.1 401 "));
    assert_true(get(&c,
                    "/v1/limits HTTP/1.1\r\nAuthorization: Bearer secret-of-the-operator\r\nX: ",
                    "HTTP/1.1 200 OK"));
    tls_client_close(&c);
    stop(&o);
    access_close(o.access);
    tls_context_unref(context);
}

/* ---- renewal ---- */

static void spoil(const char *file)
{
    FILE *f = fopen(certificates_path(&files, file), "w");
    assert_non_null(f);
    assert_true(fputs("this is no certificate\n", f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static void renew(void)
{
    certificates_add(&files, &(struct certificate){"server", "other-ca", "server",
                                                   "DNS:localhost,IP:127.0.0.1", -3600, 3600});
}

static void a_renewal_ends_no_connection_and_a_bad_file_keeps_the_old_one(void **state)
{
    struct server_options o = options_of(CLIENT_CERT_NONE);
    struct tls_context *other = tls_client_context(&files, "other-ca", NULL);
    struct tls_client old;
    struct tls_client new;
    struct weir_error error;
    start(&o);
    tls_client_connect(&old, world.address[PROTOCOL_RESP], plain_client);
    assert_true(tls_client_shake(&old));

    spoil("server.crt");
    assert_true(server_reload(&world.server, NULL, &error) != 0);
    assert_non_null(strstr(error.text, "the old certificate stays"));
    assert_true(is_welcome(NULL));
    assert_true(counted("weir_tls_renewals_total{result=\"failure\"}") == 1);

    renew(); /* by another CA, which tells the two apart */
    assert_int_equal(server_reload(&world.server, NULL, &error), 0);
    assert_false(is_welcome(NULL));
    tls_client_connect(&new, world.address[PROTOCOL_RESP], other);
    assert_true(tls_client_shake(&new));
    assert_string_equal(tls_client_ask(&new, "PING"), "+PONG\r\n");
    assert_string_equal(tls_client_ask(&old, "PING"), "+PONG\r\n");
    assert_int_equal(load_relaxed(&world.server.renewals), 1);
    tls_client_close(&old);
    tls_client_close(&new);
    tls_context_unref(other);
    stop(&o);
    certificates_add(&files, &(struct certificate){"server", "ca", "server",
                                                   "DNS:localhost,IP:127.0.0.1", -3600, 3600});
}

/* ---- load ---- */

enum { CLIENTS = 4, DEPTH = 16 };

struct load {
    uint64_t rounds, allowed, denied, done;
};

/* Sends pipelines, each on its connection; every eighth one on a new connection. */
static void hammer(unsigned index, void *arg)
{
    struct load *l = arg;
    char one[128];
    struct buffer all;
    struct tls_client c;
    size_t n = server_pack("WEIR.CHECK api alice", one, sizeof one);
    (void)index;
    buffer_init(&all, 65536);
    for (int i = 0; i < DEPTH; i++) {
        buffer_put(&all, (struct weir_text){one, n});
    }
    for (uint64_t round = 0; round < l->rounds; round++) {
        if (round % 8 == 0) {
            tls_client_connect(&c, world.address[PROTOCOL_RESP], plain_client);
            threads_require(tls_client_shake(&c));
        }
        threads_require(tls_client_say(&c, buffer_text(&all)));
        for (int i = 0; i < DEPTH; i++) {
            threads_require(tls_client_await(&c, "$5\r\nlimit\r\n"));
            struct weir_text heard = buffer_text(&c.plain);
            const char *end = memmem(heard.at, heard.len, "$5\r\nlimit\r\n", 11);
            size_t len = (size_t)(end - heard.at) + 11;
            (void)threads_add(memmem(heard.at, len, "allow", 5) != NULL ? &l->allowed : &l->denied,
                              1);
            buffer_take(&c.plain, len);
        }
        if (round % 8 == 7) {
            tls_client_close(&c);
        }
    }
    buffer_finish(&all);
    (void)threads_add(&l->done, 1);
}

static void hammer_or_renew(unsigned index, void *arg)
{
    struct load *l = arg;
    if (index > 0) {
        hammer(index, arg);
        return;
    }
    while (threads_get(&l->done) < CLIENTS) {
        struct weir_error error;
        certificates_add(&files, &(struct certificate){"server", "ca", "server",
                                                       "DNS:localhost,IP:127.0.0.1", -3600, 3600});
        threads_require(server_reload(&world.server, NULL, &error) == 0);
    }
}

static void renewals_under_load_lose_no_request(void **state)
{
    struct load l = {.rounds = THREADS_ROUNDS(160, 40, 40)};
    struct server_options o = options_of(CLIENT_CERT_NONE);
    start(&o);
    threads_run(CLIENTS + 1, hammer_or_renew, &l);
    assert_int_equal(l.allowed, 1000);
    assert_int_equal(l.denied, CLIENTS * l.rounds * DEPTH - 1000);
    assert_true(load_relaxed(&world.server.renewals) > 0);
    stop(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_listener_answers_over_tls),
        cmocka_unit_test(one_listener_can_stay_plain),
        cmocka_unit_test(a_long_pipeline_comes_back_whole),
        cmocka_unit_test(after_the_end_of_the_client_its_requests_are_answered),
        cmocka_unit_test(quit_ends_with_a_notice_of_tls),
        cmocka_unit_test(plain_text_is_refused_in_its_own_protocol),
        cmocka_unit_test(tls_on_a_plain_port_is_closed),
        cmocka_unit_test(a_broken_record_ends_the_connection_only),
        cmocka_unit_test(a_handshake_that_does_not_end_is_cut_off),
        cmocka_unit_test(certificates_are_wanted_as_the_option_says),
        cmocka_unit_test(a_name_in_a_certificate_gives_a_role),
        cmocka_unit_test(over_http_a_name_gives_a_role_beside_secrets),
        cmocka_unit_test(a_renewal_ends_no_connection_and_a_bad_file_keeps_the_old_one),
        cmocka_unit_test(renewals_under_load_lose_no_request),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
