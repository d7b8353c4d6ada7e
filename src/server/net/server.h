/*
 * weir serve: threads, each with an event loop of its own and its own share of
 * every listening socket; tables are shared and lock-free, so a request is
 * read, decided and answered by the thread that accepted its connection.
 *
 * The operators' listener has a thread of its own, which answers while the others are busy and
 * does what takes long, such as reading files.
 *
 *   listener.c    addresses -> listening sockets
 *   processors.c  how many threads there is room for
 *   reload.c      the rules again
 *   worker.c      a thread, its loop, its connections' clock
 *   connection.c  bytes in, bytes out, bounds; knows no protocol
 *   overload.c    which input is too old to be decided
 *   server_fleet.c  the store that a fleet shares: a place on each loop, numbers, the log
 *   deferred.c    answers that come later keep their place
 *   ../resp, ../http   one protocol each: bytes -> questions -> bytes
 *   ../ask        what these have in common: one answer on every wire, verbs, reservations
 *   ../admin      what operators ask and change, metrics.c what their machines do
 */
#ifndef WEIR_SERVER_NET_SERVER_H
#define WEIR_SERVER_NET_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include <weir_rules.h>

#include "common/buffer.h"
#include "common/text.h"
#include "rules/value/address.h"

/* Bounds. Whatever a stranger sends, this is all that it can take. */
#define SERVER_THREADS_MAX 64
#define SERVER_READ_BYTES 16384         /* one read, shared by the connections of a thread */
#define SERVER_REQUEST_BYTES 278528     /* one request that has not arrived as a whole yet */
#define SERVER_FLUSH_BYTES 65536        /* replies that are written before more are made */
#define SERVER_REPLY_BYTES (1u << 20)   /* one reply, behind those */
#define SERVER_OUTPUT_BYTES (16u << 20) /* replies that a client has not fetched yet, ... */
#define SERVER_THREAD_OUTPUT_BYTES                                                                 \
    (64u << 20) /* ... and of a thread, before the one with most is cut off: twice this */
#define SERVER_THREAD_INPUT_BYTES (64u << 20) /* incomplete requests of a thread, likewise */
#define SERVER_IDLE_MS 300000                 /* a connection that says nothing */
#define SERVER_REQUEST_MS 10000               /* a request that has begun and does not end */
#define SERVER_WRITE_MS 10000                 /* replies that nobody fetches */
#define SERVER_LINGER_MS 1000                 /* between the last reply and the client's own end */
#define SERVER_AGE_MS 50                      /* input under overload */
#define SERVER_HICCUP_MS 1000                 /* late twice within this is overload */
#define SERVER_RETRY_MS 1000                  /* when to come again, after 503 */
#define SERVER_FIRST_MS 500                   /* server_stop() waits for a first request */
#define SERVER_DRAIN_MS 5000                  /* server_stop() */
#define SERVER_ADMIN_CONNECTIONS 64           /* of operators, besides those of clients */

/* The built-in limit, of calls that bring their numbers along (CL.THROTTLE). */
#define SERVER_ADHOC "adhoc"

enum server_state { SERVER_STARTING, SERVER_READY, SERVER_DRAINING };

enum server_protocol { PROTOCOL_RESP, PROTOCOL_HTTP, PROTOCOL_ADMIN, PROTOCOLS };

struct server_options {
    const char *listen[PROTOCOLS]; /* "ADDRESS:PORT", "unix:PATH", "off" */
    unsigned threads;              /* 0: as many as there are processors for us */
    unsigned connections;          /* of all threads; fewer if there are not as many files */
    bool inline_commands;
    uint64_t adhoc_keys; /* of CL.THROTTLE; 0: off */
    int adhoc_on_full;   /* enum weir_on_full */
    uint64_t idle_ms;    /* these three: 0 is SERVER_IDLE_MS, ... */
    uint64_t request_ms;
    uint64_t write_ms;
    int headers;                    /* enum ratelimit_format: in HTTP answers */
    unsigned auth_deny_status;      /* of /v1/auth; 0: 429 */
    const struct cidr_set *trusted; /* proxies that tell who the client is; NULL: loopback */
    unsigned client_field;          /* the only one they do so by, + 1 (http.h); 0: any of them */
    struct access *access;          /* who may do what; NULL: everybody everything */
    bool insecure;                  /* listen beyond loopback without secrets */
    struct {
        const int *fds; /* the caller's, listening already; the address is for show then */
        unsigned count;
    } given[PROTOCOLS];
    unsigned connections_per_address; /* 0: as many as there may be */
    uint64_t max_age_ms; /* older input is refused when there is too much of it; 0: never */
};

struct worker;
struct peers;
struct reservations;
struct fleet_numbers;

/*
 * A fleet, whose store decides limits of the rules. It is the one that they were opened with; all
 * NULL: none. How it gets a place on a thread's loop is said here: fleet_serve() fills it in for a
 * real one, a test may have its own.
 */
struct server_fleet {
    struct weir_fleet *fleet;
    /* Before the loop runs; *where is for remote_ops.ask. 0 or WEIR_E... */
    int (*open)(struct weir_fleet *fleet, uv_loop_t *loop, void **where, struct weir_error *error);
    /* On the loop's thread, or when it does not run: what is out is answered; then `where` goes. */
    void (*close)(void *where);
    /* Likewise, and before it: nothing is taken in advance any more, and what has been is given back,
     * in so many milliseconds. */
    uint64_t (*leave)(struct weir_fleet *fleet, void *where);
    void (*read)(const struct weir_fleet *fleet, struct fleet_numbers *numbers); /* fleet.h */
};

struct server {
    struct server_options options;
    struct weir_rules *rules;
    struct server_fleet fleet;
    struct weir *adhoc;    /* NULL: off */
    uint64_t adhoc_shadow; /* 1: it denies nothing, by the kill switch */
    struct reservations *reservations;
    struct peers *peers; /* NULL: no bound for one address */
    struct worker *workers;
    unsigned workers_count;    /* with the operators' own */
    unsigned threads;          /* those that answer clients: the first ones */
    bool made_file[PROTOCOLS]; /* of a unix socket: it goes with us */
    uint64_t state;            /* enum server_state */
    uint64_t connections;      /* of clients, open now */
    uint64_t started_ns;
    uint64_t told_untrusted;   /* 1: it has been logged that such fields are ignored */
    uint64_t told_disagreeing; /* likewise */
    uint64_t drained;          /* threads that have answered everything and end */
    bool store_told;           /* these three: what the log has said of the store (fleet.c) */
    bool store_up;
    struct weir_error store_why;
    unsigned store_quiet; /* looks until it may be told again what it refuses */
    uint64_t pings;       /* signs of life that were asked for */
    uint64_t reloads;     /* that succeeded, and ... */
    uint64_t reloads_failed;
    uint64_t loaded_ns; /* when the present rules were read: Unix time */
    int failed;         /* server_start(): the listener that could not be opened, or -1 */
};

/*
 * Binds, starts the threads, returns when they listen. *server is the caller's;
 * its options and rules are given. 0, or WEIR_E... and nothing is left behind.
 */
int server_start(struct server *server, struct weir_error *error);

/*
 * Reads the rules and the secrets again, and says in the log what came of it. 0, or
 * WEIR_E... and the old ones stay; *error may be NULL. From any thread.
 */
int server_reload(struct server *server, struct weir_error *error);

/*
 * weir_rules_options.message of rules that a server uses: into the log. What is said to a thread
 * between server_listen(messages) and server_listen(NULL) is also put there, with a NUL behind each.
 */
void server_log_message(void *arg, const struct weir_rules_message *message);
void server_listen(struct buffer *messages);

/* Asks every thread for a sign of life; and whether all have given it since. Not while stopping. */
void server_ping(struct server *server);
bool server_answered(const struct server *server);

/* Stops accepting, lets what has arrived be answered, ends the threads: in SERVER_DRAIN_MS. */
void server_stop(struct server *server);

/* The address that a listener was really bound to ("127.0.0.1:6380"); "off". */
const char *server_address(const struct server *server, enum server_protocol protocol, char *text,
                           size_t size);

#endif
