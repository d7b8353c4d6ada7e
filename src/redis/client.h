/*
 * A client of a store: calls, their routes and their replies, without a socket and without a clock.
 * A client belongs to one thread. Its driver, which owns the loop, makes connections when asked to,
 * moves bytes, and supplies the time (any monotonic clock, in ns).
 *
 *   client.c     a client: its time, its beginning and its end
 *   call.c       its calls: made, sent on a link, matched to their replies in order, ended
 *   resend.c     calls that are routed again
 *   link.c       one connection: when it is made, and when it has ended
 *   questions.c  what a client asks on its own account: the greeting, the role, probes
 *   reply.c      replies as bytes
 *   timers.c     timers of calls and links
 *   memory.c     how full the memory of an endpoint is
 *   breaker.c    whether calls should be sent to an endpoint
 *   topology.h   which endpoint serves a slot: a single store, by Sentinel, in a Cluster
 *
 * C1  A call ends exactly once, by its deadline, whatever the store does: CLIENT_REPLIED,
 *     CLIENT_NOT_RUN (nothing has happened: it was never sent, or it was refused by a reply that
 *     proves that it did not run), or CLIENT_UNKNOWN (it was sent, and no reply has come in time,
 *     or the connection has ended).
 * C2  A call is sent again only after a reply that proves that it did not run
 *     (store_did_not_run()), and only within its deadline. After NOSCRIPT, MOVED and ASK it is sent
 *     again at once; after other refusals, and when those repeat, after a pause that begins with
 *     1 ms. Bytes that were given to the driver count as sent.
 * C3  Everything is bounded: calls in flight, bytes waiting for a link, one connection attempt at a
 *     time for each endpoint. Beyond the bounds a call is refused at once.
 * C4  A reply that comes after its call's deadline shows that the endpoint answers again: if its
 *     breaker is open, a probe is made at once. The reply is given to the client_late that the
 *     call's `done` has left, if any. A link that has received nothing for 10 deadlines (at least
 *     100 ms) while replies are pending is closed.
 * C5  There is a breaker for each endpoint and process (struct breakers). It opens after 5 failures
 *     in a row, or when at least half of 20 or more results within a second are failures.
 *     Failures are calls that ended UNKNOWN (except because the client itself has closed the
 *     connection: client_link_drop()), connections that could not be made or ended with replies
 *     pending, and the refusals BUSY, LOADING, OOM, CLUSTERDOWN, MASTERDOWN, READONLY,
 *     NOREPLICAS, MISCONF; not NOSCRIPT, MOVED, ASK, TRYAGAIN. While it is open, calls are refused
 *     at once. One probe at a time is made in the whole process, after a random part of 100 ms,
 *     200 ms, ... 5 s: a connection if there is none, then a call of a script; after
 *     refusals at least once a second, with an empty write (questions.c). A successful probe
 *     closes the breaker.
 * C6  Scripts are loaded when a call needs them: calls go by hash, and the first that is refused
 *     with NOSCRIPT is sent again as text. Of all links of a process to an endpoint, one sends the
 *     text; a connection that is made again sends none if the store knows the scripts.
 * C7  An endpoint whose memory is nearly full (memory.h) must not get new keys: calls that may
 *     create keys (client_call.creates) get the argument "full" after their own, and the script
 *     then answers which keys are absent instead of creating them.
 */
#ifndef WEIR_REDIS_CLIENT_H
#define WEIR_REDIS_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "common/histogram.h"
#include "common/redact.h"
#include "common/text.h"
#include "redis/reply.h"
#include "redis/script_call.h"
#include "redis/url.h"

struct client;
struct client_link;
struct breakers; /* one for each process; redis/breaker.h */

/* The options, and everything that they point to, must outlive the client. */
struct client_options {
    const struct store_url *url;
    const struct scripts *scripts;
    struct weir_text user;          /* empty: none */
    struct weir_text sentinel_user; /* likewise */
    /* Read only within client_up(), and then that of the link: the store's, or that
     * of the Sentinels. So a secret that changes is read again for each connection.
     * NULL or empty: none. */
    const struct weir_text *password;
    /* Learns the passwords, and takes them out of what the store says. NULL: they are not taken
     * out. */
    struct redact *redact;
    /* Says whether calls may go to a host that the URL does not name, because a Sentinel or a node
     * has announced it. Asked for addresses and for names. NULL: they may go to any. */
    bool (*permits)(void *arg, struct weir_text host, unsigned port);
    void *permits_arg;
    uint64_t deadline_ns; /* default for calls without a deadline */
    unsigned in_flight;   /* most calls; 0: 16384 */
    unsigned memory_high; /* percent of maxmemory from which an endpoint is full; 0: not asked */
    struct breakers *breakers;
    struct client_metrics *metrics; /* of the process; atomics */
};

/* What the loop does for a client. None of these functions may call the client, except
 * client_link_data() and client_link_set_data(). */
struct client_driver {
    void *arg;
    /* Begins to connect; then client_up() or client_down() follows, once. If neither does, the
     * client gives up after 10 deadlines (at least 1 s). A host that begins with '/' is the path
     * of a unix socket. The driver may keep a pointer of its own for the link:
     * client_link_set_data(). */
    void (*connect)(void *arg, struct client_link *link, struct weir_text host, unsigned port);
    /* The link has something to send: the driver must call client_outgoing() before the loop sleeps
     * again, so that the calls of one turn go out together. */
    void (*wake)(void *arg, struct client_link *link);
    /* Closes the connection, whatever state it is in; no client_down() follows. */
    void (*close)(void *arg, struct client_link *link);
};

/* client_create() returns 0 or WEIR_ENOMEM. client_destroy() ends every call (UNKNOWN or NOT_RUN)
 * and closes every link. */
int client_create(struct client **c, const struct client_options *options,
                  const struct client_driver *driver, uint64_t now_ns);
void client_destroy(struct client *c, uint64_t now_ns);

/* ---- calls ---- */

enum client_end { CLIENT_REPLIED, CLIENT_NOT_RUN, CLIENT_UNKNOWN };

/*
 * Called when a call has ended. reply: for REPLIED what the store said, for NOT_RUN the refusal or
 * NULL, for UNKNOWN NULL. An error of no known kind (such as WRONGTYPE, for a damaged state) counts
 * as a reply. The function is never called from within client_call(); it may make calls.
 */
typedef void (*client_done_fn)(void *arg, enum client_end end, const struct store_reply *reply,
                               uint64_t now_ns);

struct client_call {
    unsigned slot; /* cluster_slot() of its keys */
    const struct script *script;
    /* Number of keys, keys and arguments, as bulk strings: script_put_arguments(). */
    struct weir_text arguments;
    unsigned count;       /* bulk strings in `arguments` */
    bool creates;         /* it may create keys: C7 */
    uint64_t deadline_ns; /* on the clock of now_ns; 0: now + options.deadline_ns */
};

/* Returns 0, and `done` will be called once. Otherwise nothing happens: WEIR_EIO (a breaker is
 * open, or there is no route to the store), WEIR_EFULL (a bound is reached). */
int client_call(struct client *c, const struct client_call *call, uint64_t now_ns,
                client_done_fn done, void *arg);

/* Receives the reply to a call that has ended before. `fn` is called once; reply NULL: there will
 * be none. */
struct client_late {
    void (*fn)(struct client_late *late, const struct store_reply *reply, uint64_t now_ns);
};

/* Leaves `late` for the reply to a call, within its `done` with CLIENT_UNKNOWN. Returns false if no
 * reply can come any more; then `fn` is not called. */
bool client_await_late(struct client *c, struct client_late *late);

unsigned client_in_flight(const struct client *c); /* calls that have not ended */

/* ---- the driver's side ---- */

void *client_link_data(const struct client_link *link);
void client_link_set_data(struct client_link *link, void *data);
/* Returns true for a link to a Sentinel, which has its own password. */
bool client_link_is_sentinel(const struct client_link *link);
/* Returns true if the URL does not name the link's endpoint (client_options.permits). */
bool client_link_is_announced(const struct client_link *link);

/* client_outgoing() returns the bytes that the link has to send, empty if there are none; they
 * count as sent, and are valid until the next call of any function of the client. client_sent()
 * removes bytes from the front; after that there may be more. */
struct weir_text client_outgoing(struct client_link *link);
void client_sent(struct client_link *link, size_t bytes);

void client_up(struct client_link *link, uint64_t now_ns);
/* Passes received bytes to the client. Returns false if the link is closed (driver.close): the
 * bytes were not a reply of a store, or the link has failed. */
bool client_received(struct client_link *link, struct weir_text bytes, uint64_t now_ns);
/* The connection could not be made, or has ended. */
void client_down(struct client_link *link, uint64_t now_ns);

/* client_tick() handles deadlines, probes and refreshing. Returns the next time at which something
 * is due; UINT64_MAX: nothing is. Call it at that time, and after every other call that may have
 * changed that time. client_due() only returns that time. */
uint64_t client_tick(struct client *c, uint64_t now_ns);
uint64_t client_due(const struct client *c);

/* ---- errors and metrics ---- */

/* Returns why the store is not available, as text for a log, without secrets ("127.0.0.1:6379:
 * AUTH: WRONGPASS ..."); "" once it is available again. The text stays the same as long as the
 * reason does: log it only if it differs from the one logged last. */
const char *client_last_error(const struct client *c);

/* Every member is made of uint64_t. */
struct client_metrics {
    uint64_t calls;
    uint64_t replies;
    uint64_t unknown; /* ended without a reply */
    uint64_t not_run;
    uint64_t resent;
    uint64_t late;         /* replies after their deadline */
    uint64_t connects;     /* attempts */
    uint64_t up;           /* links that are ready for calls now */
    struct histogram took; /* time from a call to its reply */
};

#endif
