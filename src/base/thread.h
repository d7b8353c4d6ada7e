/* A small number for each living thread, so that it can have counters of its own. */
#ifndef WEIR_BASE_THREAD_H
#define WEIR_BASE_THREAD_H

/* Each number below THREAD_OWN belongs to one living thread. All other threads share THREAD_OWN. */
#define THREAD_OWN 511
#define THREAD_SLOTS (THREAD_OWN + 1)

/* The number plus one, or 0 while the thread has none. Use thread_slot(). */
extern __thread unsigned thread_number __attribute__((visibility("hidden")));

unsigned thread_number_take(void);

/* Returns a bound: all numbers that were ever taken are below it. */
unsigned thread_slots_used(void);

/* Runs in a forked child: frees the numbers of threads that do not exist there. */
void thread_after_fork(void);

static inline unsigned thread_slot(void)
{
    unsigned n = thread_number;
    if (__builtin_expect(n == 0, 0)) {
        n = thread_number_take();
    }
    return n - 1;
}

#endif
