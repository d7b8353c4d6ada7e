#include "algo/sliding_window.h"

static int compile(const struct limit_spec *spec, const struct algo_layout *layout,
                   struct algo_params *p, struct weir_error *error)
{
    (void)layout;
    return window_compile(spec, 2, p, error);
}

/*
 * The first moment of a window at which `counted`, what the window before it held, leaves room for
 * `spare` units: the smallest e with counted * (W - e) <= spare * W. It is W itself if spare is 0.
 */
static uint64_t room_at(const struct algo_params *p, uint64_t counted, uint64_t spare)
{
    uint64_t period = p->spec.period_ns;
    return counted <= spare ? 0 : period - mul_div(spare, period, counted);
}

uint64_t sliding_window_fits_at(const struct algo_params *p, struct sliding_window w, uint64_t cost)
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

static uint64_t room(const struct algo_params *p, uint64_t word, const uint64_t *record,
                     uint64_t now)
{
    (void)record, (void)now;
    return sub_floor0(p->max_count, sliding_window_unpack(p, word).current);
}

static uint64_t refund(const struct algo_params *p, uint64_t word, uint64_t *record,
                       const struct algo_ask *ask, const struct algo_charge *charge)
{
    bool pulled;
    uint64_t base = sliding_window_as_of(p, word, record, ask->now, &pulled);
    struct sliding_window w = sliding_window_unpack(p, base);
    uint64_t index = window_index(p, charge->at);
    if (index == w.index) {
        return base - min_u64(w.current, ask->cost) * p->step;
    }
    return index + 1 == w.index ? base - min_u64(w.previous, ask->cost) : word;
}

static void owes(const struct algo_params *p, uint64_t word, const uint64_t *record, uint64_t late,
                 struct debt *debt)
{
    struct sliding_window w = sliding_window_at_least(p, word, window_index(p, late));
    (void)record;
    debt->owed = mul_wide(w.current, p->spec.period_ns) + sliding_window_fading(p, w, late);
    /* Empty windows ahead still keep laggards out of the one before them. */
    uint64_t ahead = sub_floor0(window_start(p, w.index), late);
    debt->fresh_in = max_u64(ahead, sliding_window_empty_after(p, w, late));
}

static uint64_t stamp(const struct algo_params *p, uint64_t word, const uint64_t *record,
                      uint64_t now)
{
    (void)record;
    return max_u64(now, window_start(p, sliding_window_unpack(p, word).index));
}

const struct algo_ops algo_sliding_window = {
    .id = WEIR_SLIDING_WINDOW,
    .name = "sliding_window",
    .compile = compile,
    .as_of = sliding_window_as_of,
    .fits = sliding_window_fits,
    .describe = sliding_window_describe,
    .room = room,
    .refund = refund,
    .owes = owes,
    .stamp = stamp,
};
