/*
 * Two ways through what can happen: all of it, and at random.
 *
 * ALL. A run is a walk through states. In each state every user who can makes
 * its next step, and every user who lives may die; search_all() tries each of
 * these, deep first, and goes back to a copy of the state for the next. There is
 * no bound on switches, every access is a place to switch at, and no order of
 * two steps is left out because it seems not to matter. What makes it end is
 * that a state which is known is not explored again: from equal states follow
 * equal futures.
 *
 * A STATE is all that the future and its judgement follow from:
 *   S1. The memory that users change: parameters, counters, slots, stripes,
 *       records, what each thread keeps for itself, what users have been told.
 *       (Not what threads count for statistics: it is added to and never read.)
 *       Were anything else changed, the end of that run would be a failure.
 *   S2. For each user who lives, how it will go on: its registers and its stack,
 *       byte by byte (moment.c). Nothing else is read by a user: times and keys
 *       are arguments, and everything is at the same address in every run.
 *   S3. Who has ended, who is dead. How many may yet die follows from that.
 * Not in a state: who ran last, how many steps there were, who has waited how
 * long. Nothing follows from them.
 *
 * WHY NOTHING IS LOST. A step is a function of the state: it makes equal states
 * of equal states. So by induction over its steps any run can be followed from
 * state to equal state through those that were explored, and it ends as one of
 * them did. What is judged on the way (states of keys, G6) is judged in each
 * step from each state; what is judged at the end (what users were told, what is
 * left) is part of the last state.
 *
 * STEPS are an atomic access, a word of a record or of parameters, or a lock
 * operation, and what the user then does on its own up to the next. A lock can
 * be taken while it is free; that nobody can make a step is a deadlock.
 *
 * DEATHS come between two steps of a user, at any time of the others. The dead
 * make no steps, and their locks are free (robust locks); their stacks are no
 * part of a state. A death that leads to a known state is not tried. After its
 * last access of an operation a user changes nothing that others see, so that
 * to die then is to die a little later, or to have been told and not to care.
 *
 * PAUSES end at once, if the search likes: nobody is assumed to be quick. Who
 * looks in vain again and again comes back to a state in which it was. If there
 * is a way round without a pause, that is a livelock, and a failure. With a
 * pause it is not: the engine counts its attempts and does not go round for
 * ever. The engine that is explored does not count them (small.cmake), or a
 * state would be another one after each attempt; test_hasty.c has one that
 * counts to one.
 *
 * That this is so is tested: test_explorer.c compares with all schedules, one by
 * one, where that can be done; test_two_users.c with runs at random elsewhere.
 */
#ifndef WEIR_EXPLORE_SEARCH_H
#define WEIR_EXPLORE_SEARCH_H

#include "explore/scheduler.h"

/* What is explored. */
struct subject {
    struct task task;
    void (*reset)(void *arg);                       /* everything as it was at the beginning */
    const char *(*judge)(void *arg, unsigned dead); /* what is wrong at the end, or NULL */
    void *arg;
};

struct how {
    unsigned kills;
    bool merge;           /* do not explore a state twice */
    uint64_t states_most; /* give up after so many */
};

struct found {
    const char *failure; /* NULL: none */
    bool complete;       /* everything was explored: no bound was met, and nothing failed */
    uint64_t states;     /* different ones, if merged */
    uint64_t steps;      /* from them */
    uint64_t schedules;  /* run to their end, or to a state that was known */
    uint64_t ends;       /* different ones: memory, what users were told, who is dead ... */
    struct digest all;   /* ... and the sum of their digests */
};

struct found search_all(const struct subject *subject, const struct how *how);

/* Was this one of the ends of the last search_all()? */
bool search_knew_end(struct digest end);

/* One run at random, to its end, with at most so many deaths. Judges nothing. */
struct digest search_walk(const struct subject *subject, unsigned kills, uint64_t seed);

/*
 * Random priorities, as in PCT (Burckhardt and others, 2010): the highest runs,
 * and at a few random points it becomes the lowest. One run for a seed.
 */
const char *search_random(const struct subject *subject, uint64_t seed, unsigned kills,
                          uint64_t length, struct run *run);

/* A small generator: the same numbers everywhere. */
uint64_t random_next(uint64_t *state);

#endif
