/* base/lock.h for the explorer: locks that the scheduler knows. As with the real ones, only a
 * wait finds out that the owner is dead. */

#include "explore/scheduler.h"

static struct explore_lock *known(struct lock *lock)
{
    return (struct explore_lock *)(void *)lock;
}

static uint64_t me(void)
{
    return (uint64_t)(scheduler_user() + 2); /* outside of runs: 1, never found by a run */
}

struct lock_owner lock_private;

void lock_owner_renew(const struct lock_owner *owner)
{
    (void)owner;
}

int lock_owner_join(struct lock_owner *owner, uint64_t *last, int fd)
{
    *owner = (struct lock_owner){.last = last, .fd = fd};
    return 0;
}

void lock_init(struct lock *lock)
{
    lock->word = 0;
}

void lock_take(struct lock *lock, struct lock_owner *owner)
{
    (void)owner;
    scheduler_lock(known(lock), LOCK_TAKE);
    known(lock)->owner = me();
}

static bool take_if(struct lock *lock, bool can)
{
    if (can) {
        known(lock)->owner = me();
    }
    return can;
}

bool lock_try(struct lock *lock, struct lock_owner *owner)
{
    (void)owner;
    scheduler_lock(known(lock), LOCK_TRY);
    return take_if(lock, known(lock)->owner == 0);
}

bool lock_take_soon(struct lock *lock, struct lock_owner *owner)
{
    (void)owner;
    scheduler_pause();
    scheduler_lock(known(lock), LOCK_TRY);
    return take_if(lock, scheduler_free(known(lock)));
}

void lock_release(struct lock *lock)
{
    scheduler_lock(known(lock), LOCK_RELEASE);
    if (known(lock)->owner != me()) {
        scheduler_fail("a lock was released by somebody who did not hold it");
    }
    known(lock)->owner = 0;
}

void lock_pause(unsigned attempt)
{
    (void)attempt;
    scheduler_pause();
}
