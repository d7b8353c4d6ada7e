/* One key's state without a table around it, for tests of the algorithms themselves. */
#ifndef WEIR_TESTS_SUPPORT_UNIT_CELL_H
#define WEIR_TESTS_SUPPORT_UNIT_CELL_H

#include "algo/algo.h"
#include "support/engine/unit_limiter.h"

#define CELL_RECORD 64

struct unit_cell {
    const struct algo_ops *ops;
    struct algo_params params;
    uint64_t word;
    uint64_t record[CELL_RECORD];
};

struct limit_spec unit_spec(int algorithm, uint64_t quota, uint64_t period_ns, uint64_t max_debt);

/* Returns a fresh cell, which admits `quota` at once and is full again after `period_ns`. compile()
 * must succeed. */
struct unit_cell unit_cell(int algorithm, uint64_t quota, uint64_t period_ns, uint64_t max_debt);

/* Decides, notes and stores as a limiter does. Returns the verdict. */
int unit_cell_take(struct unit_cell *c, uint64_t cost, uint64_t now);

/* Decides without changing anything. */
struct algo_step unit_cell_decide(struct unit_cell *c, uint64_t cost, uint64_t now);

/* Returns the answer to a peek for `cost`. */
struct weir_answer unit_cell_peek(struct unit_cell *c, uint64_t cost, uint64_t now);

/* Charges up to `units`. Returns how many were charged. */
uint64_t unit_cell_charge(struct unit_cell *c, uint64_t units, uint64_t now);

void unit_cell_refund(struct unit_cell *c, uint64_t units, uint64_t charged_at, uint64_t now);
uint64_t unit_cell_fresh_in(struct unit_cell *c, uint64_t now);
uint64_t unit_cell_stamp(struct unit_cell *c, uint64_t now);

#endif
