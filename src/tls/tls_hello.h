/*
 * Bounds what a client that has shown nothing yet makes the server hold. OpenSSL makes room for a
 * message of the handshake as soon as its length was announced: 170 KB for nine bytes. So a server
 * follows the messages while they are in plain text, and refuses those that are too large.
 */
#ifndef WEIR_TLS_TLS_HELLO_H
#define WEIR_TLS_TLS_HELLO_H

#include "common/text.h"

#define TLS_HELLO_BYTES 16384u /* of one message; hellos with all extensions have 2 to 4 KB */

struct tls_hello {
    unsigned char record[5]; /* the head of a record: type, version, length */
    unsigned char message[4];
    unsigned record_have; /* bytes of these that have come */
    unsigned message_have;
    size_t record_left; /* bytes until the end of each */
    size_t message_left;
    bool keyed;  /* TLS 1.2: the client has sent its part of the key */
    bool sealed; /* TLS 1.2: the client goes on encrypted; TLS 1.3 needs no such note */
};

/* Follows bytes of a client, which begins with a zeroed struct. Returns false if they announce a
 * message that is too large. */
bool tls_hello_follow(struct tls_hello *h, struct weir_text bytes);

#endif
