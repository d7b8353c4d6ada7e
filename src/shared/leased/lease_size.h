/*
 * Computes how large a lease should be, and for how long a denial stands (lease.h L4, L7).
 */
#ifndef WEIR_SHARED_LEASED_LEASE_SIZE_H
#define WEIR_SHARED_LEASED_LEASE_SIZE_H

#include "shared/leased/lease_table.h"

/* The longest life by which demand and idleness are measured, because windows may be long. */
#define LEASE_LIFE_NS (2 * WEIR_SECOND)

/* Counts a question of this cost. */
static inline void lease_count(struct lease_entry *e, uint64_t cost, uint64_t now_ns)
{
    e->asked += cost;
    e->used_ns = now_ns;
}

/* Returns the units that the node would like to hold now, or 0 if too few questions come. Begins a
 * new measurement, except for a key's first question. */
uint64_t lease_want(struct lease_entry *e, const struct store_params *p, uint64_t cost,
                    uint64_t now_ns);

/* Returns for how long a denial with these flags and this retry stands. */
uint64_t lease_pause(const struct store_limit *limit, const struct store_params *p, unsigned flags,
                     uint64_t retry_ns);

#endif
