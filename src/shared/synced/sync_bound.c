#include "shared/synced/sync.h"

#include "base/maths.h"
#include "shared/core/store_limit.h"

#define NODES_LEAST 8u /* see Y2 */

/* Returns the units that `times` times the limit's rate offers within `us`. */
static u128 offered(const struct store_params *p, u128 us, uint64_t times)
{
    if (algorithm_has(p->algorithm, IS_BUCKET)) {
        u128 unit = (u128)p->a * STORE_PARTS + p->b;
        return us * times * STORE_PARTS / unit;
    }
    return us * times * p->quota / p->a;
}

uint64_t sync_bound(const struct store_params *params, uint64_t nodes, uint64_t sync_ns,
                    uint64_t rtt_ns, uint64_t times)
{
    u128 us = ((u128)sync_ns + rtt_ns) / WEIR_MICROSECOND;
    u128 all = max_u64(nodes, 1);
    u128 units = offered(params, us, times);
    u128 most = all * params->quota; /* L each */
    units = units < most ? units : most;
    /* The division comes last: fractions of a unit on each of many nodes add up to whole units. */
    u128 bound = params->quota + units * (all - 1) / all;
    return bound > UINT64_MAX ? UINT64_MAX : (uint64_t)bound;
}

bool sync_is_loose(const struct store_params *params, uint64_t nodes, uint64_t sync_ns,
                   uint64_t rtt_ns)
{
    uint64_t bound = sync_bound(params, nodes, sync_ns, rtt_ns, SYNC_FLOOD);
    return bound - params->quota > params->quota / 2;
}

uint64_t sync_beyond(const struct store_limit *limit, const struct store_params *p)
{
    if (store_limit_mode(limit) != REMOTE_SYNCED || !algorithm_has(p->algorithm, IS_BUCKET)) {
        return 0;
    }
    uint64_t nodes = max_u64(store_fleet_size(limit->shared), NODES_LEAST);
    uint64_t most = STORE_MOST / 2 / max_u64(p->b, 1);
    uint64_t longest = STORE_MOST / 2 / max_u64(p->a, 1); /* so that the time in us fits, too */
    u128 beyond = mul_wide(p->quota, 2 * nodes);
    most = min_u64(most, max_u64(longest, p->quota + p->max_debt)) - p->quota - p->max_debt;
    return beyond < most ? (uint64_t)beyond : most;
}
