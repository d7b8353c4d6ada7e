/*
 * The lease of one key (lease.h): a part of the key's entry (shared/core/node_keys.h), which also
 * has what the store last said. The caller of each function has locked the stripe of the entry.
 */
#ifndef WEIR_SHARED_LEASED_LEASE_PART_H
#define WEIR_SHARED_LEASED_LEASE_PART_H

#include "shared/leased/lease.h"
#include "shared/core/node_keys.h"

/* The longest life by which demand and idleness are measured, because windows may be long. */
#define LEASE_LIFE_NS (2 * WEIR_SECOND)

/* A lease whose call is not out is looked at this often. */
#define LEASE_LOOK_NS (125 * WEIR_MILLISECOND)

struct lease {
    struct key_part part;
    uint64_t left; /* units that may be spent while now < expires_ns */
    uint64_t held; /* units to be settled, including `left` */
    uint64_t mark; /* the mark of `held`; 0: nothing is to be settled, or the mark is not known */
    uint64_t expires_ns;  /* when it ends here (L1) */
    uint64_t over_ns;     /* when it is over at the store, too */
    uint64_t life_ns;     /* life by which use, demand and idleness are measured */
    uint64_t flight;      /* id of the call that is out; 0: none */
    bool brings;          /* the call that is out may bring units */
    bool drop;            /* the units are to be returned, and not to be spent */
    uint64_t renew_below; /* the lease is renewed when less than this is left */
    uint64_t renew_ns;    /* the lease is renewed at this time at the latest */
    uint64_t asked;       /* units asked for since `since_ns` */
    uint64_t since_ns;    /* when counting `asked` began */
    uint64_t demand;      /* units in a quarter of a life, as last measured */
    uint64_t size;        /* units that were wanted for the last lease */
};

static inline const struct store_params *lease_params(const struct lease *e)
{
    return &store_limit_numbers(e->part.limit)->params;
}

/* Returns whether the lease has units left, is to be settled, or has a call that is out. */
static inline bool lease_is_out(const struct lease *e)
{
    return e->left != 0 || e->mark != 0 || e->flight != 0;
}

/* Returns the units that may be spent now. `e` may be NULL. */
static inline uint64_t lease_to_spend(const struct lease *e, uint64_t now_ns)
{
    return e != NULL && now_ns < e->expires_ns && !e->drop ? e->left : 0;
}

/* ---- how large a lease should be, and for how long a denial stands (L4, L7): lease_size.c ---- */

/* Returns the units that the node would like to hold now, or 0 if too few questions come. Begins a
 * new measurement, except for a key's first question. */
uint64_t lease_want(struct lease *e, const struct store_params *p, uint64_t cost, uint64_t now_ns);

/* Returns for how long a denial with these flags and this retry stands. */
uint64_t lease_pause(const struct store_limit *limit, const struct store_params *p, unsigned flags,
                     uint64_t retry_ns);

/* ---- calls: lease_call.c ---- */

/*
 * Makes the key's one call. It settles the lease that is outstanding, and no later call may settle
 * it again, even if this one is lost (L2). With `keep`, the units that are left may still be spent.
 */
void lease_call_make(struct key_stripe *s, struct lease *e, uint64_t cost, uint64_t want, bool keep,
                     uint64_t now_ns, struct lease_call *call);

/* lease_wants_renewal() returns whether the lease should be renewed. lease_renew() makes the call
 * for it, or returns false if what is left is enough, or if leases are being stopped. */
bool lease_wants_renewal(const struct lease *e, uint64_t now_ns);
bool lease_renew(struct node_keys *keys, struct key_stripe *s, struct lease *e, uint64_t now_ns,
                 struct lease_call *call);

#endif
