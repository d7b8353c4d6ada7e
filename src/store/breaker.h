/*
 * Whether an endpoint is worth asking: client.h C5. Of a process; every field is atomic, so that the
 * clients of all threads share what they learn.
 */
#ifndef WEIR_STORE_BREAKER_H
#define WEIR_STORE_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#define BREAKERS_MAX 1024 /* endpoints of a process */

struct breakers;
struct breaker;

struct breakers *breakers_create(uint64_t seed); /* of the jitter; NULL: no memory */
void breakers_destroy(struct breakers *b);

/* For the jitter of others. From any thread. */
uint64_t breakers_random(struct breakers *b);

/* That of an endpoint, made if it is new; names of up to 299 bytes. NULL: too many. From any thread. */
struct breaker *breaker_find(struct breakers *b, const char *endpoint);

bool breaker_is_open(const struct breaker *b);

/*
 * Open: true if it is time for a probe, and nobody else makes one; then breaker_probed() must follow.
 * Who has not said so after 10 s has died on the way, and another may try.
 */
bool breaker_may_probe(struct breaker *b, uint64_t now_ns);
uint64_t breaker_due(const struct breaker *b); /* the next probe; UINT64_MAX: closed */
void breaker_probed(struct breaker *b, bool good, uint64_t now_ns);

/* n calls went well; a call or a connection failed. Of an open breaker nothing changes: what was under
 * way when it opened must not close it. */
void breaker_good(struct breaker *b, uint64_t n, uint64_t now_ns);
void breaker_bad(struct breaker *b, uint64_t now_ns);

/* The i-th, its name and whether it is open; false: there is none. */
bool breaker_at(const struct breakers *b, unsigned i, const char **endpoint, bool *open);

#endif
