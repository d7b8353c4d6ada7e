/*
 * A histogram of durations, in buckets that double: written by one thread without a locked
 * instruction, read by any.
 */
#ifndef WEIR_COMMON_HISTOGRAM_H
#define WEIR_COMMON_HISTOGRAM_H

#include <stdint.h>

#include "base/atomic.h"

/*
 * Bucket i counts durations up to 2^(HISTOGRAM_FIRST + i) ns: 256 ns, 512 ns, ... 2.1 s. The last
 * one counts everything above.
 */
#define HISTOGRAM_FIRST 8
#define HISTOGRAM_BUCKETS 25

struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t sum_ns;
};

static inline unsigned histogram_bucket(uint64_t ns)
{
    unsigned bits = ns <= 1 ? 0 : 64 - (unsigned)__builtin_clzll(ns - 1); /* 2^bits >= ns */
    unsigned i = bits <= HISTOGRAM_FIRST ? 0 : bits - HISTOGRAM_FIRST;
    return i < HISTOGRAM_BUCKETS ? i : HISTOGRAM_BUCKETS - 1;
}

/* Adds n events that took ns each. */
static inline void histogram_add(struct histogram *h, uint64_t ns, uint64_t n)
{
    count_own(&h->counts[histogram_bucket(ns)], n);
    count_own(&h->sum_ns, ns * n);
}

#endif
