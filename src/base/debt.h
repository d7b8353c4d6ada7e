/* What the state of a key owes. Algorithms compute it; the table compares the owners of slots. */
#ifndef WEIR_BASE_DEBT_H
#define WEIR_BASE_DEBT_H

#include "base/maths.h"

/*
 * `owed` grows with the share of the quota that is taken. Its unit is the algorithm's own, because
 * all keys of a limiter have the same quota. For weir_throttle(), where the quota comes with the
 * question, the unit is time, as for every bucket.
 */
struct debt {
    u128 owed;
    uint64_t fresh_in; /* ns until the state is as good as fresh; 0 if it is */
    uint64_t word;     /* the state, pulled down if it was from a far future */
};

#endif
