/*
 * What a node knows of one key, and what it decides by that: the last total that it heard, and what it
 * has admitted since. Values in, values out: no table, no lock, no call.
 *
 * The store's time. An exchange that was made at m and heard at h (here) ran in between, when the
 * store's clock said s. So at `now` that clock says at least s + (now - h) and at most s + (now - m);
 * both are widened by 1/128 of what has passed, for clocks that drift. In doubt:
 *
 *   V1  A bucket's lead, the age of a previous window and the end of a block go by the earlier time: what
 *       was taken drains late rather than early.
 *   V2  Units are told under the later window, in which they count for longer. While it is not sure that
 *       the one before is over (a round trip each window), a call must fit into both; where a round trip
 *       is longer than a window, into the fullest of all that may not be over. So what a node has admitted
 *       in a window of the store's time, and what it has heard that others have, is at most the quota.
 *   V3  A node that has heard nothing counts all it admits as of one window, which the store then names.
 *
 * A bucket's delta says besides its units how far these lead by themselves, each from its own time. The
 * total becomes max(state + units, that), which is never less than one bucket would have, asked by all
 * at those times: let s be the state and n the delta. A unit of the state that came at t leads to
 * t + (units of the state since t) + (units of the delta since t) <= s + n; one of the delta to
 * t + (its own since t) + (the state's since t), of which either the last is none and the rest is within
 * what the delta leads alone, or t + (the state's since t) <= s. Adding the units to max(state, now)
 * would be simpler, but a bucket smaller than rate * S would then admit half of its rate.
 */
#ifndef WEIR_SHARED_SYNCED_SYNC_VIEW_H
#define WEIR_SHARED_SYNCED_SYNC_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "base/maths.h"
#include "shared/params.h"

#define SYNC_NO_WINDOW (-1) /* not known: that of the store's time when it is told */

/* What was admitted and not told yet. */
struct sync_delta {
    int64_t units;     /* negative: more came back than was taken */
    int64_t older;     /* windows: units of the one before */
    int64_t window;    /* windows: of `units` */
    uint64_t since_ns; /* the first of them */
    i128 full_at; /* buckets: until when the units alone lead, in 1/128 ns of the node's line */
};

/* What an exchange returns: lua/sync.lua. */
struct sync_heard {
    uint64_t store_us;
    int64_t x, y, z;
    uint64_t block_us; /* STORE_MOST: for ever */
    uint64_t dropped;
};

struct sync_view {
    bool known; /* something was heard */
    uint64_t store_us;
    uint64_t made_ns;
    uint64_t heard_ns; /* or when the view was made */
    uint64_t block_us;
    bool set_back;      /* the store's clock was, by what was heard last ... */
    uint64_t owed;      /* ... and what was known to be owed then: sync_rows.h */
    i128 full_at;       /* buckets: with all that is known, in 1/128 ns */
    uint64_t offset_us; /* windows: when the first begins */
    int64_t window;
    uint64_t current; /* as heard, and as admitted here since */
    uint64_t previous;
    int64_t filled;    /* the latest window that `previous` counts */
    uint64_t doubtful; /* of current, admitted while the previous one was perhaps not over */
    uint64_t mine;     /* of current, admitted here */
    struct sync_delta next;
    uint64_t dropped; /* units of windows that are over, never told */
};

/* What a delta is in a call. */
struct sync_told {
    int64_t units;
    int64_t at;    /* windows: which; buckets: how far it leads alone, in us, rounded up */
    int64_t extra; /* windows: units of the one before */
};

void sync_view_init(struct sync_view *v, uint64_t offset_us, uint64_t now_ns);

/* CHECK; takes the cost if it fits. *answer is complete. */
void sync_view_ask(struct sync_view *v, const struct store_params *p, uint64_t cost,
                   uint64_t now_ns, struct weir_answer *answer);

/* How long until the key is as good as new, for all that is known; 0: it is. */
uint64_t sync_view_reset(struct sync_view *v, const struct store_params *p, uint64_t now_ns);

/* What is left by the last total and what was admitted here since. False: nothing was heard yet. */
bool sync_view_left(struct sync_view *v, const struct store_params *p, uint64_t now_ns,
                    uint64_t *remaining);

/* What a node that knows nothing of a key answers to a cost that never fits. */
void sync_view_never(const struct store_params *p, struct weir_answer *answer);

/* Gives back what was taken here, as far as it still counts. */
void sync_view_refund(struct sync_view *v, const struct store_params *p, uint64_t units,
                      uint64_t now_ns);

/* Takes what there is to tell; nothing has been admitted since. */
void sync_view_take(struct sync_view *v, const struct store_params *p, uint64_t now_ns,
                    struct sync_delta *delta);
void sync_view_tell(const struct store_params *p, const struct sync_delta *delta, uint64_t now_ns,
                    struct sync_told *told);
bool sync_delta_is_empty(const struct sync_delta *delta);

/* The total, which includes everything that was taken by sync_view_take(). */
void sync_view_hear(struct sync_view *v, const struct store_params *p,
                    const struct sync_heard *heard, uint64_t made_ns, uint64_t now_ns);

#endif
