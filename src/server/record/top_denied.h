/*
 * Counts the keys that are denied, in memory that does not grow: each thread has a sketch. Once in
 * a while the operators' thread begins another turn of the sketches, and adds up what the finished
 * turn has counted (top_panes.h). So a thread never waits, and nothing is counted for ever.
 *
 * The sketch is Space-Saving (Metwally, Agrawal and El Abbadi 2005): a fixed number of rows is
 * counted. A row is a limit, a key and a reason. A row that is not among them takes the place of
 * the one with the lowest count, and counts on from there; that count is its error. So for every
 * row that is kept, count - error <= the truth <= count. Here a sketch is made of TOP_SETS small
 * ones (sets), and the hash of a row chooses the set that counts it. The lowest of eight counts is
 * found in one cache line; a heap over all rows took five times as long. If a set has seen N
 * denials, every row with more than N / TOP_WAYS of them is kept. The hash is keyed, so clients
 * cannot choose the set.
 *
 * One thread writes a sketch, and the operators' thread may read it at the same time. Counts are
 * single words. Each place has a number, which is odd while the place changes its row. A reader
 * that finds it odd, or changed after reading, reads again (G1). The words of a place are stored
 * with release and read with acquire: a reader that has read a new word also sees the number that
 * was stored before it (G2).
 *
 * A thread has two sketches, one for turns with an even number and one for the odd ones. What a set
 * has counted is of the turn whose number stands in it; a denial in another turn empties the set
 * first, and stores the number of the turn last, with release (G3). So a reader that finds the
 * number of a turn, with acquire, finds nothing older. The operators' thread alone begins turns and
 * reads, and it reads only the present turn and the one before it, whose sketches no thread empties
 * meanwhile. A thread that was interrupted between reading the number of the turn and counting may
 * count into the turn before; if that takes until the turn after the next one, one denial is lost.
 */
#ifndef WEIR_SERVER_RECORD_TOP_DENIED_H
#define WEIR_SERVER_RECORD_TOP_DENIED_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

#define TOP_SETS 32
#define TOP_WAYS 8
#define TOP_KEYS (TOP_SETS * TOP_WAYS)
#define TOP_KEY_BYTES 64 /* bytes kept of a key; keys that differ only after them count apart */
#define TOP_NAME_BYTES 64
#define TOP_THREAD 90624 /* memory of the two sketches of a thread, at most */

struct top;

/* Returns NULL if out of memory. `turn` is the number of the turn, which another thread raises; it
 * must be at least 1 and outlive the sketches. All that are read together must share both. */
struct top *top_create(const struct hash_secret *secret, const uint64_t *turn);
void top_destroy(struct top *top);

/* Returns the memory of the sketches of a thread. */
size_t top_bytes(void);

/* Counts a denial for a reason (enum weir_rules_reason). Called by the thread that owns the
 * sketches. */
void top_add(struct top *top, const char *limit, const void *key, size_t key_len, int reason);

/* Sets the sketches that top_denied() writes to when this thread calls it; NULL: none. */
void top_use(struct top *top);

/* Counts a denial in the thread's sketches. */
void top_denied(const char *limit, const void *key, size_t key_len, int reason);

/* A row as it was counted. */
struct top_row {
    uint64_t id;   /* hash of limit, key and reason; 0: none */
    uint64_t high; /* denied at most this often, */
    uint64_t low;  /* and at least this often */
    uint32_t key_len;
    uint32_t reason; /* enum weir_rules_reason */
    char limit[TOP_NAME_BYTES];
    char key[TOP_KEY_BYTES]; /* the first bytes of key_len */
};

/* The rows of a set; their order means nothing. */
struct top_set {
    uint64_t count;
    uint64_t lost; /* a row that is not among them was denied at most this often */
    struct top_row rows[TOP_WAYS];
};

/* Reads what a set has counted in a turn. */
void top_read_set(const struct top *top, uint64_t turn, unsigned set, struct top_set *out);

#endif
