/*
 * A store that says whatever the test wants: a thread that listens on a port of 127.0.0.1, reads
 * commands, and answers each by a function. An error ends the test program.
 */
#ifndef WEIR_TESTS_SUPPORT_FAKE_STORE_H
#define WEIR_TESTS_SUPPORT_FAKE_STORE_H

#include "common/buffer.h"
#include "wire/resp.h"

struct fake_store;

/* Appends the reply to a command to *out. Called on the store's thread. */
typedef void (*fake_store_fn)(const struct fake_store *s, const struct resp_request *command,
                              struct buffer *out);

struct fake_store *fake_store_start(fake_store_fn reply);
void fake_store_stop(struct fake_store *s);
unsigned fake_store_port(const struct fake_store *s);

/* Returns how many connections it has accepted. */
uint64_t fake_store_accepted(const struct fake_store *s);

#endif
