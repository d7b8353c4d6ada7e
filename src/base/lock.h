/*
 * A lock that survives its owner. It works between threads, processes, containers with PID
 * namespaces of their own and programs with different C libraries, because the shared memory holds
 * one word of ours and nothing of a C library.
 *
 * WORD. 0 is a free lock. Otherwise it is twice the number of the process that holds the lock, plus
 * 1 if others may be asleep.
 *
 * NUMBERS. A process takes a number in each region that it shares (a file, or memory inherited by
 * fork), and a forked child takes another one before its first lock. No number is given out twice.
 * With its number a process takes a record lock of the kernel: byte `number` of the region's
 * descriptor. The kernel drops it when the process ends, however it ends. POSIX record locks belong
 * to a process: an inherited descriptor does not keep those of a dead parent, and a child needs no
 * descriptor of its own. Closing any descriptor of the file drops them too; see table/region.h.
 *
 *   L1. A process holds the record lock of its number before a word names it. So the owner that a
 *       word names is dead if the record lock is free.
 *   L2. The owner is tested only after the word stood unchanged for LOCK_WAIT_NS. A running process
 *       holds a lock for microseconds, so one that lost its record lock by mistake is taken for
 *       dead only if it is stopped for that long inside.
 *   L3. A dead owner's word is replaced by one compare-and-swap from the word that was tested.
 *       Numbers are not reused, so that word cannot name a living process by then.
 *   L4. A waiter sleeps for LOCK_WAIT_NS at most before it looks again. So a waiter that is killed
 *       after it was woken delays the others, but does not leave them asleep.
 *
 * The next owner is not told that the last one died: it finds and repairs what a dead owner left
 * (table/move.c). In private memory any number but the process's own belongs to an ancestor, whose
 * threads do not exist here: such an owner is dead. A thread that ends while it holds locks
 * (pthread_exit, cancellation) releases them as it ends.
 */
#ifndef WEIR_BASE_LOCK_H
#define WEIR_BASE_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/process.h"

/* It takes a cache line, so that neighbours do not slow each other down. */
struct lock {
    uint64_t word;
} __attribute__((aligned(64)));

#define LOCK_WAIT_NS 20000000

/* LOCK_WAIT_NS. Tests in which thousands of owners die make it shorter. */
extern long lock_wait_ns;

/* How this process identifies itself in the locks of one region. */
struct lock_owner {
    uint64_t process; /* the process_number() that `number` belongs to */
    uint64_t number;
    uint64_t *last; /* the last number given out in the region; NULL for private memory */
    int fd;         /* of the region; its bytes have the record locks */
};

/* The owner of locks in memory that only this process has. */
extern struct lock_owner lock_private;

/* Takes a number and its record lock; forked children take others. 0, or WEIR_EIO with errno. */
int lock_owner_join(struct lock_owner *owner, uint64_t *last, int fd);

/* Takes the record lock of the owner's number again, after a close has dropped it. */
void lock_owner_renew(const struct lock_owner *owner);

/* Frees a lock, whatever it held. No other thread may be using it. */
void lock_init(struct lock *lock);

void lock_take(struct lock *lock, struct lock_owner *owner);

/* Takes the lock if it is free. That of a dead owner is not: only waiting finds a death. */
bool lock_try(struct lock *lock, struct lock_owner *owner);

/* Waits for LOCK_WAIT_NS at most. Returns whether the lock is now the caller's. */
bool lock_take_soon(struct lock *lock, struct lock_owner *owner);

void lock_release(struct lock *lock);

/* For asserts: returns whether this thread holds one of `count` locks, the first of which is given.
 * Of more than four that it holds, the later ones are not known. */
bool lock_held(const struct lock *first, uint64_t count);

/* Lets others run between two attempts: the first ones by sched_yield(), later ones for 0.2 ms. */
void lock_pause(unsigned attempt);

/* ---- between lock.c and lock_kernel.c, which the explorer replaces ---- */

/* Returns the number of this process among the region's owners. */
uint64_t lock_number(struct lock_owner *owner);

/* Sleeps while the word is `seen`. Returns whether LOCK_WAIT_NS passed without a wake. */
bool lock_sleep(struct lock *lock, uint64_t seen);
void lock_wake(struct lock *lock);
bool lock_owner_is_dead(struct lock_owner *owner, uint64_t number);

#endif
