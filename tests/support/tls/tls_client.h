/* A client that speaks TLS over a socket that blocks. Any thread may use it; errors that are not
 * the peer's end the program. */
#ifndef WEIR_TESTS_SUPPORT_TLS_TLS_CLIENT_H
#define WEIR_TESTS_SUPPORT_TLS_TLS_CLIENT_H

#include "support/tls/certificates.h"
#include "tls/tls.h"

struct tls_client {
    int fd;
    struct tls_session *session;
    struct buffer plain; /* what has been received */
    struct buffer out;
    bool ended;              /* the server has sent close_notify */
    struct weir_error error; /* why the session failed */
};

/* Returns a context that trusts the CA `ca` ("ca"), with the certificate `own` ("client"; NULL:
 * none). */
struct tls_context *tls_client_context(const struct certificates *c, const char *ca,
                                       const char *own);

/* Connects to "127.0.0.1:PORT". tls_client_shake() makes the handshake; false if it failed. */
void tls_client_connect(struct tls_client *c, const char *address, struct tls_context *context);
/* Takes over a socket that is connected. */
void tls_client_open(struct tls_client *c, int fd, struct tls_context *context);
bool tls_client_shake(struct tls_client *c);
void tls_client_close(struct tls_client *c);

/* Encrypts and sends a text. Returns false if the server has closed the connection. */
bool tls_client_say(struct tls_client *c, struct weir_text text);
bool tls_client_end(struct tls_client *c); /* sends close_notify */

/* Receives once, for at most a minute. Returns false if the connection has ended or failed. */
bool tls_client_hear(struct tls_client *c);

/* Receives until what was received has `n` bytes, or contains a text. False: it ended before. */
bool tls_client_await_bytes(struct tls_client *c, size_t n);
bool tls_client_await(struct tls_client *c, const char *text);

/* Sends a command of RESP, and returns the beginning of the reply; "" if the connection ended. The
 * reply must be one line. Valid until the next call. */
const char *tls_client_ask(struct tls_client *c, const char *words);

#endif
