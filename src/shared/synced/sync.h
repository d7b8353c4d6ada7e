/*
 * `synced`: every node counts what it admits. Every S (100 ms) it tells the store what it has added
 * since the last time, and hears the total. The counts of a process are parts of its keys
 * (shared/core/node_keys.h), as in lease.h: any thread may ask, and there is no I/O and no clock
 * here.
 *
 *   sync.c        questions and exchanges of keys: when they are made, and lost replies
 *   sync_call.c   the arguments of exchanges
 *   send_sync.c   sends them, many in one call
 *   sync_view.c   what a node knows of one key, and its decisions
 *   sync_rows.h   the algorithms: sync_bucket.c, sync_window.c
 *   sync_bound.c  the bound below, and how much a key may owe
 *   lua/sync.lua  the store's side: a verb of the scripts of `exact`, on the same state
 *
 * Y1  A decision is made here, at once, by the last total and what this node has admitted since.
 * Y2  At most one exchange is in flight for each key. It adds its delta unconditionally: the state
 *     in the store may go into debt, which is never cut off; then no node admits anything until it
 *     has refilled. But after the store's clock was set back, the lead of a bucket looks like debt.
 *     A node that hears an earlier time than is possible therefore reports this in its next
 *     exchange, together with what the key owed before, as far as the node knows; the store cuts
 *     the bucket to quota, max_debt and that. So a key is locked out for one time to full, and one
 *     exchange, longer than it was. Only if no node had heard of the key before, it is locked out
 *     until its lead is less than what twice the nodes of the fleet (counted as at least 8) could
 *     have taken.
 * Y3  An exchange without a reply is sent again with the same delta: it may count twice, never zero
 *     times. Units that are admitted meanwhile form the next delta, which is told as soon as the
 *     repeated exchange is answered. An exchange that gives back more than it takes (sync_refund())
 *     is sent once: it may count zero times, never twice.
 * Y4  Windows follow the store's clock: an exchange returns the store's time, and the node
 *     continues it with its own clock. A delta belongs to the window in which it was admitted. If
 *     that window is over, the delta is added to it as long as the state still has it (the previous
 *     window of sliding_window); otherwise it is dropped and counted. A node that has not heard of
 *     a key yet lets the store choose the window.
 * Y5  If no exchange of a key has been answered for 5 S, although one was wanted, the key is
 *     degraded (SYNC_DEGRADED) until one is answered. If no exchange of any key was answered, the
 *     whole node is degraded, including keys that it has not heard of yet. Then on_failure decides,
 *     and units that it admits are not told. Deltas are kept, bounded, and told when the store is
 *     back, if their windows still count.
 * Y6  Keys are exchanged at once when they are new or have been idle, then every S while they are
 *     asked for or have something to tell. Keys that were not asked for in 10 S are forgotten, but
 *     not before they are as good as new: otherwise a client that asks every 11 S would find a new
 *     key each time.
 * Y7  Memory is bounded: if there is no room for a new key, an idle one is forgotten, which may
 *     then admit up to the limit anew, and is counted; if none is idle, the answer is
 *     SYNC_DEGRADED, and is counted.
 *
 * The bound, per window, or per time to fill a bucket in addition to what it refills:
 *
 *     admitted <= L + sum over the other N-1 nodes of min(L, offered_j * (S + RTT))
 *
 * Let e_j be the time at which the last exchange ran whose reply node j had at its last admission,
 * and let i be the node with the latest e_i. Node i admitted by the total at e_i plus its own units
 * since, so these are at most L together. The total at e_i lacks only units of other nodes. Each
 * such node j told at e_j, which is not later, all that it had admitted when it made that exchange.
 * It has not heard the reply to its next one, which was made S later and takes RTT: so its untold
 * units were offered within S + RTT. They are also at most L (for a bucket, plus what refills
 * meanwhile), because j alone admits no more. Each exchange without a reply makes S longer by S, up
 * to 5 S; where RTT is longer than S, RTT counts twice. A node that dies loses at most the same
 * number of untold units.
 *
 * The other verbs, which go straight to the store, know of debts by sync_beyond(): however far the
 * bucket leads, a refund gives back its units and no more, and a penalty finds no room.
 */
#ifndef WEIR_SHARED_SYNCED_SYNC_H
#define WEIR_SHARED_SYNCED_SYNC_H

#include "base/hash.h"
#include "common/buffer.h"
#include "shared/core/node_keys.h"
#include "shared/core/store_limit.h"

#define SYNC_DEGRADED_AFTER 5u /* times S */
#define SYNC_IDLE_AFTER 10u

struct sync_call {
    struct store_limit *limit; /* held until sync_reply() or sync_lost() */
    struct store_key key;
    struct hash hash; /* node_key_hash() of the key */
    uint64_t made_ns;
    int64_t delta; /* units; negative: more come back than were taken */
    /* Windows: the window of the delta, -1: the store chooses it. Buckets: how far the units lead
     * by themselves, in us. */
    int64_t window;
    int64_t extra; /* windows: units of the window before */
    bool set_back; /* buckets: the last reply showed that the store's clock was set back */
    uint64_t owed; /* what the key owed then beyond quota and max_debt */
};

enum {
    SYNC_ANSWERED = 1,
    SYNC_DEGRADED = 2,
    SYNC_DUE = 4 /* in addition to these: the key has become due, and a thread that sleeps until
                    node_keys_due() must look again */
};

/* Decides a CHECK of one key without the store: SYNC_ANSWERED. Returns SYNC_DEGRADED if on_failure
 * must decide: the first time after an exchange, what the key has left by that exchange and by what
 * was admitted since is noted for a fallback (node_keys_once()). Either may come with SYNC_DUE. */
int sync_ask(struct node_keys *keys, const struct remote_part *of, uint64_t now_ns,
             struct weir_answer *answer);

/* Gives back the cost, which was taken here and not used (several limits). */
void sync_refund(struct node_keys *keys, const struct remote_part *of, uint64_t now_ns);

/* Makes an exchange of the key due at once, because the key was blocked, reset or otherwise changed
 * through this node. */
void sync_hurry(struct node_keys *keys, const struct remote_part *of);

/* Makes the next exchange that is due. Returns false if none is due. */
bool sync_next(struct node_keys *keys, uint64_t now_ns, struct sync_call *call);

/* Exchanges of one script, whose keys are in one slot, may be one call; its reply has the integers
 * of each. */
#define SYNC_INTEGERS 6  /* of an exchange's reply */
#define SYNC_TOGETHER 16 /* exchanges of a call, at most */
_Static_assert(SYNC_INTEGERS *SYNC_TOGETHER <= STORE_INTEGERS_MAX, "a reply can be read at once");

const struct script *sync_script(const struct scripts *s, const struct sync_call *call);
void sync_put_arguments(const struct sync_call *calls, unsigned n, struct buffer *b,
                        unsigned *count);

/* Exactly one of these two must be called for each call. sync_reply() returns 0, or WEIR_EIO if the
 * reply is not that of an exchange; the call then counts as lost. */
int sync_reply(struct node_keys *keys, const struct sync_call *call,
               const struct store_reply *reply, uint64_t now_ns);
void sync_lost(struct node_keys *keys, const struct sync_call *call, uint64_t now_ns);

void sync_counts(const struct node_keys *keys, struct sync_counts *counts);

/* Returns the units that the state of a key may owe beyond quota and max_debt (Y2). 0 if the limit
 * is not a synced token_bucket. */
uint64_t sync_beyond(const struct store_limit *limit, const struct store_params *params);

#define SYNC_FLOOD 10u /* offered load, in times the rate, for which sync_is_loose() warns */

/*
 * sync_bound() returns the bound above, in units per window or per time to fill, if the fleet is
 * offered `times` times the limit's rate and each node the same part of it:
 * L + (N-1) min(L, times R (S + rtt) / N). It saturates.
 *
 * sync_is_loose() returns whether the bound is above 1.5 L at SYNC_FLOOD times the rate; then `weir
 * config check` warns. So with S = 100 ms, windows should be longer than 2 s, and bursts larger
 * than 2 s of the rate.
 */
uint64_t sync_bound(const struct store_params *params, uint64_t nodes, uint64_t sync_ns,
                    uint64_t rtt_ns, uint64_t times);
bool sync_is_loose(const struct store_params *params, uint64_t nodes, uint64_t sync_ns,
                   uint64_t rtt_ns);

#endif
