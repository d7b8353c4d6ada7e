/* The protocol of the lock's word; lock.h has the essay, lock_kernel.c what it asks of the kernel. */
#include "base/lock.h"

#include <pthread.h>
#include <stddef.h>

#include "base/atomic.h"

#define WAITED UINT64_C(1)

/* ---- locks of a thread that ends ---- */

/* A key's stripe, a resident's that is being moved, and one to spare. */
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

static void hold(struct lock *lock)
{
    if (!watched && have_key) {
        watched = pthread_setspecific(exit_key, held) == 0;
    }
    for (unsigned i = 0; i < HELD_MAX; i++) {
        if (held[i] == NULL) {
            held[i] = lock;
            return;
        }
    }
}

static void let_go(const struct lock *lock)
{
    for (unsigned i = 0; i < HELD_MAX; i++) {
        if (held[i] == lock) {
            held[i] = NULL;
            return;
        }
    }
}

/* ---- the word ---- */

void lock_init(struct lock *lock)
{
    store_relaxed(&lock->word, 0);
}

/* The release of a word of 0 pairs with this acquire. */
static bool take_free(struct lock *lock, uint64_t mine)
{
    bool done = cas_u64(&lock->word, 0, mine);
    if (done) {
        hold(lock);
    }
    return done;
}

/* L2, L3. */
static bool take_from_dead(struct lock *lock, struct lock_owner *owner, uint64_t seen,
                           uint64_t mine)
{
    bool done = load_acquire(&lock->word) == seen && lock_owner_is_dead(owner, seen >> 1) &&
                cas_u64(&lock->word, seen, mine);
    if (done) {
        hold(lock);
    }
    return done;
}

/* Says that somebody waits, sleeps once, and looks. True if the lock is now ours. */
static bool wait_once(struct lock *lock, struct lock_owner *owner)
{
    /* Others may sleep whom the last owner's release did not wake: ours must wake them. */
    uint64_t mine = lock_number(owner) << 1 | WAITED;
    uint64_t seen = load_acquire(&lock->word);
    if (seen == 0) {
        return take_free(lock, mine);
    }
    if ((seen & WAITED) == 0 && !cas_u64(&lock->word, seen, seen | WAITED)) {
        return false;
    }
    seen |= WAITED;
    return lock_sleep(lock, seen) && take_from_dead(lock, owner, seen, mine);
}

bool lock_try(struct lock *lock, struct lock_owner *owner)
{
    return take_free(lock, lock_number(owner) << 1);
}

bool lock_take_soon(struct lock *lock, struct lock_owner *owner)
{
    return lock_try(lock, owner) || wait_once(lock, owner) ||
           take_free(lock,
                     lock_number(owner) << 1 | WAITED); /* a wake may have been meant for others */
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
    let_go(lock);
    if ((exchange_u64(&lock->word, 0) & WAITED) != 0) {
        lock_wake(lock);
    }
}
