/*
 * token_bucket: `burst` tokens, refilled continuously at count per period. In any interval t it
 * admits at most burst + rate*t, and if more is offered at least 99.99 % of the rate.
 *
 * The functions are in a header, as those of the other algorithms without a record, because the
 * short cut of a decision inlines them (inline.h).
 */
#ifndef WEIR_ALGO_TOKEN_BUCKET_H
#define WEIR_ALGO_TOKEN_BUCKET_H

#include "algo/bucket.h"

/*
 * Returns the latest TAT before the call with which the call is allowed. A wait allows more than
 * the span, as far as the debt reaches. (The TAT itself is compared, not its sum with the cost,
 * which may overflow near the end of the time line.)
 */
static inline uint64_t token_bucket_latest(const struct algo_params *p, const struct algo_ask *ask)
{
    uint64_t latest = bucket_now(p, ask->now) + (p->span - ask->cost * p->step);
    return ask->wait == 0 ? latest : latest + bucket_lead(p, ask->wait, p->reach - p->span);
}

static inline bool token_bucket_fits(const struct algo_params *p, uint64_t word,
                                     const uint64_t *record, const struct algo_ask *ask)
{
    (void)record;
    return word <= token_bucket_latest(p, ask);
}

static inline void token_bucket_describe(const struct algo_params *p, uint64_t word,
                                         const uint64_t *record, const struct algo_ask *ask,
                                         struct weir_answer *answer)
{
    (void)record;
    bucket_describe(p, word, token_bucket_latest(p, ask), ask->now, answer);
    if (ask->wait != 0 && answer->verdict == WEIR_ALLOW) {
        uint64_t after = word - bucket_now(p, ask->now) +
                         (answer->granted != 0 ? 0 : ask->cost * p->step); /* a peek took nothing */
        answer->delay_ns = shift_up(sub_floor0(after, p->span), p->shift);
    }
}

#endif
