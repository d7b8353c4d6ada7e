/*
 * fixed_window and sliding_window: a word is the index of a window of time and the units that were
 * admitted in it and, for sliding_window, in the window before it.
 *
 * fixed_window admits at most `count` in each aligned period, and exactly that if more is offered.
 * It is simple, and known for its edge: twice the count can pass in a moment across a boundary.
 *
 * sliding_window counts the previous window by the share of it that still lies within a period of
 * now. With q = count, W = period and e = time since the current window began, a call of n fits if
 *
 *     (current + n) * W + previous * (W - e)  <=  q * W
 *
 * in integers. Divided by W, that is current + n + ceil(previous * (W - e) / W) <= q. In any
 * interval of a period's length it admits at most 2q - 1, and if more is offered at least (q-1)/q
 * of the rate. With previous = 0 the formula is that of fixed_window, whose words have no bits for
 * the previous count: so both share all but the functions that are called most.
 *
 * A window's index says when it ends: at index * unit on the time line. The unit is the period, so
 * the first window has index 1, and index 0 means "never". Calendar months (WEIR_MONTH), which only
 * fixed_window has, are of 28 to 31 days: their unit is a day, and their time line begins in 1970.
 * The index takes as many bits as a hundred years of windows need, whatever the quota. So a changed
 * quota never misreads a word, and a stale window is never taken for the current one.
 */
#ifndef WEIR_ALGO_WINDOW_H
#define WEIR_ALGO_WINDOW_H

#include "algo/algo.h"

struct windows {
    uint64_t index;
    uint64_t current;
    uint64_t previous;
};

/*
 * Returns x / W for W = unit, rounded down, if that is below 2^61. A time or a counter
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
    return periods + (low - periods * p->unit >= p->unit);
}

/* Returns the index of the window at `now`; not for months. */
static inline uint64_t window_index(const struct algo_params *p, uint64_t now)
{
    return window_periods(p, now) + 1;
}

static inline uint64_t window_end(const struct algo_params *p, uint64_t index)
{
    return index * p->unit;
}

/* Returns when a window begins; not for months. */
static inline uint64_t window_start(const struct algo_params *p, uint64_t index)
{
    return window_end(p, index - 1);
}

/* `step` is a unit of the current count; the bits below it are the previous one. */
static inline struct windows window_unpack(const struct algo_params *p, uint64_t word)
{
    return (struct windows){word >> p->index_shift, word >> p->previous_bits & p->count_mask,
                            word & (p->step - 1)};
}

static inline uint64_t window_pack(const struct algo_params *p, struct windows w)
{
    return w.index << p->index_shift | w.current * p->step | w.previous;
}

/* Returns the state's windows, or those of `index` if the state's current one is over. */
static inline struct windows window_at_least(const struct algo_params *p, uint64_t word,
                                             uint64_t index)
{
    struct windows w = window_unpack(p, word);
    if (w.index < index) {
        bool fades = w.index + 1 == index && p->previous_bits != 0;
        return (struct windows){index, 0, fades ? w.current : 0};
    }
    return w;
}

/* Returns the word of the windows in which a call at `now` is counted; not for months. */
static inline uint64_t window_as_of(const struct algo_params *p, struct algo_state s, uint64_t now,
                                    bool *pulled)
{
    *pulled = false;
    /* Most calls are in the window of the s.word. To test that takes less than to find a window. */
    if (__builtin_expect(now - window_start(p, window_unpack(p, s.word).index) < p->unit, 1)) {
        return s.word;
    }
    uint64_t index = window_index(p, now);
    struct windows w = window_at_least(p, s.word, index);
    *pulled = window_start(p, w.index) > now + ALGO_SLACK_NS;
    w.index = *pulled ? index : w.index;
    return window_pack(p, w);
}

/*
 * Returns the previous window's units, each multiplied by how much of that window still counts,
 * W - e. If the state is ahead of `now`, e is 0.
 */
static inline u128 window_fading(const struct algo_params *p, struct windows w, uint64_t now)
{
    return mul_wide(w.previous, min_u64(window_end(p, w.index) - now, p->unit));
}

static inline bool fixed_window_fits(const struct algo_params *p, struct algo_state s,
                                     const struct algo_ask *ask)
{
    return (s.word & p->count_mask) + ask->cost <= p->quota;
}

static inline void fixed_window_describe(const struct algo_params *p, struct algo_state s,
                                         const struct algo_ask *ask, struct weir_answer *answer)
{
    uint64_t count = s.word & p->count_mask;
    uint64_t ends_after = window_end(p, window_unpack(p, s.word).index) - ask->now;
    answer->remaining = sub_floor0(p->quota, count);
    answer->reset_after_ns = count == 0 ? 0 : ends_after;
    answer->delay_ns = 0;
    if (answer->verdict == WEIR_DENY) {
        answer->retry_after_ns = ends_after;
    }
}

/* Most calls fit even if all of the previous window counts; they need no products. */
static inline bool sliding_window_fits(const struct algo_params *p, struct algo_state s,
                                       const struct algo_ask *ask)
{
    struct windows w = window_unpack(p, s.word);
    uint64_t after = w.current + ask->cost;
    return __builtin_expect(after + w.previous <= p->quota, 1) ||
           (after <= p->quota &&
            window_fading(p, w, ask->now) <= mul_wide(p->quota - after, p->unit));
}

/* Returns how long the windows still count. */
static inline uint64_t window_empty_after(const struct algo_params *p, struct windows w,
                                          uint64_t now)
{
    if (w.current != 0) {
        return window_end(p, w.index + (p->previous_bits != 0)) - now;
    }
    return w.previous != 0 ? window_end(p, w.index) - now : 0;
}

/* Returns when a call of `cost` that does not fit now will fit, on the limiter's time line. */
uint64_t sliding_window_fits_at(const struct algo_params *p, struct windows w, uint64_t cost);

/*
 * Of the previous window, the units that have faded as a whole do not count:
 * previous - floor(previous * e / W) is ceil(previous * (W - e) / W).
 */
static inline void sliding_window_describe(const struct algo_params *p, struct algo_state s,
                                           const struct algo_ask *ask, struct weir_answer *answer)
{
    struct windows w = window_unpack(p, s.word);
    uint64_t elapsed = sub_floor0(ask->now, window_start(p, w.index));
    uint64_t faded = window_periods(p, mul_wide(w.previous, elapsed));
    answer->remaining = sub_floor0(p->quota, w.current + w.previous - faded);
    answer->reset_after_ns = window_empty_after(p, w, ask->now);
    answer->delay_ns = 0;
    if (answer->verdict == WEIR_DENY) {
        answer->retry_after_ns = sliding_window_fits_at(p, w, ask->cost) - ask->now;
    }
}

#endif
