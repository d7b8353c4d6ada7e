#include "base/thread.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

__thread unsigned thread_number;

static bool taken[THREAD_OWN]; /* by number */
static unsigned used;          /* one more than the highest number that was ever taken */
static pthread_key_t exit_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool have_key;

/*
 * The next thread with this number goes on with the counters of the one that has ended. This
 * release pairs with the acquire in take_lowest(), so that it sees the last counts.
 */
static void free_number(unsigned n)
{
    __atomic_store_n(&taken[n], false, __ATOMIC_RELEASE);
}

static void give_back(void *value)
{
    thread_number = 0;
    free_number((unsigned)(uintptr_t)value - 1);
}

static void make_key(void)
{
    have_key = pthread_key_create(&exit_key, give_back) == 0;
}

/* Returns the lowest free number, or THREAD_OWN. */
static unsigned take_lowest(void)
{
    unsigned n = 0;
    while (n < THREAD_OWN && (__atomic_load_n(&taken[n], __ATOMIC_RELAXED) ||
                              __atomic_exchange_n(&taken[n], true, __ATOMIC_ACQUIRE))) {
        n++;
    }
    return n;
}

unsigned thread_slots_used(void)
{
    return __atomic_load_n(&used, __ATOMIC_ACQUIRE);
}

static void note_used(unsigned n)
{
    unsigned seen = __atomic_load_n(&used, __ATOMIC_RELAXED);
    while (seen <= n && !__atomic_compare_exchange_n(&used, &seen, n + 1, false, __ATOMIC_RELEASE,
                                                     __ATOMIC_RELAXED)) {
    }
}

unsigned thread_number_take(void)
{
    unsigned n = THREAD_OWN;
    (void)pthread_once(&once, make_key);
    if (have_key) {
        n = take_lowest();
        if (n < THREAD_OWN && pthread_setspecific(exit_key, (void *)(uintptr_t)(n + 1)) != 0) {
            free_number(n);
            n = THREAD_OWN;
        }
    }
    note_used(n); /* before the first count, because readers add up the numbers below */
    thread_number = n + 1;
    return thread_number;
}

void thread_after_fork(void)
{
    for (unsigned n = 0; n < THREAD_OWN; n++) {
        __atomic_store_n(&taken[n], n + 1 == thread_number, __ATOMIC_RELEASE);
    }
}
