/*
 * `synced`: every node counts what it admits, and every S (100 ms) tells the store what it has added
 * since, and hears the total. Of one process, as lease.h: any thread may ask, stripes with short locks,
 * no I/O, no clock.
 *
 * Y1  A decision is made here, at once, by the last total and what this node has admitted since.
 * Y2  One exchange is in flight for each key. It adds its delta unconditionally: the store may go into
 *     debt, which is never cut off; then nobody admits until it has refilled.
 * Y3  An exchange without a reply is sent again with the same delta: it may count twice, never zero
 *     times. What is admitted meanwhile is the next delta.
 * Y4  Windows are the store's: an exchange returns the store's time, and the node counts by that line,
 *     going on by its own clock. A delta belongs to the window in which it was admitted.
 * Y5  No exchange answered for 5 S: the node is degraded (SYNC_DEGRADED), on_failure decides; its
 *     deltas are kept, bounded, and told when the store is back... as far as their window still is.
 * Y6  Keys without a delta are asked for again only while they are used; then they are forgotten.
 *
 * Per window, or per time to fill a bucket: admitted <= L + sum over the other N-1 nodes of
 * min(L, offered_j * (S + RTT)).
 */
#ifndef WEIR_STORE_SYNC_H
#define WEIR_STORE_SYNC_H

#include "base/buffer.h"
#include "store/store.h"

struct syncs;

int syncs_create(struct syncs **y, uint64_t keys);
void syncs_destroy(struct syncs *y);

struct sync_call {
    struct store_limit *limit; /* held until sync_reply() or sync_lost() */
    struct store_key key;
    uint64_t hash[2];
    uint64_t made_ns;
    uint64_t delta;
    uint64_t window; /* windows: the one it belongs to */
};

enum { SYNC_ANSWERED = 1, SYNC_DEGRADED = 2 };

/* CHECK of one key: always decided here, or SYNC_DEGRADED. */
int sync_ask(struct syncs *y, struct store_limit *limit, struct text shard, struct text key,
             uint64_t cost, uint64_t now_ns, struct weir_answer *answer);

/* Gives units back that were taken here and nobody used (several limits). */
void sync_refund(struct syncs *y, struct store_limit *limit, struct text shard, struct text key,
                 uint64_t units, uint64_t now_ns);

/* The next exchange that is due. False: none now. */
bool sync_next(struct syncs *y, uint64_t now_ns, struct sync_call *call);
uint64_t sync_due(const struct syncs *y);

const struct script *sync_script(const struct scripts *s, const struct sync_call *call);
void sync_put_arguments(const struct sync_call *call, struct buffer *b, unsigned *count);

/* Exactly one of the two for each call. */
int sync_reply(struct syncs *y, const struct sync_call *call, const struct store_reply *reply,
               uint64_t now_ns);
void sync_lost(struct syncs *y, const struct sync_call *call, uint64_t now_ns);

/* From now on every delta is due at once. */
void sync_stop(struct syncs *y);

#endif
