/*
 * A trace: a rule and the calls made under it. Traces are generated at random, run through the
 * library and the oracle side by side, and made smaller while they still fail.
 */
#ifndef WEIR_TESTS_ORACLE_TRACE_H
#define WEIR_TESTS_ORACLE_TRACE_H

#include <stdio.h>

#include "support/oracle/oracle_model.h"

#define ORACLE_KEYS 5
extern const char *const oracle_key_names[ORACLE_KEYS];

enum oracle_verb { ORACLE_CHECK, ORACLE_PEEK, ORACLE_UP_TO, ORACLE_REFUND, ORACLE_PENALIZE };

struct oracle_op {
    enum oracle_verb verb;
    unsigned key; /* below ORACLE_KEYS */
    uint64_t time_ns;
    uint64_t cost;
    uint64_t wait_ns;    /* check and peek */
    uint64_t charged_ns; /* refund */
};

struct oracle_trace {
    struct oracle_rule rule;
    struct oracle_op *ops;
    size_t n;
};

/* The first call for which the library and the oracle differ; `at` is trace.n if there is none. */
struct oracle_difference {
    size_t at;
    const char *what;
    struct weir_answer library;
    struct weir_answer oracle;
};

/* Make one call: of the library (returns 0 or a WEIR_E...), and of the oracle. */
int oracle_call(struct weir *w, const char *key, const struct oracle_op *op, struct weir_answer *a);
void oracle_apply(const struct oracle_rule *r, struct oracle_key *k, const struct oracle_op *op,
                  struct weir_answer *a);

/*
 * Runs the trace with a new limiter. Besides comparing each answer, checks some answers with
 * further calls of the library: P3, P4 and `remaining`. Returns false if the rule cannot be opened.
 */
bool oracle_run(const struct oracle_trace *t, struct oracle_difference *d);

/* The same, but consecutive questions with one time go through weir_ask_batch_at(). */
bool oracle_run_batched(const struct oracle_trace *t, struct oracle_difference *d);

/* ---- oracle_random.c ---- */

struct oracle_random {
    uint64_t state;
};

uint64_t oracle_next(struct oracle_random *g);

/* Return a number in [low, high]: uniform, or with every magnitude equally likely. */
uint64_t oracle_between(struct oracle_random *g, uint64_t low, uint64_t high);
uint64_t oracle_magnitude(struct oracle_random *g, uint64_t low, uint64_t high);

/* Returns true once in n calls. */
bool oracle_once_in(struct oracle_random *g, uint64_t n);

/* Returns a rule that can be opened. */
struct oracle_rule oracle_random_rule(struct oracle_random *g, int algorithm);

/*
 * Fills t->ops[0 .. n) with calls that make sense for t->rule. Clocks differ by up to the slack;
 * with set_back they are also set back by more than that.
 */
void oracle_random_ops(struct oracle_random *g, struct oracle_trace *t, size_t n, bool set_back);

/* Returns the last time that a limiter with this rule accepts; 0 if it cannot be opened. */
uint64_t oracle_last_time(const struct oracle_rule *r);

/* ---- oracle_shrink.c ---- */

typedef bool (*oracle_run_fn)(const struct oracle_trace *t, struct oracle_difference *d);

/* Makes a trace that fails when run by `run` smaller, in place, so that it still fails. */
void oracle_shrink(struct oracle_trace *t, oracle_run_fn run);

/* Prints the trace as a vector with the oracle's answers, and where the library differs. */
void oracle_report(FILE *out, const struct oracle_trace *t, oracle_run_fn run);

#endif
