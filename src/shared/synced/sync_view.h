/*
 * What a node knows of one key (the last total that it heard, and what it has admitted since) and
 * what it decides from that. The functions only compute: no table, no lock, no call.
 *
 * The store's time. An exchange that was made at m and heard at h (by the node's clock) ran in
 * between, when the store's clock said s. So at `now` the store's clock says at least s + (now - h)
 * and at most s + (now - m); both bounds are widened by 1/128 of the time that has passed, because
 * clocks drift. Where the two bounds lead to different results:
 *
 *   V1  A bucket's lead, the age of a previous window and the end of a block are computed with the
 *       earlier time, so that units drain late rather than early.
 *   V2  Units are told under the later window, in which they count for longer. While the window
 *       before may not be over (for a round trip in each window), a cost must fit into both; where
 *       a round trip is longer than a window, it must fit into the fullest of all windows that may
 *       not be over. So the units that a node has admitted in a window of the store's time, plus
 *       those that it has heard that others have admitted, are at most the quota.
 *   V3  A node that has heard nothing counts all that it admits in one window, which the store
 *       names later.
 *
 * Besides its units, a bucket's delta says how far these units lead by themselves, each counted
 * from the time at which it was taken. The total becomes max(state + units, that lead), which is
 * never less than the lead of one bucket that all nodes had asked at those times. Proof: let s be
 * the state and n the delta. A unit of the state that came at t leads to
 * t + (units of the state since t) + (units of the delta since t) <= s + n. A unit of the delta
 * leads to t + (units of the delta since t) + (units of the state since t): either the last term is
 * 0, and the rest is within what the delta leads by itself; or t + (units of the state since t) <=
 * s. It would be simpler to add the units to max(state, now), but then a bucket smaller than rate *
 * S would admit half of its rate.
 */
#ifndef WEIR_SHARED_SYNCED_SYNC_VIEW_H
#define WEIR_SHARED_SYNCED_SYNC_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "base/maths.h"
#include "shared/core/params.h"

#define SYNC_NO_WINDOW (-1) /* not known: the store uses its current window when it is told */

/* Units that were admitted and not told yet. */
struct sync_delta {
    int64_t units;     /* negative: more came back than was taken */
    int64_t older;     /* windows: units of the window before */
    int64_t window;    /* windows: the window of `units` */
    uint64_t since_ns; /* when the first of the units was taken */
    i128 full_at; /* buckets: until when the units alone lead, in 1/128 ns of the node's time */
};

/* The reply to an exchange: lua/sync.lua. */
struct sync_heard {
    uint64_t store_us;
    int64_t x, y, z;
    uint64_t block_us; /* STORE_MOST: for ever; odd: a ban */
    uint64_t dropped;
};

struct sync_view {
    bool known; /* a reply was heard */
    uint64_t store_us;
    uint64_t made_ns;
    uint64_t heard_ns; /* or when the view was made */
    uint64_t block_us;
    bool set_back;      /* the last reply showed that the store's clock was set back */
    uint64_t owed;      /* what was known to be owed then (sync_rows.h) */
    i128 full_at;       /* buckets: until when the key leads by all that is known, in 1/128 ns */
    uint64_t offset_us; /* windows: when the first begins */
    int64_t window;
    uint64_t current; /* units of `window`: those heard, and those admitted here since */
    uint64_t previous;
    int64_t filled;    /* the latest window that `previous` counts */
    uint64_t doubtful; /* part of `current` from when the previous window was perhaps not over */
    uint64_t mine;     /* part of `current` that was admitted here */
    struct sync_delta next;
    uint64_t dropped; /* units of windows that are over, which will not count */
};

/* A delta as a call expresses it. */
struct sync_told {
    int64_t units;
    int64_t at;    /* windows: the window; buckets: the lead of the units, in us, rounded up */
    int64_t extra; /* windows: units of the window before */
};

void sync_view_init(struct sync_view *v, uint64_t offset_us, uint64_t now_ns);

/* Decides a CHECK, and takes the cost if it fits. *answer is complete. */
void sync_view_ask(struct sync_view *v, const struct store_params *p, uint64_t cost,
                   uint64_t now_ns, struct weir_answer *answer);

/* Returns what remains, by the last total and by what was admitted here since, and the time until
 * nothing that the key has used counts any more. */
struct weir_answer sync_view_state(struct sync_view *v, const struct store_params *p,
                                   uint64_t now_ns);

/* Sets *answer to NEVER, for a cost that never fits, as for a key of which nothing is known. */
void sync_view_never(const struct store_params *p, struct weir_answer *answer);

/* Gives back units that were taken here, as far as they still count. */
void sync_view_refund(struct sync_view *v, const struct store_params *p, uint64_t units,
                      uint64_t now_ns);

/* sync_view_take() moves the untold units to *delta, and the view begins an empty delta.
 * sync_view_tell() expresses a delta for a call that is made now. */
void sync_view_take(struct sync_view *v, const struct store_params *p, uint64_t now_ns,
                    struct sync_delta *delta);
void sync_view_tell(const struct store_params *p, const struct sync_delta *delta, uint64_t now_ns,
                    struct sync_told *told);
bool sync_delta_is_empty(const struct sync_delta *delta);

/* Applies a total, which includes everything that sync_view_take() has taken. */
void sync_view_hear(struct sync_view *v, const struct store_params *p,
                    const struct sync_heard *heard, uint64_t made_ns, uint64_t now_ns);

#endif
