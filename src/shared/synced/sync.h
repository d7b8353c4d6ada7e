/*
 * `synced`: every node counts what it admits, and every S (100 ms) tells the store what it has added
 * since, and hears the total. Of one process, as lease.h: any thread may ask, stripes with short locks,
 * no I/O, no clock.
 *
 *   sync.c        questions and exchanges of keys: when, and what if there is no reply
 *   sync_call.c   what an exchange says
 *   sync_view.c   what a node knows of one key, and decides by that
 *   sync_rows.h   the algorithms: sync_bucket.c, sync_window.c
 *   sync_table.c  the keys, and which one is due
 *   sync_bound.c  the bound below, and how much a key may owe
 *   lua/sync.lua  the store's side: a verb of the scripts of `exact`, on the same state
 *
 * Y1  A decision is made here, at once, by the last total and what this node has admitted since.
 * Y2  One exchange is in flight for each key. It adds its delta unconditionally: the store may go into
 *     debt, which is never cut off; then nobody admits until it has refilled. But where the store's clock
 *     was set back, the debt is what the bucket leads by: a node that hears an earlier time than can be
 *     says so in its next exchange, and what the key owed before as far as it knows; the store cuts the
 *     bucket to quota, debt and that. So a key is locked out for one time to full longer than it was, and an
 *     exchange; only where no node has heard of it before, until it leads by less than twice the nodes of
 *     the fleet, at least 8, could have taken.
 * Y3  An exchange without a reply is sent again with the same delta: it may count twice, never zero
 *     times. What is admitted meanwhile is the next delta, told as soon as that is answered. One that gives back more than it takes
 *     (sync_refund()) is sent once: it may count zero times, never twice.
 * Y4  Windows are the store's: an exchange returns the store's time, and the node counts by that line,
 *     going on by its own clock. A delta belongs to the window in which it was admitted; if that is over,
 *     it is added to it as long as the state knows it (the previous one of sliding_window), else dropped
 *     and counted. A node that has not heard of a key yet leaves it to the store which window it is.
 * Y5  No exchange answered for 5 S, although it was wanted: the key is degraded (SYNC_DEGRADED) until
 *     one is answered; and if none of any key was, the node is, so that keys are too that it has not
 *     heard of yet. on_failure decides, and what that admits is not told. Deltas are kept, bounded, and
 *     told when the store is back, as far as their window still is.
 * Y6  Keys are exchanged at once when they are new or have been idle, then every S while they are asked
 *     for or have something to tell. Those that nobody has asked for in 10 S are forgotten, once they
 *     are as good as new: forgotten any sooner, one who asks every 11 S would find a new one each time.
 * Y7  Bounded: if there is no room for a new key, an idle one is forgotten, which may then admit up to
 *     the limit anew, counted; else the answer is SYNC_DEGRADED, counted.
 *
 * The bound. Per window, or per time to fill a bucket on top of what it refills:
 *
 *     admitted <= L + sum over the other N-1 nodes of min(L, offered_j * (S + RTT))
 *
 * Let e_j be when node j's last exchange ran that it had heard of at its last admission, and i the node
 * whose e_i is the latest. i admitted by the total at e_i plus its own since, so these are at most L
 * together. What is missing in the total at e_i are units of others, each j of which told at e_j, not
 * later, all that it had admitted when it made that exchange. It has not heard the next one, made S
 * later, which takes RTT: so its untold units were offered within S + RTT; and they are at most L (of a
 * bucket, and what refills meanwhile) because j alone admits no more. An exchange without a reply makes S
 * longer by S each time, up to 5 S; where RTT is longer than S, it counts twice. A node that dies takes
 * at most the same with it.
 *
 * The other verbs, which go straight to the store, know of debts by sync_beyond(): a refund gives back its
 * units and no more, a penalty finds no room, however far the bucket leads.
 */
#ifndef WEIR_SHARED_SYNCED_SYNC_H
#define WEIR_SHARED_SYNCED_SYNC_H

#include "common/buffer.h"
#include "shared/store.h"

#define SYNC_DEGRADED_AFTER 5u /* times S */
#define SYNC_IDLE_AFTER 10u

struct syncs;

/* About `keys` keys at once. 0, WEIR_ENOMEM, WEIR_EIO. syncs_destroy(): no call is in flight. */
int syncs_create(struct syncs **y, uint64_t keys);
void syncs_destroy(struct syncs *y);

/* The secret of the hashes is made of `seed`, so that runs of a test repeat. Before the first
 * question. */
void syncs_seed(struct syncs *y, uint64_t seed);

struct sync_call {
    struct store_limit *limit; /* held until sync_reply() or sync_lost() */
    struct store_key key;
    uint64_t hash[2];
    uint64_t made_ns;
    int64_t delta; /* units; negative: more come back than were taken */
    /* Windows: the one it belongs to, -1: the store's. Buckets: how far the units lead alone, in us. */
    int64_t window;
    int64_t extra; /* windows: units of the window before */
    bool set_back; /* buckets: the store's clock was, since the exchange before the last, ... */
    uint64_t owed; /* ... and the key then owed this beyond quota and max_debt */
};

enum {
    SYNC_ANSWERED = 1,
    SYNC_DEGRADED = 2,
    SYNC_DUE =
        4, /* beside them: the key has become due; who sleeps until sync_due() is to look again */
    SYNC_LAST = 8 /* beside SYNC_DEGRADED, once until an exchange is answered: answer->remaining is
                     what the key has by the last one, and what was admitted here since */
};

/* CHECK of one key: always decided here, or SYNC_DEGRADED. */
int sync_ask(struct syncs *y, struct store_limit *limit, struct text shard, struct text key,
             uint64_t cost, uint64_t now_ns, struct weir_answer *answer);

/* Gives units back that were taken here and nobody used (several limits). */
void sync_refund(struct syncs *y, struct store_limit *limit, struct text shard, struct text key,
                 uint64_t units, uint64_t now_ns);

/* The key was blocked, reset or otherwise changed through this node: it is exchanged at once. */
void sync_hurry(struct syncs *y, const struct store_limit *limit, struct text shard,
                struct text key);

/* The next exchange that is due. False: none now. */
bool sync_next(struct syncs *y, uint64_t now_ns, struct sync_call *call);
uint64_t sync_due(const struct syncs *y); /* UINT64_MAX: none */

const struct script *sync_script(const struct scripts *s, const struct sync_call *call);
void sync_put_arguments(const struct sync_call *call, struct buffer *b, unsigned *count);

/* Exactly one of the two for each call. WEIR_EIO: not such a reply; the call counts as lost. */
int sync_reply(struct syncs *y, const struct sync_call *call, const struct store_reply *reply,
               uint64_t now_ns);
void sync_lost(struct syncs *y, const struct sync_call *call, uint64_t now_ns);

/* From now on every delta is due at once. */
void sync_stop(struct syncs *y);

struct sync_counts {
    uint64_t keys;      /* now */
    uint64_t exchanges; /* calls made */
    uint64_t lost;      /* of them, without a reply */
    uint64_t dropped;   /* units of windows that were over, and of refunds without a reply */
    uint64_t full;      /* questions of keys that found no room */
    uint64_t forgotten; /* keys that made room before they were as good as new */
    uint64_t degraded;  /* questions that were not decided for want of an exchange */
};

void sync_counts(const struct syncs *y, struct sync_counts *counts);

/* Units that the state of a key may owe beyond quota and max_debt: Y2. 0 where nothing is synced. */
uint64_t sync_beyond(const struct store_limit *limit, const struct store_params *params);

#define SYNC_FLOOD 10u /* times the rate: what is warned of */

/*
 * The bound above, in units per window or per time to fill, if the fleet is offered `times` times the
 * limit's rate, each node the same part of it: L + (N-1) min(L, times R (S + rtt) / N). Saturates.
 *
 * sync_is_loose(): what `weir config check` warns of: it is above 1.5 L at SYNC_FLOOD times the rate. So with
 * S = 100 ms windows should be longer than 2 s, and bursts larger than 2 s of the rate.
 */
uint64_t sync_bound(const struct store_params *params, uint64_t nodes, uint64_t sync_ns,
                    uint64_t rtt_ns, uint64_t times);
bool sync_is_loose(const struct store_params *params, uint64_t nodes, uint64_t sync_ns,
                   uint64_t rtt_ns);

#endif
