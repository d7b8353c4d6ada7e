/*
 * A lock that survives its owner: robust and shared between processes. A thread
 * or process that dies inside leaves the lock to the next taker, who is told by
 * nothing at all: the table is written so that whoever holds the lock can put
 * right, by looking, what a dead owner left (table/move.c).
 *
 * A waiter that is killed may take a wakeup into its grave: woken by a release, it dies before it tries
 * again, while somebody who never waited takes the lock, and releases it without knowing of the others
 * that sleep. The kernel wakes another of them only if the lock is free when the waiter dies. So nobody
 * sleeps for longer than LOCK_WAIT_NS without looking.
 *
 * The explorer replaces these by locks that its scheduler knows.
 */
#ifndef WEIR_BASE_LOCK_H
#define WEIR_BASE_LOCK_H

#include <pthread.h>
#include <stdbool.h>

/* One cache line, so that neighbours do not disturb each other. */
struct lock {
    pthread_mutex_t mutex;
} __attribute__((aligned(64)));

/* 0 or WEIR_EIO. Whatever the memory held before is overwritten. */
int lock_init(struct lock *lock);

#define LOCK_WAIT_NS 20000000

void lock_take(struct lock *lock);

/* True if the lock was free (or its owner dead) and is now ours. */
bool lock_try(struct lock *lock);

void lock_release(struct lock *lock);

/*
 * Lets others run, between two attempts at something that they are in the way
 * of: the first few times by giving up the processor, then for 0.2 ms.
 */
void lock_pause(unsigned attempt);

#endif
