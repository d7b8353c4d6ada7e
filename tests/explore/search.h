/* Two ways through the schedules: all of them up to a bound, and at random. */
#ifndef WEIR_EXPLORE_SEARCH_H
#define WEIR_EXPLORE_SEARCH_H

#include "explore/scheduler.h"

/* Runs one schedule from the beginning. Returns what is wrong with it, or NULL. */
typedef const char *(*attempt_fn)(void *arg, struct strategy *strategy, struct run *run);

struct found {
    const char *failure; /* NULL: none */
    uint64_t schedules;
    uint64_t steps;
    unsigned bound; /* preemptions: all schedules with at most so many were run ... */
    bool unbounded; /* ... and there are no others */
    bool any;       /* bound means something: at least bound 0 was exhausted */
};

/*
 * Depth first, with 0, 1, 2, ... preemptions, until there is nothing more to
 * try, `most` preemptions are done or, beyond `least`, `steps` are used up. At
 * most `kills` users die in a run, at any of their points.
 */
struct found search_all(attempt_fn attempt, void *arg, unsigned least, unsigned most,
                        unsigned kills, uint64_t steps);

/*
 * Random priorities, as in PCT (Burckhardt and others, 2010): the highest runs,
 * and at a few random points it becomes the lowest. One run for a seed.
 */
const char *search_random(attempt_fn attempt, void *arg, uint64_t seed, unsigned kills,
                          uint64_t length, struct run *run);

/* A small generator: the same numbers everywhere. */
uint64_t random_next(uint64_t *state);

#endif
