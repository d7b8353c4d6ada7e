/*
 * Measures how long threads that could run had to wait for a processor. A test that bounds a
 * duration subtracts this: then a busy machine does not fail the test, but a wait for a lock, a
 * timer or a late wakeup still does. Both return 0 where the kernel does not count it.
 */
#ifndef WEIR_TESTS_SUPPORT_RUN_DELAY_H
#define WEIR_TESTS_SUPPORT_RUN_DELAY_H

#include <stdint.h>
#include <sys/types.h>

/* Returns how long the calling thread has waited since it began. */
uint64_t run_delay_ns(void);

/* Returns the sum over the present threads of a process. */
uint64_t run_delay_of_process_ns(pid_t pid);

#endif
