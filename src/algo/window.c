#include "algo/window.h"
#include "base/calendar.h"
#include "base/error.h"

static int compile(const struct limit_spec *spec, const struct algo_layout *layout,
                   struct algo_params *p, struct weir_error *error)
{
    bool sliding = spec->algorithm == WEIR_SLIDING_WINDOW;
    bool months = algo_has_months(spec);                      /* only for fixed_window */
    uint64_t life = months ? 2 * ALGO_LIFE_NS : ALGO_LIFE_NS; /* months are counted from 1970 */
    p->unit = months ? WEIR_DAY : spec->period_ns;
    /* A month more for its end, or a window for a key's own offset (WEIR_ALIGN_KEY); and one
       because indexes begin at 1. */
    unsigned index_bits = bits_for(life / p->unit + (months ? 32 : 2));
    unsigned counters = sliding ? 2 : 1;
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
    p->period_shift = bits_for(p->unit) - 2;
    p->inverse = (uint64_t)((((u128)1 << (64 + p->period_shift)) - 1) / p->unit);
    /* The life ends with a whole window, because a window may have begun before the limiter did. */
    p->max_time = (life / p->unit + 1) * p->unit - 1;
    return 0;
}

/* Returns the index of any window, months included. */
static uint64_t index_at(const struct algo_params *p, uint64_t now)
{
    int64_t units = (int64_t)window_periods(p, now);
    return (uint64_t)(algo_has_months(&p->spec) ? calendar_begin(calendar_month(units) + 1)
                                                : units + 1);
}

/* Returns when any window begins. */
static uint64_t start_of(const struct algo_params *p, uint64_t index)
{
    int64_t last = (int64_t)index - 1;
    return p->unit *
           (uint64_t)(algo_has_months(&p->spec) ? calendar_begin(calendar_month(last)) : last);
}

/* As window_as_of(), for any window. */
static uint64_t as_of(const struct algo_params *p, struct algo_state s, uint64_t now, bool *pulled)
{
    if (!algo_has_months(&p->spec)) {
        return window_as_of(p, s, now, pulled);
    }
    *pulled = false;
    /* Most calls are in the last 28 days of the word's month. */
    if (window_end(p, window_unpack(p, s.word).index) - now - 1 < 28 * WEIR_DAY) {
        return s.word;
    }
    uint64_t index = index_at(p, now);
    struct windows w = window_at_least(p, s.word, index);
    *pulled = w.index > index && start_of(p, w.index) > now + ALGO_SLACK_NS;
    w.index = *pulled ? index : w.index;
    return window_pack(p, w);
}

/*
 * Returns the first moment of a window at which `counted`, the units of the window before it,
 * leaves room for `spare` units: the smallest e with counted * (W - e) <= spare * W. If spare is 0,
 * that is W itself.
 */
static uint64_t room_at(const struct algo_params *p, uint64_t counted, uint64_t spare)
{
    return counted <= spare ? 0 : p->unit - mul_div(spare, p->unit, counted);
}

uint64_t sliding_window_fits_at(const struct algo_params *p, struct windows w, uint64_t cost)
{
    if (w.current + cost <= p->quota) {
        uint64_t e = room_at(p, w.previous, p->quota - w.current - cost);
        if (e < p->unit) {
            return window_start(p, w.index) + e;
        }
    }
    /* In the next window it is the current count that fades. */
    return window_end(p, w.index) + room_at(p, w.current, p->quota - cost);
}

static uint64_t room(const struct algo_params *p, struct algo_state s, uint64_t now)
{
    (void)now;
    return sub_floor0(p->quota + p->spec.max_debt, window_unpack(p, s.word).current);
}

static uint64_t refund(const struct algo_params *p, struct algo_state s, const struct algo_ask *ask,
                       const struct algo_charge *charge)
{
    bool pulled;
    uint64_t base = as_of(p, s, ask->now, &pulled);
    struct windows w = window_unpack(p, base);
    uint64_t index = index_at(p, charge->at);
    if (index == w.index) {
        return base - min_u64(w.current, ask->cost) * p->step;
    }
    bool previous = index + 1 == w.index && p->previous_bits != 0;
    return previous ? base - min_u64(w.previous, ask->cost) : s.word;
}

static void owes(const struct algo_params *p, struct algo_state s, uint64_t late, struct debt *debt)
{
    uint64_t index = index_at(p, late);
    struct windows w = window_at_least(p, s.word, index);
    debt->owed = mul_wide(w.current, p->unit) + window_fading(p, w, late);
    /* Empty windows that are ahead still keep slower clocks out of the window before them. */
    uint64_t ahead = w.index > index ? start_of(p, w.index) - late : 0;
    debt->fresh_in = max_u64(ahead, window_empty_after(p, w, late));
}

static uint64_t stamp(const struct algo_params *p, struct algo_state s, uint64_t now)
{
    uint64_t index = window_unpack(p, s.word).index;
    return index > index_at(p, now) ? start_of(p, index) : now;
}

const struct algo_ops algo_fixed_window = {
    .id = WEIR_FIXED_WINDOW,
    .compile = compile,
    .as_of = as_of,
    .fits = fixed_window_fits,
    .describe = fixed_window_describe,
    .room = room,
    .refund = refund,
    .owes = owes,
    .stamp = stamp,
};

const struct algo_ops algo_sliding_window = {
    .id = WEIR_SLIDING_WINDOW,
    .compile = compile,
    .as_of = as_of,
    .fits = sliding_window_fits,
    .describe = sliding_window_describe,
    .room = room,
    .refund = refund,
    .owes = owes,
    .stamp = stamp,
};
