/*
 * The two buckets. A level rises by one for each 2^-shift ns that passes, up to
 * quota * step; a unit lowers it by a step. (The library keeps the time at which
 * the level will be full instead.)
 */
#include "support/oracle/oracle_model.h"

static oracle_int full(const struct oracle_rule *r)
{
    return r->step * (oracle_int)r->quota;
}

static oracle_int deepest(const struct oracle_rule *r)
{
    return -r->step * (oracle_int)r->max_debt;
}

static oracle_int scaled(const struct oracle_rule *r, oracle_int ns)
{
    return ns * ((oracle_int)1 << r->shift);
}

static uint64_t to_ns(const struct oracle_rule *r, oracle_int scaled_time)
{
    return (uint64_t)oracle_div_up(scaled_time, (oracle_int)1 << r->shift);
}

/*
 * A caller whose time is before the level's sees the level of that time, which is lower. If it is
 * lower than debt and slack can explain, a clock has been set back.
 */
static struct oracle_view as_of(const struct oracle_rule *r, const struct oracle_key *k,
                                oracle_int now)
{
    struct oracle_view v = {.now = now, .level = full(r)};
    if (k->known) {
        v.level = k->level + scaled(r, now) - k->time;
    }
    if (v.level > full(r)) {
        v.level = full(r);
    }
    if (v.level < deepest(r) - scaled(r, ORACLE_SLACK_NS)) {
        v.level = deepest(r);
        v.pulled = true;
    }
    return v;
}

static bool fresh(const struct oracle_rule *r, const struct oracle_view *v)
{
    return v->level == full(r);
}

static oracle_int chargeable(const struct oracle_rule *r, const struct oracle_view *v)
{
    oracle_int above = v->level - deepest(r);
    return above < 0 ? 0 : above / r->step;
}

static void set(const struct oracle_rule *r, struct oracle_key *k, oracle_int now, oracle_int level)
{
    k->known = true;
    k->time = scaled(r, now);
    k->level = level;
}

static void take(const struct oracle_rule *r, struct oracle_key *k, const struct oracle_view *v,
                 uint64_t n)
{
    set(r, k, v->now, v->level - r->step * (oracle_int)n);
}

/* A bucket is never more than full, and one that is full stays as it is. */
static void refund(const struct oracle_rule *r, struct oracle_key *k, const struct oracle_view *v,
                   uint64_t n, uint64_t charged_ns)
{
    oracle_int level = v->level + r->step * (oracle_int)n;
    (void)charged_ns;
    if (!fresh(r, v)) {
        set(r, k, v->now, level < full(r) ? level : full(r));
    }
}

/* ---- token_bucket: a wait borrows from the future, as deep as the debt ---- */

static bool token_fits(const struct oracle_rule *r, const struct oracle_view *v, oracle_int n,
                       uint64_t wait_ns)
{
    oracle_int lowest = -scaled(r, wait_ns);
    if (lowest < deepest(r)) {
        lowest = deepest(r);
    }
    return v->level - r->step * n >= lowest;
}

static uint64_t token_delay(const struct oracle_rule *r, const struct oracle_view *v, uint64_t n)
{
    oracle_int after = v->level - r->step * (oracle_int)n;
    return after < 0 ? to_ns(r, -after) : 0;
}

/* ---- leaky_bucket: the level's distance from full is the queue's length in time ---- */

/* Returns how long a call that joins the queue waits: until its turn, less the time of the units
 * that need not wait. */
static oracle_int wait_of(const struct oracle_rule *r, const struct oracle_view *v)
{
    oracle_int wait = full(r) - v->level - r->step * (oracle_int)r->undelayed;
    return wait > 0 ? wait : 0;
}

static bool leaky_fits(const struct oracle_rule *r, const struct oracle_view *v, oracle_int n,
                       uint64_t wait_ns)
{
    oracle_int after = v->level - r->step * n;
    if (wait_ns == 0) {
        return after >= 0;
    }
    /* Patience takes the place of the queue's length: only the wait and the debt count. */
    return wait_of(r, v) <= scaled(r, wait_ns) && after >= deepest(r);
}

static uint64_t leaky_delay(const struct oracle_rule *r, const struct oracle_view *v, uint64_t n)
{
    (void)n;
    return to_ns(r, wait_of(r, v));
}

uint64_t oracle_last_place_ends(const struct oracle_rule *r, const struct oracle_key *k)
{
    return to_ns(r, k->time + full(r) - k->level);
}

static void leaky_refund(const struct oracle_rule *r, struct oracle_key *k,
                         const struct oracle_view *v, uint64_t n, uint64_t ends_ns)
{
    if (oracle_last_place_ends(r, k) == ends_ns) {
        refund(r, k, v, n, ends_ns);
    }
}

const struct oracle_model oracle_token_bucket = {
    as_of, token_fits, fresh, token_delay, chargeable, take, refund,
};

const struct oracle_model oracle_leaky_bucket = {
    as_of, leaky_fits, fresh, leaky_delay, chargeable, take, leaky_refund,
};
