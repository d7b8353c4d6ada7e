#include "explore/scheduler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/thread.h"
#include "explore/fiber.h"

#define STACK_BYTES 65536
/*
 * After so many steps in a row the others get their turn, as under any real
 * scheduler; and as there, a time slice is long against one operation.
 */
#define FAIR_STEPS 50000
#define GRANULE 16
#define TRACE_MAX 4096

enum user_state { READY, WAITING, DONE, DEAD };

struct user {
    struct fiber fiber;
    enum user_state state;
    const struct explore_lock *waits;
    const unsigned char *at; /* the granule of the access under way, and what it held before */
    unsigned char before[GRANULE];
    bool started;
    bool dirty; /* has changed memory since it was last asked whether it dies */
};

struct event {
    const void *address;
    unsigned char user;
    unsigned char killed; /* user + 1 */
};

static struct {
    bool active;
    unsigned current;
    uint64_t stretch; /* steps since the last switch */
    struct user user[USERS_MAX];
    struct fiber home;
    const struct task *task;
    struct strategy *strategy;
    struct run run;
    struct event trace[TRACE_MAX];
} sched;

static unsigned char stacks[USERS_MAX][STACK_BYTES] __attribute__((aligned(64)));

/* ---- which memory is shared ----
 *
 * A switch before an access to memory that nobody else uses, or that nobody
 * changes, leads to nothing new: the same run results if the switch is made
 * before the next access that matters. So switches are offered only at granules
 * that two users touch and one of them changes, in any run of this search. The
 * set is learnt; when it has grown, the search begins again.
 */

#define GRANULES 4096

struct usage {
    uintptr_t granule;
    unsigned touched; /* bit per user */
    unsigned changed;
    bool shared; /* as known when the run began */
};

static struct usage usages[GRANULES];
static bool to_learn;

void scheduler_forget(void)
{
    memset(usages, 0, sizeof usages);
    to_learn = false;
}

static struct usage *usage_of(const void *address)
{
    uintptr_t granule = (uintptr_t)address / GRANULE;
    size_t i = granule * UINT64_C(0x9e3779b97f4a7c15) >> 52;
    while (usages[i].granule != 0 && usages[i].granule != granule) {
        i = (i + 1) % GRANULES;
    }
    usages[i].granule = granule;
    return &usages[i];
}

static void touch(const void *address, bool changed)
{
    struct usage *u = usage_of(address);
    u->touched |= 1u << sched.current;
    u->changed |= (unsigned)changed << sched.current;
    if (!u->shared && u->changed != 0 && (u->touched & (u->touched - 1)) != 0) {
        sched.run.found_shared = true;
        to_learn = true;
    }
}

static void learn(void)
{
    for (size_t i = 0; to_learn && i < GRANULES; i++) {
        struct usage *u = &usages[i];
        u->shared = u->changed != 0 && (u->touched & (u->touched - 1)) != 0;
    }
    to_learn = false;
}

/* ---- running ---- */

int scheduler_user(void)
{
    return sched.active ? (int)sched.current : -1;
}

/* What a thread has for itself goes by its number: outside of runs 0, users from 1. */
static void become(unsigned number)
{
    thread_number = number + 1;
}

static void go_home(void)
{
    struct user *u = &sched.user[sched.current];
    sched.active = false;
    become(0);
    fiber_switch(&u->fiber, &sched.home);
}

void scheduler_fail(const char *why)
{
    if (sched.run.failure == NULL) {
        sched.run.failure = why;
    }
    if (sched.active) {
        go_home();
    }
}

bool scheduler_free(const struct explore_lock *lock)
{
    return lock->owner <= 1 || (sched.run.dead >> (lock->owner - 2) & 1) != 0;
}

bool scheduler_holds(const struct lock *lock)
{
    const struct explore_lock *known = (const void *)lock;
    return !sched.active || known->owner == sched.current + 2;
}

static bool runnable(unsigned v)
{
    const struct user *u = &sched.user[v];
    return u->state == READY || (u->state == WAITING && scheduler_free(u->waits));
}

/* Has the access that this user made last changed anything? */
static void settle(struct user *u)
{
    if (u->at == NULL) {
        return;
    }
    const unsigned char *at = u->at;
    u->at = NULL;
    if (memcmp(at, u->before, GRANULE) != 0) {
        u->dirty = true;
        touch(at, true);
        if (sched.task->changed != NULL) {
            sched.task->changed(at);
        }
    }
}

/* What a point is like. */
struct point {
    bool shared; /* others may have an eye on this memory */
    bool lock;
    bool pause;
};

static void add(struct option *o, unsigned *n, enum move_kind kind, unsigned user, bool preempts)
{
    o[(*n)++] = (struct option){kind, user, preempts};
}

/* Others to whom one could switch. `preempts`: from somebody who could go on. */
static void add_others(struct option *o, unsigned *n, bool preempts)
{
    for (unsigned i = 1; i < sched.task->users; i++) {
        unsigned v = (sched.current + i) % sched.task->users;
        if (runnable(v)) {
            add(o, n, SWITCH, v, preempts);
        }
    }
}

/*
 * Deaths. One's own matters only if something has changed since the last
 * occasion; another's only at a lock, for it shows in nothing but its locks.
 */
static void add_deaths(struct option *o, unsigned *n, struct point p)
{
    struct user *u = &sched.user[sched.current];
    if (sched.strategy->kills == 0) {
        return;
    }
    if (u->dirty && u->state == READY) {
        add(o, n, KILL, sched.current, false);
        u->dirty = false;
    }
    for (unsigned i = 1; p.lock && i < sched.task->users; i++) {
        unsigned v = (sched.current + i) % sched.task->users;
        const struct user *other = &sched.user[v];
        if (other->started && other->state <= WAITING) {
            add(o, n, KILL, v, false);
        }
    }
}

static unsigned list_options(struct point p, struct option *o)
{
    struct option others[USERS_MAX];
    unsigned n = 0;
    unsigned other_count = 0;
    bool alive = sched.user[sched.current].state == READY;
    add_others(others, &other_count, alive);
    if (!alive || (other_count != 0 && sched.stretch > FAIR_STEPS)) {
        memcpy(o, others, other_count * sizeof *o);
        return other_count;
    }
    if (p.pause && other_count != 0) {
        add(o, &n, SWITCH, others[0].user, false);
        if (sched.strategy->preemptions != 0) {
            add(o, &n, GO_ON, sched.current, true);
        } else {
            sched.run.refused = true;
        }
        return n;
    }
    add(o, &n, GO_ON, sched.current, false);
    if (p.shared && other_count != 0) {
        bool may = sched.strategy->preemptions != 0;
        sched.run.refused |= !may;
        memcpy(&o[n], others, (may ? other_count : 0) * sizeof *o);
        n += may ? other_count : 0;
    }
    add_deaths(o, &n, p);
    return n;
}

static struct option choose(const struct option *options, unsigned n)
{
    struct strategy *s = sched.strategy;
    struct option o = options[s->pick(s, options, n)];
    if (o.preempts && s->preemptions != UINT32_MAX) {
        s->preemptions--;
    }
    return o;
}

static void kill_user(unsigned v)
{
    sched.user[v].state = DEAD;
    sched.run.dead |= 1u << v;
    sched.strategy->kills--;
    sched.trace[sched.run.steps % TRACE_MAX].killed = (unsigned char)(v + 1);
}

static void switch_to(unsigned v)
{
    struct user *u = &sched.user[sched.current];
    sched.current = v;
    sched.stretch = 0;
    sched.user[v].state = READY;
    sched.user[v].started = true;
    become(v + 1);
    fiber_switch(&u->fiber, &sched.user[v].fiber);
    /* Somebody has switched back: perhaps only to see this user die with its locks. */
    u->dirty = true;
}

/* The heart: what happens now? Returns when the present user is to go on. */
static void reschedule(struct point p)
{
    unsigned self = sched.current;
    for (;;) {
        struct option options[OPTIONS_MAX];
        unsigned n = list_options(p, options);
        if (n == 0) {
            bool stuck = false;
            for (unsigned v = 0; v < sched.task->users; v++) {
                stuck |= sched.user[v].state == WAITING;
            }
            sched.run.failure = stuck ? "deadlock: everybody waits" : sched.run.failure;
            go_home();
        }
        struct option o = choose(options, n);
        if (o.kind == GO_ON) {
            return;
        }
        if (o.kind == KILL) {
            kill_user(o.user);
            continue;
        }
        switch_to(o.user);
        if (sched.user[self].state == READY) {
            p = (struct point){false, false, false};
        }
    }
}

static void point(const void *address, bool lock)
{
    struct user *u = &sched.user[sched.current];
    const unsigned char *granule = (const void *)((uintptr_t)address & ~(uintptr_t)(GRANULE - 1));
    settle(u);
    touch(granule, false);
    sched.run.steps++;
    sched.stretch++;
    sched.trace[sched.run.steps % TRACE_MAX] =
        (struct event){address, (unsigned char)sched.current, 0};
    if (sched.run.steps > sched.task->steps_max) {
        scheduler_fail("no end: a livelock, or a wait for ever");
    }
    bool shared = sched.strategy->every_point || usage_of(granule)->shared;
    reschedule((struct point){shared, lock, false});
    u->at = granule;
    memcpy(u->before, granule, GRANULE);
}

void explore_point(const void *address)
{
    if (sched.active) {
        point(address, false);
    }
}

void explore_lock_point(const void *address)
{
    if (sched.active) {
        point(address, true);
    }
}

void scheduler_pause(void)
{
    if (sched.active) {
        settle(&sched.user[sched.current]);
        reschedule((struct point){false, false, true});
    }
}

void scheduler_wait(struct explore_lock *lock)
{
    struct user *u = &sched.user[sched.current];
    if (!sched.active) {
        if (!scheduler_free(lock)) {
            scheduler_fail("a lock is held for ever by somebody who is done");
        }
        return;
    }
    while (!scheduler_free(lock)) {
        if (lock->owner == sched.current + 2) {
            scheduler_fail("deadlock: a lock is taken twice by one user");
        }
        u->state = WAITING;
        u->waits = lock;
        reschedule((struct point){false, false, false});
    }
    u->at = (const unsigned char *)lock;
    memcpy(u->before, u->at, GRANULE);
}

static void life(void)
{
    struct user *u = &sched.user[sched.current];
    sched.task->body(sched.current);
    settle(u);
    u->state = DONE;
    reschedule((struct point){false, false, false});
    abort(); /* nobody comes back to one who is done */
}

struct run scheduler_run(const struct task *task, struct strategy *strategy)
{
    memset(sched.user, 0, sizeof sched.user);
    memset(&sched.run, 0, sizeof sched.run);
    sched.task = task;
    sched.strategy = strategy;
    for (unsigned v = 0; v < task->users; v++) {
        fiber_make(&sched.user[v].fiber, stacks[v], STACK_BYTES, life);
    }
    struct option first[USERS_MAX];
    for (unsigned v = 0; v < task->users; v++) {
        first[v] = (struct option){SWITCH, v, false};
    }
    learn();
    sched.current = choose(first, task->users).user;
    sched.stretch = 0;
    sched.user[sched.current].started = true;
    sched.active = true;
    become(sched.current + 1);
    fiber_switch(&sched.home, &sched.user[sched.current].fiber);
    return sched.run;
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
    if (!sched.active || bytes % sizeof(uint64_t) != 0 || on_a_stack(t)) {
        return memcpy(to, from, bytes);
    }
    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        touch(f + i, false);
        explore_point(t + i);
        memcpy(t + i, f + i, sizeof(uint64_t));
    }
    return to;
}

/* ---- for people ---- */

void scheduler_print(void (*name)(const void *address, char *text, unsigned bytes))
{
    uint64_t first = sched.run.steps >= TRACE_MAX ? sched.run.steps - TRACE_MAX + 1 : 1;
    int user = -1;
    for (uint64_t i = first; i <= sched.run.steps; i++) {
        const struct event *e = &sched.trace[i % TRACE_MAX];
        char text[32];
        name(e->address, text, sizeof text);
        printf("%s%c%s %s", user == e->user ? "" : "\n    ", user == e->user ? ',' : 'A' + e->user,
               user == e->user ? "" : ":", text);
        user = e->user;
        if (e->killed != 0) {
            printf(" [%c dies]", 'A' + e->killed - 1);
        }
    }
    printf("\n");
}
