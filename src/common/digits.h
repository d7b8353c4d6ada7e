/*
 * Writes numbers and times without the C library, whose functions a signal handler may not call:
 * snprintf() may allocate, and gmtime_r() takes a lock.
 */
#ifndef WEIR_COMMON_DIGITS_H
#define WEIR_COMMON_DIGITS_H

#include <stddef.h>
#include <stdint.h>

#define DIGITS_MAX 24

/*
 * Writes the number in a base from 10 to 16, with at least `least` digits, up to DIGITS_MAX, and
 * without a terminator. Returns their number.
 */
size_t digits_write(uint64_t number, unsigned base, size_t least, char *out);

/* Writes "2026-11-15T20:54:26.123Z" with a terminator. */
#define DIGITS_TIME_MAX 48
void digits_time(uint64_t unix_ns, char text[DIGITS_TIME_MAX]);

#endif
