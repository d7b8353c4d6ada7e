/*
 * Sends one request on a new connection and waits for the answer, for commands that talk to a
 * server. One deadline holds for the whole call; the size of the answer is bounded by the buffer.
 */
#ifndef WEIR_CLI_BLOCKING_EXCHANGE_H
#define WEIR_CLI_BLOCKING_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "common/buffer.h"

struct client_tls;

#define EXCHANGE_READ_BYTES 65536 /* room that the buffer of the answer needs beyond the answer */

enum { EXCHANGE_DONE = 1, EXCHANGE_MORE = 0, EXCHANGE_BAD = -1 };

struct blocking_exchange {
    const char *address; /* "127.0.0.1:8082", "[::1]:8082", "localhost:8082", "unix:PATH" */
    const struct client_tls *tls; /* NULL, or without a context: plain text */
    uint64_t timeout_ms;
    struct weir_text request;
    /*
     * Reads the bytes that have come. EXCHANGE_DONE: the answer is complete. EXCHANGE_MORE: it is
     * not; never returned if `ended`, which means that no more bytes will come. EXCHANGE_BAD: the
     * bytes are no answer; *complaint says why.
     */
    int (*read)(void *arg, struct weir_text input, bool ended, const char **complaint);
    void *arg;
};

/*
 * Returns 0 with the answer in *input, which the caller has initialised and finishes;
 * WEIR_EINVAL: an address that is not valid; WEIR_EIO: no connection, or no complete answer in
 * time.
 */
int blocking_exchange(const struct blocking_exchange *x, struct buffer *input,
                      struct weir_error *error);

#endif
