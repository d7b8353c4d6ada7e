#include <assert.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "rules/live/live.h"

struct slot *gate_enter(struct weir_rules *r)
{
    struct slot *slot = &r->slots[thread_slot()];
    for (;;) {
        (void)fetch_add_ordered(&slot->inside, 1); /* G1, with gate_close() */
        if (__builtin_expect(load_ordered(&r->closed) == 0, 1)) {
            return slot;
        }
        (void)fetch_sub(&slot->inside, 1);
        for (unsigned attempt = 0; load_ordered(&r->closed) != 0; attempt++) {
            lock_pause(attempt);
        }
    }
}

void gate_leave(struct slot *slot)
{
    /* Releases what was read and decided to gate_close(). */
    uint64_t inside = fetch_sub(&slot->inside, 1);
    assert(inside > 0);
    (void)inside;
}

static void wait_until_empty(const struct weir_rules *r)
{
    for (unsigned i = 0; i < THREAD_SLOTS; i++) {
        for (unsigned attempt = 0; load_ordered(&r->slots[i].inside) != 0; attempt++) {
            lock_pause(attempt);
        }
    }
}

void gate_close(struct weir_rules *r)
{
    store_ordered(&r->closed, 1); /* G1, with gate_enter() */
    wait_until_empty(r);
}

void gate_open(struct weir_rules *r)
{
    store_ordered(&r->closed, 0);
}

void gate_switch(struct weir_rules *r, struct ruleset *set)
{
    struct ruleset *old = r->set;
    assert(load_relaxed(&r->closed) == 0); /* reloads exclude each other */
    gate_close(r);
    ruleset_change(set);
    r->set = set;
    gate_open(r);
    ruleset_forget_changes(set);
    r->generation++;
    ruleset_destroy(old); /* G2 */
}

/* ---- fork ---- */

/*
 * A child has only the thread that forked: no other thread is inside the gate any more, and no lock
 * may be held by a thread that does not exist in the child. So a fork waits for reloads to end, and
 * the child clears `inside`.
 */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, weir_rules) all = LIST_HEAD_INITIALIZER(all);

static void before_fork(void)
{
    struct weir_rules *r;
    (void)pthread_mutex_lock(&all_lock);
    LIST_FOREACH(r, &all, others)
    {
        (void)pthread_mutex_lock(&r->reload);
    }
}

static void after_fork(void)
{
    struct weir_rules *r;
    LIST_FOREACH(r, &all, others)
    {
        (void)pthread_mutex_unlock(&r->reload);
    }
    (void)pthread_mutex_unlock(&all_lock);
}

static void after_fork_in_child(void)
{
    struct weir_rules *r;
    LIST_FOREACH(r, &all, others)
    {
        for (unsigned i = 0; i < THREAD_SLOTS; i++) {
            store_relaxed(&r->slots[i].inside, 0);
        }
    }
    thread_after_fork();
    after_fork();
}

/*
 * Runs before main(). Handlers that are registered later run before ours. So a program's own
 * handler, which may wait for a lock of its own, does not wait while we hold our locks.
 */
static __attribute__((constructor)) void watch_fork(void)
{
    (void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

void gate_enlist(struct weir_rules *r)
{
    (void)pthread_mutex_lock(&all_lock);
    LIST_INSERT_HEAD(&all, r, others);
    (void)pthread_mutex_unlock(&all_lock);
}

void gate_delist(struct weir_rules *r)
{
    (void)pthread_mutex_lock(&all_lock);
    LIST_REMOVE(r, others);
    (void)pthread_mutex_unlock(&all_lock);
}
