#include "base/thread.h"

#include <pthread.h>
#include <stdint.h>

#include "base/atomic.h"

__thread unsigned thread_number;

#define WORD_BITS 64

/* Bit i of all words: number i is taken. The last bit stays clear: that number is shared. */
static uint64_t taken[THREAD_SLOTS / WORD_BITS];
static unsigned used; /* one more than the highest number that was ever taken */
static pthread_key_t exit_key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool have_key;

/*
 * A number that is used again continues the counters of its former owner, which
 * has ended. This release pairs with the acquire in take_in(), so the new
 * owner sees the last counts of the old one.
 */
static void free_number(unsigned n)
{
    (void)__atomic_fetch_and(&taken[n / WORD_BITS], ~(UINT64_C(1) << n % WORD_BITS),
                             __ATOMIC_RELEASE);
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

/* The lowest free number of one word, or THREAD_OWN. */
static unsigned take_in(unsigned word)
{
    uint64_t seen = __atomic_load_n(&taken[word], __ATOMIC_RELAXED);
    while (seen != UINT64_MAX) {
        unsigned bit = (unsigned)__builtin_ctzll(~seen);
        if (word * WORD_BITS + bit >= THREAD_OWN) {
            break;
        }
        if (__atomic_compare_exchange_n(&taken[word], &seen, seen | UINT64_C(1) << bit, false,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            return word * WORD_BITS + bit;
        }
    }
    return THREAD_OWN;
}

static unsigned lowest_free(void)
{
    unsigned n = THREAD_OWN;
    for (unsigned word = 0; word < THREAD_SLOTS / WORD_BITS && n == THREAD_OWN; word++) {
        n = take_in(word);
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
        n = lowest_free();
        if (n < THREAD_OWN && pthread_setspecific(exit_key, (void *)(uintptr_t)(n + 1)) != 0) {
            free_number(n);
            n = THREAD_OWN;
        }
    }
    note_used(n); /* before the first count: readers add up what is below */
    thread_number = n + 1;
    return thread_number;
}

void thread_after_fork(void)
{
    unsigned n = thread_number; /* plus one; 0: none */
    for (unsigned word = 0; word < THREAD_SLOTS / WORD_BITS; word++) {
        bool own = n != 0 && n - 1 < THREAD_OWN && (n - 1) / WORD_BITS == word;
        __atomic_store_n(&taken[word], own ? UINT64_C(1) << (n - 1) % WORD_BITS : 0,
                         __ATOMIC_RELEASE);
    }
}
