/* The protocol of the lock's word. lock.h explains it. */
#include "base/lock.h"

#include <assert.h>
#include <pthread.h>
#include <stddef.h>

#include "base/atomic.h"

#define WAITED UINT64_C(1)

/* A thread holds the stripe of a key and that of a resident that it moves; two are spare. */
#define HELD_MAX 4

static __thread struct lock *held[HELD_MAX];
static __thread bool watched;
static pthread_key_t exit_key;
static bool have_key;

static void release_all(void *unused)
{
    (void)unused;
    for (unsigned i = 0; i < HELD_MAX; i++) {
        if (held[i] != NULL) {
            lock_release(held[i]);
        }
    }
}

static __attribute__((constructor(1000))) void make_key(void)
{
    have_key = pthread_key_create(&exit_key, release_all) == 0;
}

/* Replaces `from` by `to` among the locks that this thread holds; NULL stands for none. */
static void note_held(const struct lock *from, struct lock *to)
{
    for (unsigned i = 0; i < HELD_MAX; i++) {
        if (held[i] == from) {
            held[i] = to;
            return;
        }
    }
}

bool lock_held(const struct lock *first, uint64_t count)
{
    for (unsigned i = 0; i < HELD_MAX; i++) {
        uintptr_t bytes = (uintptr_t)held[i] - (uintptr_t)first;
        if (held[i] != NULL && bytes / sizeof *first < count) {
            return true;
        }
    }
    return false;
}

void lock_init(struct lock *lock)
{
    store_relaxed(&lock->word, 0);
}

/* Returns whether the word was `seen` and is now `mine`. Pairs with lock_release(). */
static bool take_word(struct lock *lock, uint64_t seen, uint64_t mine)
{
    assert(mine > WAITED); /* L1: without a number, the word would say that the lock is free */
    if (!cas_u64(&lock->word, seen, mine)) {
        return false;
    }
    if (!watched && have_key) {
        watched = pthread_setspecific(exit_key, held) == 0;
    }
    note_held(NULL, lock);
    return true;
}

/* Marks the lock as waited for, sleeps once and looks. Returns whether the lock is now ours. */
static bool wait_once(struct lock *lock, struct lock_owner *owner)
{
    /* Others may still sleep whom the last release did not wake, so our release must wake them. */
    uint64_t mine = lock_number(owner) << 1 | WAITED;
    uint64_t seen = load_acquire(&lock->word);
    if (seen == 0) {
        return take_word(lock, 0, mine);
    }
    if ((seen & WAITED) == 0 && !cas_u64(&lock->word, seen, seen | WAITED)) {
        return false;
    }
    seen |= WAITED;
    return lock_sleep(lock, seen) && load_acquire(&lock->word) == seen &&       /* L2 */
           lock_owner_is_dead(owner, seen >> 1) && take_word(lock, seen, mine); /* L3 */
}

bool lock_try(struct lock *lock, struct lock_owner *owner)
{
    return take_word(lock, 0, lock_number(owner) << 1);
}

bool lock_take_soon(struct lock *lock, struct lock_owner *owner)
{
    /* The last try is for a lock that was released while we slept. */
    return lock_try(lock, owner) || wait_once(lock, owner) ||
           take_word(lock, 0, lock_number(owner) << 1 | WAITED);
}

void lock_take(struct lock *lock, struct lock_owner *owner)
{
    bool done = lock_try(lock, owner);
    while (!done) {
        done = wait_once(lock, owner);
    }
}

void lock_release(struct lock *lock)
{
    note_held(lock, NULL);
    uint64_t was = exchange_u64(&lock->word, 0);
    assert(was != 0); /* it was held */
    if ((was & WAITED) != 0) {
        lock_wake(lock);
    }
}
