/*
 * A number for this process that a forked child does not share, whichever system call made the
 * child. Numbers grow along a line of descent: no ancestor ever had the number of its descendant.
 */
#ifndef WEIR_BASE_PROCESS_H
#define WEIR_BASE_PROCESS_H

#include <stdint.h>

/* The kernel sets this word to 0 in a forked child. Use process_number(). */
extern uint64_t *process_word __attribute__((visibility("hidden")));

uint64_t process_number_take(void);

static inline uint64_t process_number(void)
{
    uint64_t n = __atomic_load_n(process_word, __ATOMIC_ACQUIRE);
    return __builtin_expect(n != 0, 1) ? n : process_number_take();
}

#endif
