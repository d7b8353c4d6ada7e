/*
 * Who is denied most, in memory that does not grow: a sketch for each thread, put together when
 * somebody asks.
 *
 * Space-Saving (Metwally, Agrawal and El Abbadi 2005): a fixed number of keys is counted. A key
 * that is not among them takes the place of the one with the lowest count, and goes on from there:
 * that count is its error. So for every key that is told, count - error <= the truth <= count.
 * Here there are many small ones, and the hash of a key says which one counts it: the lowest of
 * eight counts is found in one line of memory, where a heap over all of them took five times as
 * long. Of N denials that meet in one of them, who has more than N / TOP_WAYS is told; strangers do
 * not know who meets whom, the hash is keyed.
 *
 * One thread writes a sketch, any may read it at the same time. Counts are single words. A place
 * that changes its key has a number, odd while that happens; whoever sees it odd, or changed after
 * reading, reads again (G1). The words of a place are stored with release and read with acquire: who
 * has read a new word also sees the number that was stored before it (G2).
 */
#ifndef WEIR_SERVER_ADMIN_TOP_DENIED_H
#define WEIR_SERVER_ADMIN_TOP_DENIED_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

#define TOP_SETS 32
#define TOP_WAYS 8
#define TOP_KEYS (TOP_SETS * TOP_WAYS)
#define TOP_KEY_BYTES 64 /* of a key that are kept; two that differ behind them are still two */
#define TOP_NAME_BYTES 64

struct top;

/* NULL: out of memory. All sketches that are read together share a secret. */
struct top *top_create(const struct hash_secret *secret);
void top_destroy(struct top *top);

/* By the thread that owns it. */
void top_add(struct top *top, const char *limit, const void *key, size_t key_len);

/* The sketch that top_denied() of this thread writes to; NULL: none. */
void top_use(struct top *top);

/* To be weir_rules_options.denied. */
void top_denied(void *arg, const char *limit, const void *key, size_t key_len);

struct top_item {
    uint64_t id;
    uint64_t count; /* at most this often ... */
    uint64_t error; /* ... and at least this much less */
    uint64_t key_len;
    char limit[TOP_NAME_BYTES];
    char key[TOP_KEY_BYTES]; /* the first bytes of key_len */
};

/*
 * All sketches as one, the highest counts first. *items is the caller's, to be freed; returns how
 * many, or WEIR_ENOMEM.
 */
int64_t top_read(struct top *const *tops, size_t count, struct top_item **items);

#endif
