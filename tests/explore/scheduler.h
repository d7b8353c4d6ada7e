/*
 * Runs a few users as fibers, one at a time, and decides at every atomic access
 * and lock operation who goes on, or who dies there. The same decisions give
 * the same run. What it explores is sequentially consistent: weaker orders are
 * ThreadSanitizer's.
 */
#ifndef WEIR_EXPLORE_SCHEDULER_H
#define WEIR_EXPLORE_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"

#define USERS_MAX 4
#define OPTIONS_MAX (3 * USERS_MAX)

/* What can happen at a point. */
enum move_kind { GO_ON, SWITCH, KILL };

struct option {
    enum move_kind kind;
    unsigned user;
    bool preempts; /* takes the processor from somebody who could go on */
};

/* Who is asked. */
struct strategy {
    unsigned preemptions; /* left; UINT32_MAX: as many as you like */
    unsigned kills;       /* left */
    bool every_point;     /* offer switches also where nobody else looks */
    unsigned (*pick)(struct strategy *s, const struct option *options, unsigned n);
};

struct task {
    unsigned users;
    void (*body)(unsigned user);          /* one user's whole life */
    void (*changed)(const void *granule); /* 16 bytes have changed; may call scheduler_fail() */
    uint64_t steps_max;
};

/* What a run came to. */
struct run {
    const char *failure; /* NULL: everybody finished or was killed */
    uint64_t steps;
    unsigned dead;     /* bit per user */
    bool refused;      /* a preemption was not offered because none was left */
    bool found_shared; /* memory was seen to be shared that was not known to be: search again */
};

struct run scheduler_run(const struct task *task, struct strategy *strategy);

/* Ends the run under way as a failure. From inside a fiber: does not return. */
void scheduler_fail(const char *why);

/* The user who is running, -1 outside of runs. */
int scheduler_user(void);

/* True if the user that runs holds the lock; outside of runs always. */
bool scheduler_holds(const struct lock *lock);

/* Forgets which memory is shared: another scenario begins. */
void scheduler_forget(void);

/* The steps of the last run, for a person. `name` writes what an address is. */
void scheduler_print(void (*name)(const void *address, char *text, unsigned bytes));

/* ---- for lock_explore.c ---- */

struct explore_lock {
    uint64_t owner; /* user + 1; 0: free */
};
_Static_assert(sizeof(struct explore_lock) <= sizeof(struct lock), "in the place of the real one");

void explore_lock_point(const void *address);
void scheduler_wait(struct explore_lock *lock); /* returns when the lock is free */
bool scheduler_free(const struct explore_lock *lock);
void scheduler_pause(void);

#endif
