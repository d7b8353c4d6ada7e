/*
 * token_bucket: `burst` tokens, refilled continuously at count per period. In
 * any interval t it admits at most burst + rate*t, and if more is offered at
 * least 99.99 % of the rate.
 *
 * In a header, as are the other algorithms without a record: a decision on a known
 * key inlines them (inline.h) instead of calling through the table of operations.
 */
#ifndef WEIR_ALGO_TOKEN_BUCKET_H
#define WEIR_ALGO_TOKEN_BUCKET_H

#include "algo/bucket.h"

static inline struct algo_step token_bucket_decide(const struct algo_params *p, uint64_t word,
                                                   const struct algo_ask *ask)
{
    struct algo_step step = {word, WEIR_NEVER, false};
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

/* Describes a word that a decision has just brought up to now. */
static inline void token_bucket_describe_decided(const struct algo_params *p, uint64_t word,
                                                 const struct algo_ask *ask,
                                                 struct weir_answer *answer)
{
    uint64_t lead = word - bucket_now(p, ask->now);
    answer->remaining = bucket_free(p, lead);
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

#endif
