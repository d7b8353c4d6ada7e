/* token_bucket of `synced`: as in algo/bucket.h. Times are in 1/128 ns (STORE_PARTS of them are
 * a microsecond), in 128 bits. */
#include "shared/synced/sync_rows.h"

#define TICKS 128u

_Static_assert(STORE_PARTS == TICKS * WEIR_MICROSECOND, "one unit of time");

static uint64_t ns_of_ticks(i128 ticks)
{
    if (ticks <= 0) {
        return 0;
    }
    u128 ns = ((u128)ticks + (TICKS - 1)) / TICKS;
    return ns > UINT64_MAX ? WEIR_FOREVER : (uint64_t)ns;
}

static i128 ticks_of(uint64_t ns)
{
    return (i128)ns * TICKS;
}

/* Returns the time by which the bucket drains: the node's time, which since the last exchange is
 * slowed by 1/128 (V1). */
static i128 slow_now(const struct sync_view *v, uint64_t now_ns)
{
    return ticks_of(now_ns - (sub_floor0(now_ns, v->heard_ns) >> SYNC_DRIFT));
}

static i128 step_of(const struct store_params *p)
{
    return (i128)p->a * STORE_PARTS + p->b;
}

static i128 lead_of(const struct sync_view *v, uint64_t now_ns)
{
    i128 now = slow_now(v, now_ns);
    return v->full_at > now ? v->full_at - now : 0;
}

static uint64_t quotient(i128 a, i128 b)
{
    if (a <= 0) {
        return 0;
    }
    bool small = a <= INT64_MAX && b <= INT64_MAX;
    return small ? (uint64_t)a / (uint64_t)b : (uint64_t)(a / b);
}

/* Returns the most units of one delta: a script multiplies them by b, and the product must stay
 * below 2^53. */
static int64_t most_units(const struct store_params *p)
{
    return (int64_t)(STORE_MOST / 2 / max_u64(p->b, 1));
}

static bool bucket_fits(const struct sync_view *v, const struct store_params *p, uint64_t cost,
                        uint64_t now_ns)
{
    return lead_of(v, now_ns) <= (i128)(p->quota - cost) * step_of(p) &&
           v->next.units <= most_units(p) - (int64_t)cost;
}

static void bucket_take(struct sync_view *v, const struct store_params *p, uint64_t cost,
                        uint64_t now_ns)
{
    struct sync_delta *d = &v->next;
    i128 time = (i128)cost * step_of(p);
    i128 now = ticks_of(now_ns);
    v->full_at = sync_max(v->full_at, slow_now(v, now_ns)) + time;
    d->full_at = (d->units > 0 ? sync_max(d->full_at, now) : now) + time;
}

static void bucket_describe(const struct sync_view *v, const struct store_params *p, uint64_t cost,
                            uint64_t now_ns, struct weir_answer *answer)
{
    i128 lead = lead_of(v, now_ns);
    i128 step = step_of(p);
    answer->remaining = quotient((i128)p->quota * step - lead, step);
    answer->reset_after_ns = ns_of_ticks(lead);
    if (answer->verdict == WEIR_DENY) {
        answer->retry_after_ns = ns_of_ticks(lead - (i128)(p->quota - cost) * step);
    }
}

static uint64_t bucket_refund(struct sync_view *v, const struct store_params *p, uint64_t units)
{
    i128 time = (i128)units * step_of(p);
    v->full_at -= time; /* a full_at before now means no lead */
    v->next.full_at -= time;
    return units;
}

static uint64_t bucket_owes(const struct sync_view *v, const struct store_params *p,
                            uint64_t now_ns)
{
    i128 step = step_of(p);
    i128 beyond = lead_of(v, now_ns) - (i128)(p->quota + p->max_debt) * step;
    return quotient(beyond + step - 1, step);
}

static void bucket_hear(struct sync_view *v, const struct store_params *p,
                        const struct sync_heard *heard, uint64_t now_ns)
{
    i128 lead = (i128)heard->x * STORE_PARTS + heard->y;
    v->full_at = ticks_of(now_ns) + lead + v->next.units * step_of(p);
    if (v->next.units > 0) {
        v->full_at = sync_max(v->full_at, v->next.full_at);
    }
}

/* Expresses a delta for a call. Its lead is rounded up to whole us, so that a state whose rate has
 * no remainder stays a plain number. */
static void bucket_tell(const struct sync_delta *d, uint64_t now_ns, struct sync_told *told)
{
    /* The delta has drained since since_ns by this clock, which may be fast by 1/128: one tick for
     * each ns is added. */
    i128 lead = d->full_at - ticks_of(now_ns) + sub_floor0(now_ns, d->since_ns);
    i128 most = (i128)(STORE_MOST / 4);
    i128 us = lead / STORE_PARTS + (lead % STORE_PARTS > 0);
    us = us > most ? most : sync_max(us, -most);
    *told = (struct sync_told){d->units, (int64_t)us, 0};
}

/* Does nothing: full_at is a time, so a bucket is always up to date. */
static void bucket_age(struct sync_view *v, const struct store_params *p, uint64_t now_ns)
{
    (void)v;
    (void)p;
    (void)now_ns;
}

const struct sync_row sync_token_bucket = {
    .age = bucket_age,
    .fits = bucket_fits,
    .take = bucket_take,
    .describe = bucket_describe,
    .refund = bucket_refund,
    .hear = bucket_hear,
    .owes = bucket_owes,
    .tell = bucket_tell,
};
