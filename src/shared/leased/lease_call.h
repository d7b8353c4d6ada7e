/*
 * Makes the calls of leases (lease.h). The caller has locked the stripe of the entry.
 */
#ifndef WEIR_SHARED_LEASED_LEASE_CALL_H
#define WEIR_SHARED_LEASED_LEASE_CALL_H

#include "shared/leased/lease_table.h"

static inline const struct store_params *lease_params(const struct lease_entry *e)
{
    return &store_limit_numbers(e->limit)->params;
}

/*
 * Makes the key's one call. It settles the lease that is outstanding, and no later call may settle
 * it again, even if this one is lost (L2). With `keep`, the units that are left may still be spent.
 */
void lease_call_make(struct lease_stripe *s, struct lease_entry *e, uint64_t cost, uint64_t want,
                     bool keep, uint64_t now_ns, struct lease_call *call);

/* Makes the call of a question alone: it settles nothing and takes no lease. Needs no lock. */
void lease_call_plain(struct store_limit *limit, struct text shard, struct text key,
                      const uint64_t hash[2], uint64_t cost, uint64_t now_ns,
                      struct lease_call *call);

/* lease_wants_renewal() returns whether the lease should be renewed. lease_renew() makes the call
 * for it, or returns false if what is left is enough, or if leases are being stopped. */
bool lease_wants_renewal(const struct lease_entry *e, uint64_t now_ns);
bool lease_renew(struct leases *l, struct lease_stripe *s, struct lease_entry *e, uint64_t now_ns,
                 struct lease_call *call);

#endif
