/* A limit of a fleet, as all modes use it. */
#ifndef WEIR_SHARED_CORE_STORE_LIMIT_H
#define WEIR_SHARED_CORE_STORE_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "base/atomic.h"
#include "common/remote.h"
#include "shared/core/script.h"

struct store_shared;

/*
 * One limit, used by all threads. It is reference-counted: the last release destroys it. A limit
 * that a reload has dropped is held by its leases until they are given back, and by its synced keys
 * until they are as good as new. So memory grows with reloads to another period, but only as far as
 * their table does: SHARED_LEASES and SHARED_SYNCS keys of all limits (measured with 200 keys in
 * each of two synced limits: 4.7 MB more after 30 such reloads, 5.0 MB after 300).
 */
struct store_limit {
    struct store_shared *shared;
    uint64_t references;
    int mode;       /* enum remote_mode, read by store_limit_mode(): a LEASED limit that is too
                       small for leases has EXACT here until its numbers change */
    int on_failure; /* enum remote_failure */
    uint64_t deny_cache_ns;
    uint64_t sync_ns;
    bool any_rate;
    uint64_t id; /* unique in the process: identifies the limit in node_key_hash() */
    struct store_key head;
    struct fallback *fallback;     /* NULL: on_failure is not local */
    struct store_numbers *numbers; /* the current ones; read by store_limit_numbers() */
    struct store_numbers *all;     /* list of all that it has had */
    struct remote_counts counts;   /* atomics */
};

/* A version of a limit's numbers. It is never changed and lives as long as the limit does; a change
 * back to earlier numbers uses their version again. */
struct store_numbers {
    struct store_params params;
    struct weir_options options;
    struct store_numbers *older;
};

int store_limit_open(struct store_shared *s, const struct remote_spec *spec,
                     struct store_limit **limit, struct weir_error *error);
int store_limit_change(struct store_limit *limit, const struct weir_options *options,
                       struct weir_error *error);
void store_limit_hold(struct store_limit *limit);
void store_limit_release(struct store_limit *limit);
/* Hold and release a limit for a key that this process keeps, and count the key. */
static inline void store_limit_keep_key(struct store_limit *limit)
{
    count_shared(&limit->counts.keys, 1);
    store_limit_hold(limit);
}

static inline void store_limit_drop_key(struct store_limit *limit)
{
    (void)fetch_sub(&limit->counts.keys, 1);
    store_limit_release(limit);
}

static inline const struct store_numbers *store_limit_numbers(const struct store_limit *limit)
{
    return __atomic_load_n(&limit->numbers, __ATOMIC_ACQUIRE);
}

/* Returns the parameters by which the part is decided: the limit's, or, if the part has a rate,
 * those of the rate, made in *own. The rate has been checked. */
static inline const struct store_params *store_part_params(const struct remote_part *part,
                                                           struct store_params *own)
{
    const struct store_params *params = &store_limit_numbers(part->limit)->params;
    return part->rate.burst != 0 && store_params_rate(params, &part->rate, own) == 0 ? own : params;
}

static inline int store_limit_mode(const struct store_limit *limit)
{
    return __atomic_load_n(&limit->mode, __ATOMIC_RELAXED); /* either is right while it changes */
}

/* Returns the number of nodes in the fleet, at least 1: fleet_size if given, otherwise the number
 * that the store has named (members.h). */
uint64_t store_fleet_size(const struct store_shared *s);

#endif
