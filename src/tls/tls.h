/*
 * TLS without I/O. A session never touches a descriptor: the caller gives it the ciphertext that it
 * has received, and gets plaintext in one buffer and ciphertext to send in another. OpenSSL reads
 * straight from the caller's bytes and appends straight to the caller's buffer, so that there is no
 * copy besides its own, a closed connection raises no signal, and tests run without a network.
 *
 * TLS 1.2 and 1.3; no renegotiation, no compression, no early data. The peer's certificate is
 * always verified by a client, and by a server that asks for one.
 *
 * Threads: contexts may be shared, but one thread at a time asks whether one has changed; a session
 * belongs to one thread at a time.
 */
#ifndef WEIR_TLS_TLS_H
#define WEIR_TLS_TLS_H

#include <weir.h>

#include "common/buffer.h"

#define TLS_RECORD_BYTES 16384 /* most bytes of plaintext in one record */

enum tls_client_cert { TLS_CLIENT_CERT_NONE, TLS_CLIENT_CERT_OPTIONAL, TLS_CLIENT_CERT_REQUIRED };

/* Zeroed: a client that trusts what the system trusts. Paths name files in PEM form. */
struct tls_options {
    bool server;
    const char *ca;   /* file, or folder made by c_rehash; NULL: the system's. Of a server: those of
                         clients' certificates, and needed unless client_cert is NONE */
    const char *cert; /* own certificate, then those between it and its CA; a server needs one */
    const char *key;  /* its key, not encrypted; given together with `cert` */
    enum tls_client_cert client_cert; /* server only */
    const char *const *alpn; /* protocols, the preferred one first, NULL at the end; NULL: no ALPN.
                                A server refuses clients that offer others only */
};

/* ---- contexts: what was read from the files ---- */

struct tls_context;

/*
 * Reads the files. An error names the file and the cause: WEIR_EINVAL, WEIR_ENOENT, WEIR_EACCES,
 * WEIR_EIO, WEIR_ENOMEM. The options are copied.
 */
int tls_context_create(struct tls_context **context, const struct tls_options *options,
                       struct weir_error *error);

/* Counts users. Each session is one, so that a renewal ends no connection. unref takes NULL. */
struct tls_context *tls_context_ref(struct tls_context *context);
void tls_context_unref(struct tls_context *context);

/* True if a file, or what a symbolic link leads to, is another one than was read. */
bool tls_context_changed(const struct tls_context *context);

/*
 * Replaces *context, one of whose uses is the caller's, if its files have changed. Returns 1 if it
 * was replaced, 0 if nothing has changed, or an error as tls_context_create(): then the old one
 * stays, and the same files are not tried again. Calls with the same *context exclude each other.
 */
int tls_context_renew(struct tls_context **context, struct weir_error *error);

/* Returns the Unix time, in seconds, at which the own certificate ends; 0 without one. */
int64_t tls_context_expires(const struct tls_context *context);

/* ---- sessions: one for each connection ---- */

struct tls_session;

enum tls_result {
    TLS_OK,
    TLS_ENDED,  /* the peer has sent close_notify: no more plaintext will come */
    TLS_PLAIN,  /* the first byte is not one of TLS; nothing was consumed or written */
    TLS_FAILED, /* for good; the error says why, and `out` may hold an alert for the peer */
};

/*
 * Returns a session of the context, or NULL without memory. A client gives the name or the address
 * that the server's certificate must have; a name is also sent (SNI). A server gives NULL.
 */
struct tls_session *tls_session_create(struct tls_context *context, const char *server_name);
void tls_session_destroy(struct tls_session *session); /* takes NULL */

/*
 * Processes ciphertext: appends plaintext to `plain` and replies of the protocol to `out`. The
 * consumed bytes are removed from the front of *cipher; some remain only if `plain` is full (then
 * call again, also if none remain, after taking bytes from it) or at the end. `plain` is never
 * full if it has room for the ciphertext and TLS_RECORD_BYTES. A client begins the handshake by a
 * call without ciphertext.
 *
 * An end of the connection without TLS_ENDED before it is a truncation.
 */
enum tls_result tls_receive(struct tls_session *session, struct weir_text *cipher,
                            struct buffer *plain, struct buffer *out, struct weir_error *error);

/*
 * Encrypts plaintext and removes it from the front of *plain. Some remains if `out` has no room for
 * it, or if the handshake is not finished. Returns TLS_OK or TLS_FAILED.
 */
enum tls_result tls_send(struct tls_session *session, struct weir_text *plain, struct buffer *out,
                         struct weir_error *error);

/* Says that no more plaintext will be sent (close_notify), if the handshake is finished. */
void tls_end(struct tls_session *session, struct buffer *out);

/* True if the handshake is finished. */
bool tls_is_up(const struct tls_session *session);

/* True if a part of a record has come: the session then has a buffer for all of it. */
bool tls_has_part(const struct tls_session *session);

/* Returns the protocol that ALPN has chosen; empty: none. */
struct weir_text tls_alpn(const struct tls_session *session);

/*
 * True if the peer has a verified certificate and this is one of its names: the common name of its
 * subject, or a DNS name or URI among its alternative names. Bytes are compared as they are.
 */
bool tls_peer_has_name(const struct tls_session *session, struct weir_text name);

/* Writes the common name of the peer's verified certificate; false and "" if there is none. */
bool tls_peer_name(const struct tls_session *session, char *name, size_t size);

#endif
