/* What the stores of a process share. */
#ifndef WEIR_SHARED_STORE_STORES_H
#define WEIR_SHARED_STORE_STORES_H

#include "shared/store/fallback.h"
#include "shared/leased/lease.h"
#include "shared/store/members.h"
#include "shared/core/node_keys.h"
#include "shared/store/store.h"
#include "shared/synced/sync.h"

#define SHARED_NOTES 65536
#define SHARED_LEASES 65536
#define SHARED_SYNCS 65536

struct store_shared {
    struct store_shared_options options;
    char prefix[STORE_PREFIX_MAX + 1];
    struct node_keys *keys;
    struct members members;
    uint64_t limits; /* number of limits opened so far: gives their ids */
    /* Counts, read by metrics: */
    uint64_t degraded;     /* answers of all limits that the store has not given */
    uint64_t refunds_lost; /* charges of denied questions that could not be given back (S5) */
};

#endif
