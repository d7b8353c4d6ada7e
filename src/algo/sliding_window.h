/*
 * sliding_window: two aligned counters; the previous window counts by the share of it that still
 * lies within a period of now. With q = count, W = period and e = time since the current window
 * began, a call of n fits if
 *
 *     (current + n) * W + previous * (W - e)  <=  q * W
 *
 * in integers. Divided by W, that is current + n + ceil(previous * (W - e) / W) <= q. In any
 * interval of a period's length it admits at most 2q - 1, and if more is offered at least (q-1)/q
 * of the rate. Word: index, current, previous.
 */
#ifndef WEIR_ALGO_SLIDING_WINDOW_H
#define WEIR_ALGO_SLIDING_WINDOW_H

#include "algo/window.h"

struct sliding_window {
    uint64_t index;
    uint64_t current;
    uint64_t previous;
};

static inline struct sliding_window sliding_window_unpack(const struct algo_params *p,
                                                          uint64_t word)
{
    return (struct sliding_window){
        word >> 2 * p->count_bits,
        word >> p->count_bits & p->count_mask,
        word & p->count_mask,
    };
}

static inline uint64_t sliding_window_pack(const struct algo_params *p, struct sliding_window w)
{
    return w.index << 2 * p->count_bits | w.current << p->count_bits | w.previous;
}

/* Returns the state's windows, or those of `index` if the state's current one is over. */
static inline struct sliding_window sliding_window_at_least(const struct algo_params *p,
                                                            uint64_t word, uint64_t index)
{
    struct sliding_window w = sliding_window_unpack(p, word);
    if (w.index < index) {
        return (struct sliding_window){index, 0, w.index + 1 == index ? w.current : 0};
    }
    return w;
}

/* Returns the word of the windows that a call at `now` is counted in. */
static inline uint64_t sliding_window_as_of(const struct algo_params *p, uint64_t word,
                                            const uint64_t *record, uint64_t now, bool *pulled)
{
    (void)record;
    *pulled = false;
    if (__builtin_expect(window_holds(p, word >> 2 * p->count_bits, now), 1)) {
        return word;
    }
    uint64_t index = window_index(p, now);
    struct sliding_window w = sliding_window_at_least(p, word, index);
    *pulled = window_is_far(p, w.index, now);
    w.index = *pulled ? index : w.index;
    return sliding_window_pack(p, w);
}

/*
 * Returns the previous window's units, each times how much of that window still counts: W - e. A
 * state ahead of `now` is at e = 0.
 */
static inline u128 sliding_window_fading(const struct algo_params *p, struct sliding_window w,
                                         uint64_t now)
{
    uint64_t counts = window_start(p, w.index) + p->spec.period_ns - now;
    return mul_wide(w.previous, min_u64(counts, p->spec.period_ns));
}

/*
 * Returns how many whole units of the previous window no longer count. The others do, and so does a
 * part of a unit: previous - floor(previous * e / W) is ceil(previous * (W - e) / W).
 */
static inline uint64_t sliding_window_faded(const struct algo_params *p, struct sliding_window w,
                                            uint64_t now)
{
    uint64_t elapsed = sub_floor0(now, window_start(p, w.index));
    return window_periods(p, mul_wide(w.previous, elapsed));
}

/* Most calls fit even if all of the previous window counts: they need no products. */
static inline bool sliding_window_fits(const struct algo_params *p, uint64_t word,
                                       const uint64_t *record, const struct algo_ask *ask)
{
    struct sliding_window w = sliding_window_unpack(p, word);
    uint64_t after = w.current + ask->cost;
    (void)record;
    return __builtin_expect(after + w.previous <= p->quota, 1) ||
           (after <= p->quota &&
            sliding_window_fading(p, w, ask->now) <= mul_wide(p->quota - after, p->spec.period_ns));
}

/* Returns when a call of `cost` that does not fit now will fit, on the limiter's line. */
uint64_t sliding_window_fits_at(const struct algo_params *p, struct sliding_window w,
                                uint64_t cost);

/* Returns how long the windows still count. */
static inline uint64_t sliding_window_empty_after(const struct algo_params *p,
                                                  struct sliding_window w, uint64_t now)
{
    if (w.current != 0) {
        return window_start(p, w.index + 2) - now;
    }
    return w.previous != 0 ? window_start(p, w.index + 1) - now : 0;
}

static inline void sliding_window_describe(const struct algo_params *p, uint64_t word,
                                           const uint64_t *record, const struct algo_ask *ask,
                                           struct weir_answer *answer)
{
    (void)record;
    struct sliding_window w = sliding_window_unpack(p, word);
    uint64_t taken = w.current + w.previous - sliding_window_faded(p, w, ask->now);
    answer->remaining = sub_floor0(p->quota, taken);
    answer->reset_after_ns = sliding_window_empty_after(p, w, ask->now);
    answer->delay_ns = 0;
    if (answer->verdict == WEIR_DENY) {
        answer->retry_after_ns = sliding_window_fits_at(p, w, ask->cost) - ask->now;
    }
}

#endif
