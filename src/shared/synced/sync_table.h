/*
 * The keys that a node counts, and which of them is due first. Stripes by hash, each with a lock, a
 * table of chains and a heap by time; a stripe's earliest time can be read without its lock. Everything
 * is made at the beginning but the keys themselves.
 */
#ifndef WEIR_SHARED_SYNCED_SYNC_TABLE_H
#define WEIR_SHARED_SYNCED_SYNC_TABLE_H

#include "base/hash.h"
#include "base/lock.h"
#include "shared/store.h"
#include "shared/synced/sync_view.h"

struct sync_key {
    struct sync_key *chain;
    struct hash hash;
    struct store_limit *limit; /* held */
    struct sync_view view;
    struct sync_delta flight; /* told by a call that has no reply yet */
    bool in_flight;           /* the call is out; then the key is in no heap */
    bool again;               /* the call was lost, and there is something to tell */
    bool lost;                /* the last call was */
    bool used;                /* asked for since the last call was made */
    bool hurry;               /* the next call is to follow that one at once */
    bool left;                /* SYNC_LAST was said, and no exchange answered since */
    uint64_t used_ns;
    uint64_t made_ns;     /* the last call; 0: none */
    uint64_t told_ns;     /* the last that was not sent again: it told all that there was */
    uint64_t degraded_ns; /* from then on */
    uint64_t due_ns;
    size_t place;    /* in the heap */
    size_t tail_len; /* of the store's key, behind the limit's head */
    char tail[];
};

struct sync_stripe {
    struct lock lock;
    uint64_t due_ns; /* of heap[0], or UINT64_MAX; read without the lock */
    uint64_t keys;   /* likewise */
    size_t in_heap;
    size_t hand; /* where the next look for an idle key begins */
    struct sync_key **heap;
    struct sync_key **chains;
};

struct sync_table {
    struct sync_stripe *stripes;
    unsigned stripe_bits;
    size_t most;       /* keys of a stripe */
    size_t chain_mask; /* chains of a stripe, less 1 */
};

int sync_table_init(struct sync_table *t, uint64_t keys);
void sync_table_finish(struct sync_table *t); /* releases the limits */

static inline size_t sync_table_stripes(const struct sync_table *t)
{
    return (size_t)1 << t->stripe_bits;
}

struct sync_stripe *sync_stripe_of(struct sync_table *t, struct hash hash);

/* With the stripe's lock held. */
struct sync_key *sync_stripe_find(const struct sync_table *t, struct sync_stripe *s,
                                  struct hash hash);

/* A new key, zeroed but for its hash and tail, in no heap. NULL: no room, no memory. */
struct sync_key *sync_stripe_add(const struct sync_table *t, struct sync_stripe *s,
                                 struct hash hash, struct text tail);

/* Takes it out of everything; free() is the caller's. */
void sync_stripe_remove(const struct sync_table *t, struct sync_stripe *s, struct sync_key *k);

/* Puts a key into the heap, moves it there, takes it out. */
void sync_stripe_schedule(struct sync_stripe *s, struct sync_key *k, uint64_t due_ns);
void sync_stripe_unschedule(struct sync_stripe *s, struct sync_key *k);

#endif
