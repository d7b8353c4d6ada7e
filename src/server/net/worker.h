/* A thread of the server. */
#ifndef WEIR_SERVER_NET_WORKER_H
#define WEIR_SERVER_NET_WORKER_H

#include "common/histogram.h"
#include "server/net/connection.h"
#include "server/net/overload.h"

/* Counted by one thread, read by the metrics. */
struct worker_counts {
    uint64_t accepted[PROTOCOLS];
    uint64_t refused; /* connections beyond the bound */
    uint64_t timed_out;
    uint64_t requests[PROTOCOLS];
    uint64_t bad_requests[PROTOCOLS];
    uint64_t overloaded[PROTOCOLS];   /* refused because their input had become too old */
    uint64_t refused_address;         /* connections beyond the bound of one address */
    uint64_t refused_access;          /* wrong secrets, and requests without the role */
    uint64_t forwarded_ignored;       /* fields about the client from somebody who is not trusted */
    struct histogram took[PROTOCOLS]; /* from a request's bytes to its reply's */
    uint64_t open[PROTOCOLS];         /* connections, now */
    uint64_t deferred;                /* requests whose answer came, or will come, later */
    uint64_t abandoned;               /* of them those whose client did not wait */
};

struct worker {
    struct server *server;
    unsigned number;
    uv_thread_t thread;
    bool made; /* the loop is there */
    bool started;
    uv_loop_t loop;
    uv_async_t stop;
    uv_async_t ping;
    uint64_t answered; /* the last ping that the loop has seen */
    uv_timer_t tick;
    uv_prepare_t before_poll;
    struct {
        union {
            uv_handle_t handle;
            uv_stream_t stream;
            uv_tcp_t tcp;
            uv_pipe_t pipe;
        } uv;
        bool open;
        bool stalled; /* a connection waits for memory */
    } listeners[PROTOCOLS];
    struct connection *connections;
    bool stopping;
    uint64_t stopped_ms; /* since when */
    size_t unsent;       /* replies of all connections that are not out yet */
    size_t kept;         /* requests of all connections that have not arrived as a whole */
    struct overload overload;
    uint64_t now_ns;       /* of the batch of requests being decided */
    uint64_t began_ns;     /* when it was begun, on another line */
    struct buffer replies; /* to it */
    size_t split;          /* what is behind this of them waits for the last deferred */
    void *where;           /* the fleet's thread here (common/remote.h); NULL: no fleet */
    struct deferred *spare;
    struct connection *ready; /* those that have answers to write */
    uv_check_t after_poll;
    uv_prepare_t before_sleep;
    uv_idle_t awake;   /* running: the loop must not sleep, there are answers to write */
    uint64_t leave_ms; /* while stopping: when the fleet has got its moment; 0: not asked yet */
    struct worker_counts counts;
    struct top *top; /* whom it denies most (top.h); server_stop() ends it */
    char read[SERVER_READ_BYTES];
};

/* Whether one more request may be answered before what is there is written. */
static inline bool connection_takes(const struct connection *c)
{
    return buffer_len(&c->worker->replies) < SERVER_FLUSH_BYTES && deferred_has_room(&c->pending);
}

/* Whether a request that begins here has waited for too long. */
static inline bool worker_is_stale(const struct worker *worker, const char *request)
{
    return __builtin_expect(worker->overload.fresh != NULL && request < worker->overload.fresh, 0);
}

/* Opens the loop and its handles, for sockets that listener_open() has made: they are the worker's
 * now. 0 or WEIR_E...; worker_finish() also then. */
int worker_init(struct worker *worker, struct server *server, unsigned number, const int *sockets,
                struct weir_error *error);
int worker_start(struct worker *worker, struct weir_error *error);
void worker_ping(struct worker *worker);   /* asks for a sign of life; from another thread */
void worker_stop(struct worker *worker);   /* asks it to end; from another thread */
void worker_finish(struct worker *worker); /* waits until it has ended */

/*
 * How a port is bound: by one socket, or by one for each thread. The first of those makes sure that
 * nobody else has the port: a second server there would quietly take half of the connections.
 */
enum listener_share { LISTENER_ALONE, LISTENER_FIRST, LISTENER_MORE };

/* "unix:PATH" */
bool listener_is_unix(const char *address);

/* A bound socket, or -1: off. 0 or WEIR_E... */
int listener_open(const char *address, enum listener_share share, int *fd,
                  struct weir_error *error);

/*
 * Refuses sockets (by protocol, -1: none) that others than this machine can connect to without a
 * secret, unless that is what the options say. 0 or WEIR_EINVAL.
 */
int exposure_check(const struct server_options *o, const int *sockets, struct weir_error *error);

#endif
