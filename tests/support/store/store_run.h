/*
 * Decides a limit with the scripts of a redis-server, at times that the test chooses, so that the
 * answers can be compared with those of a local limiter.
 */
#ifndef WEIR_TESTS_SUPPORT_STORE_RUN_H
#define WEIR_TESTS_SUPPORT_STORE_RUN_H

#include "shared/core/script.h"
#include "support/oracle/oracle_vector.h"
#include "support/store/script_put.h"
#include "support/store/store_redis.h"

/* The scripts with a clock that the test sets: SET now <us>. */
extern const struct scripts clocked_scripts;
void store_run_load(struct store_redis *r, const struct scripts *s);
void store_run_clock(struct store_redis *r, uint64_t now_ns);

/* The call for an operation of the oracle; `name` is the key. */
struct store_call {
    unsigned verb;
    struct store_part part;
    struct store_key key;
};
void store_run_call(const struct store_params *params, const char *name, const struct oracle_op *op,
                    struct store_call *call);

/* Queues the time and the call. Two replies will come. */
void store_run_put(struct store_redis *r, const struct script *script,
                   const struct store_call *call, uint64_t now_ns);

/* Reads both replies. The test fails if the second is not an answer. */
void store_run_answer(struct store_redis *r, const struct store_call *call, struct weir_answer *a);

/* Returns what differs, in microseconds rounded up, or NULL. */
const char *store_run_difference(const struct weir_answer *local, const struct weir_answer *store);

/* Prints each answer as a line to stderr. */
void store_run_print(const struct weir_answer *local, const struct weir_answer *store);

#endif
