/*
 * The functions with which a decision on a known key without a record is made. The rows of the
 * algorithms (algo.h) name the same functions; but these rows are constants in the file that uses
 * them, so that the compiler resolves narrow_ops[algorithm] and inlines the functions.
 */
#ifndef WEIR_ALGO_INLINE_H
#define WEIR_ALGO_INLINE_H

#include "algo/bucket.h"
#include "algo/window.h"

static const struct algo_ops narrow_ops[] = {
    [WEIR_TOKEN_BUCKET] = {.as_of = bucket_as_of,
                           .fits = token_bucket_fits,
                           .describe = token_bucket_describe},
    [WEIR_LEAKY_BUCKET] = {.as_of = bucket_as_of,
                           .fits = leaky_bucket_fits,
                           .describe = leaky_bucket_describe},
    [WEIR_FIXED_WINDOW] = {.as_of = window_as_of,
                           .fits = fixed_window_fits,
                           .describe = fixed_window_describe},
    [WEIR_SLIDING_WINDOW] = {.as_of = window_as_of,
                             .fits = sliding_window_fits,
                             .describe = sliding_window_describe},
};

#endif
