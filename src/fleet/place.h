/*
 * The place of a fleet on the loop of a server's thread: `where` of remote_ops.ask.
 *
 * A place either has a store of its own (fleet_thread.h), and with it a connection to each primary;
 * or it shares those of one of the fleet's own loops (loop.h) with other places, after
 * fleet_share(). Then it decides what needs no store on its own thread, and gives the other
 * questions of a turn to that loop, before its own loop sleeps: so the loop is woken once for all
 * of them, and their calls leave in one write. The loop puts each question with its answer into the
 * place's queue, and the place calls `done` on its own thread.
 *
 * H1  A question is given back exactly once, because the loop answers it exactly once (loop.h
 *     Q1), by its deadline.
 * H2  A place that shares is freed when all its questions have come back, and the loop's thread has
 *     done its last step with each of them: `lent` counts those for which it has not.
 */
#ifndef WEIR_FLEET_PLACE_H
#define WEIR_FLEET_PLACE_H

#include "fleet/fleet.h"

struct fleet_place;

/* Lets the places of a server, `places` in all, share fleet->connections connections to each
 * primary, if these are fewer. Call it before the first fleet_place_open(). */
int fleet_share(struct weir_fleet *fleet, unsigned places, struct weir_error *error);

/* Must be called on the loop's thread, or before the loop runs. */
int fleet_place_open(struct fleet_place **place, struct weir_fleet *fleet, uv_loop_t *loop,
                     struct weir_error *error);

/* Begins to give leases back and to report counts. Returns whether that needs the place's loop for
 * a moment; if not, weir_fleet_close() waits for it. */
bool fleet_place_leave(struct fleet_place *place);

/* Ends the place. One with a store of its own answers pending questions at once; one that shares
 * gets their answers by their deadlines. The handles close in the next turns of the loop, and the
 * last of them frees the place. NULL is allowed. */
void fleet_place_close(struct fleet_place *place);

/* Is remote_ops.ask, and remote_ops.bytes. Must be called on the loop's thread. */
int fleet_place_ask(struct fleet_place *place, struct remote_question *question,
                    struct remote_answer *answer);
size_t fleet_question_bytes(size_t n);

#endif
