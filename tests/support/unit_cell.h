/* One key's state without a table around it, for tests of the algorithms themselves. */
#ifndef WEIR_TESTS_SUPPORT_UNIT_CELL_H
#define WEIR_TESTS_SUPPORT_UNIT_CELL_H

#include "algo/algo.h"
#include "support/unit_limiter.h"

#define CELL_RECORD 64

struct unit_cell {
    const struct algo_ops *ops;
    struct algo_params params;
    uint64_t word;
    uint64_t record[CELL_RECORD];
};

struct limit_spec unit_spec(int algorithm, uint64_t quota, uint64_t period_ns, uint64_t max_debt);

/* A fresh cell; compile must succeed. `quota` at once, full again after `period_ns`. */
struct unit_cell unit_cell(int algorithm, uint64_t quota, uint64_t period_ns, uint64_t max_debt);

/* Decides, notes and stores as a limiter does. */
int unit_cell_take(struct unit_cell *c, uint64_t cost, uint64_t now);

/* Decides and changes nothing. */
struct algo_step unit_cell_decide(const struct unit_cell *c, uint64_t cost, uint64_t now);

/* What a peek for `cost` would be told. */
struct weir_answer unit_cell_peek(const struct unit_cell *c, uint64_t cost, uint64_t now);

/* Charges unit by unit; returns what was charged. */
uint64_t unit_cell_charge(struct unit_cell *c, uint64_t units, uint64_t now);

void unit_cell_refund(struct unit_cell *c, uint64_t units, uint64_t charged_at, uint64_t now);
uint64_t unit_cell_fresh_in(const struct unit_cell *c, uint64_t now);
uint64_t unit_cell_stamp(const struct unit_cell *c, uint64_t now);

#endif
