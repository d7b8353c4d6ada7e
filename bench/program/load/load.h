/*
 * weir-bench load, which `weir bench load` runs: measures how long clients of a server wait.
 *
 * Open loop: requests have a schedule that does not depend on the server. A request that is due
 * while every connection is busy is sent late, and its latency counts from the time at which it
 * should have been sent. A server that stops for a moment delays every request that is due in
 * that moment; a generator that waited for the server would see one slow request instead
 * ("coordinated omission"). A request that is due but never sent or answered counts with the
 * time that it has waited so far.
 *
 * Closed loop (rate 0): each connection sends `depth` requests, waits for all the replies, and
 * sends again. This measures the capacity, not the latency.
 *
 *   load.c             arguments
 *   load_request.c     builds the request's bytes once, with places for keys
 *   load_reply.c       finds where a reply ends, and whether it allows
 *   load_grpc_*.c      the same for gRPC, whose replies come in any order
 *   load_latency.c     a histogram with a bounded error
 *   load_keys.c        chooses the next key
 *   load_zipf.c        skewed keys
 *   load_connection.c  requests in flight on one connection
 *   load_generator.c   the schedule and the connections of a thread, on epoll
 *   load_run.c         starts the threads and adds up their results
 *   load_progress.c    shows on a terminal how far the run is
 *   load_report.c      the table and the JSON object
 */
#ifndef WEIR_BENCH_LOAD_H
#define WEIR_BENCH_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "cli/client_tls.h"
#include "common/buffer.h"
#include "common/text.h"

extern const struct cli_command bench_load_command;

/* ---- requests ---- */

enum load_wire { LOAD_RESP, LOAD_HTTP, LOAD_GRPC };

#define LOAD_KEY_BYTES 16 /* "key:000000000042": fixed, so that a request keeps its length */
#define LOAD_KEY_PLACES 8

/* One request, built once. Each time it is sent, only the keys in it are overwritten. */
struct load_request {
    char *bytes;
    size_t len;
    size_t key_at[LOAD_KEY_PLACES];
    unsigned keys;
    /* These are for gRPC: */
    size_t stream_at[2]; /* places of the stream's number */
    char *opening;       /* what a new connection sends first */
    size_t opening_len;
};

/*
 * Builds a request from words, in which {key} stands for a key. RESP: a command and its
 * arguments. HTTP: a method, a target, and any number of fields "Name: value"; `body` may be
 * NULL. gRPC: the path of a method; `body` is its message in hexadecimal digits. Returns 0 or
 * WEIR_E...
 */
int load_request_make(struct load_request *request, enum load_wire wire, const char *const *words,
                      unsigned words_count, const char *body, struct weir_error *error);
void load_request_finish(struct load_request *request);

/* Appends a key to a request that is being built. Returns false if it has too many. */
bool load_request_put_key(struct load_request *request, struct buffer *bytes);

/* Writes a key's number into a copy of the request. */
void load_request_set_key(const struct load_request *request, char *copy, uint64_t key);

/* ---- replies ---- */

enum load_verdict {
    LOAD_ALLOWED,
    LOAD_DENIED,
    LOAD_REFUSED, /* -OVERLOAD, 503: too busy to decide */
    LOAD_OTHER,   /* success, but neither allows nor denies: PONG, a value */
    LOAD_ERROR,   /* -ERR, 400, ... */
    LOAD_VERDICTS
};

#define LOAD_BROKEN INT64_C(-1)

/*
 * RESP and HTTP: returns the length of the reply at the start of the input; 0: incomplete;
 * LOAD_BROKEN: not a reply.
 */
int64_t load_read_reply(enum load_wire wire, struct weir_text input, enum load_verdict *verdict);

/* ---- latency ---- */

/*
 * From 128 ns on, there are LOAD_SUB buckets for each doubling: a reported time is at most 1/128
 * too large.
 */
#define LOAD_SUB_BITS 7
#define LOAD_SUB (1u << LOAD_SUB_BITS)
#define LOAD_BITS_MAX 42 /* 2^42 ns is more than an hour; longer times count as that */
#define LOAD_BUCKETS ((LOAD_BITS_MAX - LOAD_SUB_BITS + 1) * LOAD_SUB)

struct load_latency {
    uint64_t counts[LOAD_BUCKETS];
    uint64_t count;
    uint64_t sum_ns;
    uint64_t max_ns;
};

void load_latency_add(struct load_latency *l, uint64_t ns);
void load_latency_merge(struct load_latency *into, const struct load_latency *from);

/* Returns the shortest time within which at least share (0 to 1) of all requests were done. */
uint64_t load_latency_at(const struct load_latency *l, double share);

/* ---- keys ---- */

enum load_order { LOAD_UNIFORM, LOAD_ZIPF, LOAD_SEQUENTIAL, LOAD_ORDERS };

extern const char *const load_order_names[LOAD_ORDERS + 1]; /* with NULL after the last */

struct load_keys {
    enum load_order order;
    uint64_t count;
    uint64_t next;        /* next number of a sequential order, or next draw */
    uint64_t random;      /* state of the generator */
    const uint32_t *zipf; /* list of draws, shared by all threads */
    uint64_t zipf_n;      /* their number, a power of two */
};

uint64_t load_next_key(struct load_keys *keys);

/* ---- a run ---- */

#define LOAD_CONNECTIONS_MAX 20000
#define LOAD_DEPTH_MAX 4096
#define LOAD_THREADS_MAX 16
#define LOAD_KEYS_MAX UINT64_C(100000000)
#define LOAD_GRACE_NS UINT64_C(1000000000) /* time to wait for the last replies */

enum load_arrivals { LOAD_CONSTANT, LOAD_POISSON };

struct load_plan {
    enum load_wire wire;
    const char *address; /* "ADDRESS:PORT", "unix:PATH" */
    struct client_tls tls;
    struct load_request request;
    unsigned connections; /* of all threads together */
    unsigned depth;       /* most requests in flight on each connection */
    unsigned threads;
    double rate; /* requests per second of all threads; 0: closed loop */
    enum load_arrivals arrivals;
    uint64_t keys;
    enum load_order order;
    uint64_t duration_ns; /* after the warm-up */
    uint64_t warmup_ns;   /* requests that are due in it are sent but not counted */
    uint64_t requests;    /* most requests; 0: only the time ends the run */
    uint64_t within_ns;   /* replies within this time count as in time */
    uint64_t seed;
    bool spin; /* never sleep, so that the server does not pay for waking this thread */
};

struct load_result {
    struct load_latency latency;
    uint64_t verdicts[LOAD_VERDICTS];
    uint64_t within;     /* replies within plan.within_ns that are neither refused nor errors */
    uint64_t lost;       /* sent without a reply: the connection or the time ended */
    uint64_t unsent;     /* due, but every connection was busy until the end */
    uint64_t elapsed_ns; /* from the first counted request to the last reply */
};

/*
 * Runs the plan. Returns 0, or WEIR_E... and sets *error. If the server goes away during the run,
 * the result has what was counted until then.
 */
int load_run(const struct load_plan *plan, struct load_result *result, struct weir_error *error);

/* ---- the report ---- */

/* Returns the number of replies of any kind. */
uint64_t load_replies(const struct load_result *result);

void load_print_table(const struct load_plan *plan, const struct load_result *result);
void load_print_json(const struct load_plan *plan, const struct load_result *result);

#endif
