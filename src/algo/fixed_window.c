/*
 * fixed_window: at most `count` in each aligned period, and exactly that if
 * more is offered. Simple, and famous for its edge: twice the count can pass in
 * a moment across a boundary. Word: index, count.
 */
#include "algo/window.h"

static int compile(const struct limit_spec *spec, const struct algo_layout *layout,
                   struct algo_params *p, struct weir_error *error)
{
    (void)layout;
    return window_compile(spec, 1, p, error);
}

struct window {
    uint64_t index;
    uint64_t count;
};

static struct window unpack(const struct algo_params *p, uint64_t word)
{
    return (struct window){word >> p->count_bits, word & ((UINT64_C(1) << p->count_bits) - 1)};
}

static uint64_t pack(const struct algo_params *p, struct window w)
{
    return w.index << p->count_bits | w.count;
}

/* The state's window, or the one of `now` if the state's is over. */
static struct window at_least(const struct algo_params *p, uint64_t word, uint64_t now)
{
    struct window w = unpack(p, word);
    uint64_t index = window_index(p, now);
    return w.index < index ? (struct window){index, 0} : w;
}

/* The window that a call at `now` is counted in. */
static struct window as_of(const struct algo_params *p, uint64_t word, uint64_t now, bool *pulled)
{
    struct window w = at_least(p, word, now);
    *pulled = window_start(p, w.index) > now + ALGO_SLACK_NS;
    if (*pulled) {
        w.index = window_index(p, now);
    }
    return w;
}

static struct algo_step decide(const struct algo_params *p, uint64_t word, const uint64_t *record,
                               const struct algo_ask *ask)
{
    struct algo_step step = {word, WEIR_NEVER, false};
    (void)record;
    if (ask->cost > p->quota) {
        return step;
    }
    struct window w = as_of(p, word, ask->now, &step.pulled);
    bool fits = w.count + ask->cost <= p->quota;
    if (fits) {
        w.count += ask->cost;
    }
    step.verdict = fits ? WEIR_ALLOW : WEIR_DENY;
    step.word = pack(p, w);
    return step;
}

static void describe(const struct algo_params *p, uint64_t word, const uint64_t *record,
                     const struct algo_ask *ask, struct weir_answer *answer)
{
    bool pulled;
    struct window w = as_of(p, word, ask->now, &pulled);
    uint64_t end_after = window_start(p, w.index + 1) - ask->now;
    (void)record;
    answer->remaining = sub_floor0(p->quota, w.count);
    answer->reset_after_ns = w.count == 0 ? 0 : end_after;
    answer->delay_ns = 0;
    if (answer->verdict == WEIR_DENY) {
        answer->retry_after_ns = end_after;
    }
}

static uint64_t charge(const struct algo_params *p, uint64_t word, const uint64_t *record,
                       const struct algo_ask *ask, uint64_t *charged)
{
    bool pulled;
    struct window w = as_of(p, word, ask->now, &pulled);
    (void)record;
    *charged = min_u64(ask->cost, sub_floor0(p->max_count, w.count));
    w.count += *charged;
    return pack(p, w);
}

static uint64_t refund(const struct algo_params *p, uint64_t word, uint64_t *record,
                       const struct algo_ask *ask, const struct algo_charge *charge)
{
    bool pulled;
    struct window w = as_of(p, word, ask->now, &pulled);
    (void)record;
    if (window_index(p, charge->at) != w.index) {
        return word; /* into a window that is over */
    }
    w.count = sub_floor0(w.count, ask->cost);
    return pack(p, w);
}

static void owes(const struct algo_params *p, uint64_t word, const uint64_t *record, uint64_t now,
                 struct debt *debt)
{
    uint64_t late = algo_late(now);
    struct window w = at_least(p, word, late);
    (void)record;
    if (window_start(p, w.index) > now + ALGO_SLACK_NS) {
        w.index = window_index(p, now);
        word = pack(p, w);
    }
    /* An empty window ahead still keeps laggards out of the one before it. */
    uint64_t fresh_at = window_start(p, w.index + (w.count != 0));
    *debt = (struct debt){w.count, sub_floor0(fresh_at, late), word};
}

static uint64_t stamp(const struct algo_params *p, uint64_t word, const uint64_t *record,
                      uint64_t now)
{
    (void)record;
    return max_u64(now, window_start(p, unpack(p, word).index));
}

const struct algo_ops algo_fixed_window = {
    .id = WEIR_FIXED_WINDOW,
    .name = "fixed_window",
    .compile = compile,
    .decide = decide,
    .describe = describe,
    .charge = charge,
    .refund = refund,
    .owes = owes,
    .stamp = stamp,
};
