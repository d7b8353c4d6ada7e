/* What the stores of a process share. */
#ifndef WEIR_SHARED_STORES_H
#define WEIR_SHARED_STORES_H

#include <pthread.h>

#include "shared/fallback.h"
#include "shared/leased/lease.h"
#include "shared/members.h"
#include "shared/node_keys.h"
#include "shared/store.h"
#include "shared/synced/sync.h"

#define SHARED_NOTES 65536
#define SHARED_LEASES 65536
#define SHARED_SYNCS 65536
#define SHARED_LEFT_MAX 1024

struct store_shared {
    struct store_shared_options options;
    char prefix[STORE_PREFIX_MAX + 1];
    struct scripts scripts;
    struct node_keys *keys;
    struct members members;
    uint64_t limits; /* number of limits opened so far: gives their ids */
    pthread_mutex_t lock;
    struct lease_call *left; /* calls that store_ask_here() has left for a tick; under the lock */
    uint64_t left_count;     /* read without the lock */
    uint64_t degraded;       /* answers of all limits that the store has not given */
    uint64_t refunds_lost;   /* store_refunds_lost() */
};

/* shared_leave() leaves a call, made without a store, for the tick of any store; it returns false
 * if there is no room. shared_take() takes one of these calls; it returns false if there is
 * none. */
bool shared_leave(struct store_shared *s, const struct lease_call *call);
bool shared_take(struct store_shared *s, struct lease_call *call);

#endif
