/*
 * What the two window algorithms share: a word made of a window's index and one
 * or two counters. The index takes as many bits as a hundred years of windows
 * need, whatever the quota, so that a changed quota never misreads a word and
 * no stale window is ever taken for the current one. Index 0 is "never": the
 * first window of the time line has index 1.
 */
#ifndef WEIR_ALGO_WINDOW_H
#define WEIR_ALGO_WINDOW_H

#include "algo/algo.h"
#include "base/maths.h"

/* Fills everything but spec, for words with `counters` counters. */
int window_compile(const struct limit_spec *spec, unsigned counters, struct algo_params *p,
                   struct weir_error *error);

static inline uint64_t window_index(const struct algo_params *p, uint64_t now)
{
    return now / p->spec.period_ns + 1;
}

static inline uint64_t window_start(const struct algo_params *p, uint64_t index)
{
    return (index - 1) * p->spec.period_ns;
}

#endif
