/* Reads clocks. No other file does: everything else is given the time. */
#ifndef WEIR_BASE_CLOCK_H
#define WEIR_BASE_CLOCK_H

#include <stdint.h>

/* Returns Unix time by the wall clock, which may be set. It is read to anchor a time line. */
uint64_t clock_unix_ns(void);

/* The beginning of 2026. A wall clock that says less has not been set since the machine started. */
#define CLOCK_SET_NS UINT64_C(1767225600000000000)

/* Returns CLOCK_BOOTTIME: nanoseconds since boot, including sleep. It cannot be set. */
uint64_t clock_boot_ns(void);

/*
 * Returns what the time namespace of this process, which may be a container's, adds to
 * CLOCK_BOOTTIME. Reads /proc; returns 0 where that is missing.
 */
int64_t clock_boot_offset_ns(void);

/*
 * Returns CLOCK_BOOTTIME at less than half the cost, if clock_choose() found a usable counter:
 * within COUNTER_ERROR_NS, and never going back within a thread (counter.h).
 */
uint64_t clock_now_ns(void);

/*
 * Decides for all threads whether clock_now_ns() uses the counter. weir_open() calls it early,
 * because a program may later lose the right to open the file that names the clock source.
 */
void clock_choose(void);

/* Returns CLOCK_MONOTONIC, the clock of poll() and systemd: since boot, without sleep. */
uint64_t clock_monotonic_ns(void);

struct boot_id {
    uint64_t word[2];
};

/* Identifies this boot; all zero if the kernel does not tell. 0, or WEIR_EIO with errno set. */
int clock_boot_id(struct boot_id *id);

#endif
