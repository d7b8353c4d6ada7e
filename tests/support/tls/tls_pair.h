/*
 * A client and a server session that talk to each other in memory. Bytes travel in pieces of a
 * chosen size.
 */
#ifndef WEIR_TESTS_SUPPORT_TLS_TLS_PAIR_H
#define WEIR_TESTS_SUPPORT_TLS_TLS_PAIR_H

#include "tls/tls.h"

enum { PAIR_CLIENT, PAIR_SERVER, PAIR_ENDS };

struct tls_pair_end {
    struct tls_session *session;
    struct buffer plain; /* what has arrived */
    struct buffer out;   /* what is on its way to the other end */
    enum tls_result result;
    struct weir_error error; /* if the result is neither OK nor ENDED */
};

struct tls_pair {
    size_t piece; /* bytes that travel at once */
    struct tls_pair_end end[PAIR_ENDS];
};

/* Makes both sessions; `name` is the one that the client expects. The contexts are only used. */
void tls_pair_open(struct tls_pair *p, struct tls_context *client, struct tls_context *server,
                   const char *name);
void tls_pair_close(struct tls_pair *p);

/* Lets bytes travel until there are none, or until the receiving end fails. */
void tls_pair_run(struct tls_pair *p);

/* Encrypts a text at one end; it must be taken as a whole. */
void tls_pair_say(struct tls_pair *p, int from, const char *text);

/* Returns and takes all that an end has received. Valid until the next call for this end. */
struct weir_text tls_pair_heard(struct tls_pair *p, int at);

#endif
