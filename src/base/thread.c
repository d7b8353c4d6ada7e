#include "base/thread.h"

#include <pthread.h>
#include <stdint.h>

#include "base/atomic.h"

__thread unsigned thread_number;

/* Bit i: number i is taken. The last bit stays clear: that number is shared. */
static uint64_t taken;
static pthread_key_t exit_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool have_key;

/*
 * A number that is used again continues the counters of its former owner, who
 * has ended. This release pairs with the acquire in lowest_free(), so the new
 * owner sees the last counts of the old one.
 */
static void give_back(void *value)
{
    unsigned n = (unsigned)(uintptr_t)value - 1;
    thread_number = 0;
    (void)__atomic_fetch_and(&taken, ~(UINT64_C(1) << n), __ATOMIC_RELEASE);
}

static void make_key(void)
{
    have_key = pthread_key_create(&exit_key, give_back) == 0;
}

static unsigned lowest_free(void)
{
    uint64_t seen = __atomic_load_n(&taken, __ATOMIC_RELAXED);
    for (;;) {
        unsigned n = (unsigned)__builtin_ctzll(~seen);
        if (n >= THREAD_OWN) {
            return THREAD_OWN;
        }
        if (__atomic_compare_exchange_n(&taken, &seen, seen | UINT64_C(1) << n, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            return n;
        }
    }
}

unsigned thread_number_take(void)
{
    unsigned n = THREAD_OWN;
    (void)pthread_once(&once, make_key);
    if (have_key) {
        n = lowest_free();
        if (n < THREAD_OWN && pthread_setspecific(exit_key, (void *)(uintptr_t)(n + 1)) != 0) {
            (void)__atomic_fetch_and(&taken, ~(UINT64_C(1) << n), __ATOMIC_RELEASE);
            n = THREAD_OWN;
        }
    }
    thread_number = n + 1;
    return thread_number;
}

void thread_after_fork(void)
{
    unsigned n = thread_number; /* plus one; 0: none */
    bool own = n != 0 && n - 1 < THREAD_OWN;
    __atomic_store_n(&taken, own ? UINT64_C(1) << (n - 1) : 0, __ATOMIC_RELEASE);
}
