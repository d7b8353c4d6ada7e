/*
 * The rows of the algorithms: number, name and traits. Layers that read, check, show or share a
 * limit ask for its traits, so that they need no change for a new algorithm. They need not include
 * algo/, whose rows have the functions that decide.
 */
#ifndef WEIR_BASE_ALGORITHMS_H
#define WEIR_BASE_ALGORITHMS_H

#include <stdbool.h>

#include <weir.h>

enum algorithm_trait {
    HAS_BURST = 1 << 0, /* the option `burst` is its quota; the default is the count */
    HAS_QUEUE = 1 << 1, /* the options `queue` and `undelayed`; the queue and one are its quota */
    /* Units return one after another, at the rate. A call can charge the future and wait. */
    IS_BUCKET = 1 << 2,
    /* Counts in windows: the option `offset_ns`; the epoch is aligned to the period. */
    IS_WINDOW = 1 << 3,
    /* All units return at the end of a window: the option `align`, and calendar months. */
    IS_FIXED_WINDOW = 1 << 4,
    HOLDS_DEBT = 1 << 5,    /* penalties may exceed the quota */
    CAN_BE_LEASED = 1 << 6, /* nodes of a fleet can take units in advance */
    CAN_BE_SYNCED = 1 << 7, /* nodes of a fleet can count apart and add up */
};

/* The functions of the algorithm NAME are algo_NAME (algo/algo.h). */
#define EACH_ALGORITHM(X)                                                                          \
    X(WEIR_TOKEN_BUCKET, token_bucket,                                                             \
      HAS_BURST | IS_BUCKET | HOLDS_DEBT | CAN_BE_LEASED | CAN_BE_SYNCED)                          \
    X(WEIR_LEAKY_BUCKET, leaky_bucket, HAS_QUEUE | IS_BUCKET | HOLDS_DEBT)                         \
    X(WEIR_FIXED_WINDOW, fixed_window,                                                             \
      IS_WINDOW | IS_FIXED_WINDOW | HOLDS_DEBT | CAN_BE_LEASED | CAN_BE_SYNCED)                    \
    X(WEIR_SLIDING_WINDOW, sliding_window, IS_WINDOW | HOLDS_DEBT | CAN_BE_SYNCED)                 \
    X(WEIR_SLIDING_LOG, sliding_log, 0)

/* The same names, for help and messages. */
#define ALGORITHMS_EXPECTED                                                                        \
    "token_bucket (or gcra), leaky_bucket, fixed_window, sliding_window or sliding_log"

/* One more than the highest number. */
#define ALGORITHM_ONE(number, name, traits) +1
#define ALGORITHMS_END (1 EACH_ALGORITHM(ALGORITHM_ONE))

extern const unsigned algorithm_traits[ALGORITHMS_END]; /* by number */

/* Returns whether the algorithm has at least one of the traits; false if there is no such one. */
static inline bool algorithm_has(int algorithm, unsigned traits)
{
    return algorithm > 0 && algorithm < ALGORITHMS_END &&
           (algorithm_traits[algorithm] & traits) != 0;
}

/* Room for the names of all algorithms with words between them. */
#define ALGORITHM_ROOM(number, name, traits) +sizeof(" or " #name)
#define ALGORITHM_LIST_MAX (1 EACH_ALGORITHM(ALGORITHM_ROOM))

/* Writes "a", "a or b" or "a, b or c": the algorithms that have at least one of the traits. */
const char *algorithm_list(unsigned traits, char text[ALGORITHM_LIST_MAX]);

#endif
