#include "algo/sliding_window.h"

static int compile(const struct limit_spec *spec, const struct algo_layout *layout,
                   struct algo_params *p, struct weir_error *error)
{
    (void)layout;
    return window_compile(spec, 2, p, error);
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

static struct algo_step decide(const struct algo_params *p, uint64_t word, const uint64_t *record,
                               const struct algo_ask *ask)
{
    (void)record;
    return sliding_window_decide(p, word, ask);
}

static void describe(const struct algo_params *p, uint64_t word, const uint64_t *record,
                     const struct algo_ask *ask, struct weir_answer *answer)
{
    bool pulled;
    (void)record;
    word = sliding_window_as_of(p, word, ask->now, &pulled);
    sliding_window_describe_decided(p, word, ask, answer);
}

static uint64_t charge(const struct algo_params *p, uint64_t word, const uint64_t *record,
                       const struct algo_ask *ask, uint64_t *charged)
{
    bool pulled;
    struct sliding_window w =
        sliding_window_unpack(p, sliding_window_as_of(p, word, ask->now, &pulled));
    (void)record;
    *charged = min_u64(ask->cost, sub_floor0(p->max_count, w.current));
    w.current += *charged;
    return sliding_window_pack(p, w);
}

static uint64_t refund(const struct algo_params *p, uint64_t word, uint64_t *record,
                       const struct algo_ask *ask, const struct algo_charge *charge)
{
    bool pulled;
    struct sliding_window w =
        sliding_window_unpack(p, sliding_window_as_of(p, word, ask->now, &pulled));
    uint64_t index = window_index(p, charge->at);
    (void)record;
    if (index == w.index) {
        w.current = sub_floor0(w.current, ask->cost);
    } else if (index + 1 == w.index) {
        w.previous = sub_floor0(w.previous, ask->cost);
    } else {
        return word;
    }
    return sliding_window_pack(p, w);
}

static void owes(const struct algo_params *p, uint64_t word, const uint64_t *record, uint64_t now,
                 struct debt *debt)
{
    uint64_t late = algo_late(now);
    struct sliding_window w = sliding_window_at_least(p, word, window_index(p, late));
    (void)record;
    if (window_is_far(p, w.index, now)) {
        w.index = window_index(p, now);
        word = sliding_window_pack(p, w);
    }
    u128 estimate = mul_wide(w.current, p->spec.period_ns) + sliding_window_fading(p, w, late);
    /* Empty windows ahead still keep laggards out of the one before them. */
    uint64_t ahead = sub_floor0(window_start(p, w.index), late);
    *debt = (struct debt){estimate, max_u64(ahead, sliding_window_empty_after(p, w, late)), word};
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
    .decide = decide,
    .describe = describe,
    .charge = charge,
    .refund = refund,
    .owes = owes,
    .stamp = stamp,
};
