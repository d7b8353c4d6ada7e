#include "algo/fixed_window.h"

static int compile(const struct limit_spec *spec, const struct algo_layout *layout,
                   struct algo_params *p, struct weir_error *error)
{
    (void)layout;
    return window_compile(spec, 1, p, error);
}

static struct algo_step decide(const struct algo_params *p, uint64_t word, const uint64_t *record,
                               const struct algo_ask *ask)
{
    (void)record;
    return fixed_window_decide(p, word, ask);
}

static void describe(const struct algo_params *p, uint64_t word, const uint64_t *record,
                     const struct algo_ask *ask, struct weir_answer *answer)
{
    bool pulled;
    (void)record;
    word = fixed_window_as_of(p, word, ask->now, &pulled);
    fixed_window_describe_decided(p, word, ask, answer);
}

static uint64_t charge(const struct algo_params *p, uint64_t word, const uint64_t *record,
                       const struct algo_ask *ask, uint64_t *charged)
{
    bool pulled;
    struct fixed_window w = fixed_window_unpack(p, fixed_window_as_of(p, word, ask->now, &pulled));
    (void)record;
    *charged = min_u64(ask->cost, sub_floor0(p->max_count, w.count));
    w.count += *charged;
    return fixed_window_pack(p, w);
}

static uint64_t refund(const struct algo_params *p, uint64_t word, uint64_t *record,
                       const struct algo_ask *ask, const struct algo_charge *charge)
{
    bool pulled;
    struct fixed_window w = fixed_window_unpack(p, fixed_window_as_of(p, word, ask->now, &pulled));
    (void)record;
    if (window_index(p, charge->at) != w.index) {
        return word; /* into a window that is over */
    }
    w.count = sub_floor0(w.count, ask->cost);
    return fixed_window_pack(p, w);
}

static void owes(const struct algo_params *p, uint64_t word, const uint64_t *record, uint64_t now,
                 struct debt *debt)
{
    uint64_t late = algo_late(now);
    struct fixed_window w = fixed_window_at_least(p, word, window_index(p, late));
    (void)record;
    if (window_is_far(p, w.index, now)) {
        w.index = window_index(p, now);
        word = fixed_window_pack(p, w);
    }
    /* An empty window ahead still keeps laggards out of the one before it. */
    uint64_t fresh_at = window_start(p, w.index + (w.count != 0));
    *debt = (struct debt){w.count, sub_floor0(fresh_at, late), word};
}

static uint64_t stamp(const struct algo_params *p, uint64_t word, const uint64_t *record,
                      uint64_t now)
{
    (void)record;
    return max_u64(now, window_start(p, fixed_window_unpack(p, word).index));
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
