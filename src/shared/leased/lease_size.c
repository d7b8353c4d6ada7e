#include "base/maths.h"
#include "shared/leased/lease_part.h"

enum {
    HORIZON = 4,    /* a lease is for 1/HORIZON of a life */
    QUESTIONS = 4,  /* least questions expected of a lease; otherwise each goes to the store */
    FIRST = 32,     /* questions that a first lease is for at most */
    GROWTH = 8,     /* most by which a lease is larger than the one before */
    SHARE = 4,      /* all leases hold at most 1/SHARE of a bucket: lua/leased_bucket.lua */
    SHARE_LEAST = 8 /* least units of a node's share that are worth a lease */
};

#define WORTH_LEAST_US UINT64_C(50000)
#define MEASURED_LEAST WEIR_MILLISECOND
#define PAUSE_PART 64
#define PAUSE_MOST (20 * WEIR_MILLISECOND)

/* Returns the time in which an empty bucket fills, or the length of a window, in us. */
static uint64_t span_us(const struct store_params *p)
{
    if (algorithm_has(p->algorithm, IS_FIXED_WINDOW)) {
        return p->a;
    }
    return p->a * p->quota + mul_div(p->b, p->quota, STORE_PARTS);
}

bool lease_is_worth(const struct store_params *params, uint64_t nodes)
{
    uint64_t each = params->quota / (nodes != 0 ? nodes : 1);
    return each >= SHARE * SHARE_LEAST && span_us(params) >= WORTH_LEAST_US;
}

/*
 * Returns the units that the next quarter of a life will ask for if the demand stays as it was
 * since the last measurement. A rise counts at once, a fall only by half, so that one quiet moment
 * does not end a lease.
 */
static uint64_t measure(struct lease *e, uint64_t now_ns)
{
    uint64_t horizon_ns = (e->life_ns != 0 ? e->life_ns : LEASE_LIFE_NS) / HORIZON;
    uint64_t took_ns = max_u64(sub_floor0(now_ns, e->since_ns), MEASURED_LEAST);
    uint64_t now = mul_div(e->asked, horizon_ns, took_ns);
    e->demand = now > e->demand ? now : (now + e->demand) / 2;
    e->asked = 0;
    e->since_ns = now_ns;
    return e->demand;
}

/* Growth is bounded, so that a few questions in one microsecond do not take all there is. */
uint64_t lease_want(struct lease *e, const struct store_params *p, uint64_t cost, uint64_t now_ns)
{
    uint64_t each = max_u64(cost, 1);
    bool first = e->asked <= cost && e->demand == 0; /* another question may never come */
    uint64_t demand = first ? 0 : measure(e, now_ns);
    if (demand / QUESTIONS < each) {
        return 0;
    }
    uint64_t most = max_u64(GROWTH * e->size, each > p->quota / FIRST ? p->quota : FIRST * each);
    return min_u64(min_u64(demand, most), p->quota);
}

uint64_t lease_pause(const struct store_limit *limit, const struct store_params *p, unsigned flags,
                     uint64_t retry_ns)
{
    uint64_t least_ns = min_u64(span_us(p) * (WEIR_MICROSECOND / 8) / (PAUSE_PART / 8), PAUSE_MOST);
    if ((flags & WEIR_FLAG_BLOCKED) != 0) {
        return least_ns; /* an UNBLOCK may end a block at any time */
    }
    return min_u64(max_u64(retry_ns, least_ns), max_u64(limit->deny_cache_ns, least_ns));
}
