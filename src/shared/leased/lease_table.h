/*
 * The table of the keys that `leased` knows (lease.h): separately allocated entries in stripes,
 * each of which has a lock. The caller of a function that takes a stripe or an entry has locked the
 * stripe.
 *
 * Every entry is in its stripe's list `look`, in the order of look_ns: each look moves it to the
 * end, to be looked at again LEASE_LOOK_NS later. Entries that need a call at once are also in the
 * list `ready`.
 */
#ifndef WEIR_SHARED_LEASED_LEASE_TABLE_H
#define WEIR_SHARED_LEASED_LEASE_TABLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "redis/list.h"
#include "shared/leased/lease.h"

enum { LEASE_STRIPES = 64 };

#define LEASE_LOOK_NS (125 * WEIR_MILLISECOND)

struct lease_entry {
    struct lease_entry *next; /* in its chain */
    struct list look;
    struct list ready;
    uint64_t hash[2];
    struct store_limit *limit; /* held */
    uint64_t look_ns;          /* when it is to be looked at */

    /* the lease */
    uint64_t left; /* units that may be spent while now < expires_ns */
    uint64_t held; /* units to be settled, including `left`, ... */
    uint64_t mark; /* ... under this mark; 0: nothing is to be settled, or the mark is not known */
    uint64_t expires_ns;  /* when it ends here (L1) */
    uint64_t over_ns;     /* when it is over at the store, too */
    uint64_t life_ns;     /* life by which use, demand and idleness are measured */
    uint64_t flight;      /* id of the call that is out; 0: none */
    bool brings;          /* ... and that call may bring units */
    uint64_t renew_below; /* the lease is renewed when less than this is left, ... */
    uint64_t renew_ns;    /* ... or at this time */
    bool drop;            /* the units are to be returned, and not to be spent */

    /* what the store said last */
    uint64_t quota;
    uint64_t rest;
    uint64_t reset_at_ns;
    uint64_t denied_cost; /* 0: nothing was denied */
    uint64_t denied_until_ns;
    uint64_t retry_at_ns;
    unsigned denied_flags;

    /* the demand */
    uint64_t asked;    /* units asked for since ... */
    uint64_t since_ns; /* ... this time */
    uint64_t used_ns;  /* when the last question came */
    uint64_t demand;   /* units in a quarter of a life, as last measured */
    uint64_t size;     /* units that were wanted for the last lease */

    size_t key_len;
    char key[];
};

struct lease_stripe {
    pthread_mutex_t lock;
    struct lease_entry **chains;
    uint64_t mask;
    uint64_t count;
    uint64_t most;
    struct list look;
    struct list ready;
    uint64_t calls;           /* number of ids given to calls */
    uint64_t now_ns;          /* the latest time seen: a thread's time may be a little older */
    uint64_t due_ns;          /* when an entry of the lists is due; read without the lock */
    struct lease_entry *gone; /* removed entries, to be freed without the lock */
} __attribute__((aligned(64)));

struct leases {
    struct lease_stripe stripe[LEASE_STRIPES];
    struct hash_secret secret;
    uint64_t turn; /* stripe at which lease_next() goes on */
    uint64_t stopping;
};

struct hash lease_hash(const struct leases *l, uint64_t limit, struct text shard, struct text key);

/* lease_lock() locks the hash's stripe, and sets *now_ns to the latest time that the stripe has
 * seen, *now_ns included. lease_unlock() unlocks the stripe, and frees the entries removed
 * meanwhile. */
struct lease_stripe *lease_lock(struct leases *l, const uint64_t hash[2], uint64_t *now_ns);
void lease_unlock(struct lease_stripe *s);

struct lease_entry *lease_find(const struct lease_stripe *s, const uint64_t hash[2]);

/* Adds an entry for the key. Returns NULL if there is no room or no memory. */
struct lease_entry *lease_make(struct lease_stripe *s, const uint64_t hash[2],
                               struct store_limit *limit, struct text shard, struct text key,
                               uint64_t now_ns);
void lease_remove(struct lease_stripe *s, struct lease_entry *e);

/* Returns whether the entry has units left, a lease to settle, or a call that is out. */
static inline bool lease_is_out(const struct lease_entry *e)
{
    return e->left != 0 || e->mark != 0 || e->flight != 0;
}

/* Returns the units that may be spent now. */
static inline uint64_t lease_to_spend(const struct lease_entry *e, uint64_t now_ns)
{
    return now_ns < e->expires_ns && !e->drop ? e->left : 0;
}

void lease_look_later(struct lease_stripe *s, struct lease_entry *e, uint64_t now_ns);
void lease_make_ready(struct lease_stripe *s, struct lease_entry *e);

#endif
