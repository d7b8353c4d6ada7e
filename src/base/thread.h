/* A small number for each living thread, so that it can have counters of its own. */
#ifndef WEIR_BASE_THREAD_H
#define WEIR_BASE_THREAD_H

/* Numbers below THREAD_OWN belong to one living thread each; the rest share THREAD_OWN. */
#define THREAD_OWN 511
#define THREAD_SLOTS (THREAD_OWN + 1)

/* The number plus one; 0 while the thread has none. Use thread_slot(). */
extern __thread unsigned thread_number __attribute__((visibility("hidden")));

unsigned thread_number_take(void);

/* All numbers that were ever taken are below this one. */
unsigned thread_slots_used(void);

/* In the child of a fork: the numbers of threads that do not exist here are free again. */
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
