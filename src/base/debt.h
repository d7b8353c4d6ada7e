/*
 * What a key's state owes: the answer of an algorithm to the table, which asks it of owners whose
 * slot a new key could have.
 */
#ifndef WEIR_BASE_DEBT_H
#define WEIR_BASE_DEBT_H

#include "base/maths.h"

/*
 * `owed` grows with the share of the quota that is taken; its unit is the algorithm's own (units,
 * units times the period, time), because all keys of a limiter have the same quota. For
 * weir_throttle(), where the quota comes with the question, the unit is time, as for every bucket.
 */
struct debt {
    u128 owed;
    uint64_t fresh_in; /* ns until the state is as good as fresh: 0 now */
    uint64_t word;     /* the state, pulled down if it was from a far future */
};

#endif
