#include "explore/scheduler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/thread.h"
#include "explore/users.h"

#define TRACE_MAX 65536
#define GRANULE 16
/* As deep as calls between two points go. What is left below only makes equal states differ. */
#define CALL_BYTES 4096

struct event {
    const void *address; /* NULL: the user dies */
    unsigned char user;
};

struct users users;
unsigned char stacks[USERS_MAX][STACK_BYTES] __attribute__((aligned(64)));
static struct event trace[TRACE_MAX];

/* ---- in the fiber ---- */

int scheduler_user(void)
{
    return users.active ? (int)users.current : -1;
}

/* Stands here until somebody says go. */
static void stand(enum stand where, const void *address)
{
    struct user *u = &users.user[users.current];
    u->stand = where;
    u->address = address;
    fiber_switch(&u->fiber, &users.home);
}

void explore_point(const void *address)
{
    if (users.active) {
        stand(AT_ACCESS, address);
    }
}

void scheduler_pause(void)
{
    if (users.active) {
        stand(AT_PAUSE, NULL);
    }
}

void scheduler_fail(const char *why)
{
    if (users.run.failure == NULL) {
        users.run.failure = why;
    }
    if (users.active) {
        stand(AT_END, NULL);
    }
}

static void life(void)
{
    users.task->body(users.current);
    stand(AT_END, NULL);
    abort(); /* nobody comes back to one who is done */
}

/* ---- locks ---- */

bool scheduler_free(const struct explore_lock *lock)
{
    return lock->owner <= 1 || (users.run.dead >> (lock->owner - 2) & 1) != 0;
}

bool scheduler_holds(const struct lock *lock)
{
    const struct explore_lock *known = (const void *)lock;
    return !users.active || known->owner == users.current + 2;
}

void scheduler_lock(struct explore_lock *lock, enum lock_step step)
{
    if (users.active && step == LOCK_TAKE) {
        if (lock->owner == users.current + 2) {
            scheduler_fail("deadlock: a lock is taken twice by one user");
        }
        stand(AT_TAKE, lock);
    } else if (users.active) {
        stand(AT_ACCESS, lock);
    } else if (step == LOCK_TAKE && !scheduler_free(lock)) {
        scheduler_fail("a lock is held for ever by somebody who is done");
    }
}

/* ---- who can do what ---- */

bool scheduler_lives(unsigned v)
{
    return users.user[v].state == ALIVE;
}

bool scheduler_pausing(unsigned v)
{
    return scheduler_lives(v) && users.user[v].stand == AT_PAUSE;
}

bool scheduler_enabled(unsigned v)
{
    const struct user *u = &users.user[v];
    return u->state == ALIVE && (u->stand != AT_TAKE || scheduler_free(u->address));
}

bool scheduler_ended(void)
{
    bool somebody = false;
    if (users.run.failure != NULL) {
        return true;
    }
    for (unsigned v = 0; v < users.task->users; v++) {
        if (scheduler_enabled(v)) {
            return false;
        }
        somebody |= scheduler_lives(v);
    }
    if (somebody) {
        users.run.failure = "deadlock: everybody waits";
    }
    return true;
}

/* ---- steps ---- */

/* What a thread has for itself goes by its number: outside of runs 0, users from 1. */
static void visit(unsigned v)
{
    struct user *u = &users.user[v];
    if (users.rules.clean) {
        memset(fiber_bottom(&u->fiber) - CALL_BYTES, 0, CALL_BYTES);
    }
    u->fresh = false;
    users.known = false;
    users.current = v;
    users.active = true;
    thread_number = v + 2;
    fiber_switch(&users.home, &u->fiber);
    thread_number = 1;
    users.active = false;
}

static void count_step(unsigned v, const void *address)
{
    users.run.steps++;
    trace[users.run.steps % TRACE_MAX] = (struct event){address, (unsigned char)v};
    if (users.run.steps > users.task->steps_max) {
        scheduler_fail("no end: a livelock, or a wait for ever");
    }
}

void scheduler_step(unsigned v)
{
    struct user *u = &users.user[v];
    unsigned char before[GRANULE];
    const unsigned char *granule =
        (const void *)((uintptr_t)u->address & ~(uintptr_t)(GRANULE - 1));
    if (granule != NULL) {
        count_step(v, u->address);
        memcpy(before, granule, GRANULE);
    }
    visit(v);
    if (granule != NULL && memcmp(before, granule, GRANULE) != 0 && users.task->changed != NULL) {
        users.task->changed(granule);
    }
    if (u->stand == AT_END) {
        u->state = DONE;
    }
    users.run.pauses += u->stand == AT_PAUSE;
}

void scheduler_kill(unsigned v)
{
    users.user[v].state = DEAD;
    users.run.dead |= 1u << v;
    users.run.kills--;
    count_step(v, NULL);
}

void scheduler_begin(const struct task *task, const struct rules *rules)
{
    memset(&users, 0, sizeof users);
    users.task = task;
    users.rules = *rules;
    users.run.kills = rules->kills;
    for (unsigned v = 0; v < task->users; v++) {
        fiber_make(&users.user[v].fiber, stacks[v], STACK_BYTES, life);
        scheduler_step(v); /* to its first point: it has touched nothing yet */
    }
}

const struct run *scheduler_run(void)
{
    return &users.run;
}

/* ---- memory that is not atomic ---- */

void *explore_copy(void *to, const void *from, size_t bytes); /* copy.h makes memcpy of it */

static bool on_a_stack(const unsigned char *p)
{
    return p >= &stacks[0][0] && p < &stacks[0][0] + sizeof stacks;
}

void *explore_copy(void *to, const void *from, size_t bytes)
{
    unsigned char *t = to;
    const unsigned char *f = from;
    if (!users.active || bytes % sizeof(uint64_t) != 0 || on_a_stack(t)) {
        return memcpy(to, from, bytes);
    }
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        explore_point(t + i);
        memcpy(t + i, f + i, sizeof(uint64_t));
    }
    return to;
}

/* ---- for people ---- */

void scheduler_print(void (*name)(const void *address, char *text, unsigned bytes))
{
    uint64_t steps = users.run.steps;
    uint64_t first = steps >= TRACE_MAX ? steps - TRACE_MAX + 1 : 1;
    int user = -1;
    for (uint64_t i = first; i <= steps; i++) {
        const struct event *e = &trace[i % TRACE_MAX];
        char text[32] = "dies";
        if (e->address != NULL) {
            name(e->address, text, sizeof text);
        }
        printf("%s%c%s %s", user == e->user ? "" : "\n    ", user == e->user ? ',' : 'A' + e->user,
               user == e->user ? "" : ":", text);
        user = e->user;
    }
    printf("\n");
}
