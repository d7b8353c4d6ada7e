/*
 * From what the caller wrote to what will be made: the options checked, defaults filled in, every
 * number computed, and nothing touched yet.
 */
#ifndef WEIR_LIMIT_PLAN_H
#define WEIR_LIMIT_PLAN_H

#include "limit/limiter.h"

struct plan {
    const struct algo_ops *ops;
    struct algo_params params;
    struct region_fixed fixed;
};

/*
 * Copies the options that the caller's version of the struct has into *o and makes the plan.
 * WEIR_EINVAL, WEIR_ERATE, WEIR_EQUOTA, WEIR_EIO, with a text.
 */
int plan_make(const struct weir_options *options, struct weir_options *o, struct plan *plan,
              struct weir_error *error);

#endif
