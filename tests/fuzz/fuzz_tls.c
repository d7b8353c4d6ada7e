/*
 * Gives bytes to a TLS server. The first byte chooses the size of the pieces, and what the other
 * bytes are: the whole connection, bytes after a good handshake, or a text that a client sends,
 * which arrives as it was through a small buffer. How bytes are cut changes nothing about the
 * result; a session that has failed stays so; plaintext comes only after a handshake; bytes that
 * are not TLS stay with the caller.
 */
#include <stdlib.h>

#include "support/tls/certificates.c" /* fuzz targets are not linked with the helpers of tests */
#include "tls/tls.h"

#define MOST ((size_t)1 << 20)
#define SMALL 300

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct tls_context *contexts[2]; /* of a client and of a server */

static void prepare(void)
{
    struct certificates certs;
    struct weir_error error;
    if (contexts[0] != NULL) {
        return;
    }
    certificates_make(&certs);
    const struct tls_options client = {.ca = certificates_path(&certs, "ca.crt")};
    const struct tls_options server = {.server = true,
                                       .ca = certificates_path(&certs, "ca.crt"),
                                       .cert = certificates_path(&certs, "server.crt"),
                                       .key = certificates_path(&certs, "server.key"),
                                       .client_cert = TLS_CLIENT_CERT_OPTIONAL,
                                       .alpn = (const char *[]){"http/1.1", NULL}};
    require(tls_context_create(&contexts[0], &client, &error) == 0);
    require(tls_context_create(&contexts[1], &server, &error) == 0);
    certificates_remove(&certs);
}

struct end {
    struct tls_session *session;
    struct buffer plain, out;
};

static void open_end(struct end *e, int which)
{
    e->session = tls_session_create(contexts[which], which == 0 ? "localhost" : NULL);
    require(e->session != NULL);
    buffer_init(&e->plain, MOST);
    buffer_init(&e->out, MOST);
}

static void close_end(struct end *e)
{
    tls_session_destroy(e->session);
    buffer_finish(&e->plain);
    buffer_finish(&e->out);
}

/* Gives bytes in pieces until there is a result other than TLS_OK. The copies have the exact size,
 * so that a byte read beyond them is noticed. */
static enum tls_result give(struct end *e, struct weir_text bytes, size_t piece)
{
    enum tls_result result = TLS_OK;
    bool first = true;
    while (bytes.len > 0 && result == TLS_OK) {
        size_t n = bytes.len < piece ? bytes.len : piece;
        char *copy = malloc(n);
        require(copy != NULL);
        memcpy(copy, bytes.at, n);
        struct weir_text rest = {copy, n};
        result = tls_receive(e->session, &rest, &e->plain, &e->out, NULL);
        require(result != TLS_OK || rest.len == 0);
        require(result != TLS_PLAIN || (first && rest.len == n && buffer_len(&e->out) == 0));
        first = false;
        free(copy);
        bytes = text_after(bytes, n);
    }
    struct weir_text none = TEXT("");
    require(result != TLS_FAILED ||
            tls_receive(e->session, &none, &e->plain, &e->out, NULL) == TLS_FAILED);
    return result;
}

static void shake_hands(struct end *client, struct end *server)
{
    struct weir_text none = TEXT("");
    require(tls_receive(client->session, &none, &client->plain, &client->out, NULL) == TLS_OK);
    for (int i = 0; i < 3; i++) {
        require(give(server, buffer_text(&client->out), MOST) == TLS_OK);
        buffer_take(&client->out, buffer_len(&client->out));
        require(give(client, buffer_text(&server->out), MOST) == TLS_OK);
        buffer_take(&server->out, buffer_len(&server->out));
    }
    require(tls_is_up(client->session) && tls_is_up(server->session));
}

/* ---- what the bytes are ---- */

static enum tls_result whole_connection(struct weir_text bytes, size_t piece)
{
    struct end server;
    open_end(&server, 1);
    enum tls_result result = give(&server, bytes, piece);
    require(buffer_len(&server.plain) == 0); /* no input can guess the server's secrets */
    close_end(&server);
    return result;
}

static enum tls_result after_a_handshake(struct weir_text bytes, size_t piece)
{
    struct end client;
    struct end server;
    open_end(&client, 0);
    open_end(&server, 1);
    shake_hands(&client, &server);
    enum tls_result result = give(&server, bytes, piece);
    require(buffer_len(&server.plain) == 0);
    close_end(&client);
    close_end(&server);
    return result;
}

static void text_of_a_client(struct weir_text bytes, size_t piece)
{
    struct end client;
    struct end server;
    open_end(&client, 0);
    open_end(&server, 1);
    shake_hands(&client, &server);
    server.plain.most = SMALL;
    for (struct weir_text rest = bytes; rest.len > 0;) {
        struct weir_text some = {rest.at, rest.len < piece ? rest.len : piece};
        rest = text_after(rest, some.len);
        require(tls_send(client.session, &some, &client.out, NULL) == TLS_OK && some.len == 0);
    }
    struct weir_text cipher = buffer_text(&client.out);
    while (bytes.len > 0) {
        require(tls_receive(server.session, &cipher, &server.plain, &server.out, NULL) == TLS_OK);
        struct weir_text got = buffer_text(&server.plain);
        require(got.len > 0 && got.len <= bytes.len && memcmp(got.at, bytes.at, got.len) == 0);
        bytes = text_after(bytes, got.len);
        buffer_take(&server.plain, got.len);
    }
    close_end(&client);
    close_end(&server);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0) {
        return 0;
    }
    prepare();
    struct weir_text bytes = {(const char *)data + 1, size - 1};
    size_t piece = 1 + data[0] / 3U;
    switch (data[0] % 3) {
    case 0:
        require(whole_connection(bytes, piece) == whole_connection(bytes, MOST));
        break;
    case 1:
        require(after_a_handshake(bytes, piece) == after_a_handshake(bytes, MOST));
        break;
    default:
        text_of_a_client(bytes, piece);
    }
    return 0;
}
