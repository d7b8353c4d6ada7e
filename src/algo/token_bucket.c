/*
 * token_bucket: `burst` tokens, refilled continuously at count per period. In
 * any interval t it admits at most burst + rate*t, and if more is offered at
 * least 99.99 % of the rate.
 */
#include "algo/bucket.h"

static int compile(const struct limit_spec *spec, const struct algo_layout *layout,
                   struct algo_params *p, struct weir_error *error)
{
    return bucket_compile(spec, spec->burst, "burst", layout, p, error);
}

static struct algo_step decide(const struct algo_params *p, uint64_t word, const uint64_t *record,
                               const struct algo_ask *ask)
{
    struct algo_step step = {word, WEIR_NEVER, false};
    (void)record;
    if (ask->cost > p->quota) {
        return step;
    }
    uint64_t now = bucket_now(p, ask->now);
    uint64_t base = bucket_base(p, word, now, &step.pulled);
    uint64_t cost = ask->cost * p->step;
    /* The base is compared, not the sum: near the end of the time line the sum may not fit. */
    bool fits = base <= now + (p->span - cost) + bucket_wait(p, ask->wait);
    step.verdict = fits ? WEIR_ALLOW : WEIR_DENY;
    step.word = fits ? base + cost : base;
    return step;
}

static void describe(const struct algo_params *p, uint64_t word, const uint64_t *record,
                     const struct algo_ask *ask, struct weir_answer *answer)
{
    bool pulled;
    uint64_t now = bucket_now(p, ask->now);
    uint64_t base = bucket_base(p, word, now, &pulled);
    uint64_t lead = base - now;
    (void)record;
    answer->remaining = bucket_free(p, base, now);
    answer->reset_after_ns = shift_up(lead, p->shift);
    answer->delay_ns = 0;
    if (answer->verdict == WEIR_DENY) {
        uint64_t wait = bucket_wait(p, ask->wait);
        answer->retry_after_ns = shift_up(lead + ask->cost * p->step - p->span - wait, p->shift);
    } else if (ask->wait != 0 && answer->verdict == WEIR_ALLOW) {
        uint64_t after =
            lead + (answer->granted != 0 ? 0 : ask->cost * p->step); /* a peek: as if */
        answer->delay_ns = shift_up(sub_floor0(after, p->span), p->shift);
    }
}

const struct algo_ops algo_token_bucket = {
    .id = WEIR_TOKEN_BUCKET,
    .name = "token_bucket",
    .waits = true,
    .compile = compile,
    .decide = decide,
    .describe = describe,
    .charge = bucket_charge,
    .refund = bucket_refund,
    .fresh_in = bucket_fresh_in,
    .stamp = bucket_stamp,
};
