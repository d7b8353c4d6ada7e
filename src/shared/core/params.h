/*
 * The numbers of a limit that a script needs, and whether scripts can express the limit at all:
 * their numbers are doubles, exact below 2^53, and their clock ticks in microseconds.
 *
 *   buckets   any rate that the local code takes. The time of a unit is the local one, rounded as
 *             there, in us and 1/128000 us (2^-7 ns). Where that has a remainder, quota plus debt
 *             times the remainder must stay below 2^52: 35 billion units for the worst rates.
 *   windows   period and offset must be whole microseconds. Quota and debt as in the local code.
 *   log       the period must be whole microseconds.
 */
#ifndef WEIR_SHARED_CORE_PARAMS_H
#define WEIR_SHARED_CORE_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "base/algorithms.h"
#include "common/remote.h"

/* Parts of a microsecond in which times are counted: a multiple of those of src/algo. */
#define STORE_PARTS 128000u

/* Doubles are exact up to this number. As a time, scripts take it for "for ever". */
#define STORE_MOST (UINT64_C(1) << 53)

struct store_params {
    int algorithm; /* enum weir_algorithm */
    bool align_key;
    bool leased; /* store_params_lease() */
    uint64_t quota;
    uint64_t max_debt;
    uint64_t a;         /* buckets: whole us of a unit's time; others: the period in us */
    uint64_t b;         /* buckets: its remainder in 1/STORE_PARTS us; windows: the offset in us */
    uint64_t undelayed; /* leaky_bucket: units that need not wait */
    char kind[48];      /* what a state means: part of its key, so that no state is misread */
};

/*
 * Checks what weir_open() would check, and the above. Returns 0; an error of weir_open() for the
 * options; or WEIR_ERATE or WEIR_EQUOTA, with a text, for what no script can express. After an
 * error *params is undefined.
 */
int store_params(const struct weir_options *options, struct store_params *params,
                 struct weir_error *error);

/*
 * Makes the parameters of a question that brings its own rate to the token_bucket `own`, which says
 * how long the longest of them takes to refill. The debt covers every state that another rate can
 * have left, so that scripts keep such a state as weir_throttle_at() does. Returns 0, WEIR_ERATE or
 * WEIR_EQUOTA as that does, or WEIR_EQUOTA for more units than a script can count.
 */
int store_params_rate(const struct store_params *own, const struct remote_rate *rate,
                      struct store_params *params);

/*
 * Sets the parameters for a limit that is configured as `leased` (token_bucket, fixed_window): its
 * state knows of leases. Whether leases are taken is another question (lease_is_worth()), on which
 * nodes may differ: all share the state, and each verb of the scripts respects what is outstanding
 * in it.
 */
void store_params_lease(struct store_params *params);

#endif
