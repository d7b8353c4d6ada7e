/*
 * token_bucket and leaky_bucket, by the generic cell rate algorithm.
 *
 * The word is a theoretical arrival time (TAT): the time at which the bucket will be full again if
 * nothing more is taken. A unit moves it forward by `step`. A call fits if the TAT then leads the
 * time by at most `span`. There is no refilling: the passing of time is the refill, exact to the
 * last fraction.
 *
 * token_bucket holds `burst` tokens, refilled continuously at count per period. In any interval t
 * it admits at most burst + rate*t, and if more is offered at least 99.99 % of the rate.
 *
 * leaky_bucket is a queue that is served at count per period. An allowed call carries the delay
 * after which it is its turn; turns are at least one step apart. `queue` calls can wait behind the
 * one that is being served, so the quota is queue + 1. If the caller gives a wait, it replaces the
 * length of the queue. The first `undelayed` of those that wait need not: each call acts that many
 * steps before its turn, but not before now. Turns that begin within an interval t are at most
 * 1 + rate*t, so at most 1 + undelayed + rate*t calls act within it.
 *
 * The unit of the word is 2^-shift ns. In whole nanoseconds, rounding the step up would lose 1 % of
 * 9,999,999 per second. The shift is chosen so that a step has at least BUCKET_STEP_MIN units; the
 * loss is then at most one in that number.
 *
 * The functions that decide are in a header, as those of the windows, because the short cut of a
 * decision inlines them (limit/shortcut.h).
 */
#ifndef WEIR_ALGO_BUCKET_H
#define WEIR_ALGO_BUCKET_H

#include "algo/algo.h"

#define BUCKET_STEP_MIN 10000u
#define BUCKET_SHIFT_MIN 2u /* exact enough up to 400 k/s; a word lasts 146 years */
/* Exact enough up to 12.8 M/s; a word lasts 4.6 years, less the lead. Beyond, steps are coarser. */
#define BUCKET_SHIFT_MAX 7u

/* Returns the time of the call in units of the word. */
static inline uint64_t bucket_now(const struct algo_params *p, uint64_t now)
{
    return now << p->shift;
}

/* Returns the TAT as of `now`: at least `now`, and no further ahead than is legitimate. */
static inline uint64_t bucket_as_of(const struct algo_params *p, struct algo_state s, uint64_t now,
                                    bool *pulled)
{
    uint64_t furthest = bucket_now(p, now) + p->reach;
    bool is_far = s.word > furthest + (ALGO_SLACK_NS << p->shift);
    /* A branch that is never taken costs less than a conditional move before the swap. */
    *pulled = __builtin_expect_with_probability(is_far, 0, 1.0);
    return *pulled ? furthest : max_u64(s.word, bucket_now(p, now));
}

/* Returns a wait in ns as a lead in units of the word, at most `most`. */
static inline uint64_t bucket_lead(const struct algo_params *p, uint64_t wait, uint64_t most)
{
    return wait > most >> p->shift ? most : wait << p->shift;
}

/* Describes a TAT with which a call is allowed up to `latest`. The algorithm adds the delay. */
static inline void bucket_describe(const struct algo_params *p, uint64_t word, uint64_t latest,
                                   uint64_t now, struct weir_answer *answer)
{
    uint64_t lead = word - bucket_now(p, now);
    uint64_t left = sub_floor0(p->span, lead);
    uint64_t units = mul_high(left, p->inverse); /* left / step, or one less */
    answer->remaining = units + (left - units * p->step >= p->step);
    answer->reset_after_ns = shift_up(lead, p->shift);
    answer->delay_ns = 0;
    if (answer->verdict == WEIR_DENY) {
        answer->retry_after_ns = shift_up(word - latest, p->shift);
    }
}

/* ---- token_bucket ---- */

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

static inline bool token_bucket_fits(const struct algo_params *p, struct algo_state s,
                                     const struct algo_ask *ask)
{
    return s.word <= token_bucket_latest(p, ask);
}

static inline void token_bucket_describe(const struct algo_params *p, struct algo_state s,
                                         const struct algo_ask *ask, struct weir_answer *answer)
{
    bucket_describe(p, s.word, token_bucket_latest(p, ask), ask->now, answer);
    if (ask->wait != 0 && answer->verdict == WEIR_ALLOW) {
        uint64_t after = s.word - bucket_now(p, ask->now) +
                         (answer->granted != 0 ? 0 : ask->cost * p->step); /* a peek took nothing */
        answer->delay_ns = shift_up(sub_floor0(after, p->span), p->shift);
    }
}

/* ---- leaky_bucket ---- */

/*
 * Returns the latest TAT before the call with which the call is allowed: the queue has room for it
 * or, with a wait, its turn comes soon enough and the debt allows it.
 */
static inline uint64_t leaky_bucket_latest(const struct algo_params *p, const struct algo_ask *ask)
{
    uint64_t cost = ask->cost * p->step;
    uint64_t most = p->reach - cost;
    return bucket_now(p, ask->now) +
           (ask->wait == 0 ? p->span - cost
                           : min_u64(bucket_lead(p, ask->wait, most) + p->head_start, most));
}

static inline bool leaky_bucket_fits(const struct algo_params *p, struct algo_state s,
                                     const struct algo_ask *ask)
{
    return s.word <= leaky_bucket_latest(p, ask);
}

static inline void leaky_bucket_describe(const struct algo_params *p, struct algo_state s,
                                         const struct algo_ask *ask, struct weir_answer *answer)
{
    bucket_describe(p, s.word, leaky_bucket_latest(p, ask), ask->now, answer);
    if (answer->verdict == WEIR_ALLOW) {
        /* The turn of the granted units begins where the queue ended before them. */
        uint64_t lead = s.word - bucket_now(p, ask->now);
        uint64_t turn = lead - answer->granted * p->step;
        if (__builtin_expect(p->head_start != 0, 0)) {
            turn = sub_floor0(turn, p->head_start);
        }
        answer->delay_ns = shift_up(turn, p->shift);
    }
}

#endif
