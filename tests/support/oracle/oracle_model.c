#include "support/oracle/oracle_model.h"

#include <stdlib.h>

static const struct oracle_model *model_of(const struct oracle_rule *r)
{
    switch (r->algorithm) {
    case WEIR_TOKEN_BUCKET:
        return &oracle_token_bucket;
    case WEIR_LEAKY_BUCKET:
        return &oracle_leaky_bucket;
    case WEIR_FIXED_WINDOW:
        return &oracle_fixed_window;
    case WEIR_SLIDING_WINDOW:
        return &oracle_sliding_window;
    case WEIR_SLIDING_LOG:
        return &oracle_sliding_log;
    default:
        abort();
    }
}

/*
 * The time unit is part of the contract, because the step is rounded up to it:
 * the coarsest of 2^-2 .. 2^-7 ns in which a step has at least 10,000 units.
 */
static unsigned shift_for(const struct oracle_rule *r)
{
    unsigned shift = 2;
    while (shift < 7 && ((oracle_int)r->period_ns << shift) / r->count < 10000) {
        shift++;
    }
    return shift;
}

void oracle_rule_init(struct oracle_rule *r)
{
    if (r->algorithm == WEIR_TOKEN_BUCKET && r->burst == 0) {
        r->burst = r->count;
    }
    r->quota = r->algorithm == WEIR_TOKEN_BUCKET   ? r->burst
               : r->algorithm == WEIR_LEAKY_BUCKET ? r->queue + 1
                                                   : r->count;
    r->shift = shift_for(r);
    r->step = oracle_div_up((oracle_int)r->period_ns << r->shift, r->count);
}

struct weir_options oracle_options(const struct oracle_rule *r)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.algorithm = r->algorithm;
    o.count = r->count;
    o.period_ns = r->period_ns;
    o.burst = r->burst;
    o.queue = r->queue;
    o.undelayed = r->undelayed;
    o.max_debt = r->max_debt == 0 ? WEIR_NO_DEBT : r->max_debt;
    o.offset_ns = r->offset_ns;
    o.max_keys = 64;
    o.flags = WEIR_EXPLICIT_TIME;
    return o;
}

void oracle_key_finish(struct oracle_key *k)
{
    free(k->times);
    *k = (struct oracle_key){0};
}

/* ---- searches ---- */

/* A question whose answer is no up to some moment, and yes from then on. */
struct moment {
    const struct oracle_rule *rule;
    const struct oracle_key *key;
    bool fresh; /* true: "is the key fresh?"; false: "does this cost fit?" */
    uint64_t cost;
    uint64_t wait_ns;
};

static bool has_come(const struct moment *m, oracle_int now)
{
    const struct oracle_model *model = model_of(m->rule);
    struct oracle_view v = model->as_of(m->rule, m->key, now);
    return m->fresh ? model->fresh(m->rule, &v) : model->fits(m->rule, &v, m->cost, m->wait_ns);
}

/* Returns the least d such that the answer is yes at now + d. */
static uint64_t until(const struct moment *m, oracle_int now)
{
    oracle_int no = -1;
    oracle_int yes = 0;
    while (!has_come(m, now + yes)) {
        no = yes;
        yes = yes * 2 + 1;
    }
    while (yes - no > 1) {
        oracle_int middle = no + (yes - no) / 2;
        if (has_come(m, now + middle)) {
            yes = middle;
        } else {
            no = middle;
        }
    }
    return (uint64_t)yes;
}

/* Returns the largest n that fits. */
static uint64_t largest(const struct oracle_rule *r, const struct oracle_view *v)
{
    uint64_t yes = 0;
    uint64_t no = r->quota + 1;
    while (no - yes > 1) {
        uint64_t middle = yes + (no - yes) / 2;
        if (model_of(r)->fits(r, v, middle, 0)) {
            yes = middle;
        } else {
            no = middle;
        }
    }
    return yes;
}

/* ---- the calls ---- */

/* Fills in remaining and reset from the key's present state, and retry if the call was denied. */
static void describe(const struct oracle_rule *r, const struct oracle_key *k, uint64_t cost,
                     uint64_t wait_ns, uint64_t now_ns, struct weir_answer *a)
{
    struct oracle_view v = model_of(r)->as_of(r, k, now_ns);
    a->quota = r->quota;
    a->remaining = largest(r, &v);
    a->reset_after_ns = until(&(struct moment){r, k, true, 0, 0}, now_ns);
    if (a->verdict == WEIR_DENY) {
        a->retry_after_ns = until(&(struct moment){r, k, false, cost, wait_ns}, now_ns);
    }
}

/*
 * Pulls a state from beyond the slack down, before anything else. The caller decides whether that
 * is kept (`k` itself) or only looked at (a copy, for a cost that can never fit). A copy shares the
 * times of a log; that is safe because a log is pulled down by forgetting them.
 */
static void pull(const struct oracle_rule *r, struct oracle_key *k, uint64_t now_ns)
{
    struct oracle_view v = model_of(r)->as_of(r, k, now_ns);
    if (v.pulled) {
        model_of(r)->take(r, k, &v, 0);
    }
}

static int verdict_of(const struct oracle_rule *r, const struct oracle_view *v, uint64_t cost,
                      uint64_t wait_ns)
{
    if (cost > r->quota) {
        return WEIR_NEVER;
    }
    return model_of(r)->fits(r, v, cost, wait_ns) ? WEIR_ALLOW : WEIR_DENY;
}

void oracle_ask(const struct oracle_rule *r, struct oracle_key *k, int mode, uint64_t cost,
                uint64_t wait_ns, uint64_t now_ns, struct weir_answer *a)
{
    struct oracle_key looked_at = *k;
    struct oracle_view v = model_of(r)->as_of(r, k, now_ns);
    *a = (struct weir_answer){0};
    if (mode == WEIR_UP_TO) {
        uint64_t there_is = largest(r, &v);
        cost = cost < there_is ? cost : there_is != 0 ? there_is : 1;
    }
    a->verdict = verdict_of(r, &v, cost, wait_ns);
    a->retry_after_ns = a->verdict == WEIR_NEVER ? WEIR_FOREVER : 0;
    if (a->verdict == WEIR_ALLOW) {
        a->delay_ns = model_of(r)->delay(r, &v, cost);
    }
    if (mode != WEIR_PEEK && a->verdict == WEIR_ALLOW) {
        a->granted = cost;
        model_of(r)->take(r, k, &v, cost);
        looked_at = *k;
    } else if (a->verdict != WEIR_NEVER) {
        pull(r, k, now_ns); /* the only thing that a denied or peeked call may write */
        looked_at = *k;
    } else {
        pull(r, &looked_at, now_ns);
    }
    describe(r, &looked_at, cost, wait_ns, now_ns, a);
}

void oracle_refund(const struct oracle_rule *r, struct oracle_key *k, uint64_t units,
                   uint64_t charged_ns, uint64_t now_ns, struct weir_answer *a)
{
    struct oracle_view v = model_of(r)->as_of(r, k, now_ns);
    if (k->known) {
        model_of(r)->refund(r, k, &v, units, charged_ns);
    }
    oracle_ask(r, k, WEIR_PEEK, 1, 0, now_ns, a);
}

void oracle_penalize(const struct oracle_rule *r, struct oracle_key *k, uint64_t units,
                     uint64_t now_ns, struct weir_answer *a)
{
    struct oracle_view v = model_of(r)->as_of(r, k, now_ns);
    oracle_int most = model_of(r)->chargeable(r, &v);
    uint64_t charged = units < most ? units : (uint64_t)most;
    model_of(r)->take(r, k, &v, charged);
    oracle_ask(r, k, WEIR_PEEK, 1, 0, now_ns, a);
    a->granted = charged;
}
