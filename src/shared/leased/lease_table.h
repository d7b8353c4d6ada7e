/*
 * The keys that `leased` knows (lease.h): entries of their own memory in stripes, each behind a
 * lock. All but create, destroy and due is for who has locked the stripe.
 *
 * Every entry stands in its stripe's row of those to be looked after, in the order of their times:
 * each look puts it behind the others, for the same while later. Those for which a call is to be
 * made at once stand in a second row too.
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
    struct lease_entry *next; /* of its chain */
    struct list look;
    struct list ready;
    uint64_t hash[2];
    struct store_limit *limit; /* held */
    uint64_t look_ns;          /* when it is to be looked after */

    /* the lease */
    uint64_t left; /* units to be spent, while now < expires_ns */
    uint64_t held; /* units to be settled, `left` among them ... */
    uint64_t mark; /* ... under this; 0: nothing is to be settled, or nobody knows under what */
    uint64_t expires_ns;  /* here */
    uint64_t over_ns;     /* from then on it is over at the store, too */
    uint64_t life_ns;     /* by which use, demand and idleness are measured */
    uint64_t flight;      /* id of the call that is on its way; 0: none */
    bool brings;          /* ... which may bring units */
    uint64_t renew_below; /* renewed when less than this is left, ... */
    uint64_t renew_ns;    /* ... or at this time */
    bool drop;            /* to be returned, and not to be spent */

    /* what the store said last */
    uint64_t quota;
    uint64_t rest;
    uint64_t reset_at_ns;
    uint64_t denied_cost; /* 0: none was */
    uint64_t denied_until_ns;
    uint64_t retry_at_ns;
    unsigned denied_flags;

    /* the demand */
    uint64_t asked;    /* units since ... */
    uint64_t since_ns; /* ... then */
    uint64_t used_ns;  /* the last question */
    uint64_t demand;   /* units in a quarter of a life, as it was */
    uint64_t size;     /* that was wanted for the last lease */

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
    uint64_t calls;           /* ids given */
    uint64_t now_ns;          /* the latest time that was seen: threads may be late by a little */
    uint64_t due_ns;          /* of the rows, read by everybody */
    struct lease_entry *gone; /* to be freed outside of the lock */
} __attribute__((aligned(64)));

struct leases {
    struct lease_stripe stripe[LEASE_STRIPES];
    struct hash_secret secret;
    uint64_t turn; /* at which stripe lease_next() goes on */
    uint64_t stopping;
};

struct hash lease_hash(const struct leases *l, uint64_t limit, struct text shard, struct text key);

/* Locks; the time becomes the stripe's. Unlocks, and ends what was taken away meanwhile. */
struct lease_stripe *lease_lock(struct leases *l, const uint64_t hash[2], uint64_t *now_ns);
void lease_unlock(struct lease_stripe *s);

struct lease_entry *lease_find(const struct lease_stripe *s, const uint64_t hash[2]);

/* NULL: there is no room, or no memory. */
struct lease_entry *lease_make(struct lease_stripe *s, const uint64_t hash[2],
                               struct store_limit *limit, struct text shard, struct text key,
                               uint64_t now_ns);
void lease_remove(struct lease_stripe *s, struct lease_entry *e);

/* Something of it is not settled, or on its way. */
static inline bool lease_is_out(const struct lease_entry *e)
{
    return e->left != 0 || e->mark != 0 || e->flight != 0;
}

/* Units that may be spent now. */
static inline uint64_t lease_to_spend(const struct lease_entry *e, uint64_t now_ns)
{
    return now_ns < e->expires_ns && !e->drop ? e->left : 0;
}

void lease_look_later(struct lease_stripe *s, struct lease_entry *e, uint64_t now_ns);
void lease_make_ready(struct lease_stripe *s, struct lease_entry *e);

#endif
