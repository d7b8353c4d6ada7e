/*
 * Calls to a store, their way and their replies; without a socket and without a clock. A client
 * belongs to one thread. Who owns the loop is its driver: it makes connections when asked to, moves
 * bytes, and tells the time (any monotonic line, in ns).
 *
 *   client.c    beginning, end, time, what is counted
 *   call.c      a call: its place, its deadline, what may be sent again
 *   link.c      one connection: when it is made, and when it has ended
 *   probe.c     whether calls would be answered there
 *   link_io.c   what is sent on it, and what comes back, in order
 *   greeting.c  how it begins: AUTH, SELECT, SCRIPT LOAD
 *   timers.c    what is due when
 *   breaker.c   whether an endpoint is worth asking
 *   topology.h  which endpoint a slot lives at: alone, by Sentinel, in a Cluster
 *
 * C1  A call ends once, by its deadline, whatever the store does: CLIENT_REPLIED, CLIENT_NOT_RUN
 *     (nothing has happened: it was never sent, or was refused by a reply that proves so), or
 *     CLIENT_UNKNOWN (it was sent, and no reply has come in time, or the connection has ended).
 * C2  A call is sent again only after a reply that proves that it did not run (store_did_not_run(); for
 *     all but NOSCRIPT, MOVED and ASK after a pause that begins with 1 ms), and only within its
 *     deadline. Bytes that were given to the driver count as sent.
 * C3  Everything is bounded: calls in flight, bytes waiting for a link, one connection attempt at a
 *     time for each endpoint. Beyond the bounds a call is refused at once.
 * C4  A reply that comes after its call's deadline is read and dropped; the connection is alive. A
 *     link that has said nothing for 10 deadlines (at least 100 ms) while calls wait is closed.
 * C5  A breaker for each endpoint and process (struct breakers: atomics): open after 5 failures in a
 *     row, or half of at least 20 within a second. Failures are calls that ended UNKNOWN, connections
 *     that could not be made or ended with calls waiting, and BUSY, LOADING, OOM, CLUSTERDOWN,
 *     MASTERDOWN, READONLY, NOREPLICAS, MISCONF; not NOSCRIPT, MOVED, ASK, TRYAGAIN. Open: calls are
 *     refused at once. One probe at a time in the whole process, after a random part of 100 ms, 200 ms,
 *     ... 5 s: a connection if there is none, then PING; after refusals a write of nothing (probe.c).
 *     Its success closes the breaker.
 */
#ifndef WEIR_REDIS_CLIENT_H
#define WEIR_REDIS_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "common/histogram.h"
#include "common/text.h"
#include "redis/reply.h"
#include "redis/script_call.h"
#include "redis/url.h"

struct client;
struct client_link;
struct breakers; /* of a process; redis/breaker.h */

/* Outlives the client, as all that it names. */
struct client_options {
    const struct store_url *url;
    const struct scripts *scripts;
    struct text user; /* empty: none */
    const struct text
        *password; /* looked at within client_up() alone, so that a secret that changes is
                                    read again for each connection; NULL or empty: none */
    struct text sentinel_user; /* the same for Sentinels */
    const struct text *sentinel_password;
    uint64_t deadline_ns; /* of a call that says none */
    unsigned in_flight;   /* most calls; 0: 16384 */
    struct breakers *breakers;
    struct client_metrics *metrics; /* of the process; atomics */
};

/* What the loop does for a client. None of them may call the client back from within. */
struct client_driver {
    void *arg;
    /* Begin to connect; then client_up() or client_down() once. host "/..." is a unix socket. *data is
     * the driver's, of this link. */
    void (*connect)(void *arg, struct client_link *link, struct text host, unsigned port);
    /* There is something to send: client_outgoing() before the loop sleeps again, so that the calls of
     * one turn go out together. */
    void (*wake)(void *arg, struct client_link *link);
    /* Close it, whatever state it is in; no client_down() follows. */
    void (*close)(void *arg, struct client_link *link);
};

/* 0 or WEIR_ENOMEM. client_destroy() ends every call (UNKNOWN or NOT_RUN) and closes every link. */
int client_create(struct client **c, const struct client_options *options,
                  const struct client_driver *driver, uint64_t now_ns);
void client_destroy(struct client *c, uint64_t now_ns);

/* ---- calls ---- */

enum client_end { CLIENT_REPLIED, CLIENT_NOT_RUN, CLIENT_UNKNOWN };

/*
 * reply: what the store said; of NOT_RUN the refusal, or NULL; of UNKNOWN NULL. An error that is none
 * of the known ones (WRONGTYPE, of a damaged state) is a reply. Never called from within client_call();
 * it may make calls.
 */
typedef void (*client_done_fn)(void *arg, enum client_end end, const struct store_reply *reply,
                               uint64_t now_ns);

struct client_call {
    unsigned slot; /* cluster_slot() of its keys */
    const struct script *script;
    struct text
        arguments;  /* script_put_arguments(): number of keys, keys, arguments, as bulk strings */
    unsigned count; /* how many */
    uint64_t deadline_ns; /* on the line of now_ns; 0: now + options.deadline_ns */
};

/* 0: `done` will be called, once. Otherwise nothing happens: WEIR_EIO (a breaker is open, no way to
 * the store), WEIR_EFULL (a bound). */
int client_call(struct client *c, const struct client_call *call, uint64_t now_ns,
                client_done_fn done, void *arg);

unsigned client_in_flight(const struct client *c); /* calls that have not ended */

/* ---- the driver's side ---- */

void *client_link_data(const struct client_link *link);
void client_link_set_data(struct client_link *link, void *data);
/* A Sentinel is at its end: another password, another reason. */
bool client_link_is_sentinel(const struct client_link *link);

/* What the link has to send, empty if nothing; client_sent() takes it from the front, then there may be
 * more. It lives until anything else is done with the client, and counts as sent. */
struct text client_outgoing(struct client_link *link);
void client_sent(struct client_link *link, size_t bytes);

void client_up(struct client_link *link, uint64_t now_ns);
/* False: the client has closed the link (driver.close): that was not what a store says, or there is
 * something wrong with it. */
bool client_received(struct client_link *link, struct text bytes, uint64_t now_ns);
void client_down(struct client_link *link, uint64_t now_ns); /* could not be made, or has ended */

/* Deadlines, probes, refreshing. Returns the next time at which something is due; UINT64_MAX: nothing.
 * Call it then, and after every other call that may have changed it. */
uint64_t client_tick(struct client *c, uint64_t now_ns);
uint64_t client_due(const struct client *c);

/* ---- what happened ---- */

/* Why there is no store, in words for a log, without secrets ("127.0.0.1:6379: AUTH: WRONGPASS ..."); ""
 * since it last was there. The text is the same as long as the reason is: say it if it is another one
 * than the last that was said. */
const char *client_last_error(const struct client *c);

struct client_metrics {
    uint64_t calls;
    uint64_t replies;
    uint64_t unknown; /* ended without a reply */
    uint64_t not_run;
    uint64_t resent;
    uint64_t late;         /* replies behind their deadline */
    uint64_t connects;     /* attempts */
    uint64_t up;           /* links that stand now, and that calls go to */
    struct histogram took; /* of replies */
};

#endif
