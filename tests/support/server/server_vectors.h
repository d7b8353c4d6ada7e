/* Sends the shared decision vectors (tests/vectors) through a protocol. */
#ifndef WEIR_TESTS_SUPPORT_SERVER_VECTORS_H
#define WEIR_TESTS_SUPPORT_SERVER_VECTORS_H

#include "support/oracle/oracle_vector.h"
#include "support/server/server_client.h"

extern const char *const server_vector_verdicts[WEIR_NEVER + 1]; /* indexed by enum weir_verdict */

/* Sends call `i` of a section, whose limit has that name, and compares the answer. */
typedef void (*server_vector_fn)(void *arg, const struct oracle_vector *v, size_t i,
                                 const char *limit);

/*
 * Sends every section that rules can express and the protocol can ask, each as a limit of its own.
 * The server's clock is set before each call.
 */
void server_vectors_send(struct server_world *w, server_vector_fn send, void *arg);

/* Returns a time of the file in milliseconds, rounded up. */
uint64_t server_vector_ms(const struct oracle_vector *v, uint64_t time);

#endif
