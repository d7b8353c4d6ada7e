/*
 * A fleet: the sockets, threads and clock of a store, that is, src/redis and src/shared on libuv.
 *
 *   fleet.c          weir_fleet_open(): options, and the part that the process shares
 *   secret.c         the passwords
 *   nodes_file.c     the number of nodes, kept over restarts
 *   fleet_thread.c   the part of one loop: a struct store, its timer, its sockets; and the
 *                    functions by which rules ask it: common/remote.h
 *   socket.c         the connection of a link: reading, writing; socket_connect.c:
 *                    names, connecting; socket_tls.c: TLS
 *   loop.c           the fleet's own threads, which others reach by a queue (queue.h),
 *                    or the caller's loop
 *   place.c          a place on a loop of a server: with a store, or one that asks the fleet's
 *                    threads
 *   fleet_limits.c   weir_fleet_limit_..., and the calls that ask and change them
 *   ring.c           weir_ring_...
 *
 * A worker of `weir serve` opens a place on its own loop.
 */
#ifndef WEIR_FLEET_FLEET_H
#define WEIR_FLEET_FLEET_H

#include <pthread.h>
#include <sys/types.h>

#include <uv.h>

#include <weir_fleet.h>

#include "common/redact.h"
#include "common/remote.h"
#include "redis/breaker.h"
#include "rules/value/address.h"
#include "shared/store/store.h"
#include "tls/tls.h"

struct fleet_loop;
struct fleet_thread;

struct weir_fleet {
    struct remote_face face; /* first: common/remote.h */
    struct store_shared *shared;
    struct store_url url;
    struct breakers *breakers;
    struct client_metrics metrics;
    struct weir_fleet_options options; /* with copies of its texts */
    struct redact redact;              /* takes the passwords out of messages */
    struct cidr_set *networks;         /* options.networks; NULL: any */
    struct nodes_file *nodes_file;     /* NULL: the number of nodes is not kept */
    struct tls_context *tls;           /* NULL: without TLS; guarded by `tls_lock` */
    struct weir_error tls_trouble;     /* why new certificates are not used; likewise */
    pthread_mutex_t tls_lock;          /* held while certificates are read, which may take long */
    uint64_t targets_refused;          /* announced addresses that were not in `networks` */
    char last_refused[300];            /* the last one; guarded by `lock` */
    struct fleet_loop *loop;           /* the first of its own ones, or the caller's; NULL: none */
    struct fleet_loop *turn;           /* of the next place that shares; NULL: the first */
    bool bare;                         /* a server's: only places ask */
    unsigned connections;              /* a server's: most to each primary; 0: each place has one */
    unsigned links_each;               /* a server's: connections that it makes to each primary */
    pthread_mutex_t lock;              /* guards `threads` and their `trouble`; held briefly */
    struct fleet_thread *threads;
    pid_t process; /* the process that opened it */
};

extern const struct remote_ops fleet_ops;

/* Opens a fleet for a server, which may then set `connections`, and adds its threads with
 * fleet_share() and fleet_place_open() (place.h). */
int fleet_open_bare(struct weir_fleet **fleet, const struct weir_fleet_options *options,
                    struct weir_error *error);

/* Keeps the number of nodes in this file, and begins with the number that is in it. Call it before
 * the first fleet_place_open(). Returns 0 or WEIR_EIO: then the number is not kept.
 * fleet_forget_nodes() ends it, after the last use of the fleet. */
int fleet_keep_nodes(struct weir_fleet *fleet, const char *path, struct weir_error *error);
void fleet_forget_nodes(struct weir_fleet *fleet);

/* Must be called on the loop's thread, or before the loop runs. */
int fleet_thread_open(struct fleet_thread **t, struct weir_fleet *fleet, uv_loop_t *loop,
                      struct weir_error *error);
/* Answers pending questions. The handles close in the next turns of the loop, and the last of them
 * frees the thread. */
void fleet_thread_close(struct fleet_thread *t);

/* Like remote_ops.ask. Must be called on the loop's thread. */
int fleet_thread_ask(struct fleet_thread *t, const struct remote_question *question,
                     struct remote_answer *answer);

/* ---- for metrics ---- */

/* Returns the Unix time, in seconds, at which the own certificate ends that the next connection
 * uses: files that have changed are read. 0: there is none. */
int64_t fleet_tls_expires(struct weir_fleet *fleet);

/* Writes why certificates that have changed are not used; text "": they are. */
void fleet_tls_trouble(const struct weir_fleet *fleet, struct weir_error *error);

/* Returns how many announced addresses were refused, and copies the last one; "": none was. */
uint64_t fleet_targets_refused(const struct weir_fleet *fleet, char *last, size_t size);

#endif
