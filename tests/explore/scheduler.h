/*
 * Runs a few users as fibers, one at a time. Before every atomic access and lock
 * operation a user stops, and whoever leads the run (search.h) says who makes
 * the next step, or who dies where it stands. The same orders give the same run.
 * What it explores is sequentially consistent: weaker orders are
 * ThreadSanitizer's.
 */
#ifndef WEIR_EXPLORE_SCHEDULER_H
#define WEIR_EXPLORE_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "explore/state.h"

#define USERS_MAX 4

/* Memory that users change. */
struct range {
    void *memory;
    size_t bytes;
    bool mute; /* nothing ever follows from what it holds: no part of a state */
};

struct task {
    unsigned users;
    void (*body)(unsigned user);          /* one user's whole life */
    void (*changed)(const void *granule); /* 16 bytes have changed; may call scheduler_fail() */
    uint64_t steps_max;
    const struct range *ranges; /* all memory that they change, but for their stacks */
    unsigned range_count;
};

/* How a run is led. */
struct rules {
    unsigned kills; /* at most so many die */
    bool clean;     /* the past leaves nothing in a stack that means nothing: for digests */
};

/* What a run has come to. */
struct run {
    const char *failure; /* NULL: none so far */
    uint64_t steps;
    uint64_t pauses; /* made */
    unsigned kills;  /* left */
    unsigned dead;   /* bit per user */
};

/* Everybody stands before the first access. */
void scheduler_begin(const struct task *task, const struct rules *rules);
const struct run *scheduler_run(void);

/* Can this user make a step? */
bool scheduler_enabled(unsigned user);

/* Is it alive and not yet at its end? */
bool scheduler_lives(unsigned user);

/* Does it pause? */
bool scheduler_pausing(unsigned user);

/* The access that the user stands before, and on to where it stands next. */
void scheduler_step(unsigned user);

void scheduler_kill(unsigned user);

/* True when there is nothing left to happen; a deadlock is then a failure. */
bool scheduler_ended(void);

/* Ends the run under way as a failure. From inside a fiber: does not return. */
void scheduler_fail(const char *why);

/* The user who is running, -1 outside of runs. */
int scheduler_user(void);

/* True if the user that runs holds the lock; outside of runs always. */
bool scheduler_holds(const struct lock *lock);

/* The steps of the run, for a person. `name` writes what an address is. */
void scheduler_print(void (*name)(const void *address, char *text, unsigned bytes));

/* ---- moments (moment.c) ---- */

/* All that the future follows from; `corpse`: as if this user were dead, -1: as it is. */
struct digest moment_digest(int corpse);

/* What is left when everybody has ended. */
struct digest moment_end(void);

/* A run as it stood, to go on from there again. */
struct moment;
struct moment *moment_make(void);
void moment_free(struct moment *m);
void moment_keep(struct moment *m);
void moment_return(const struct moment *m);

/* ---- for lock_explore.c ---- */

struct explore_lock {
    uint64_t owner; /* user + 2; 1: somebody outside of runs; 0: free */
};
_Static_assert(sizeof(struct explore_lock) <= sizeof(struct lock), "in the place of the real one");

enum lock_step { LOCK_TAKE, LOCK_TRY, LOCK_RELEASE };
void scheduler_lock(struct explore_lock *lock, enum lock_step step);
bool scheduler_free(const struct explore_lock *lock);
void scheduler_pause(void);

#endif
