/*
 * weir bench load: what clients of a server wait.
 *
 * Open loop: requests have a schedule, which does not know how the server fares.
 * A request that is due while every connection is busy is sent late, and its
 * latency counts from the time at which it should have been sent: a server that
 * stops for a moment delays everybody who came in that moment, and a generator
 * that waits politely would have seen one slow request instead ("coordinated
 * omission"). What is due and never sent or answered counts with the time that it
 * has waited so far.
 *
 * Closed loop (rate 0): each connection sends `depth` requests, waits for all of
 * the replies, and sends again. Tells the capacity, not the latency.
 *
 *   bench_load.c             arguments
 *   bench_load_request.c     a request with places for keys -> bytes, once
 *   bench_load_reply.c       where a reply ends, and whether it says yes
 *   bench_load_latency.c     a histogram with a bounded error
 *   bench_load_keys.c        which key is next
 *   bench_load_connection.c  requests in flight on one connection
 *   bench_load_generator.c   the schedule and the connections of a thread, on epoll
 *   bench_load_run.c         threads, and their results as one
 *   bench_load_report.c      the table and the JSON object
 */
#ifndef WEIR_CLI_LOAD_LOAD_H
#define WEIR_CLI_LOAD_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "common/text.h"

/* ---- requests ---- */

enum load_wire { LOAD_RESP, LOAD_HTTP };

#define LOAD_KEY_BYTES 16 /* "key:000000000042": always, so that a request keeps its length */
#define LOAD_KEY_PLACES 8

/* One request, made once; each time it is sent only the keys in it are written anew. */
struct load_request {
    char *bytes;
    size_t len;
    size_t key_at[LOAD_KEY_PLACES];
    unsigned keys;
};

/*
 * From words, in which {key} stands for a key. RESP: a command and its arguments. HTTP: a method, a
 * target, and any number of fields "Name: value"; `body` may be NULL. 0 or WEIR_E...
 */
int load_request_make(struct load_request *request, enum load_wire wire, const char *const *words,
                      unsigned words_count, const char *body, struct weir_error *error);
void load_request_finish(struct load_request *request);

/* Writes a key's number into a copy of the request. */
void load_request_set_key(const struct load_request *request, char *copy, uint64_t key);

/* ---- replies ---- */

enum load_verdict {
    LOAD_ALLOWED,
    LOAD_DENIED,
    LOAD_REFUSED, /* -OVERLOAD, 503: too busy to decide */
    LOAD_OTHER,   /* good, and says neither: PONG, a value */
    LOAD_ERROR,   /* -ERR, 400, ... */
    LOAD_VERDICTS
};

#define LOAD_BROKEN INT64_C(-1)

/* Bytes of the reply that the input begins with; 0: not all there; LOAD_BROKEN: not a reply. */
int64_t load_read_reply(enum load_wire wire, struct text input, enum load_verdict *verdict);

/* ---- latency ---- */

/* From 128 ns on, LOAD_SUB buckets for each doubling: what is told is at most 1/128 too large. */
#define LOAD_SUB_BITS 7
#define LOAD_SUB (1u << LOAD_SUB_BITS)
#define LOAD_BITS_MAX 42 /* 2^42 ns is more than an hour; what is above counts as that */
#define LOAD_BUCKETS ((LOAD_BITS_MAX - LOAD_SUB_BITS + 1) * LOAD_SUB)

struct load_latency {
    uint64_t counts[LOAD_BUCKETS];
    uint64_t count;
    uint64_t sum_ns;
    uint64_t max_ns;
};

void load_latency_add(struct load_latency *l, uint64_t ns);
void load_latency_merge(struct load_latency *into, const struct load_latency *from);

/* The least time within which at least share (0 to 1) of all were done. */
uint64_t load_latency_at(const struct load_latency *l, double share);

/* ---- keys ---- */

enum load_order { LOAD_UNIFORM, LOAD_ZIPF, LOAD_SEQUENTIAL, LOAD_ORDERS };

extern const char *const load_order_names[LOAD_ORDERS];

struct load_keys {
    enum load_order order;
    uint64_t count;
    uint64_t next;        /* sequential */
    uint64_t random;      /* state */
    const uint32_t *zipf; /* a list of draws that all threads share, ... */
    uint64_t zipf_n;      /* ... a power of two of them */
};

uint64_t load_next_key(struct load_keys *keys);

/* ---- a run ---- */

#define LOAD_CONNECTIONS_MAX 20000
#define LOAD_DEPTH_MAX 4096
#define LOAD_THREADS_MAX 16
#define LOAD_KEYS_MAX UINT64_C(100000000)
#define LOAD_GRACE_NS UINT64_C(1000000000) /* for the last replies */

struct load_plan {
    enum load_wire wire;
    const char *address; /* "ADDRESS:PORT", "unix:PATH" */
    struct load_request request;
    unsigned connections; /* of all threads */
    unsigned depth;       /* requests without a reply, of each connection */
    unsigned threads;
    double rate; /* requests a second, of all threads; 0: closed loop */
    bool poisson;
    uint64_t keys;
    enum load_order order;
    uint64_t duration_ns; /* behind the warm-up */
    uint64_t warmup_ns;   /* requests due in it are sent and not counted */
    uint64_t requests;    /* 0: as many as there are in that time */
    uint64_t within_ns;   /* replies in time */
    uint64_t seed;
    bool spin; /* never sleep: the server is not charged for waking us up */
};

struct load_result {
    struct load_latency latency;
    uint64_t verdicts[LOAD_VERDICTS];
    uint64_t within;     /* replies, neither refused nor errors, that came in plan.within_ns */
    uint64_t lost;       /* sent, and no reply: the connection ended, or time was up */
    uint64_t unsent;     /* due, and every connection busy until the end */
    uint64_t elapsed_ns; /* from the first counted request to the last reply */
};

/* 0 or WEIR_E... with the reason. */
int load_run(const struct load_plan *plan, struct load_result *result, struct weir_error *error);

/* ---- the report ---- */

/* Replies of any kind. */
uint64_t load_replies(const struct load_result *result);

void load_print_table(const struct load_plan *plan, const struct load_result *result);
void load_print_json(const struct load_plan *plan, const struct load_result *result);

#endif
