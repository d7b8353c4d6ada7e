/*
 * The calls that leases make (lease.h): for who has locked the stripe of the entry.
 */
#ifndef WEIR_SHARED_LEASED_LEASE_CALL_H
#define WEIR_SHARED_LEASED_LEASE_CALL_H

#include "shared/leased/lease_table.h"

static inline const struct store_params *lease_params(const struct lease_entry *e)
{
    return &store_limit_numbers(e->limit)->params;
}

/*
 * The key's one call. It settles what is out, and is the only one to tell of it from now on: should
 * it be lost, nobody else may (L2). With `keep`, what is left goes on being spent.
 */
void lease_call_make(struct lease_stripe *s, struct lease_entry *e, uint64_t cost, uint64_t want,
                     bool keep, uint64_t now_ns, struct lease_call *call);

/* A question alone: nothing is settled, nothing taken out. Needs no lock. */
void lease_call_plain(struct store_limit *limit, struct text shard, struct text key,
                      const uint64_t hash[2], uint64_t cost, uint64_t now_ns,
                      struct lease_call *call);

/* Whether the lease is to be renewed; and its call, or false: what is left is enough. */
bool lease_wants_renewal(const struct lease_entry *e, uint64_t now_ns);
bool lease_renew(struct leases *l, struct lease_stripe *s, struct lease_entry *e, uint64_t now_ns,
                 struct lease_call *call);

#endif
