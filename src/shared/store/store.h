/*
 * Decides questions about limits in this process or in a store, a Redis that a fleet shares; and
 * answers them if the store fails.
 *
 * Each question gets an answer: at once where no store is needed, otherwise by a callback, exactly
 * once, by its deadline. Nothing here waits, opens a socket or reads a clock.
 *
 *   store.c             a store, what the stores of a process share, and the work that is due
 *                       without a question
 *   store_question.c    a question: answered here, or divided into groups
 *   store_group.c       a group: how it is asked by the mode of its limits, the call and its reply
 *   group_undo.c        how the units of a group are given back
 *   send_lease.c        the calls of leases, and questions that wait for them
 *   store_limit.c       limits; what a limit answers when the store fails
 *   ../redis/client.h   the client that makes the calls (of one thread)
 *   ../core/script.h    the names of keys, and the calls of `exact`
 *   ../leased/lease.h   `leased`: units taken in advance and spent here; lease_wait.h: waiting
 *   ../synced/sync.h    `synced`: each node counts, and exchanges its counts with the store
 *   ../core/node_keys.h what this node remembers of keys: leases, counts, denials, what remained
 *   fallback.h          `on_store_failure: local`
 *   members.h           how many nodes the fleet has
 *   ../core/params.h; ../redis/reply.h, slots.h, url.h   formats that these use
 *
 * A struct store belongs to one thread. A struct store_shared belongs to the process, and so do its
 * limits: all threads use them at once.
 *
 * S1  Every question is answered once, by its deadline, whatever the store does.
 * S2  A charge happens at most once per limit and question: client.h C2. If a call was sent and no
 *     reply came, on_failure decides, and the charge stays if it has happened.
 * S3  An answer that the store has not given carries REMOTE_DEGRADED, also if it is an ALLOW of
 *     `open` or a DENY of `closed`, and is counted unless it is a PEEK. An answer out of a lease,
 *     of a synced count or of the memory of denials counts as the store's.
 * S4  Everything is bounded.
 * S5  Several parts: `exact` parts in one slot are one call, all or nothing. Other parts are
 *     charged independently; if one denies, the others get their units back by an UNDO that no
 *     question waits for. So too much is never admitted, but a denied question holds units until
 *     then, or until they refill if this process dies. (A token bucket that is decided here or
 *     `synced` may admit a second time what it has refilled while the question was out, at most the
 *     units that came back.) A place in a queue (leaky_bucket) comes back only if it is the last
 *     place and its part is the one that binds in its call. The answer is that of the part that
 *     binds, as in weir_check_several().
 * S6  PEEK, UP_TO, max_wait, REFUND, PENALIZE, BLOCK, UNBLOCK and RESET go straight to the store,
 *     in every mode. Without the store, CHECK, PEEK and UP_TO are answered by on_failure
 *     (degraded); the others return WEIR_EIO.
 */
#ifndef WEIR_SHARED_STORE_STORE_H
#define WEIR_SHARED_STORE_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "common/remote.h"
#include "redis/client.h"
#include "shared/core/store_limit.h"

struct store;

struct store_shared_options {
    struct weir_text prefix;
    uint64_t fleet_size; /* number of nodes; 0: counted by heartbeat */
    uint64_t node;       /* a random number that identifies this node in the fleet */
    /* Called when store_ask_here() has made a renewal or an exchange due: some thread must call
     * store_tick() soon. It may be called from any thread and must not wait. May
     * be NULL. */
    void (*wake)(void *arg);
    void *wake_arg;
};

int store_shared_create(struct store_shared **s, const struct store_shared_options *options);
void store_shared_destroy(struct store_shared *s); /* only when no limit and no store is left */

int store_create(struct store **s, struct store_shared *shared,
                 const struct client_options *options, const struct client_driver *driver,
                 uint64_t now_ns);
bool store_is_idle(const struct store *s);           /* no call is out */
const char *store_last_error(const struct store *s); /* client_last_error() */
/* Destroys a store. Questions that are out are answered by on_failure. */
void store_destroy(struct store *s, uint64_t now_ns);

/* Returns how much memory a question with n parts needs: remote_ops.bytes. */
size_t store_question_bytes(size_t n);
#define STORE_QUESTION_BYTES 512 /* at least what one part needs */

/* Asks a question, as remote_ops.ask. `now_ns` is the time of the client's clock. Returns
 * REMOTE_ANSWERED, REMOTE_PENDING, or WEIR_E... if nothing has happened. */
int store_ask(struct store *s, const struct remote_question *question, uint64_t now_ns,
              struct remote_answer *answer);

/*
 * Answers what can be decided without any thread's store: out of a lease, a synced count, or a
 * remembered denial; the question needs no memory. May be called from any thread. Returns
 * REMOTE_ANSWERED, REMOTE_PENDING if a store must be asked, or WEIR_E... for a wrong question. The
 * next store_tick() of any store makes the renewals and exchanges that have become due.
 */
int store_ask_here(const struct remote_question *question, uint64_t now_ns,
                   struct remote_answer *answer);

/*
 * Answers by on_failure, when the store cannot be asked. May be called from any thread. Returns
 * REMOTE_ANSWERED for CHECK, PEEK and UP_TO of one limit, otherwise WEIR_EFULL.
 */
int store_ask_failed(const struct remote_question *question, uint64_t now_ns,
                     struct remote_answer *answer);

/* Does what is due: leases, exchanges, the heartbeat, client_tick(). Returns the time at which it
 * must be called again. */
uint64_t store_tick(struct store *s, uint64_t now_ns);

#endif
