#include "algo/window.h"

#include <inttypes.h>

#include "base/error.h"

int window_compile(const struct limit_spec *spec, unsigned counters, struct algo_params *p,
                   struct weir_error *error)
{
    /* One window more for a key's own offset (WEIR_ALIGN_KEY), one because indexes begin at 1. */
    unsigned index_bits = bits_for(ALGO_LIFE_NS / spec->period_ns + 2);
    p->count_bits = (64 - index_bits) / counters;
    uint64_t most = (UINT64_C(1) << p->count_bits) - 1;
    if (spec->count > most || spec->max_debt > most - spec->count) {
        return fail(error, WEIR_EQUOTA,
                    "count %" PRIu64 " plus debt %" PRIu64 " is too large for windows of %" PRIu64
                    " ns, expected at most %" PRIu64 " together",
                    spec->count, spec->max_debt, spec->period_ns, most);
    }
    p->quota = spec->count;
    p->step =
        UINT64_C(1) << p->count_bits * (counters - 1); /* the first counter is the current one */
    p->count_mask = most;
    p->max_count = spec->count + spec->max_debt;
    p->period_shift = bits_for(spec->period_ns) - 2;
    p->inverse = (uint64_t)((((u128)1 << (64 + p->period_shift)) - 1) / spec->period_ns);
    /* To the end of the window in which the life ends: a window may have begun long before the limiter. */
    p->max_time = (ALGO_LIFE_NS / spec->period_ns + 1) * spec->period_ns - 1;
    return 0;
}
