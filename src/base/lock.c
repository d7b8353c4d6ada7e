#include "base/lock.h"

#include <errno.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <weir.h>

int lock_init(struct lock *lock)
{
    pthread_mutexattr_t attr;
    int bad = pthread_mutexattr_init(&attr);
    if (bad != 0) {
        return WEIR_EIO;
    }
    bad = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
    bad |= pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    bad |= pthread_mutex_init(&lock->mutex, &attr);
    (void)pthread_mutexattr_destroy(&attr);
    return bad != 0 ? WEIR_EIO : 0;
}

/* The dead owner's half-done work is found by those who look; see the header. */
static bool taken(struct lock *lock, int result)
{
    if (result == EOWNERDEAD) {
        (void)pthread_mutex_consistent(&lock->mutex);
        return true;
    }
    return result == 0;
}

#ifdef __SANITIZE_THREAD__ /* which does not know pthread_mutex_clocklock() */
#define LOCK_CLOCK CLOCK_REALTIME
#define lock_until(mutex, until) pthread_mutex_timedlock((mutex), (until))
#else
#define LOCK_CLOCK CLOCK_MONOTONIC
#define lock_until(mutex, until) pthread_mutex_clocklock((mutex), LOCK_CLOCK, (until))
#endif

/* Waits for LOCK_WAIT_NS at most, then looks again: the header says why. */
static int wait_for(struct lock *lock)
{
    struct timespec until;
    (void)clock_gettime(LOCK_CLOCK, &until);
    until.tv_nsec += LOCK_WAIT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    return lock_until(&lock->mutex, &until);
}

void lock_take(struct lock *lock)
{
    int result = pthread_mutex_trylock(&lock->mutex);
    while (result == EBUSY || result == ETIMEDOUT) {
        result = wait_for(lock);
    }
    (void)taken(lock, result);
}

bool lock_try(struct lock *lock)
{
    return taken(lock, pthread_mutex_trylock(&lock->mutex));
}

void lock_release(struct lock *lock)
{
    (void)pthread_mutex_unlock(&lock->mutex);
}

void lock_pause(unsigned attempt)
{
    if (attempt < 8) {
        (void)sched_yield();
    } else {
        (void)usleep(200);
    }
}
