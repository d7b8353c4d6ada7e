#include "algo/window.h"
#include "base/error.h"

static int compile(const struct limit_spec *spec, const struct algo_layout *layout,
                   struct algo_params *p, struct weir_error *error)
{
    /* One window more for a key's own offset (WEIR_ALIGN_KEY), one because indexes begin at 1. */
    unsigned index_bits = bits_for(ALGO_LIFE_NS / spec->period_ns + 2);
    unsigned counters = spec->algorithm == WEIR_SLIDING_WINDOW ? 2 : 1;
    (void)layout;
    unsigned count_bits = (64 - index_bits) / counters;
    uint64_t most = UINT64_MAX >> (64 - count_bits);
    if (spec->count > most || spec->max_debt > most - spec->count) {
        return fail(error, WEIR_EQUOTA,
                    "count %" PRIu64 " plus debt %" PRIu64 " is too large for windows of %" PRIu64
                    " ns, expected at most %" PRIu64 " together",
                    spec->count, spec->max_debt, spec->period_ns, most);
    }
    p->quota = spec->count;
    p->previous_bits = count_bits * (counters - 1);
    p->index_shift = count_bits * counters;
    p->step = UINT64_C(1) << p->previous_bits;
    p->count_mask = most;
    p->max_count = spec->count + spec->max_debt;
    p->period_shift = bits_for(spec->period_ns) - 2;
    p->inverse = (uint64_t)((((u128)1 << (64 + p->period_shift)) - 1) / spec->period_ns);
    /* The life ends with a whole window, because a window may have begun before the limiter did. */
    p->max_time = (ALGO_LIFE_NS / spec->period_ns + 1) * spec->period_ns - 1;
    return 0;
}

/*
 * Returns the first moment of a window at which `counted`, the units of the window before it,
 * leaves room for `spare` units: the smallest e with counted * (W - e) <= spare * W. If spare is 0,
 * that is W itself.
 */
static uint64_t room_at(const struct algo_params *p, uint64_t counted, uint64_t spare)
{
    uint64_t period = p->spec.period_ns;
    return counted <= spare ? 0 : period - mul_div(spare, period, counted);
}

uint64_t sliding_window_fits_at(const struct algo_params *p, struct windows w, uint64_t cost)
{
    if (w.current + cost <= p->quota) {
        uint64_t e = room_at(p, w.previous, p->quota - w.current - cost);
        if (e < p->spec.period_ns) {
            return window_start(p, w.index) + e;
        }
    }
    /* In the next window it is the current count that fades. */
    return window_start(p, w.index + 1) + room_at(p, w.current, p->quota - cost);
}

static uint64_t room(const struct algo_params *p, struct algo_state s, uint64_t now)
{
    (void)now;
    return sub_floor0(p->max_count, window_unpack(p, s.word).current);
}

static uint64_t refund(const struct algo_params *p, struct algo_state s, const struct algo_ask *ask,
                       const struct algo_charge *charge)
{
    bool pulled;
    uint64_t base = window_as_of(p, s, ask->now, &pulled);
    struct windows w = window_unpack(p, base);
    uint64_t index = window_index(p, charge->at);
    if (index == w.index) {
        return base - min_u64(w.current, ask->cost) * p->step;
    }
    bool previous = index + 1 == w.index && p->previous_bits != 0;
    return previous ? base - min_u64(w.previous, ask->cost) : s.word;
}

static void owes(const struct algo_params *p, struct algo_state s, uint64_t late, struct debt *debt)
{
    struct windows w = window_at_least(p, s.word, window_index(p, late));
    debt->owed = mul_wide(w.current, p->spec.period_ns) + window_fading(p, w, late);
    /* Empty windows that are ahead still keep slower clocks out of the window before them. */
    uint64_t ahead = sub_floor0(window_start(p, w.index), late);
    debt->fresh_in = max_u64(ahead, window_empty_after(p, w, late));
}

static uint64_t stamp(const struct algo_params *p, struct algo_state s, uint64_t now)
{
    return max_u64(now, window_start(p, window_unpack(p, s.word).index));
}

const struct algo_ops algo_fixed_window = {
    .id = WEIR_FIXED_WINDOW,
    .name = "fixed_window",
    .compile = compile,
    .as_of = window_as_of,
    .fits = fixed_window_fits,
    .describe = fixed_window_describe,
    .room = room,
    .refund = refund,
    .owes = owes,
    .stamp = stamp,
};

const struct algo_ops algo_sliding_window = {
    .id = WEIR_SLIDING_WINDOW,
    .name = "sliding_window",
    .compile = compile,
    .as_of = window_as_of,
    .fits = sliding_window_fits,
    .describe = sliding_window_describe,
    .room = room,
    .refund = refund,
    .owes = owes,
    .stamp = stamp,
};
