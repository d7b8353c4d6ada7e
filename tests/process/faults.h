/*
 * Makes the n-th call of the library to the system fail: memory, files, locks,
 * random numbers, threads. The linker sends those calls here (--wrap). Also
 * counts what is held, to find leaks, and shifts the wall clock.
 */
#ifndef WEIR_TESTS_FAULTS_H
#define WEIR_TESTS_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

/* From now on the n-th call fails, or with for_ever also all that follow. */
void faults_arm(unsigned n, bool for_ever);

/* No more. Returns how many calls were made to fail. */
unsigned faults_disarm(void);

/* The name of the call that failed first, "" if none. */
const char *faults_name(void);

struct holdings {
    long allocations;
    unsigned descriptors;
    unsigned mappings; /* 0 under a sanitizer, which has its own */
};
struct holdings faults_holdings(void);

/* CLOCK_REALTIME is off by this much. */
extern int64_t faults_wall_clock_off_s;

#endif
