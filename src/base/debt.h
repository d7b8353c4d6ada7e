/* What the state of a key owes. Algorithms compute it; the table compares the owners of slots. */
#ifndef WEIR_BASE_DEBT_H
#define WEIR_BASE_DEBT_H

#include "base/maths.h"

/*
 * `owed` grows with the share of the quota that is taken, in a unit of the algorithm's own: all
 * keys of a limiter have the same quota. The unit of buckets is time, because weir_throttle()
 * brings the quota with the question.
 */
struct debt {
    u128 owed;
    uint64_t fresh_in; /* ns until the state is fresh; 0 if it is */
    uint64_t word;     /* the state, pulled down if it was from a far future */
};

#endif
