/* A thread of the server: its event loop, its listeners and its connections. */
#ifndef WEIR_SERVER_LOOP_WORKER_H
#define WEIR_SERVER_LOOP_WORKER_H

#include "base/atomic.h"
#include "common/histogram.h"
#include "server/loop/connection.h"
#include "server/loop/delays.h"
#include "server/loop/overload.h"
#include "server/loop/penalty.h"
#include "server/record/limit_reasons.h"

/* Counters that one thread writes and the metrics read. Every member is made of uint64_t. */
struct worker_counts {
    uint64_t accepted[PROTOCOLS];
    uint64_t denied[REQUEST_REASONS]; /* requests of clients, by reason, but for those of LIMIT */
    uint64_t refused;                 /* connections beyond the bound of the server */
    uint64_t timed_out;
    uint64_t requests[REQUEST_RESULTS][PROTOCOLS]; /* when they are answered */
    uint64_t refused_address;                      /* connections beyond the bound of one address */
    uint64_t replaced;                /* closed to make room, by the bound of the server */
    uint64_t replaced_address;        /* the same, by the bound of their address */
    uint64_t replaced_bytes;          /* the same, by the bounds on bytes of their thread */
    uint64_t refused_access;          /* wrong secrets, and requests without the role */
    uint64_t forwarded_ignored;       /* requests whose fields about the client were not believed */
    uint64_t hits_given;              /* limits to which negative hits gave units back */
    uint64_t hits_withheld;           /* limits to which they were not allowed to */
    uint64_t bad_calls;               /* calls of Envoy's service whose content made them fail */
    uint64_t bad_calls_denied;        /* calls of Envoy's service whose content made them denied */
    uint64_t calls_unread_value;      /* calls with an attribute that cannot be read */
    uint64_t calls_unread_cost;       /* calls with a cost that cannot be read */
    uint64_t forwarded_refused;       /* requests whose fields leave the client's address unclear */
    struct histogram took[PROTOCOLS]; /* from reading a request to composing its reply */
    uint64_t open[PROTOCOLS];         /* connections that are open now */
    uint64_t pending;                 /* requests whose answer came, or will come, later */
    uint64_t abandoned;               /* such requests whose client closed before the answer */
    uint64_t delayed;                 /* refusals of wrong secrets that were delayed */
    uint64_t held;                    /* replies to gateways that were held back */
    uint64_t holding;                 /* of these, replies that are held back now */
    uint64_t held_abandoned;    /* of these, replies whose client left before they were sent */
    uint64_t unheld;            /* questions of gateways for whose reply there was no place */
    uint64_t handshakes;        /* of TLS that were completed */
    uint64_t handshakes_failed; /* those that failed, or were plain text */
    uint64_t streams;           /* streams of events that are open now; part of `open` */
    uint64_t streams_dropped;   /* those that ended because of their client or the secrets */
};

/* What the floors above do on the operators' thread, in its loop (server.hooks). */
struct worker_hooks {
    int (*open)(struct worker *w, struct weir_error *error); /* before it runs: 0 or WEIR_E... */
    void (*tick)(struct worker *w);   /* in each turn of the thread's timer */
    void (*close)(struct worker *w);  /* when the thread takes no more connections */
    void (*finish)(struct worker *w); /* when it has ended: frees what open() has made */
};

struct worker {
    struct server *server;
    unsigned number;
    uv_thread_t thread;
    bool made;    /* the loop was initialised */
    bool started; /* the thread runs */
    uv_loop_t loop;
    uv_async_t stop;
    uv_async_t ping;
    uint64_t answered; /* the last of server->pings that the loop has seen */
    uv_async_t room;
    uint64_t room_wanted; /* how many connections other threads want to be closed */
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
        bool loopback; /* it is bound to an IP address that only this machine can reach */
        uint16_t port; /* it is bound to this port; 0 for a unix socket */
        bool stalled;  /* a new connection waits until there is memory for it */
        bool waits;    /* a new connection waits for the next turn of the loop */
        unsigned turn; /* connections accepted in this turn */
    } listeners[PROTOCOLS];
    struct connection *connections;
    struct crowd crowds[CROWDS];
    bool stopping;
    uint64_t stopped_ms; /* when `stopping` was set */
    struct overload overload;
    uint64_t now_ns;          /* time of the rules for the batch of requests being decided */
    uint64_t began_ns;        /* when that batch was begun, by clock_boot_ns() */
    struct buffer replies;    /* replies to that batch */
    struct buffer plain;      /* what TLS has made of the bytes that were read */
    struct buffer cipher;     /* what TLS has made of the bytes that are to be written */
    size_t split;             /* replies from this byte on wait for the last pending one */
    void *where;              /* the fleet's place on this loop (common/remote.h); NULL: no fleet */
    struct pending *spare;    /* for the next question to the fleet; may be NULL */
    struct connection *ready; /* list of connections that have answers to write */
    uv_check_t after_poll;
    uv_prepare_t before_sleep;
    struct delays delays;
    uv_idle_t awake;   /* active while there are answers to write: the loop must not sleep */
    uint64_t leave_ms; /* while stopping: until when the fleet may give back; 0: not asked yet */
    struct worker_counts counts;
    struct events *events; /* of the operators' thread: made by its hooks; may be NULL */
    struct top *top;       /* what it denies (top_denied.h); server_stop() frees it */
    char read[SERVER_READ_BYTES];
};

/* Counts n requests of a listener that have been answered. Each question of a batch, and each
 * command of an EXEC, is a request. */
static inline void worker_count_requests(struct worker *worker, enum server_protocol listener,
                                         enum request_result result, uint64_t n)
{
    if (result < REQUEST_RESULTS) {
        count_own(&worker->counts.requests[result][listener], n);
    }
}

/* Counts a denied request by a reason other than the units of its limit: worker_count_reason(). */
void worker_count_rare(struct worker *worker, enum server_protocol listener, int reason,
                       const char *limit);

/* Counts a request by the reason of its denial. Those of WEIR_REASON_LIMIT are the
 * rest, which costs them nothing. A denial without a key (WEIR_REASON_MISSING) is one
 * of those denied most, too. */
static inline void worker_count_reason(struct worker *worker, enum server_protocol listener,
                                       enum request_result result, int reason, const char *limit)
{
    if (result == REQUEST_DENY && reason != WEIR_REASON_LIMIT) {
        worker_count_rare(worker, listener, reason, limit);
    }
}

/* Returns whether one more request may be answered before the present replies are written. */
static inline bool connection_takes(const struct connection *c)
{
    return buffer_len(&c->worker->replies) < SERVER_FLUSH_BYTES && pending_has_room(&c->pending);
}

/* Returns whether the request that begins at this byte has waited for too long. */
static inline bool worker_is_stale(const struct worker *worker, const char *request)
{
    return __builtin_expect(worker->overload.fresh != NULL && request < worker->overload.fresh, 0);
}

/* Opens the loop and its handles. Takes over the sockets (by protocol, -1: none), also on error.
 * Returns 0 or WEIR_E...; worker_finish() must be called in either case. */
int worker_init(struct worker *worker, struct server *server, unsigned number, const int *sockets,
                struct weir_error *error);
int worker_start(struct worker *worker, struct weir_error *error);
void worker_ping(struct worker *worker); /* asks for a sign of life; call from another thread */
void worker_stop(struct worker *worker); /* asks the thread to end; call from another thread */
void worker_join(struct worker *worker); /* waits until it has ended */

/* Frees what a thread used that has ended or never ran. No thread may ask it for room any more. */
void worker_finish(struct worker *worker);

/* Asks the thread to close an idle connection; called by other threads. */
void worker_ask_for_room(struct worker *worker);

/*
 * How a port is bound: by one socket (ALONE), or by one for each thread (FIRST, then MORE).
 * Binding the first one fails if another server has the port; that server would otherwise
 * silently take half of the connections.
 */
enum listener_share { LISTENER_ALONE, LISTENER_FIRST, LISTENER_MORE };

/* Returns whether the address has the form "unix:PATH". */
bool listener_is_unix(const char *address);

/* Opens and binds a socket; *fd is -1 if the address is "off". Returns 0 or WEIR_E... */
int listener_open(const char *address, enum listener_share share, int *fd,
                  struct weir_error *error);

/*
 * Checks the group of unix sockets. Logs a warning if a group or a mode is given and the server
 * makes no unix socket. Returns 0 or WEIR_EINVAL.
 */
int listener_check_permissions(const struct server_options *o, struct weir_error *error);

/* Gives the file of a unix socket its mode and group. Returns 0 or WEIR_E... */
int listener_permit(const char *address, const struct server_options *o, struct weir_error *error);

/*
 * Checks that no socket (by protocol, -1: none) accepts connections from other machines without a
 * secret, unless options.insecure allows it. Returns 0 or WEIR_EINVAL.
 */
int exposure_check(const struct server_options *o, const int *sockets, struct weir_error *error);

#endif
