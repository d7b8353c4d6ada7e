/*
 * A loop that is the fleet's: with a thread of its own, which others reach by a queue, or the caller's,
 * who runs it by hand.
 *
 * The queue is a stack of messages that any thread pushes on by one compare-and-swap, and that the
 * loop's thread takes as a whole and turns over. Whoever finds it empty wakes the loop: uv_async_send()
 * is one write to an eventfd for all that come until the loop looks.
 *
 * Q1  A message that is in the queue is asked, and its `done` called once, before the loop ends: the loop
 *     ends only after it has taken the queue, and nobody may ask once weir_fleet_close() is called.
 * Q2  At most FLEET_QUEUE_MAX messages wait. Beyond that the asker gets the answer without the store.
 * Q3  push() releases and take() acquires: the loop sees a message as it was written.
 */
#ifndef WEIR_FLEET_LOOP_H
#define WEIR_FLEET_LOOP_H

#include "fleet/fleet.h"

#define FLEET_QUEUE_MAX 16384 /* what a store has in flight at most, once more */

struct fleet_loop;

int fleet_loop_open(struct fleet_loop **loop, struct weir_fleet *fleet, struct weir_error *error);
void fleet_loop_close(struct fleet_loop *loop); /* NULL is allowed */

/*
 * remote_ops.ask in two steps, from any thread (of the caller's loop: from its own). What can be decided
 * on the asker's thread: REMOTE_ANSWERED, REMOTE_PENDING or WEIR_E...; and what the loop must do.
 */
int fleet_loop_try(struct fleet_loop *loop, const struct remote_question *question,
                   struct remote_answer *answer);
int fleet_loop_send(struct fleet_loop *loop, const struct remote_question *question,
                    struct remote_answer *answer, remote_done_fn done, void *arg);

/* Both, and waits. WEIR_ENOTSUP: on the loop's own thread. */
int fleet_loop_wait(struct fleet_loop *loop, const struct remote_question *question,
                    struct remote_answer *answer);

#endif
