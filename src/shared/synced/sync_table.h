/*
 * The table of the keys that a node counts, and which of them is due first. A key's hash chooses
 * its stripe. Each stripe has a lock, a table of chains and a heap ordered by due time; its
 * earliest due time can be read without the lock. sync_table_init() allocates everything except the
 * keys.
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
    struct sync_delta flight; /* told by the last call */
    bool in_flight;           /* the call is out; then the key is in no heap */
    bool again;               /* the call was lost, and `flight` must be sent again */
    bool lost;                /* the last call was lost */
    bool used;                /* asked for since the last call was made */
    bool hurry;               /* another call must follow the one in flight at once */
    bool left;                /* SYNC_LAST was returned, and no exchange was answered since */
    uint64_t used_ns;
    uint64_t made_ns;     /* when the last call was made; 0: never */
    uint64_t told_ns;     /* the same for the last that was no repetition: it told all units */
    uint64_t degraded_ns; /* from this time on the key is degraded (Y5) */
    uint64_t due_ns;
    size_t place;    /* index in the heap */
    size_t tail_len; /* bytes of the store's key after the limit's head */
    char tail[];
};

struct sync_stripe {
    struct lock lock;
    uint64_t due_ns; /* of heap[0], or UINT64_MAX; read without the lock */
    uint64_t keys;   /* number of keys; read without the lock */
    size_t in_heap;
    size_t hand; /* where the next search for an idle key begins */
    struct sync_key **heap;
    struct sync_key **chains;
};

struct sync_table {
    struct sync_stripe *stripes;
    unsigned stripe_bits;
    size_t most;       /* most keys of a stripe */
    size_t chain_mask; /* number of chains of a stripe, less 1 */
};

int sync_table_init(struct sync_table *t, uint64_t keys);
void sync_table_finish(struct sync_table *t); /* frees the keys, releases their limits */

static inline size_t sync_table_stripes(const struct sync_table *t)
{
    return (size_t)1 << t->stripe_bits;
}

struct sync_stripe *sync_stripe_of(struct sync_table *t, struct hash hash);

/* Returns the key with this hash, or NULL. This and all below need the stripe's lock. */
struct sync_key *sync_stripe_find(const struct sync_table *t, struct sync_stripe *s,
                                  struct hash hash);

/* Adds a key that is zeroed except for its hash and tail, and in no heap. Returns NULL if there is
 * no room or no memory. */
struct sync_key *sync_stripe_add(const struct sync_table *t, struct sync_stripe *s,
                                 struct hash hash, struct text tail);

/* Removes the key from the chain and the heap. The caller frees it. */
void sync_stripe_remove(const struct sync_table *t, struct sync_stripe *s, struct sync_key *k);

/* sync_stripe_schedule() puts a key into the heap, or moves it there by its new due time.
 * sync_stripe_unschedule() takes it out. */
void sync_stripe_schedule(struct sync_stripe *s, struct sync_key *k, uint64_t due_ns);
void sync_stripe_unschedule(struct sync_stripe *s, struct sync_key *k);

#endif
