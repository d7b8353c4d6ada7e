/*
 * A store's sockets, threads and clock: src/redis and src/shared on libuv.
 *
 *   fleet.c          weir_fleet_open(): options, the process's part
 *   secret.c         the password
 *   ops.c            what rules reach it by: common/remote.h
 *   fleet_thread.c   a loop's part: a struct store, its timer, its sockets
 *   socket.c         a link's connection: names, connecting, reading, writing
 *   loop.c           the fleet's own thread, which others reach by a queue, or the caller's loop
 *   fleet_limits.c   weir_fleet_limit_..., and asking
 *   ring.c           weir_ring_...
 *
 * A worker of `weir serve` opens a fleet_thread on its own loop.
 */
#ifndef WEIR_FLEET_FLEET_H
#define WEIR_FLEET_FLEET_H

#include <pthread.h>
#include <sys/types.h>

#include <uv.h>

#include <weir_fleet.h>

#include "common/remote.h"
#include "redis/breaker.h"
#include "shared/store.h"

struct fleet_thread;

struct weir_fleet {
    struct remote_face face; /* first: common/remote.h */
    struct store_shared *shared;
    struct store_url url;
    struct breakers *breakers;
    struct client_metrics metrics;
    struct weir_fleet_options options; /* with copies of its texts */
    struct fleet_loop *loop; /* the fleet's own or the caller's; NULL: a server's threads */
    pthread_mutex_t lock;    /* of `threads`; held for a moment */
    struct fleet_thread *threads;
    pid_t process; /* that opened it */
};

extern const struct remote_ops fleet_ops;

/* For a server: no loop of its own. Its threads come by fleet_thread_open(). */
int fleet_open_bare(struct weir_fleet **fleet, const struct weir_fleet_options *options,
                    struct weir_error *error);

/* On the loop's thread, or before it runs. */
int fleet_thread_open(struct fleet_thread **t, struct weir_fleet *fleet, uv_loop_t *loop,
                      struct weir_error *error);
/* Answers what is out; its handles close in the next turns of the loop, which frees it. */
void fleet_thread_close(struct fleet_thread *t);

/* As remote_ops.ask, on the loop's thread. */
int fleet_thread_ask(struct fleet_thread *t, const struct remote_question *question,
                     struct remote_answer *answer, remote_done_fn done, void *arg);

/* ---- for metrics ---- */

/* breakers_see() */
size_t fleet_endpoints(const struct weir_fleet *fleet, struct breaker_seen *seen, size_t most);

#endif
