/*
 * weir serve. Each thread has an event loop of its own and its own share of
 * every listening socket. Tables are shared and lock-free, so the thread that
 * accepted a connection reads, decides and answers the requests on it.
 *
 * The operators' listener has a thread of its own. It answers while the other threads are busy, and
 * it does the slow work, such as reading files.
 *
 *   listener.c    addresses -> listening sockets; which of them need secrets
 *   processors.c  how many threads can run at the same time
 *   worker.c      a thread, its loop, the timer that checks its connections
 *   connection.c  bytes in, bytes out, bounds; knows no protocol
 *   connection_accept.c, connection_time.c  when connections begin, and when they
 *                                           have lasted too long
 *   connection_tls.c  TLS between the bytes of a connection and its protocol
 *   server_tls.c  certificates of the listeners, read again when they change
 *   crowd.c, tally.c  which connection makes room for another; counts by address
 *   overload.c    finds input that is too old to be decided
 *   penalty.c     counts wrong secrets, whose refusal is delayed
 *   delays.c      replies that wait for a time
 *   server_fleet.c  the store that a fleet shares: a place on each loop, numbers, the log
 *   pending.c     keeps replies in order when an answer comes later
 *   ../access     secrets and roles
 *   ../record     what threads note while they answer: the keys that are denied most, the history
 *   ../operations  what the protocols share: one form of answer, verbs on keys, reservations
 *   ../status     the numbers of all threads; what operators must know at once, as rows
 *   ../resp, ../http, ../grpc   one protocol each: bytes -> questions -> bytes
 *   ../admin      the operators' routes; metrics.c serves Prometheus
 *   ../sandbox    rules that operators check and try out, on threads of their own
 *   ../app        starts and stops all parts; has the rows of the protocols
 */
#ifndef WEIR_SERVER_LOOP_SERVER_H
#define WEIR_SERVER_LOOP_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include <weir_rules.h>

#include "common/block_notes.h"
#include "common/buffer.h"
#include "common/text.h"
#include "rules/value/address.h"
#include "server/access/access.h"

/* Bounds on the memory and time that clients can take, whatever they send. */
#define SERVER_THREADS_MAX 64
#define SERVER_READ_BYTES 16384         /* buffer for one read, shared by a thread's connections */
#define SERVER_REQUEST_BYTES 278528     /* one request that has not arrived completely */
#define SERVER_FLUSH_BYTES 65536        /* replies that are written before more are composed */
#define SERVER_REPLY_BYTES (1u << 20)   /* one reply, in addition to those */
#define SERVER_OUTPUT_BYTES (16u << 20) /* replies that one client has not fetched yet */
#define SERVER_SEALED_BYTES(n) ((n) + (n) / 64 + 1024u) /* most that TLS makes of n bytes */
#define SERVER_THREAD_OUTPUT_BYTES                                                                 \
    (64u << 20) /* the same for a thread; beyond twice this some connections are closed (crowd.h) */
/* Incomplete requests and handshakes of a thread; beyond this some are closed (crowd.h). */
#define SERVER_THREAD_INPUT_BYTES (64u << 20)
/* What an unfinished handshake of TLS counts there. Measured with OpenSSL 3.0: 41 KB while the
 * client is silent, 44 KB after its hello, 72 KB while a record of 16 KB is incomplete. */
#define SERVER_HANDSHAKE_BYTES 81920u
#define SERVER_RECORD_BYTES 17408u /* the same of an unfinished record, after the handshake */
#define SERVER_IDLE_MS 300000      /* default: a connection may be silent this long */
#define SERVER_REQUEST_MS                                                                          \
    10000                       /* default: a request must end this soon; the first one after
                                     * the connection was accepted */
#define SERVER_WRITE_MS 10000   /* default: a client may fetch no replies this long */
#define SERVER_LINGER_MS 1000   /* from the last reply until the client closes */
#define SERVER_AGE_MS 50        /* age at which input is refused under overload */
#define SERVER_HICCUP_MS 1000   /* input late twice within this time is overload */
#define SERVER_RETRY_MS 1000    /* Retry-After of a 503 */
#define SERVER_FIRST_MS 500     /* server_stop() waits this long for first requests */
#define SERVER_DRAIN_MS 4000    /* server_stop() closes connections after this */
#define SERVER_ADDRESS_MAX 128  /* bytes of a listener's address as text */
#define SERVER_SOCKET_MODE 0660 /* default: of the files of unix sockets */
/* Default: connections of operators, in addition to those of clients. Many, because a client that
 * connects again and again replaces each connection of its address as soon as it has taken all
 * places (crowd.h): an operator beside it needs that time to send a request. Where files are short,
 * an eighth of those, at least SERVER_ADMIN_LEAST. */
#define SERVER_ADMIN_CONNECTIONS 1024
#define SERVER_ADMIN_PER_ADDRESS 512 /* of these, for one address; not more than half of them */
#define SERVER_ADMIN_LEAST 64
#define SERVER_STREAMS 128               /* streams of events, in addition to those */
#define SERVER_STREAM_BYTES (256u << 10) /* events that one client has not fetched yet */
#define SERVER_SAMPLE_MS 1000            /* default: between two samples (server/admin/sample.h) */
#define SERVER_RESERVE 16      /* beyond each of the two bounds, half of it for health checks */
#define SERVER_RESERVE_MS 1000 /* those end this soon */
#define SERVER_BACKLOG 511 /* connections of a listener that wait in the system to be accepted */
#define SERVER_ACCEPTS 4   /* new connections of a listener in one turn of a thread's loop */

/* The name of the built-in limit, whose calls carry their own rate and burst (CL.THROTTLE). */
#define SERVER_ADHOC "adhoc"

enum server_state { SERVER_STARTING, SERVER_READY, SERVER_DRAINING };

/* The listeners. Those from PROTOCOL_ADMIN on are the operators', on a thread of their own. */
enum server_protocol {
    PROTOCOL_RESP,
    PROTOCOL_HTTP,
    PROTOCOL_GRPC,
    PROTOCOL_ADMIN,
    PROTOCOL_METRICS,
    PROTOCOLS
};

/* The content of a reply, by which requests are counted. */
enum request_result {
    REQUEST_OTHER,    /* it asked for no decision: PING, a peek, a page */
    REQUEST_ALLOW,    /* it may pass */
    REQUEST_DENY,     /* it may not pass, now or ever */
    REQUEST_ERROR,    /* it was malformed, or refused, or could not be answered */
    REQUEST_OVERLOAD, /* it was refused because it had waited for too long */
    REQUEST_RESULTS,
    REQUEST_UNTOLD = REQUEST_RESULTS /* it is counted later, or its parts are: not here */
};

struct protocol; /* connection.h */

/* The protocols, put together by the top floor (server/app/protocols.c). */
extern const struct protocol *const server_protocols[PROTOCOLS];

/* Returns the protocol whose name, default address, roles and functions a listener has. */
static inline const struct protocol *protocol_of(unsigned listener)
{
    return server_protocols[listener];
}

/* Returns whether the bounds of clients apply to a listener. Operators have bounds of their own, so
 * that they can connect when there are too many clients. */
static inline bool listener_is_for_clients(unsigned listener)
{
    return listener < PROTOCOL_ADMIN;
}

/* TLS on listeners (server_tls.c). The files are in PEM. */
struct server_tls_options {
    const char *cert;                 /* NULL: no listener speaks TLS */
    const char *key;                  /* NULL: in the file of the certificate */
    const char *client_ca;            /* NULL: clients are not asked for certificates */
    int client_cert;                  /* enum client_cert */
    bool listener[PROTOCOLS];         /* those that speak TLS, unless they are unix sockets */
    const struct texts *names[ROLES]; /* names in certificates that give the role; NULL: none */
};

struct server_options {
    const char *listen[PROTOCOLS];            /* "ADDRESS:PORT", "unix:PATH", "off"; NULL: off */
    const struct protocol *speaks[PROTOCOLS]; /* what is spoken there; NULL: what its name says */
    unsigned threads;                         /* 0: as many as processors_allowed() says */
    unsigned connections; /* most clients of all threads; lowered to fit RLIMIT_NOFILE */
    unsigned operators;   /* the same for operators; 0: SERVER_ADMIN_CONNECTIONS */
    bool inline_commands;
    uint64_t adhoc_keys;  /* capacity for CL.THROTTLE; 0: off */
    int adhoc_on_full;    /* enum weir_on_full */
    bool adhoc_shared;    /* the fleet decides CL.THROTTLE */
    int adhoc_on_failure; /* enum remote_failure, of CL.THROTTLE */
    uint64_t idle_ms;     /* 0 in these three: SERVER_IDLE_MS, _REQUEST_MS, _WRITE_MS */
    uint64_t request_ms;
    uint64_t write_ms;
    uint64_t sample_ms;       /* 0: SERVER_SAMPLE_MS */
    uint64_t sandbox_idle_ms; /* 0 in these two: SANDBOX_IDLE_MS, SANDBOX_STEP_NS */
    uint64_t sandbox_step_ns;
    bool demo;                 /* clients of the role check have sandboxes with built-in rules */
    int headers;               /* enum ratelimit_format, for HTTP replies */
    unsigned auth_deny_status; /* status of a denial at /v1/auth; 0: 429 */
    const struct cidr_set *trusted; /* proxies whose client fields are believed; NULL: loopback */
    int client_field;               /* enum client_field */
    const struct texts *hosts;      /* further names of this server; NULL: none */
    struct access *access;          /* secrets and roles; NULL: every client may do everything */
    struct server_tls_options tls;
    bool secret_made;         /* the only admin secret is one that was made at the start */
    bool insecure;            /* allows listening beyond loopback without secrets */
    unsigned socket_mode;     /* of unix sockets; 0: SERVER_SOCKET_MODE */
    const char *socket_group; /* of unix sockets: a name or number; NULL: that of the process */
    struct {
        const int *fds; /* sockets of the caller, already bound; listen[] is only shown then */
        unsigned count;
    } given[PROTOCOLS];
    unsigned connections_per_address; /* 0: no bound; unix sockets and `trusted` have none */
    uint64_t max_age_ms;              /* under overload, older input is refused; 0: never */
    uint64_t reservation_ttl_ms;      /* longest time to live of a reservation; 0: the default */
    bool no_page;                     /* the operators' listener does not serve the page */
    /* Called by the thread that reloads, before and after it reads the files; NULL: nothing. */
    void (*reload_begins)(void *arg);
    void (*reload_ended)(void *arg);
    void *reload_arg;
};

struct worker;
struct worker_hooks;
struct penalties;
struct tally;
struct reservations;
struct fleet_numbers;
struct notices;
struct history;
struct top_panes;
struct limit_reasons;

/*
 * A fleet, whose store decides limits of the rules. It must be the fleet that the rules were opened
 * with; all members are NULL if there is none. The functions give it a place on a thread's loop:
 * fleet_serve() fills them in for a real fleet, and a test may provide its own.
 */
struct server_fleet {
    struct weir_fleet *fleet;
    /* Called once, before open(), with the number of threads that will have a place. Returns 0 or
     * WEIR_E...; NULL: nothing is to be done. */
    int (*share)(struct weir_fleet *fleet, unsigned places, struct weir_error *error);
    /* Called before the loop runs. *where is for remote_ops.ask. Returns 0 or WEIR_E... */
    int (*open)(struct weir_fleet *fleet, uv_loop_t *loop, void **where, struct weir_error *error);
    /* Answers all pending questions, at once or by their deadlines, then frees `where`. Called on
     * the loop's thread, or when the loop does not run. */
    void (*close)(void *where);
    /* Called on the same thread, before close(). From now on the fleet takes no units in advance,
     * and it gives back those it has; returns how many milliseconds that may take. */
    uint64_t (*leave)(struct weir_fleet *fleet, void *where);
    /* Reads the numbers for metrics and the log (server_fleet.h), and certificates whose files have
     * changed. */
    void (*read)(struct weir_fleet *fleet, struct fleet_numbers *numbers);
    const char *url; /* of the store, without secrets; NULL: that of the rule file */
};

/* What the log has told about the store (server_fleet.c). {0}: nothing. */
struct store_log {
    enum { STORE_NOT_SEEN, STORE_AWAY, STORE_THERE } state;
    struct weir_error why;          /* why the store was away, or refused calls */
    struct weir_error certificates; /* why those in the files are not used; "": they are */
    uint64_t targets;               /* refused addresses */
    uint64_t evicted;               /* keys, at the last look */
    bool full;                      /* at the last look */
    uint64_t policy, maxclients;    /* for log_once() */
    /* For log_again_after(): */
    unsigned refusals_pause, targets_pause, memory_pause;
};

struct server {
    struct server_options options;
    struct weir_rules *rules;
    struct server_fleet fleet;
    struct weir *adhoc; /* NULL: off, or the fleet decides it: */
    void *adhoc_remote; /* a limit of the fleet; NULL: off, or decided here */
    struct block_notes adhoc_notes;
    uint64_t adhoc_shadow; /* 1: `adhoc` denies nothing, because of the kill switch */
    struct reservations *reservations;
    struct denied_log *denied_log; /* server/record/denied_log.h */
    struct notices *notices;       /* server/status/notices.h */
    struct top_panes *panes;       /* server/record/top_panes.h; the operators' thread's */
    struct limit_reasons *reasons; /* server/record/limit_reasons.h */
    struct history *history;       /* server/record/history.h; NULL: operators have no listener */
    struct tally *clients;         /* connections of each address, and ... */
    struct tally *operators;       /* ... those of the operators' listener */
    struct penalties *penalties;
    struct server_tls *tls;      /* server_tls.c; NULL: no listener speaks TLS */
    struct sandboxes *sandboxes; /* server/sandbox/sandboxes.h */
    struct worker *workers;
    unsigned workers_count;           /* including the operators' thread */
    const struct worker_hooks *hooks; /* of the operators' thread; NULL: none */
    unsigned steps;                   /* parts that are open (server/app/start.c) */
    bool operated;                    /* operators have a listener, and a thread for it */
    unsigned threads;                 /* workers that answer clients: the first ones of the array */
    bool made_file[PROTOCOLS];        /* the file of a unix socket, which server_stop() removes */
    uint64_t state;                   /* enum server_state */
    uint64_t connections;             /* open connections of clients */
    uint64_t started_ns;
    uint64_t told_untrusted; /* 1: it was logged that fields of untrusted peers are ignored */
    uint64_t drained;        /* clients' threads that have answered everything and end */
    struct store_log store_log;
    uint64_t pings;   /* number of server_ping() calls */
    uint64_t reloads; /* successful reloads of the rules */
    uint64_t reloads_failed;
    uint64_t renewals; /* of the certificate, and those that failed */
    uint64_t renewals_failed;
    uint64_t loaded_ns; /* Unix time at which the present rules were read */
    int failed;         /* after server_start(): the listener that could not be opened, or -1 */
};

/*
 * Binds the sockets, starts the threads, and returns when they listen. *server belongs to the
 * caller, who has set its options, rules and fleet. Returns 0; or WEIR_E..., with everything
 * undone.
 */
int server_start(struct server *server, struct weir_error *error);

/*
 * Reads the rules, the secrets and the certificate again, and logs the result. Each of them is
 * replaced only if it could be read. The messages about the rules are put into `messages`, each
 * followed by a NUL; NULL: only into the log and the history. Returns 0, or WEIR_E... if one stays
 * as it was; error may be NULL. May be called from any thread; a second caller waits until the
 * first one has finished.
 */
int server_reload(struct server *server, struct buffer *messages, struct weir_error *error);

/*
 * Does the same only if is_due() returns true, which is called while no other thread reloads: so it
 * can find that another thread has just read the same files. Otherwise returns 0.
 */
int server_reload_if(struct server *server, bool (*is_due)(void *arg), void *arg,
                     struct buffer *messages, struct weir_error *error);

/* ---- TLS (server_tls.c) ---- */

/* Reads the certificate, if the options name one. Returns 0 or WEIR_E... */
int server_tls_open(struct server *server, struct weir_error *error);
void server_tls_close(struct server *server);

/*
 * Reads the certificate, its key and the CAs of clients again if their files have changed, and logs
 * the result. Connections keep the old ones. Returns 0, or WEIR_E... if the old ones stay for new
 * connections too.
 */
int server_tls_reload(struct server *server, struct weir_error *error);

bool server_speaks_tls(const struct server *server, unsigned listener);

/* Returns a session for a new connection, or NULL without memory. */
struct tls_session *server_tls_session(struct server *server, const struct protocol *protocol);

/* Returns the Unix time, in seconds, at which the certificate ends; 0 if there is none. */
int64_t server_tls_expires(const struct server *server);

/* Logs a warning for each listener that other machines can reach without TLS. */
void server_tls_warn(const struct server *server);

/* Returns the number of changes of the rules. */
uint64_t server_generation(const struct server *server);

/*
 * Logs a message about rules, and appends it to the buffer `arg`, followed by a NUL; NULL: it is
 * only logged. It is to be weir_rules_options.message of the rules that a server uses.
 */
void server_log_message(void *arg, const struct weir_rules_message *message);

/* Asks every thread for a sign of life. server_answered() returns whether all have given it since.
 * Must not be called while the server stops. */
void server_ping(struct server *server);
bool server_answered(const struct server *server);

/* Stops accepting, answers what has arrived, and ends the threads. Connections that are not done
 * after SERVER_DRAIN_MS are closed. */
void server_stop(struct server *server);

/* Writes the address of a TCP socket, "127.0.0.1:6380" or "[::1]:6380". Returns false for others.
 */
bool listener_print(const struct sockaddr_storage *bound, char *text, size_t size);

/* Returns whether it is an IP address of this machine alone: 127.0.0.0/8, ::1. */
bool listener_is_loopback(const struct sockaddr_storage *bound);

/* Returns the port of an IP address, 0 for other addresses. */
uint16_t listener_port(const struct sockaddr_storage *bound);

/* Returns the address that a listener was really bound to ("127.0.0.1:6380"),
 * or "off", in `text`. */
const char *server_address(const struct server *server, enum server_protocol protocol, char *text,
                           size_t size);

/* Returns the client's address for the log, printed into ADDRESS_MAX bytes, or "unix". */
static inline const char *peer_print(const struct address *peer, char *text)
{
    return peer->family != 0 ? address_print(peer, text) : "unix";
}

static inline bool server_has_adhoc(const struct server *server)
{
    return server->adhoc != NULL || server->adhoc_remote != NULL;
}

/* Returns whether this is the name of the built-in limit, which gets its rate with each call. */
static inline bool server_is_adhoc(const struct server *server, struct weir_text limit)
{
    return server_has_adhoc(server) && text_is(limit, SERVER_ADHOC);
}

#endif
