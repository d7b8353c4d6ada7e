/*
 * How large a lease is to be, and for how long a denial stands: numbers of an entry, decided by
 * nobody else (lease.h L4, L7).
 */
#ifndef WEIR_SHARED_LEASED_LEASE_SIZE_H
#define WEIR_SHARED_LEASED_LEASE_SIZE_H

#include "shared/leased/lease_table.h"

/* A life by which demand and idleness are measured is at most this: windows may be long. */
#define LEASE_LIFE_NS (2 * WEIR_SECOND)

/* A question of that cost has come. */
static inline void lease_count(struct lease_entry *e, uint64_t cost, uint64_t now_ns)
{
    e->asked += cost;
    e->used_ns = now_ns;
}

/* Units that the node would like to hold now; 0: too few questions come. Begins a new
 * measurement. */
uint64_t lease_want(struct lease_entry *e, const struct store_params *p, uint64_t cost,
                    uint64_t now_ns);

/* For how long a denial stands that carries these flags and this retry. */
uint64_t lease_pause(const struct store_limit *limit, const struct store_params *p, unsigned flags,
                     uint64_t retry_ns);

#endif
