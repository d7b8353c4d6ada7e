/*
 * Finds the keys that are denied most, in memory that does not grow: each thread has a sketch, and
 * the sketches are merged when an operator asks.
 *
 * The sketch is Space-Saving (Metwally, Agrawal and El Abbadi 2005): a fixed number of keys is
 * counted. A key that is not among them takes the place of the one with the lowest count, and
 * counts on from there; that count is its error. So for every key that is reported,
 * count - error <= the truth <= count. Here a sketch is made of TOP_SETS small ones (sets), and the
 * hash of a key chooses the set that counts it. The lowest of eight counts is found in one cache
 * line; a heap over all keys took five times as long. If a set has seen N denials, every key with
 * more than N / TOP_WAYS of them is reported. The hash is keyed, so clients cannot choose the set.
 *
 * One thread writes a sketch, and any thread may read it at the same time. Counts are single
 * words. Each place has a number, which is odd while the place changes its key. A reader that
 * finds it odd, or changed after reading, reads again (G1). The words of a place are stored with
 * release and read with acquire: a reader that has read a new word also sees the number that was
 * stored before it (G2).
 */
#ifndef WEIR_SERVER_ADMIN_TOP_DENIED_H
#define WEIR_SERVER_ADMIN_TOP_DENIED_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

#define TOP_SETS 32
#define TOP_WAYS 8
#define TOP_KEYS (TOP_SETS * TOP_WAYS)
#define TOP_KEY_BYTES 64 /* bytes kept of a key; keys that differ only after them count apart */
#define TOP_NAME_BYTES 64

struct top;

/* Returns NULL if out of memory. All sketches that are read together must share a secret. */
struct top *top_create(const struct hash_secret *secret);
void top_destroy(struct top *top);

/* Counts a denial. Called by the thread that owns the sketch. */
void top_add(struct top *top, const char *limit, const void *key, size_t key_len);

/* Sets the sketch that top_denied() writes to when this thread calls it; NULL: none. */
void top_use(struct top *top);

/* Counts a denial in the thread's sketch. */
void top_denied(const char *limit, const void *key, size_t key_len);

struct top_item {
    uint64_t id;
    uint64_t count; /* denied at most this often, */
    uint64_t error; /* and at least count - error times */
    uint64_t key_len;
    char limit[TOP_NAME_BYTES];
    char key[TOP_KEY_BYTES]; /* the first bytes of key_len */
};

/*
 * Merges the sketches, the highest counts first. Returns the number of items, or WEIR_ENOMEM. The
 * caller frees *items.
 */
int64_t top_read(struct top *const *tops, size_t count, struct top_item **items);

#endif
