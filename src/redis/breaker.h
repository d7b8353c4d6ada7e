/*
 * Whether an endpoint is worth asking: client.h C5. Of a process; every field is atomic, so that the
 * clients of all threads share what they learn.
 */
#ifndef WEIR_REDIS_BREAKER_H
#define WEIR_REDIS_BREAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/text.h"

#define BREAKERS_MAX 1024 /* endpoints of a process at once */
#define BREAKER_NAME_MAX 300
#define BREAKER_KEY_MAX 512

struct breakers;
struct breaker;

struct breakers *breakers_create(uint64_t seed); /* of the jitter; NULL: no memory */
void breakers_destroy(struct breakers *b);

/* For the jitter of others. From any thread. */
uint64_t breakers_random(struct breakers *b);

/*
 * That of an endpoint, made if it is new; names of up to 299 bytes. NULL: too many. Its finder uses it
 * until breaker_leave(); what nobody uses is known on, until its place is needed: stores whose
 * addresses change never run out of places. From any thread, both.
 */
struct breaker *breaker_find(struct breakers *b, const char *endpoint);
void breaker_leave(struct breaker *b);

/* Calls go there; others are only asked where (Sentinels). */
void breaker_for_calls(struct breaker *b);

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

/*
 * Calls are refused there (store_is_failure()), this key's for one: a probe must find out whether such a call
 * would be. Until breaker_good() of a closed one, or until it is closed. The key's length; 0: no doubt.
 */
void breaker_doubt(struct breaker *b, struct text key);
size_t breaker_doubted(struct breaker *b, char key[BREAKER_KEY_MAX]);

/* A call was answered there, or would be; when that was known last. */
void breaker_well(struct breaker *b, uint64_t now_ns);
uint64_t breaker_well_ns(const struct breaker *b);

/* ---- for metrics ---- */

struct breaker_seen {
    char endpoint[BREAKER_NAME_MAX]; /* host:port */
    bool open;
    bool calls; /* go there */
};

/* Those that are in use, up to `most`; how many there are. From any thread. */
size_t breakers_see(struct breakers *b, struct breaker_seen *seen, size_t most);
uint64_t breakers_count_open(struct breakers *b);

#endif
