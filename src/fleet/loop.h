/*
 * A loop that belongs to the fleet. It either has a thread of its own, which other threads reach
 * through a queue (queue.h), or is run by the caller (WEIR_FLEET_CALLERS_LOOP). A fleet of the
 * public interface has one. A server's fleet has none, or, if its threads share connections
 * (place.h), one for each connection.
 *
 * A thread that finds the queue empty wakes the loop: uv_async_send() makes one write to an eventfd
 * for all questions that come until the loop looks.
 *
 * Q1  A question that is in the queue is asked, and its `done` called once, before the loop ends:
 *     the loop ends only after it has taken the queue, and callers may not ask after they have
 *     called weir_fleet_close().
 * Q2  At most FLEET_QUEUE_MAX questions wait. Beyond that the asker gets an answer without the
 *     store.
 */
#ifndef WEIR_FLEET_LOOP_H
#define WEIR_FLEET_LOOP_H

#include "fleet/fleet.h"

#define FLEET_QUEUE_MAX 16384 /* as many as a store has in flight at most */

struct fleet_loop;

/* Opens the loops of a fleet, which has none; and closes them, all at the same time. */
int fleet_loops_open(struct weir_fleet *fleet, unsigned count, struct weir_error *error);
void fleet_loops_close(struct weir_fleet *fleet);

/* Returns one of the fleet's loops, each in its turn. */
struct fleet_loop *fleet_loop_turn(struct weir_fleet *fleet);

/* Returns whether this thread is the loop's own, so that questions are asked at once. */
bool fleet_loop_is_here(const struct fleet_loop *loop);

/*
 * remote_ops.ask in two steps, from any thread (for the caller's loop: from the caller's thread).
 * fleet_loop_try() decides what can be decided on the asker's thread; after REMOTE_PENDING,
 * fleet_loop_send() gives the question, which needs its memory from then on, to the loop. Both
 * return REMOTE_ANSWERED, REMOTE_PENDING or WEIR_E...
 */
int fleet_loop_try(struct fleet_loop *loop, const struct remote_question *question,
                   struct remote_answer *answer);
int fleet_loop_send(struct fleet_loop *loop, struct remote_question *question,
                    struct remote_answer *answer);

/* Does both steps, and waits for the answer. Needs no memory. Returns REMOTE_ANSWERED or WEIR_E...;
 * WEIR_ENOTSUP on the loop's own thread, and for a caller's loop. */
int fleet_loop_wait(struct fleet_loop *loop, struct remote_question *question,
                    struct remote_answer *answer);

#endif
