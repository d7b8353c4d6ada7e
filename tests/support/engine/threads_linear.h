/*
 * Decides whether there is an order of these calls, one after the other, that explains the answer
 * of each. A call takes effect at one moment between its invocation and its return; so calls that
 * overlap may be put in either order, others may not.
 *
 * The search is depth first over "which call is next", and remembers the states from which it has
 * failed (Wing and Gong 1993, with the memory of Lowe 2017).
 */
#ifndef WEIR_TESTS_THREADS_LINEAR_H
#define WEIR_TESTS_THREADS_LINEAR_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "algo/algo.h"

#define LINEAR_THREADS 3
#define LINEAR_OPS 16

enum linear_kind {
    LINEAR_CHECK,
    LINEAR_PEEK,
    LINEAR_UP_TO,
    LINEAR_REFUND,
    LINEAR_PENALIZE,
    LINEAR_RESET,
    LINEAR_KINDS
};

struct linear_op {
    enum linear_kind kind;
    uint64_t cost;
    uint64_t now;
    uint64_t invoked; /* tickets of one common counter */
    uint64_t returned;
    struct weir_answer told; /* PENALIZE: only granted. RESET: granted is 1 if there was a state */
};

/* The calls of each thread, in its order. */
struct linear_history {
    unsigned count[LINEAR_THREADS];
    struct linear_op op[LINEAR_THREADS][LINEAR_OPS];
};

/* Everything that a model remembers of its one key. All zero at first. */
struct linear_state {
    uint64_t present;
    uint64_t word;
    uint64_t record[8];
};

struct linear_model {
    /* Applies the operation and fills in the answer that it would have got. */
    void (*apply)(const struct linear_model *m, struct linear_state *s, const struct linear_op *op,
                  struct weir_answer *told);
    uint64_t quota;
    uint64_t max_debt;
    const struct algo_ops *ops; /* for linear_by_algorithm */
    const struct algo_params *params;
    bool times; /* retry_after_ns, reset_after_ns and delay_ns must agree too */
};

/* At a frozen time every algorithm is a counter. This model shares no line of code with them. */
void linear_by_counter(const struct linear_model *m, struct linear_state *s,
                       const struct linear_op *op, struct weir_answer *told);

/* For any times: calls the algorithm's own functions, one call after the other. */
void linear_by_algorithm(const struct linear_model *m, struct linear_state *s,
                         const struct linear_op *op, struct weir_answer *told);

/* Returns true if there is such an order. Only one thread may call it at a time. */
bool linear_explains(const struct linear_model *m, const struct linear_history *h);

void linear_print(const struct linear_history *h);

#endif
