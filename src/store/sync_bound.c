#include "store/sync.h"

#include "base/maths.h"

/* Units at `times` times the limit's rate within `us`. */
static u128 offered(const struct store_params *p, u128 us, uint64_t times)
{
    if (p->algorithm == WEIR_TOKEN_BUCKET) {
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
    /* Divided last: a part of a unit for each of many nodes is some units together. */
    u128 bound = params->quota + units * (all - 1) / all;
    return bound > UINT64_MAX ? UINT64_MAX : (uint64_t)bound;
}

bool sync_is_loose(const struct store_params *params, uint64_t nodes, uint64_t sync_ns,
                   uint64_t rtt_ns)
{
    uint64_t bound = sync_bound(params, nodes, sync_ns, rtt_ns, SYNC_FLOOD);
    return bound - params->quota > params->quota / 2;
}
