/*
 * The two window algorithms share a word that is made of a window's index and one or two counters.
 * The index takes as many bits as a hundred years of windows need, whatever the quota, so that a
 * changed quota never misreads a word and no stale window is ever taken for the current one. Index
 * 0 is "never": the first window of the time line has index 1.
 */
#ifndef WEIR_ALGO_WINDOW_H
#define WEIR_ALGO_WINDOW_H

#include "algo/algo.h"
#include "base/maths.h"

/* Fills everything but spec, for words with `counters` counters. */
int window_compile(const struct limit_spec *spec, unsigned counters, struct algo_params *p,
                   struct weir_error *error);

/*
 * Returns x / W for W = period_ns, rounded down, if that is below 2^61. A time or a counter
 * multiplied by at most W, as they are divided here, gives less than 2^60.
 *
 * With s = period_shift, 2^(s+1) <= W < 2^(s+2), and inverse is (2^(64+s) - r) / W for an r from 1
 * to W. x / 2^s is below 2^63; rounded down it is (x - t) / 2^s for a t below 2^s. The product is
 * then x/W less two losses: t/W, which is below 1/2, and (r/W) * (x - t) / 2^(64+s), which is below
 * 1/2 too. So its high half is the quotient or one less, and the remainder says which: it is below
 * 2W, so that its low 64 bits are all of it.
 */
static inline uint64_t window_periods(const struct algo_params *p, u128 x)
{
    uint64_t high = (uint64_t)(x >> 64);
    uint64_t low = (uint64_t)x;
    uint64_t scaled = high << (64 - p->period_shift) | low >> p->period_shift;
    uint64_t periods = mul_high(scaled, p->inverse);
    return periods + (low - periods * p->spec.period_ns >= p->spec.period_ns);
}

static inline uint64_t window_index(const struct algo_params *p, uint64_t now)
{
    return window_periods(p, now) + 1;
}

static inline uint64_t window_start(const struct algo_params *p, uint64_t index)
{
    return (index - 1) * p->spec.period_ns;
}

/* Is `now` in that window? Asked first, because it takes less than to find the window of `now`. */
static inline bool window_holds(const struct algo_params *p, uint64_t index, uint64_t now)
{
    return now - window_start(p, index) < p->spec.period_ns;
}

/* Does the window begin further after `now` than clocks may differ? */
static inline bool window_is_far(const struct algo_params *p, uint64_t index, uint64_t now)
{
    return window_start(p, index) > now + ALGO_SLACK_NS;
}

#endif
