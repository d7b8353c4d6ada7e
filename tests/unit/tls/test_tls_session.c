/* A client and a server session that talk in memory: handshakes, refusals, bytes, ends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/tls/certificates.h"
#include "support/tls/tls_pair.h"

static struct certificates certs;

static const char *path(const char *file)
{
    return file != NULL ? certificates_path(&certs, file) : NULL;
}

static struct tls_context *context(const struct tls_options *o)
{
    struct tls_context *c;
    struct weir_error error = {0};
    if (tls_context_create(&c, o, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return c;
}

/* What differs between the tests; zeroed: all is well. */
struct story {
    const char *ca;   /* the client's */
    const char *cert; /* the server's, without .crt */
    const char *name;
    const char *client; /* the client's certificate, without .crt */
    enum tls_client_cert wanted;
    const char *const *offered, *const *spoken; /* ALPN of client and server */
    size_t piece;
};

static const char *or_else(const char *given, const char *otherwise)
{
    return given != NULL ? given : otherwise;
}

static void tell(struct tls_pair *p, const struct story *s)
{
    char file[4][64] = {"", "", "", ""};
    (void)snprintf(file[0], sizeof file[0], "%s.crt", or_else(s->cert, "server"));
    (void)snprintf(file[1], sizeof file[1], "%s.key", or_else(s->cert, "server"));
    (void)snprintf(file[2], sizeof file[2], "%s.crt", or_else(s->client, ""));
    (void)snprintf(file[3], sizeof file[3], "%s.key", or_else(s->client, ""));
    struct tls_context *server = context(&(struct tls_options){.server = true,
                                                               .ca = path("ca.crt"),
                                                               .cert = path(file[0]),
                                                               .key = path(file[1]),
                                                               .client_cert = s->wanted,
                                                               .alpn = s->spoken});
    struct tls_context *client =
        context(&(struct tls_options){.ca = path(or_else(s->ca, "ca.crt")),
                                      .cert = s->client != NULL ? path(file[2]) : NULL,
                                      .key = s->client != NULL ? path(file[3]) : NULL,
                                      .alpn = s->offered});
    tls_pair_open(p, client, server, or_else(s->name, "localhost"));
    tls_context_unref(server);
    tls_context_unref(client);
    p->piece = s->piece > 0 ? s->piece : p->piece;
    tls_pair_run(p);
}

/* Makes two ends that have not said anything. */
static void open_silent(struct tls_pair *p)
{
    struct tls_context *c = context(&(struct tls_options){.ca = path("ca.crt")});
    struct tls_context *s = context(&(struct tls_options){
        .server = true, .cert = path("server.crt"), .key = path("server.key")});
    tls_pair_open(p, c, s, "localhost");
    tls_context_unref(c);
    tls_context_unref(s);
}

static void assert_heard(struct tls_pair *p, int at, const char *text)
{
    struct weir_text heard = tls_pair_heard(p, at);
    assert_int_equal(heard.len, strlen(text));
    assert_memory_equal(heard.at, text, heard.len);
}

static void assert_talking(struct tls_pair *p)
{
    assert_string_equal(p->end[PAIR_CLIENT].error.text, "");
    assert_string_equal(p->end[PAIR_SERVER].error.text, "");
    assert_true(tls_is_up(p->end[PAIR_CLIENT].session));
    assert_true(tls_is_up(p->end[PAIR_SERVER].session));
    tls_pair_say(p, PAIR_CLIENT, "PING\r\n");
    tls_pair_say(p, PAIR_SERVER, "+PONG\r\n");
    tls_pair_run(p);
    assert_heard(p, PAIR_SERVER, "PING\r\n");
    assert_heard(p, PAIR_CLIENT, "+PONG\r\n");
}

static void assert_refused(const struct story *s, int by, const char *text, const char *other)
{
    struct tls_pair p;
    tell(&p, s);
    assert_int_equal(p.end[by].result, TLS_FAILED);
    assert_string_equal(p.end[by].error.text, text);
    assert_int_equal(p.end[1 - by].result, TLS_FAILED);
    assert_string_equal(p.end[1 - by].error.text, other);
    tls_pair_close(&p);
}

/* ---- handshakes ---- */

static void both_ends_talk_in_pieces_of_any_size(void **state)
{
    static const size_t pieces[] = {1, 2, 3, 5, 7, 64, 1000, 0};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        struct tls_pair p;
        tell(&p, &(struct story){.piece = pieces[i]});
        assert_talking(&p);
        assert_int_equal(tls_alpn(p.end[PAIR_SERVER].session).len, 0);
        tls_pair_close(&p);
    }
}

static void an_address_is_verified_as_an_address(void **state)
{
    struct tls_pair p;
    tell(&p, &(struct story){.name = "127.0.0.1"});
    assert_talking(&p);
    tls_pair_close(&p);
    tell(&p, &(struct story){.name = "::1"});
    assert_talking(&p);
    tls_pair_close(&p);
    assert_refused(&(struct story){.name = "127.0.0.2"}, PAIR_CLIENT,
                   "TLS: the certificate is not for 127.0.0.2",
                   "TLS: the peer refuses: sslv3 alert bad certificate");
}

static void a_wrong_name_is_refused(void **state)
{
    assert_refused(&(struct story){.name = "store.test"}, PAIR_CLIENT,
                   "TLS: the certificate is not for store.test",
                   "TLS: the peer refuses: sslv3 alert bad certificate");
}

static void a_certificate_of_another_ca_is_refused(void **state)
{
    assert_refused(&(struct story){.ca = "other-ca.crt"}, PAIR_CLIENT,
                   "TLS: the peer's certificate is refused: unable to get local issuer certificate",
                   "TLS: the peer refuses: tlsv1 alert unknown ca");
}

static void an_expired_certificate_is_refused(void **state)
{
    assert_refused(&(struct story){.cert = "expired"}, PAIR_CLIENT,
                   "TLS: the peer's certificate is refused: certificate has expired",
                   "TLS: the peer refuses: sslv3 alert certificate expired");
}

static void a_client_needs_a_name_to_verify(void **state)
{
    struct tls_context *c = context(&(struct tls_options){.ca = path("ca.crt")});
    assert_null(tls_session_create(c, ""));
    assert_null(tls_session_create(c, NULL));
    tls_context_unref(c);
}

/* ---- certificates of clients ---- */

static void a_required_client_certificate_that_is_missing_is_refused(void **state)
{
    assert_refused(&(struct story){.wanted = TLS_CLIENT_CERT_REQUIRED}, PAIR_SERVER,
                   "TLS: peer did not return a certificate",
                   "TLS: the peer refuses: tlsv13 alert certificate required");
}

static void a_client_certificate_of_another_ca_is_refused_even_if_optional(void **state)
{
    assert_refused(&(struct story){.wanted = TLS_CLIENT_CERT_OPTIONAL, .client = "other"},
                   PAIR_SERVER,
                   "TLS: the peer's certificate is refused: unable to get local issuer certificate",
                   "TLS: the peer refuses: tlsv1 alert unknown ca");
}

static void a_verified_client_has_its_names(void **state)
{
    char name[64];
    struct tls_pair p;
    tell(&p, &(struct story){.wanted = TLS_CLIENT_CERT_REQUIRED, .client = "client"});
    assert_talking(&p);
    struct tls_session *s = p.end[PAIR_SERVER].session;
    assert_true(tls_peer_has_name(s, TEXT("client")));
    assert_true(tls_peer_has_name(s, TEXT("client.test")));
    assert_true(tls_peer_has_name(s, TEXT("urn:test:client")));
    assert_false(tls_peer_has_name(s, TEXT("clien")));
    assert_false(tls_peer_has_name(s, TEXT("")));
    assert_false(tls_peer_has_name(s, TEXT("Test CA")));
    assert_true(tls_peer_name(s, name, sizeof name));
    assert_string_equal(name, "client");
    tls_pair_close(&p);
}

static void a_client_without_a_certificate_has_no_name(void **state)
{
    char name[64] = "before";
    struct tls_pair p;
    tell(&p, &(struct story){.wanted = TLS_CLIENT_CERT_OPTIONAL});
    assert_talking(&p);
    assert_false(tls_peer_has_name(p.end[PAIR_SERVER].session, TEXT("client")));
    assert_false(tls_peer_name(p.end[PAIR_SERVER].session, name, sizeof name));
    assert_string_equal(name, "");
    tls_pair_close(&p);
}

static void a_certificate_that_nobody_asked_for_gives_no_name(void **state)
{
    struct tls_pair p;
    tell(&p, &(struct story){.client = "client"});
    assert_talking(&p);
    assert_false(tls_peer_has_name(p.end[PAIR_SERVER].session, TEXT("client")));
    tls_pair_close(&p);
}

/* ---- ALPN ---- */

static void the_server_chooses_its_first_protocol_that_the_client_offers(void **state)
{
    static const char *const spoken[] = {"http/1.1", "http/1.0", NULL};
    static const char *const offered[] = {"h2", "http/1.0", "http/1.1", NULL};
    struct tls_pair p;
    tell(&p, &(struct story){.spoken = spoken, .offered = offered});
    assert_talking(&p);
    assert_true(text_is(tls_alpn(p.end[PAIR_SERVER].session), "http/1.1"));
    assert_true(text_is(tls_alpn(p.end[PAIR_CLIENT].session), "http/1.1"));
    tls_pair_close(&p);
    tell(&p, &(struct story){.spoken = spoken});
    assert_talking(&p);
    tls_pair_close(&p);
    assert_refused(&(struct story){.spoken = spoken, .offered = (const char *[]){"h2", NULL}},
                   PAIR_SERVER, "TLS: no application protocol",
                   "TLS: the peer refuses: tlsv1 alert no application protocol");
}

/* ---- bytes ---- */

static void a_long_text_arrives_through_small_buffers(void **state)
{
    enum { LEN = 300000, ROOM = 20000, HOLE = 1000 };
    char *sent = malloc(LEN);
    char *heard = malloc(LEN);
    size_t at = 0;
    struct tls_pair p;
    tell(&p, &(struct story){0});
    for (size_t i = 0; i < LEN; i++) {
        sent[i] = (char)(i * 7 + i / 251);
    }
    struct tls_pair_end *from = &p.end[PAIR_CLIENT];
    struct tls_pair_end *to = &p.end[PAIR_SERVER];
    from->out.most = ROOM;
    to->plain.most = HOLE;
    struct weir_text plain = {sent, LEN};
    while (at < LEN) {
        assert_int_equal(tls_send(from->session, &plain, &from->out, NULL), TLS_OK);
        assert_false(from->out.full);
        struct weir_text cipher = buffer_text(&from->out);
        size_t len = cipher.len;
        assert_int_equal(tls_receive(to->session, &cipher, &to->plain, &to->out, NULL), TLS_OK);
        buffer_take(&from->out, len - cipher.len);
        struct weir_text piece = tls_pair_heard(&p, PAIR_SERVER);
        assert_true(piece.len > 0 && piece.len <= HOLE && piece.len <= LEN - at);
        memcpy(heard + at, piece.at, piece.len);
        at += piece.len;
    }
    assert_memory_equal(sent, heard, LEN);
    tls_pair_close(&p);
    free(sent);
    free(heard);
}

static void nothing_is_sent_before_the_handshake_is_finished(void **state)
{
    struct tls_pair p;
    open_silent(&p);
    struct weir_text plain = TEXT("early");
    struct tls_pair_end *e = &p.end[PAIR_CLIENT];
    assert_int_equal(tls_send(e->session, &plain, &e->out, &e->error), TLS_OK);
    assert_int_equal(plain.len, 5);
    assert_int_equal(buffer_len(&e->out), 0);
    tls_end(e->session, &e->out);
    assert_int_equal(buffer_len(&e->out), 0);
    tls_pair_close(&p);
}

static void small_requests_make_small_buffers(void **state)
{
    struct tls_pair p;
    tell(&p, &(struct story){0});
    assert_talking(&p);
    buffer_trim(&p.end[PAIR_SERVER].plain, 0);
    tls_pair_say(&p, PAIR_CLIENT, "PING\r\n");
    tls_pair_run(&p);
    assert_true(p.end[PAIR_SERVER].plain.size <= 1024);
    tls_pair_close(&p);
}

/* ---- ends ---- */

static void close_notify_comes_after_what_was_said(void **state)
{
    struct tls_pair p;
    tell(&p, &(struct story){0});
    tls_pair_say(&p, PAIR_CLIENT, "QUIT\r\n");
    tls_end(p.end[PAIR_CLIENT].session, &p.end[PAIR_CLIENT].out);
    tls_pair_run(&p);
    assert_heard(&p, PAIR_SERVER, "QUIT\r\n");
    assert_int_equal(p.end[PAIR_SERVER].result, TLS_ENDED);
    tls_pair_say(&p, PAIR_SERVER, "+OK\r\n");
    tls_pair_run(&p);
    assert_heard(&p, PAIR_CLIENT, "+OK\r\n");
    tls_pair_close(&p);
}

static void a_truncated_stream_is_not_an_end(void **state)
{
    struct tls_pair p;
    tell(&p, &(struct story){0});
    tls_pair_say(&p, PAIR_CLIENT, "DEL everything\r\n");
    p.end[PAIR_CLIENT].out.end--;
    tls_pair_run(&p);
    assert_int_equal(p.end[PAIR_SERVER].result, TLS_OK);
    assert_int_equal(tls_pair_heard(&p, PAIR_SERVER).len, 0);
    tls_pair_close(&p);
}

/* ---- what is not TLS ---- */

static void plain_bytes_are_told_apart_and_stay(void **state)
{
    static const char *const texts[] = {"PING\r\n", "*1\r\n$4\r\nPING\r\n", "GET / HTTP/1.1\r\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        for (int at = 0; at < PAIR_ENDS; at++) {
            struct tls_pair p;
            open_silent(&p);
            struct tls_pair_end *e = &p.end[at];
            struct weir_text bytes = text_of(texts[i]);
            assert_int_equal(tls_receive(e->session, &bytes, &e->plain, &e->out, &e->error),
                             TLS_PLAIN);
            assert_string_equal(e->error.text, "TLS: the peer does not speak TLS");
            assert_true(text_is(bytes, texts[i]));
            assert_int_equal(buffer_len(&e->out), 0);
            tls_pair_close(&p);
        }
    }
}

static void garbage_after_the_handshake_fails_the_session_for_good(void **state)
{
    struct tls_pair p;
    tell(&p, &(struct story){0});
    buffer_put(&p.end[PAIR_CLIENT].out, TEXT("PING\r\nPING\r\n"));
    tls_pair_run(&p);
    struct tls_pair_end *e = &p.end[PAIR_SERVER];
    assert_int_equal(e->result, TLS_FAILED);
    assert_int_equal(strncmp(e->error.text, "TLS: ", 5), 0);
    struct weir_text plain = TEXT("+PONG\r\n");
    assert_int_equal(tls_send(e->session, &plain, &e->out, &e->error), TLS_FAILED);
    assert_string_equal(e->error.text, "TLS: the session has failed before");
    struct weir_text none = TEXT("");
    assert_int_equal(tls_receive(e->session, &none, &e->plain, &e->out, &e->error), TLS_FAILED);
    tls_pair_close(&p);
}

static void a_changed_byte_fails_the_session(void **state)
{
    struct tls_pair p;
    tell(&p, &(struct story){0});
    tls_pair_say(&p, PAIR_CLIENT, "PING\r\n");
    p.end[PAIR_CLIENT].out.at[p.end[PAIR_CLIENT].out.end - 1] ^= 1;
    tls_pair_run(&p);
    assert_int_equal(p.end[PAIR_SERVER].result, TLS_FAILED);
    assert_int_equal(tls_pair_heard(&p, PAIR_SERVER).len, 0);
    tls_pair_close(&p);
}

static void replies_that_do_not_fit_fail_the_session(void **state)
{
    struct tls_pair p;
    open_silent(&p);
    p.end[PAIR_CLIENT].out.most = 100; /* less than a ClientHello */
    tls_pair_run(&p);
    assert_int_equal(p.end[PAIR_CLIENT].result, TLS_FAILED);
    assert_string_equal(p.end[PAIR_CLIENT].error.text,
                        "TLS: the peer does not read what it asks for");
    tls_pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ends_talk_in_pieces_of_any_size),
        cmocka_unit_test(an_address_is_verified_as_an_address),
        cmocka_unit_test(a_wrong_name_is_refused),
        cmocka_unit_test(a_certificate_of_another_ca_is_refused),
        cmocka_unit_test(an_expired_certificate_is_refused),
        cmocka_unit_test(a_client_needs_a_name_to_verify),
        cmocka_unit_test(a_required_client_certificate_that_is_missing_is_refused),
        cmocka_unit_test(a_client_certificate_of_another_ca_is_refused_even_if_optional),
        cmocka_unit_test(a_verified_client_has_its_names),
        cmocka_unit_test(a_client_without_a_certificate_has_no_name),
        cmocka_unit_test(a_certificate_that_nobody_asked_for_gives_no_name),
        cmocka_unit_test(the_server_chooses_its_first_protocol_that_the_client_offers),
        cmocka_unit_test(a_long_text_arrives_through_small_buffers),
        cmocka_unit_test(nothing_is_sent_before_the_handshake_is_finished),
        cmocka_unit_test(small_requests_make_small_buffers),
        cmocka_unit_test(close_notify_comes_after_what_was_said),
        cmocka_unit_test(a_truncated_stream_is_not_an_end),
        cmocka_unit_test(plain_bytes_are_told_apart_and_stay),
        cmocka_unit_test(garbage_after_the_handshake_fails_the_session_for_good),
        cmocka_unit_test(a_changed_byte_fails_the_session),
        cmocka_unit_test(replies_that_do_not_fit_fail_the_session),
    };
    certificates_make(&certs);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    certificates_remove(&certs);
    return failed;
}
