/*
 * A number for this process that a forked child does not share, whichever system call made the
 * child. Numbers grow along a line of descent: no process has the number of an ancestor.
 */
#ifndef WEIR_BASE_PROCESS_H
#define WEIR_BASE_PROCESS_H

#include <stdint.h>

/* The word behind process_number(). The kernel sets it to 0 in a forked child. */
extern uint64_t *process_word __attribute__((visibility("hidden")));

uint64_t process_number_take(void);

static inline uint64_t process_number(void)
{
    uint64_t n = __atomic_load_n(process_word, __ATOMIC_ACQUIRE);
    return __builtin_expect(n != 0, 1) ? n : process_number_take();
}

#endif
