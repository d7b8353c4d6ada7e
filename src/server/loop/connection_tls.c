/*
 * TLS between the bytes of a connection and its protocol. The session has no I/O (tls/tls.h): bytes
 * that were read go through it into a buffer of the thread, and replies go through it into another
 * one. What it says itself, in the handshake or as an alert, is written like a reply.
 *
 * A handshake is bounded like a slow first request, because it is part of it: it has the same
 * deadline, counts for its address, and makes room for others like an idle connection.
 */
#include "base/atomic.h"
#include "rules/file/config.h"
#include "server/loop/worker.h"

#define KEEP_BYTES (256u << 10) /* a larger buffer of the thread is freed after use */

/* ---- out ---- */

static struct buffer *emptied(struct buffer *b)
{
    buffer_take(b, buffer_len(b));
    b->full = false;
    buffer_trim(b, KEEP_BYTES);
    return b;
}

struct weir_text connection_seal(struct connection *c, struct weir_text text)
{
    struct weir_error error;
    struct buffer *out = emptied(&c->worker->cipher);
    if (text.len > 0 && (tls_send(c->tls, &text, out, &error) != TLS_OK || text.len > 0)) {
        connection_close(c);
        return (struct weir_text){"", 0};
    }
    return buffer_text(out);
}

struct weir_text connection_seal_end(struct connection *c)
{
    struct buffer *out = emptied(&c->worker->cipher);
    tls_end(c->tls, out);
    return buffer_text(out);
}

/* ---- in ---- */

/* Returns the highest role that the names of the client's certificate give. */
static enum role role_of(const struct connection *c)
{
    for (enum role role = ROLE_ADMIN; role > ROLE_NONE; role--) {
        const struct texts *names = c->worker->server->options.tls.names[role];
        for (size_t i = 0; names != NULL && i < names->count; i++) {
            if (tls_peer_has_name(c->tls, names->at[i])) {
                return role;
            }
        }
    }
    return ROLE_NONE;
}

static void note_up(struct connection *c)
{
    c->up = true;
    c->pass.certificate = role_of(c);
    count_own(&c->worker->counts.handshakes, 1);
}

/* Ends a connection whose session has failed. Its alert has been written; if replies are still to
 * come, they have no way to the client. */
static void end_failed(struct connection *c, const char *why)
{
    static struct log_limit limit;
    if (!c->up) {
        count_own(&c->worker->counts.handshakes_failed, 1);
    }
    connection_tell(c, &limit, LEVEL_WARNING, c->up ? "TLS failed" : "TLS handshake failed", why);
    c->told = true;
    c->ending = true;
    if (c->pending.count > 0) {
        connection_close(c);
    } else {
        connection_go_on(c);
    }
}

/* Answers a client that does not speak TLS in its own protocol: it shows the text to somebody. */
static void refuse_plain(struct connection *c)
{
    static struct log_limit limit;
    count_own(&c->worker->counts.handshakes_failed, 1);
    connection_tell(c, &limit, LEVEL_WARNING, "connection refused",
                    "found plain text, expected TLS");
    tls_session_destroy(c->tls);
    c->tls = NULL;
    c->told = true;
    c->ending = true;
    connection_write(c, text_of(c->protocol->unsealed != NULL ? c->protocol->unsealed : ""));
    connection_go_on(c);
}

bool connection_unseal(struct connection *c, struct weir_text bytes, size_t stale)
{
    struct worker *w = c->worker;
    struct buffer *plain = emptied(&w->plain);
    struct buffer *out = emptied(&w->cipher);
    struct weir_error error = {0};
    size_t len = bytes.len;
    enum tls_result got = tls_receive(c->tls, &bytes, plain, out, &error);
    connection_write(c, buffer_text(out));
    if (!c->up && tls_is_up(c->tls)) {
        note_up(c);
    }
    struct weir_text text = buffer_text(plain);
    if (text.len > 0 && !c->closing) {
        connection_take(c, text, stale * text.len / len);
    } else {
        connection_note_kept(c);
    }
    if (got == TLS_PLAIN && !c->closing) {
        refuse_plain(c);
    } else if (got == TLS_FAILED && !c->closing) {
        end_failed(c, error.text);
    }
    return got != TLS_ENDED;
}

/* ---- beginning ---- */

bool connection_open_tls(struct connection *c)
{
    if (!server_speaks_tls(c->worker->server, c->protocol->kind)) {
        return true;
    }
    c->tls = server_tls_session(c->worker->server, c->protocol);
    return c->tls != NULL;
}

bool connection_refuse_hello(struct connection *c, struct weir_text input)
{
    static struct log_limit limit;
    if (c->tls != NULL || input.len < 2 || input.at[0] != 0x16 || input.at[1] != 0x03) {
        return false;
    }
    connection_tell(c, &limit, LEVEL_WARNING, "connection refused",
                    "found TLS, expected plain text: this listener has no certificate");
    connection_close(c);
    return true;
}
