/*
 * Decisions on words without a record, inlined: where `algorithm` is a constant, nothing is called.
 * The table of operations (algo.h) has the same functions.
 */
#ifndef WEIR_ALGO_INLINE_H
#define WEIR_ALGO_INLINE_H

#include "algo/fixed_window.h"
#include "algo/leaky_bucket.h"
#include "algo/sliding_window.h"
#include "algo/token_bucket.h"

/* Decides as algo_decide() does. */
static inline __attribute__((always_inline)) struct algo_step narrow_decide(
    int algorithm, const struct algo_params *p, uint64_t word, const struct algo_ask *ask)
{
    uint64_t base;
    bool pulled;
    bool fits;
    if (ask->cost > p->quota) {
        return (struct algo_step){word, word, WEIR_NEVER, false};
    }
    switch (algorithm) {
    case WEIR_FIXED_WINDOW:
        base = fixed_window_as_of(p, word, NULL, ask->now, &pulled);
        fits = fixed_window_fits(p, base, NULL, ask);
        break;
    case WEIR_SLIDING_WINDOW:
        base = sliding_window_as_of(p, word, NULL, ask->now, &pulled);
        fits = sliding_window_fits(p, base, NULL, ask);
        break;
    default:
        base = bucket_as_of(p, word, NULL, ask->now, &pulled);
        fits = algorithm == WEIR_LEAKY_BUCKET ? leaky_bucket_fits(p, base, NULL, ask)
                                              : token_bucket_fits(p, base, NULL, ask);
        break;
    }
    return algo_step(p, base, pulled, fits, ask->cost);
}

/* Describes the word of a decision that was made at ask->now. */
static inline __attribute__((always_inline)) void narrow_describe(int algorithm,
                                                                  const struct algo_params *p,
                                                                  uint64_t word,
                                                                  const struct algo_ask *ask,
                                                                  struct weir_answer *answer)
{
    switch (algorithm) {
    case WEIR_LEAKY_BUCKET:
        leaky_bucket_describe(p, word, NULL, ask, answer);
        break;
    case WEIR_FIXED_WINDOW:
        fixed_window_describe(p, word, NULL, ask, answer);
        break;
    case WEIR_SLIDING_WINDOW:
        sliding_window_describe(p, word, NULL, ask, answer);
        break;
    default:
        token_bucket_describe(p, word, NULL, ask, answer);
        break;
    }
}

#endif
