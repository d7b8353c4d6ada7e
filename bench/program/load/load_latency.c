#include "load/load.h"

static unsigned bucket_of(uint64_t ns)
{
    if (ns < LOAD_SUB) {
        return (unsigned)ns;
    }
    unsigned shift = 63 - LOAD_SUB_BITS - (unsigned)__builtin_clzll(ns);
    /* ns >> shift is in [LOAD_SUB, 2 * LOAD_SUB), so the buckets continue without a gap. */
    unsigned i = shift * LOAD_SUB + (unsigned)(ns >> shift);
    return i < LOAD_BUCKETS ? i : LOAD_BUCKETS - 1;
}

/* Returns the largest time that the bucket counts. */
static uint64_t top_of(unsigned bucket)
{
    if (bucket < LOAD_SUB) {
        return bucket;
    }
    unsigned shift = bucket / LOAD_SUB - 1;
    uint64_t first = bucket % LOAD_SUB + LOAD_SUB;
    return ((first + 1) << shift) - 1;
}

void load_latency_add(struct load_latency *l, uint64_t ns)
{
    l->counts[bucket_of(ns)]++;
    l->count++;
    l->sum_ns += ns;
    l->max_ns = ns > l->max_ns ? ns : l->max_ns;
}

void load_latency_merge(struct load_latency *into, const struct load_latency *from)
{
    for (unsigned i = 0; i < LOAD_BUCKETS; i++) {
        into->counts[i] += from->counts[i];
    }
    into->count += from->count;
    into->sum_ns += from->sum_ns;
    into->max_ns = from->max_ns > into->max_ns ? from->max_ns : into->max_ns;
}

uint64_t load_latency_at(const struct load_latency *l, double share)
{
    double exact = share * (double)l->count;
    uint64_t wanted = (uint64_t)exact;
    uint64_t below = 0;
    wanted += (double)wanted < exact ? 1 : 0;
    for (unsigned i = 0; i < LOAD_BUCKETS && l->count > 0; i++) {
        below += l->counts[i];
        if (below >= wanted && below > 0) {
            return top_of(i) < l->max_ns ? top_of(i) : l->max_ns;
        }
    }
    return l->max_ns;
}
