/* base/lock.h for the explorer: locks that the scheduler knows, robust as the real ones. */
#include <string.h>

#include "explore/scheduler.h"

static struct explore_lock *known(struct lock *lock)
{
    return (struct explore_lock *)(void *)lock;
}

static uint64_t me(void)
{
    return (uint64_t)(scheduler_user() + 2); /* outside of runs: 1, never found by a run */
}

int lock_init(struct lock *lock)
{
    memset(lock, 0, sizeof *lock);
    return 0;
}

void lock_take(struct lock *lock)
{
    scheduler_lock(known(lock), LOCK_TAKE);
    known(lock)->owner = me();
}

bool lock_try(struct lock *lock)
{
    scheduler_lock(known(lock), LOCK_TRY);
    if (!scheduler_free(known(lock))) {
        return false;
    }
    known(lock)->owner = me();
    return true;
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
