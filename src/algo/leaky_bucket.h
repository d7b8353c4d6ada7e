/*
 * leaky_bucket: a queue served at count per period. An allowed call carries the
 * delay after which it is its turn; release times are at least one step apart.
 * `queue` calls can wait after the one that is being served, so the quota is
 * queue + 1. With max_wait the caller's patience replaces the queue's length.
 */
#ifndef WEIR_ALGO_LEAKY_BUCKET_H
#define WEIR_ALGO_LEAKY_BUCKET_H

#include "algo/bucket.h"

/*
 * Returns the latest TAT before the call with which it is still allowed: the queue has
 * room for it, or with a wait, its turn comes soon enough and the debt bears it.
 */
static inline uint64_t leaky_bucket_latest(const struct algo_params *p, uint64_t now,
                                           const struct algo_ask *ask)
{
    uint64_t cost = ask->cost * p->step;
    if (ask->wait == 0) {
        return now + p->span - cost;
    }
    return now + bucket_lead(p, ask->wait, p->reach - cost);
}

static inline struct algo_step leaky_bucket_decide(const struct algo_params *p, uint64_t word,
                                                   const struct algo_ask *ask)
{
    struct algo_step step = {word, WEIR_NEVER, false};
    if (ask->cost > p->quota) {
        return step;
    }
    uint64_t now = bucket_now(p, ask->now);
    uint64_t base = bucket_base(p, word, now, &step.pulled);
    bool fits = base <= leaky_bucket_latest(p, now, ask);
    step.verdict = fits ? WEIR_ALLOW : WEIR_DENY;
    step.word = fits ? base + ask->cost * p->step : base;
    return step;
}

/* Describes a word that a decision has just brought up to now. */
static inline void leaky_bucket_describe_decided(const struct algo_params *p, uint64_t word,
                                                 const struct algo_ask *ask,
                                                 struct weir_answer *answer)
{
    uint64_t now = bucket_now(p, ask->now);
    uint64_t lead = word - now;
    answer->remaining = bucket_free(p, lead);
    answer->reset_after_ns = shift_up(lead, p->shift);
    answer->delay_ns = 0;
    if (answer->verdict == WEIR_DENY) {
        answer->retry_after_ns = shift_up(word - leaky_bucket_latest(p, now, ask), p->shift);
    } else if (answer->verdict == WEIR_ALLOW) {
        /* The turn of the units just taken begins where the queue ended before them. */
        answer->delay_ns = shift_up(lead - answer->granted * p->step, p->shift);
    }
}

#endif
