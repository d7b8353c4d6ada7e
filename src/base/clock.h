/* Reads clocks; no other file does. Everybody else is given the time. */
#ifndef WEIR_BASE_CLOCK_H
#define WEIR_BASE_CLOCK_H

#include <stdint.h>

/* Unix time by the wall clock, which somebody may set. Read once to anchor a time line. */
uint64_t clock_unix_ns(void);

/* The first moment of 2026: a wall clock that says less has not been set since the machine began. */
#define CLOCK_SET_NS UINT64_C(1767225600000000000)

/* Returns CLOCK_BOOTTIME: nanoseconds since boot, sleep included; nobody can set it. */
uint64_t clock_boot_ns(void);

/*
 * What the time namespace of this process, which may be a container's, adds to CLOCK_BOOTTIME.
 * Reads /proc; 0 where that is missing.
 */
int64_t clock_boot_offset_ns(void);

/*
 * Returns the same time at less than half the cost where clock_choose() found a usable counter:
 * within COUNTER_ERROR_NS, and never going back within a thread (counter.h).
 */
uint64_t clock_now_ns(void);

/*
 * Decides for all threads whether clock_now_ns() uses the counter. weir_open() calls it, because a
 * program may be forbidden later to open the file that says so.
 */
void clock_choose(void);

/* The clock of poll() and of systemd's messages: since boot, without sleep. */
uint64_t clock_monotonic_ns(void);

struct boot_id {
    uint64_t word[2];
};

/* Which boot this is; all zero where the kernel does not tell. 0, or WEIR_EIO with errno set. */
int clock_boot_id(struct boot_id *id);

#endif
