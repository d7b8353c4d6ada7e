/*
 * Circuit breakers: whether calls should be sent to an endpoint (client.h C5). The breakers belong
 * to the process, and the clients of all threads share what they learn: the fields are atomic, or
 * guarded by a lock that is held briefly.
 */
#ifndef WEIR_REDIS_BREAKER_H
#define WEIR_REDIS_BREAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "common/text.h"
#include "redis/memory.h"

#define BREAKERS_MAX 1024 /* endpoints that a process uses at the same time */
#define BREAKER_NAME_MAX 300
#define BREAKER_KEY_MAX 512
#define BREAKER_PARTS 8
#define BREAKER_TEXTS 16 /* scripts */

struct breakers;

/* Only breaker.c uses its fields, apart from breaker_is_open(). */
struct breaker {
    uint64_t state; /* 0: closed */
    uint64_t bad_in_a_row;
    uint64_t probe_ns;
    uint64_t parts[BREAKER_PARTS];
    struct breakers *all;
    uint64_t calls;                   /* 1: the endpoint takes calls; 0: it is a Sentinel */
    uint64_t well_ns;                 /* time of the last breaker_well() */
    uint64_t texts_ns[BREAKER_TEXTS]; /* when the text of a script was last sent; 0: never */
    uint64_t texts_by[BREAKER_TEXTS]; /* and by which link */
    struct endpoint_memory memory;    /* redis/memory.h; used by link.c and call.c */
    uint64_t doubted; /* length of `doubt`; `doubt` is written and read under the lock */
    char doubt[BREAKER_KEY_MAX];
    unsigned users; /* links that use it; guarded by the lock, as is the name */
    char name[BREAKER_NAME_MAX];
};

struct breakers *breakers_create(uint64_t seed); /* seed: for the jitter; NULL: no memory */
void breakers_destroy(struct breakers *b);

/* Returns a random number, also for the jitter of others. May be called from any thread. */
uint64_t breakers_random(struct breakers *b);

/*
 * breaker_find() returns the breaker of an endpoint, and creates it if it is new. NULL: the name
 * has more than 299 bytes, BREAKERS_MAX are in use, or no memory. The caller uses the breaker until
 * breaker_leave(). A breaker that is no longer in use keeps its state until its row is needed for
 * another endpoint, so stores whose addresses change never run out of rows. Both may be called from
 * any thread.
 */
struct breaker *breaker_find(struct breakers *b, const char *endpoint);
void breaker_leave(struct breaker *b);

/* Notes that the endpoint takes calls. Other endpoints (Sentinels) only answer questions. */
void breaker_for_calls(struct breaker *b);

static inline bool breaker_is_open(const struct breaker *b)
{
    return load_acquire(&b->state) != 0;
}

/*
 * Returns true if the breaker is open, a probe is due, and no other thread makes one; then
 * breaker_probed() must follow. If it has not followed after 10 s, the probe counts as lost, and
 * another thread may make one.
 */
bool breaker_may_probe(struct breaker *b, uint64_t now_ns);
uint64_t breaker_due(const struct breaker *b); /* the next probe; UINT64_MAX: closed */
void breaker_probed(struct breaker *b, bool good, uint64_t now_ns);

/* A call was answered after its deadline: the endpoint may have stalled for a moment only, so a
 * probe is due now, unless one is under way. Does nothing after refusals (breaker_doubt()). */
void breaker_answers(struct breaker *b, uint64_t now_ns);

/* Count n calls that went well, and one call or connection that failed. On an open breaker they do
 * nothing: calls that were under way when it opened must not close it. */
void breaker_good(struct breaker *b, uint64_t n, uint64_t now_ns);
void breaker_bad(struct breaker *b, uint64_t now_ns);

/*
 * breaker_doubt() notes that the endpoint refuses calls (store_is_failure()), for example one with
 * this key: the next probe must find out whether such a call would still be refused. The key is
 * kept until breaker_good() is called on a closed breaker, or until an open one closes.
 * breaker_doubted() copies the key and returns its length; 0: there is none.
 */
void breaker_doubt(struct breaker *b, struct weir_text key);
size_t breaker_doubted(struct breaker *b, char key[BREAKER_KEY_MAX]);

static inline bool breaker_doubts(const struct breaker *b)
{
    return load_relaxed(&b->doubted) != 0;
}

/* Returns true if `link` is to send the text of this script to the endpoint, and notes that it
 * does; false if another link of the process has done so within the last 10 ms. If two ask at the
 * same moment, one is told to. */
bool breaker_begin_text(struct breaker *b, unsigned script, const void *link, uint64_t now_ns);

/* breaker_well() notes that a call was answered by the endpoint, or would be; breaker_well_ns()
 * returns when that was last noted. */
void breaker_well(struct breaker *b, uint64_t now_ns);
uint64_t breaker_well_ns(const struct breaker *b);

/* ---- for metrics ---- */

struct breaker_seen {
    char endpoint[BREAKER_NAME_MAX]; /* host:port */
    bool open;
    bool calls; /* calls go there */
    struct endpoint_memory memory;
};

/* breakers_see() copies up to `most` of the breakers that are in use and returns how many are. Both
 * may be called from any thread. */
size_t breakers_see(struct breakers *b, struct breaker_seen *seen, size_t most);
uint64_t breakers_count_open(struct breakers *b);

#endif
