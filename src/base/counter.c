#include "base/counter.h"

#include <string.h>
#include <sys/prctl.h>

#include "base/maths.h"

#ifdef __x86_64__
#include <cpuid.h>
#define INVARIANT_TSC (1u << 8) /* EDX of leaf 0x80000007 */
#endif

/*
 * COUNTER_ERROR_NS. A sync takes the time for that of its second reading of the counter, so it is
 * late by at most READING_TICKS, 8 us at 1 GHz. Two syncs are at least BASELINE_NS apart, so the
 * rate between them is wrong by at most 8/500, which makes 16 us in a window. 30 and 60 ns are
 * usual.
 */
#define READING_TICKS 8192
#define BASELINE_NS (COUNTER_SPAN_NS / 2)

/* Rates agree if they differ by at most 1/128. NTP changes the kernel's by 1/2000 at most. */
#define AGREE_SHIFT 7

/* No counter is faster than 16 GHz, but a rate that is measured across a jump may be. */
#define SCALE_MIN (UINT64_C(1) << 28)

static bool agree(uint64_t scale, uint64_t other)
{
    uint64_t apart = scale > other ? scale - other : other - scale;
    return scale >= SCALE_MIN && apart <= other >> AGREE_SHIFT;
}

uint64_t counter_forward(struct counter_clock *c, uint64_t now_ns)
{
    if (c->last_ns < now_ns || c->last_ns - now_ns > COUNTER_SPAN_NS) {
        c->last_ns = now_ns;
    }
    return c->last_ns;
}

uint64_t counter_sync(struct counter_clock *c, uint64_t before, uint64_t now_ns, uint64_t after)
{
    uint64_t passed_ns = now_ns - c->sync_ns;
    c->span_ticks = 0;
    /* After an interruption between the readings, the time belongs to neither of them. */
    if (after - before < READING_TICKS && passed_ns >= BASELINE_NS) {
        uint64_t ticks = after - c->sync_ticks;
        uint64_t scale = ticks == 0 ? 0 : mul_div(passed_ns, UINT64_C(1) << 32, ticks);
        if (agree(scale, c->scale)) {
            c->span_ticks = (COUNTER_SPAN_NS << 32) / scale;
        }
        c->scale = scale;
        c->sync_ticks = after;
        c->sync_ns = now_ns;
    }
    return counter_forward(c, now_ns);
}

bool counter_usable(const char *clocksource)
{
#ifdef __x86_64__
    unsigned a;
    unsigned b;
    unsigned c;
    unsigned d = 0;
    int mode = 0;
    bool invariant = __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & INVARIANT_TSC) != 0;
    bool readable = prctl(PR_GET_TSC, &mode) == 0 && mode == PR_TSC_ENABLE;
    return invariant && readable && strcmp(clocksource, "tsc\n") == 0;
#else
    (void)clocksource;
    return false;
#endif
}
