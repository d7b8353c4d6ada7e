/*
 * fixed_window: at most `count` in each aligned period, and exactly that if more is offered.
 * Simple, and famous for its edge: twice the count can pass in a moment across a boundary. Word:
 * index, count.
 */
#ifndef WEIR_ALGO_FIXED_WINDOW_H
#define WEIR_ALGO_FIXED_WINDOW_H

#include "algo/window.h"

struct fixed_window {
    uint64_t index;
    uint64_t count;
};

static inline struct fixed_window fixed_window_unpack(const struct algo_params *p, uint64_t word)
{
    return (struct fixed_window){word >> p->count_bits, word & p->count_mask};
}

static inline uint64_t fixed_window_pack(const struct algo_params *p, struct fixed_window w)
{
    return w.index << p->count_bits | w.count;
}

/* Returns the state's window, or window `index` if the state's is over. */
static inline struct fixed_window fixed_window_at_least(const struct algo_params *p, uint64_t word,
                                                        uint64_t index)
{
    struct fixed_window w = fixed_window_unpack(p, word);
    return w.index < index ? (struct fixed_window){index, 0} : w;
}

/* Returns the word of the window that a call at `now` is counted in. */
static inline uint64_t fixed_window_as_of(const struct algo_params *p, uint64_t word,
                                          const uint64_t *record, uint64_t now, bool *pulled)
{
    (void)record;
    *pulled = false;
    if (__builtin_expect(window_holds(p, word >> p->count_bits, now), 1)) {
        return word;
    }
    uint64_t index = window_index(p, now);
    struct fixed_window w = fixed_window_at_least(p, word, index);
    *pulled = window_is_far(p, w.index, now);
    w.index = *pulled ? index : w.index;
    return fixed_window_pack(p, w);
}

static inline bool fixed_window_fits(const struct algo_params *p, uint64_t word,
                                     const uint64_t *record, const struct algo_ask *ask)
{
    (void)record;
    return fixed_window_unpack(p, word).count + ask->cost <= p->quota;
}

static inline void fixed_window_describe(const struct algo_params *p, uint64_t word,
                                         const uint64_t *record, const struct algo_ask *ask,
                                         struct weir_answer *answer)
{
    (void)record;
    struct fixed_window w = fixed_window_unpack(p, word);
    uint64_t end_after = window_start(p, w.index + 1) - ask->now;
    answer->remaining = sub_floor0(p->quota, w.count);
    answer->reset_after_ns = w.count == 0 ? 0 : end_after;
    answer->delay_ns = 0;
    if (answer->verdict == WEIR_DENY) {
        answer->retry_after_ns = end_after;
    }
}

#endif
