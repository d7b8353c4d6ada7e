/* A plan as `weir simulate` makes it without options, for tests to change. */
#ifndef WEIR_TESTS_UNIT_CLI_SIMULATE_PLAN_H
#define WEIR_TESTS_UNIT_CLI_SIMULATE_PLAN_H

#include <string.h>

#include "cli/simulate/simulate.h"

static inline struct sim_plan default_plan(void)
{
    return (struct sim_plan){
        .unit_ns = WEIR_SECOND,
        .rate = {100, WEIR_MINUTE},
        .algorithms = {WEIR_FIXED_WINDOW, WEIR_SLIDING_WINDOW, WEIR_SLIDING_LOG, WEIR_TOKEN_BUCKET,
                       WEIR_LEAKY_BUCKET},
        .algorithms_count = 5,
        .path = "/",
        .method = "GET",
        .clients = 1,
        .load = 150,
        .duration_ns = 4 * WEIR_MINUTE,
        .seed = 1,
    };
}

/* The row of a shape; one behind the last if there is none. */
static inline size_t shape_of(const char *name)
{
    size_t row = 0;
    while (sim_shape_name(row) != NULL && strcmp(sim_shape_name(row), name) != 0) {
        row++;
    }
    return row;
}

#endif
