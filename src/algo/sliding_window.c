/*
 * sliding_window: two aligned counters; the previous window counts by the share
 * of it that still lies within a period of now. With q = count, W = period and
 * e = time since the current window began, a call of n fits if
 *
 *     (current + n) * W + previous * (W - e)  <=  q * W
 *
 * compared in integers, cross-multiplied. In any interval of a period's length
 * it admits at most 2q - 1, and if more is offered at least (q-1)/q of the rate.
 * Word: index, current, previous.
 */
#include "algo/window.h"

static int compile(const struct limit_spec *spec, const struct algo_layout *layout,
                   struct algo_params *p, struct weir_error *error)
{
    (void)layout;
    return window_compile(spec, 2, p, error);
}

struct windows {
    uint64_t index;
    uint64_t current;
    uint64_t previous;
};

static struct windows unpack(const struct algo_params *p, uint64_t word)
{
    uint64_t mask = (UINT64_C(1) << p->count_bits) - 1;
    return (struct windows){
        word >> 2 * p->count_bits,
        word >> p->count_bits & mask,
        word & mask,
    };
}

static uint64_t pack(const struct algo_params *p, struct windows w)
{
    return w.index << 2 * p->count_bits | w.current << p->count_bits | w.previous;
}

/* The state's windows, or those of `now` if the state's current one is over. */
static struct windows at_least(const struct algo_params *p, uint64_t word, uint64_t now)
{
    struct windows w = unpack(p, word);
    uint64_t index = window_index(p, now);
    if (w.index < index) {
        return (struct windows){index, 0, w.index + 1 == index ? w.current : 0};
    }
    return w;
}

/* The windows that a call at `now` is counted in. */
static struct windows as_of(const struct algo_params *p, uint64_t word, uint64_t now, bool *pulled)
{
    struct windows w = at_least(p, word, now);
    *pulled = window_start(p, w.index) > now + ALGO_SLACK_NS;
    if (*pulled) {
        w.index = window_index(p, now);
    }
    return w;
}

/* The part of the previous window that still counts: W - e. A state ahead of `now` is at e = 0. */
static uint64_t weight(const struct algo_params *p, struct windows w, uint64_t now)
{
    return p->spec.period_ns - sub_floor0(now, window_start(p, w.index));
}

/* Whole units that fit now. */
static uint64_t room(const struct algo_params *p, struct windows w, uint64_t now)
{
    uint64_t left = sub_floor0(p->quota, w.current);
    u128 weighed = mul_wide(w.previous, weight(p, w, now));
    u128 space = mul_wide(left, p->spec.period_ns);
    /* The quotient is at most `left`. */
    return weighed >= space ? 0 : (uint64_t)((space - weighed) / p->spec.period_ns);
}

static struct algo_step decide(const struct algo_params *p, uint64_t word, const uint64_t *record,
                               const struct algo_ask *ask)
{
    struct algo_step step = {word, WEIR_NEVER, false};
    (void)record;
    if (ask->cost > p->quota) {
        return step;
    }
    struct windows w = as_of(p, word, ask->now, &step.pulled);
    uint64_t after = w.current + ask->cost;
    bool fits = after <= p->quota && mul_wide(w.previous, weight(p, w, ask->now)) <=
                                         mul_wide(p->quota - after, p->spec.period_ns);
    if (fits) {
        w.current = after;
    }
    step.verdict = fits ? WEIR_ALLOW : WEIR_DENY;
    step.word = pack(p, w);
    return step;
}

/*
 * The first moment of a window at which `counted`, what the window before it
 * held, leaves room for `spare` units: the smallest e with
 * counted * (W - e) <= spare * W. It is W itself if spare is 0.
 */
static uint64_t room_at(const struct algo_params *p, uint64_t counted, uint64_t spare)
{
    uint64_t period = p->spec.period_ns;
    return counted <= spare ? 0 : period - mul_div(spare, period, counted);
}

/* When a call of `cost` that does not fit now will, on the limiter's line. */
static uint64_t fits_at(const struct algo_params *p, struct windows w, uint64_t cost)
{
    uint64_t period = p->spec.period_ns;
    uint64_t start = window_start(p, w.index);
    if (w.current + cost <= p->quota) {
        uint64_t e = room_at(p, w.previous, p->quota - w.current - cost);
        if (e < period) {
            return start + e;
        }
        /* Not before the end of this window; in the next one `current` is the one that fades. */
    }
    return start + period + room_at(p, w.current, p->quota - cost);
}

static uint64_t empty_after(const struct algo_params *p, struct windows w, uint64_t now)
{
    if (w.current != 0) {
        return window_start(p, w.index + 2) - now;
    }
    return w.previous != 0 ? window_start(p, w.index + 1) - now : 0;
}

static void describe(const struct algo_params *p, uint64_t word, const uint64_t *record,
                     const struct algo_ask *ask, struct weir_answer *answer)
{
    bool pulled;
    struct windows w = as_of(p, word, ask->now, &pulled);
    (void)record;
    answer->remaining = room(p, w, ask->now);
    answer->reset_after_ns = empty_after(p, w, ask->now);
    answer->delay_ns = 0;
    if (answer->verdict == WEIR_DENY) {
        answer->retry_after_ns = fits_at(p, w, ask->cost) - ask->now;
    }
}

static uint64_t charge(const struct algo_params *p, uint64_t word, const uint64_t *record,
                       const struct algo_ask *ask, uint64_t *charged)
{
    bool pulled;
    struct windows w = as_of(p, word, ask->now, &pulled);
    (void)record;
    *charged = min_u64(ask->cost, sub_floor0(p->max_count, w.current));
    w.current += *charged;
    return pack(p, w);
}

static uint64_t refund(const struct algo_params *p, uint64_t word, uint64_t *record,
                       const struct algo_ask *ask, const struct algo_charge *charge)
{
    bool pulled;
    struct windows w = as_of(p, word, ask->now, &pulled);
    uint64_t index = window_index(p, charge->at);
    (void)record;
    if (index == w.index) {
        w.current = sub_floor0(w.current, ask->cost);
    } else if (index + 1 == w.index) {
        w.previous = sub_floor0(w.previous, ask->cost);
    } else {
        return word;
    }
    return pack(p, w);
}

static void owes(const struct algo_params *p, uint64_t word, const uint64_t *record, uint64_t now,
                 struct debt *debt)
{
    uint64_t late = algo_late(now);
    struct windows w = at_least(p, word, late);
    (void)record;
    if (window_start(p, w.index) > now + ALGO_SLACK_NS) {
        w.index = window_index(p, now);
        word = pack(p, w);
    }
    u128 estimate =
        mul_wide(w.current, p->spec.period_ns) + mul_wide(w.previous, weight(p, w, late));
    /* Empty windows ahead still keep laggards out of the one before them. */
    uint64_t ahead = sub_floor0(window_start(p, w.index), late);
    *debt = (struct debt){estimate, max_u64(ahead, empty_after(p, w, late)), word};
}

static uint64_t stamp(const struct algo_params *p, uint64_t word, const uint64_t *record,
                      uint64_t now)
{
    (void)record;
    return max_u64(now, window_start(p, unpack(p, word).index));
}

const struct algo_ops algo_sliding_window = {
    .id = WEIR_SLIDING_WINDOW,
    .name = "sliding_window",
    .compile = compile,
    .decide = decide,
    .describe = describe,
    .charge = charge,
    .refund = refund,
    .owes = owes,
    .stamp = stamp,
};
