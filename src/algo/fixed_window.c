#include "algo/fixed_window.h"

static int compile(const struct limit_spec *spec, const struct algo_layout *layout,
                   struct algo_params *p, struct weir_error *error)
{
    (void)layout;
    return window_compile(spec, 1, p, error);
}

static uint64_t room(const struct algo_params *p, uint64_t word, const uint64_t *record,
                     uint64_t now)
{
    (void)record, (void)now;
    return sub_floor0(p->max_count, fixed_window_unpack(p, word).count);
}

static uint64_t refund(const struct algo_params *p, uint64_t word, uint64_t *record,
                       const struct algo_ask *ask, const struct algo_charge *charge)
{
    bool pulled;
    uint64_t base = fixed_window_as_of(p, word, record, ask->now, &pulled);
    struct fixed_window w = fixed_window_unpack(p, base);
    bool over = window_index(p, charge->at) != w.index;
    return over ? word : base - min_u64(w.count, ask->cost);
}

static void owes(const struct algo_params *p, uint64_t word, const uint64_t *record, uint64_t late,
                 struct debt *debt)
{
    struct fixed_window w = fixed_window_at_least(p, word, window_index(p, late));
    (void)record;
    debt->owed = w.count;
    /* An empty window ahead still keeps laggards out of the one before it. */
    debt->fresh_in = sub_floor0(window_start(p, w.index + (w.count != 0)), late);
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
    .as_of = fixed_window_as_of,
    .fits = fixed_window_fits,
    .describe = fixed_window_describe,
    .room = room,
    .refund = refund,
    .owes = owes,
    .stamp = stamp,
};
