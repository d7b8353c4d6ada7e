/*
 * A plan is what weir_open() will make of its options: they are checked, defaults are filled in and
 * every number is computed, but nothing has been made yet.
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
 * Copies the options that the caller's version of the struct has into *o, and makes the plan.
 * Returns WEIR_EINVAL, WEIR_ENOTSUP, WEIR_ERATE, WEIR_EQUOTA or WEIR_EIO with a text.
 */
int plan_make(const struct weir_options *options, struct weir_options *o, struct plan *plan,
              struct weir_error *error);

#endif
