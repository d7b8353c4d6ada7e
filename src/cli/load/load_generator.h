/* One thread of the load generator: its connections, its part of the schedule, its results. */
#ifndef WEIR_CLI_LOAD_LOAD_GENERATOR_H
#define WEIR_CLI_LOAD_LOAD_GENERATOR_H

#include "cli/load/load_connection.h"

/* One thread and its share of the connections and of the rate. */
struct generator {
    const struct load_plan *plan;
    const struct load_target *target;
    struct load_connection *connections;
    unsigned count;
    unsigned next; /* connection to be asked for room first */
    unsigned open;
    uint64_t in_flight; /* of all connections */
    struct load_connection **touched;
    unsigned touched_count;
    int poll;
    struct load_keys keys;

    uint64_t begin_ns; /* of the warm-up */
    uint64_t count_ns; /* from here on what is due is counted */
    uint64_t end_ns;   /* and from here on nothing is due */
    uint64_t due_ns;   /* when the next request is */
    double due;        /* the same, exactly: nanoseconds behind begin_ns */
    double gap_ns;     /* mean of the schedule; 0: closed loop */
    uint64_t random;
    uint64_t made;  /* requests so far ... */
    uint64_t limit; /* ... and how many there may be */
    uint64_t last_reply_ns;
    struct load_result result;
    int error; /* errno of a connection that could not be opened; -1: not a reply */
};

/* Thread i of plan->threads, connected. 0 or -1 with g->error set; generator_finish() also then. */
int generator_init(struct generator *g, const struct load_plan *plan,
                   const struct load_target *target, unsigned i);
void generator_finish(struct generator *g);

/* All threads begin at the same time and take turns on the schedule of all of them. */
void generator_set_times(struct generator *g, uint64_t begin_ns, unsigned i);

/* Sends and receives until it is over. */
void generator_run(struct generator *g);

#endif
