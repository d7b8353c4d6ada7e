/* One thread of the load generator: its connections, its part of the schedule, its results. */
#ifndef WEIR_BENCH_LOAD_GENERATOR_H
#define WEIR_BENCH_LOAD_GENERATOR_H

#include "load/load_connection.h"

/* One thread, with its share of the connections and of the rate. */
struct generator {
    const struct load_plan *plan;
    const struct addrinfo *target;
    struct load_connection *connections;
    unsigned count;
    unsigned next; /* connection that is checked for room first */
    unsigned open;
    uint64_t in_flight; /* on all connections */
    struct load_connection **touched;
    unsigned touched_count;
    int poll;
    struct load_keys keys;

    uint64_t begin_ns; /* start of the warm-up */
    uint64_t count_ns; /* requests due from here on are counted */
    uint64_t end_ns;   /* no request is due from here on */
    uint64_t due_ns;   /* when the next request is due */
    double due;        /* the same without rounding: nanoseconds after begin_ns */
    double gap_ns;     /* mean time between requests; 0: closed loop */
    uint64_t random;
    uint64_t made;  /* requests so far */
    uint64_t limit; /* most requests there may be */
    uint64_t last_reply_ns;
    uint64_t replies; /* also of the warm-up; load_progress.c reads it meanwhile */
    struct load_result result;
    /* errno of a connection that could not be opened; -1: received bytes that are not a reply. */
    int error;
};

/*
 * Prepares thread i of plan->threads and opens its connections. Returns 0, or -1 with g->error
 * set. generator_finish() must be called in both cases.
 */
int generator_init(struct generator *g, const struct load_plan *plan, const struct addrinfo *target,
                   unsigned i);
void generator_finish(struct generator *g);

/* Sets the times. All threads begin at the same time and take turns on one common schedule. */
void generator_set_times(struct generator *g, uint64_t begin_ns, unsigned i);

/* Sends and receives until the run is over. */
void generator_run(struct generator *g);

#endif
