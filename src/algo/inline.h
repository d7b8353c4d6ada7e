/*
 * Decisions on words without a record, inlined: where `algorithm` is a constant,
 * nothing is called. The table of operations (algo.h) has the same functions.
 */
#ifndef WEIR_ALGO_INLINE_H
#define WEIR_ALGO_INLINE_H

#include "algo/fixed_window.h"
#include "algo/leaky_bucket.h"
#include "algo/sliding_window.h"
#include "algo/token_bucket.h"

/* Decides as the algorithm's decide() does. */
static inline __attribute__((always_inline)) struct algo_step narrow_decide(
    int algorithm, const struct algo_params *p, uint64_t word, const struct algo_ask *ask)
{
    switch (algorithm) {
    case WEIR_LEAKY_BUCKET:
        return leaky_bucket_decide(p, word, ask);
    case WEIR_FIXED_WINDOW:
        return fixed_window_decide(p, word, ask);
    case WEIR_SLIDING_WINDOW:
        return sliding_window_decide(p, word, ask);
    default:
        return token_bucket_decide(p, word, ask);
    }
}

/*
 * Describes the word of a decision, ALLOW or DENY, that was made at ask->now. Such
 * a word is neither over nor from a far future, which describe() has to look for.
 */
static inline __attribute__((always_inline)) void narrow_describe_decided(
    int algorithm, const struct algo_params *p, uint64_t word, const struct algo_ask *ask,
    struct weir_answer *answer)
{
    switch (algorithm) {
    case WEIR_LEAKY_BUCKET:
        leaky_bucket_describe_decided(p, word, ask, answer);
        break;
    case WEIR_FIXED_WINDOW:
        fixed_window_describe_decided(p, word, ask, answer);
        break;
    case WEIR_SLIDING_WINDOW:
        sliding_window_describe_decided(p, word, ask, answer);
        break;
    default:
        token_bucket_describe_decided(p, word, ask, answer);
        break;
    }
}

#endif
