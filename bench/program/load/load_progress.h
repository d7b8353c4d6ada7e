/*
 * Shows on a terminal how far a run is. A thread of its own draws, and only reads two counts of
 * each generator, so that requests are not delayed.
 */
#ifndef WEIR_BENCH_LOAD_PROGRESS_H
#define WEIR_BENCH_LOAD_PROGRESS_H

#include <pthread.h>

#include "load/load_generator.h"

struct load_progress {
    const struct load_plan *plan;
    const struct generator *generators[LOAD_THREADS_MAX]; /* plan->threads of them */
    uint64_t begin_ns;
    pthread_t id;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_on;
    bool ended; /* guarded by lock */
};

/* Starts to draw, unless standard error is no terminal. */
void load_progress_begin(struct load_progress *p);

/* Stops, and clears the line. */
void load_progress_end(struct load_progress *p);

#endif
