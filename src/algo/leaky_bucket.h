/*
 * leaky_bucket: a queue that is served at count per period. An allowed call carries the delay after
 * which it is its turn; turns are at least one step apart. `queue` calls can wait behind the one
 * that is being served, so the quota is queue + 1. If the caller gives a wait, it replaces the
 * length of the queue.
 */
#ifndef WEIR_ALGO_LEAKY_BUCKET_H
#define WEIR_ALGO_LEAKY_BUCKET_H

#include "algo/bucket.h"

/*
 * Returns the latest TAT before the call with which the call is allowed: the queue has room for it
 * or, with a wait, its turn comes soon enough and the debt allows it.
 */
static inline uint64_t leaky_bucket_latest(const struct algo_params *p, const struct algo_ask *ask)
{
    uint64_t cost = ask->cost * p->step;
    return bucket_now(p, ask->now) +
           (ask->wait == 0 ? p->span - cost : bucket_lead(p, ask->wait, p->reach - cost));
}

static inline bool leaky_bucket_fits(const struct algo_params *p, uint64_t word,
                                     const uint64_t *record, const struct algo_ask *ask)
{
    (void)record;
    return word <= leaky_bucket_latest(p, ask);
}

static inline void leaky_bucket_describe(const struct algo_params *p, uint64_t word,
                                         const uint64_t *record, const struct algo_ask *ask,
                                         struct weir_answer *answer)
{
    (void)record;
    bucket_describe(p, word, leaky_bucket_latest(p, ask), ask->now, answer);
    if (answer->verdict == WEIR_ALLOW) {
        /* The turn of the granted units begins where the queue ended before them. */
        uint64_t lead = word - bucket_now(p, ask->now);
        answer->delay_ns = shift_up(lead - answer->granted * p->step, p->shift);
    }
}

#endif
