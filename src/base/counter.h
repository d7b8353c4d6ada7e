/*
 * Time by the processor's counter, between readings of the kernel's clock.
 *
 * A sync is a reading of the kernel's clock together with the counter. The rate of the counter is
 * measured between two syncs of one thread. While the last two rates agree, the time after a sync
 * is its time plus the ticks since then, for COUNTER_SPAN_NS worth of ticks, which are called the
 * window. Then the next reading is a sync again. Threads share no state.
 *
 *   C1  A thread's time never goes back, unless the kernel's clock itself goes back by more than
 *       COUNTER_SPAN_NS (a process enters another time namespace). Then the time follows.
 *   C2  If the counter runs evenly, the time is within COUNTER_ERROR_NS of the kernel's.
 *   C3  If the counter jumps ahead, the time is early by at most COUNTER_SPAN_NS. A counter beyond
 *       the window, or before its sync, leads to a new sync.
 *   C4  If the counter loses time and is still inside the window (it stood still during a suspend,
 *       or went back by little), the time is late by the loss until the window ends.
 */
#ifndef WEIR_BASE_COUNTER_H
#define WEIR_BASE_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

#define COUNTER_SPAN_NS UINT64_C(1000000)
#define COUNTER_ERROR_NS UINT64_C(25000) /* for counters of 1 GHz and faster; see counter.c */

/* One thread's time. All zero is a thread that has read no time yet. */
struct counter_clock {
    uint64_t span_ticks; /* the length of the window; 0 if there is none */
    uint64_t sync_ticks; /* the counter at the last sync */
    uint64_t sync_ns;    /* the kernel's clock at the last sync */
    uint64_t scale;      /* ns per tick, times 2^32; 0 if not measured yet */
    uint64_t last_ns;    /* the time that was returned last */
};

/* Reads the counter. Without counter_usable(), that may end the process. */
static inline uint64_t counter_ticks(void)
{
#ifdef __x86_64__
    return __builtin_ia32_rdtsc();
#else
    return 0;
#endif
}

/*
 * Returns whether the counter is invariant, this thread may read it, and the kernel uses it as its
 * clock source, which it stops when it finds the counter unstable. True only on x86-64.
 */
bool counter_usable(const char *clocksource);

/* Returns now_ns, or the time that was returned last if that is a little later (C1). */
uint64_t counter_forward(struct counter_clock *c, uint64_t now_ns);

/* Notes that the kernel's clock said now_ns between two readings. Returns the time. */
uint64_t counter_sync(struct counter_clock *c, uint64_t before, uint64_t now_ns, uint64_t after);

/* Sets *now_ns if the counter is inside the window. Returns false if a sync is due. */
static inline bool counter_read(struct counter_clock *c, uint64_t ticks, uint64_t *now_ns)
{
    uint64_t since = ticks - c->sync_ticks;
    if (__builtin_expect(since >= c->span_ticks, 0)) {
        return false;
    }
    uint64_t ns = c->sync_ns + (since * c->scale >> 32); /* less than COUNTER_SPAN_NS << 32 */
    c->last_ns = ns > c->last_ns ? ns : c->last_ns;
    *now_ns = c->last_ns;
    return true;
}

#endif
