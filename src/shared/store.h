/*
 * Who decides: this process, or a Redis that a fleet shares; and what if that one fails.
 *
 * A question goes in, and an answer comes back: at once where no store is needed, or else by a
 * callback, exactly once, by its deadline. Nothing here waits, opens a socket or reads a clock.
 *
 *   store.c      a question, and what is done when nobody asks
 *   asking.c     its parts, by the mode of their limits; several limits; giving back what was taken
 *   part.c       one limit and one key: what is remembered, and what if the store fails
 *   send.c       the calls of all these; send_lease.c: those of leases, and who waits for them
 *   limit.c      limits
 *   stores.c     what the stores of a process share
 *   ../redis/client.h   calls and their way (of one thread)
 *   script.h     the calls of `exact`
 *   lease.h      `leased`: units taken in advance, spent here; lease_wait.h: until they are here
 *   sync.h       `synced`: everybody counts, and tells the others every now and then
 *   known.h      what the process remembers of keys: who was denied, how much there was
 *   fallback.h   `on_store_failure: local`
 *   members.h    how many nodes the fleet has
 *   store_key.h, params.h; ../redis/reply.h, value.h, slots.h, url.h   what all of these say and read
 *
 * A struct store belongs to one thread. A struct store_shared belongs to the process, and limits to it:
 * they are used by all threads at once.
 *
 * S1  Every question is answered once, by its deadline, whatever the store does.
 * S2  A charge happens at most once per limit and question: client.h C2. Sent and no reply: on_failure
 *     decides, and the charge, should it have happened, stays.
 * S3  An answer that the store has not given carries REMOTE_DEGRADED, also if it is an ALLOW of `open`
 *     or a DENY of `closed`, and is counted unless it is a PEEK. An answer out of a lease, of a synced count or of the
 *     memory of denials is the store's.
 * S4  Everything is bounded.
 * S5  Several parts: those in one slot, all `exact`, are one call, all or nothing. Others are charged
 *     side by side; if one denies, the others get their units back by an UNDO that nobody waits for:
 *     never an admission too much, but units that a denied question holds until then, and until they
 *     refill if this process dies. (A token bucket that is decided here or `synced` may admit a second
 *     time what it has refilled while the question was out, at most the units that came back.) A place
 *     in a queue (leaky_bucket) comes back if it is the last, and its part the one that binds in its
 *     call. The answer is that of the part that binds, as weir_check_several().
 * S6  PEEK, UP_TO, max_wait, REFUND, PENALIZE, BLOCK, UNBLOCK and RESET go straight to the store, in
 *     every mode. Without it PEEK is answered as CHECK would be (degraded); the others are WEIR_EIO.
 */
#ifndef WEIR_SHARED_STORE_H
#define WEIR_SHARED_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "base/atomic.h"
#include "common/remote.h"
#include "redis/client.h"
#include "shared/params.h"
#include "shared/store_key.h"

struct store;
struct store_shared;

/*
 * One limit, of all threads. Counted: the last release ends it. One that a reload has dropped is held by its
 * leases until they are given back, and by its synced keys until they are as good as new: so memory grows
 * with reloads to another period, but only as far as these tables do, SHARED_LEASES and SHARED_SYNCS keys of
 * all limits (measured, 200 keys each of two synced limits: 4.7 MB more after 30 such reloads, 5.0 MB after 300).
 */
struct store_limit {
    struct store_shared *shared;
    uint64_t references;
    int mode;       /* enum remote_mode, read by store_limit_mode(): LEASED that is too small for
                       leases acts as EXACT, until its numbers change */
    int on_failure; /* enum remote_failure */
    uint64_t deny_cache_ns;
    uint64_t sync_ns;
    uint64_t id; /* of the process: what the tables below know it by */
    struct store_key_head head;
    struct fallback *fallback;     /* NULL: on_failure is not local */
    struct store_numbers *numbers; /* what changes; read by store_limit_numbers() */
    struct store_numbers *all;     /* that it has had */
    struct remote_counts counts;   /* atomics */
};

/* A version of a limit's numbers. Never changed; they live as long as the limit does, and numbers that
 * come back are those that they were. */
struct store_numbers {
    struct store_params params;
    struct weir_options options;
    struct store_numbers *older;
};

struct store_shared_options {
    struct text prefix;
    uint64_t fleet_size; /* 0: by heartbeat */
    uint64_t deadline_ns;
    uint64_t known_keys;      /* that are remembered at once; 0: 65536 */
    uint64_t node;            /* who we are among the nodes: random */
    const struct text *clock; /* of scripts; NULL; else see scripts_init() */
    /* store_ask_here() has left something to send or to exchange: some thread is to call store_tick() soon. May be
     * NULL; from any thread, must not wait. */
    void (*wake)(void *arg);
    void *wake_arg;
};

int store_shared_create(struct store_shared **s, const struct store_shared_options *options);
void store_shared_destroy(struct store_shared *s); /* no limit, no store is left */

/* From now on leases are returned and counts are told: tick until nothing is due and store_is_idle(), for
 * a moment at most; then destroy the stores. */
void store_shared_stop(struct store_shared *s);

int store_limit_open(struct store_shared *s, const struct remote_spec *spec,
                     struct store_limit **limit, struct weir_error *error);
int store_limit_change(struct store_limit *limit, const struct weir_options *options,
                       struct weir_error *error);
void store_limit_hold(struct store_limit *limit);
void store_limit_release(struct store_limit *limit);
/* The same for a key that is kept here, which is counted. */
static inline void store_limit_keep_key(struct store_limit *limit)
{
    count_shared(&limit->counts.keys, 1);
    store_limit_hold(limit);
}

static inline void store_limit_drop_key(struct store_limit *limit)
{
    (void)fetch_sub(&limit->counts.keys, 1);
    store_limit_release(limit);
}

const struct store_numbers *store_limit_numbers(const struct store_limit *limit);

static inline int store_limit_mode(const struct store_limit *limit)
{
    return __atomic_load_n(&limit->mode, __ATOMIC_RELAXED); /* either is right while it changes */
}

/* The nodes of the fleet, at least 1: as given, or as seen in the last 10 s. */
uint64_t store_fleet_size(const struct store_shared *s);

int store_create(struct store **s, struct store_shared *shared,
                 const struct client_options *options, const struct client_driver *driver,
                 uint64_t now_ns);
bool store_is_idle(const struct store *s);           /* no call of it is out */
const char *store_last_error(const struct store *s); /* client_last_error() */
/* Questions that are out are answered, by on_failure. */
void store_destroy(struct store *s, uint64_t now_ns);

/* As remote_ops.ask. `now_ns` is on the client's line. WEIR_E...: nothing has happened. */
int store_ask(struct store *s, const struct remote_question *question, uint64_t now_ns,
              struct remote_answer *answer, remote_done_fn done, void *arg);

/*
 * What can be decided without any thread's store: out of a lease, a synced count, or a remembered
 * denial. From any thread. REMOTE_ANSWERED, or REMOTE_PENDING: ask a store. What a lease then still
 * needs to send is left for the next store_tick() of any store.
 */
int store_ask_here(const struct remote_question *question, uint64_t now_ns,
                   struct remote_answer *answer);

/*
 * The answer without the store, by on_failure, where there is no way to ask it: from any thread.
 * REMOTE_ANSWERED for CHECK, PEEK and UP_TO of one limit, else WEIR_EFULL.
 */
int store_ask_failed(const struct remote_question *question, uint64_t now_ns,
                     struct remote_answer *answer);

/* Answers that the store has not given, of all limits. */
uint64_t store_degraded(const struct store_shared *s);
/* What a denied question was charged, and could not be given back (S5). */
uint64_t store_refunds_lost(const struct store_shared *s);
struct sync_counts; /* shared/synced/sync.h */
void store_sync_counts(const struct store_shared *s, struct sync_counts *counts);

/* Calls client_tick(), leases, exchanges, the heartbeat. Returns when it wants to be called again. */
uint64_t store_tick(struct store *s, uint64_t now_ns);

#endif
