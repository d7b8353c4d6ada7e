/*
 * Reads and prints numbers with units, as people write them: rates, durations, counts, sizes,
 * percentages. They are exact: decimals are fractions, never floating point.
 *
 * Each parser reads the whole text and returns 0, or WEIR_EINVAL and in *error (may be NULL) what
 * was found and what was expected. *out is written on success only.
 *
 * A number has up to 38 decimal digits. It may have a point between two of them, and single
 * underscores between digits: 1_000.5. It has no sign and no exponent; zeros at its beginning and
 * at the end of its decimals change nothing, however many. Spaces and tabs may stand between the
 * parts and around the whole. Upper and lower case of units differ: 1M is a million, 1m a minute.
 */
#ifndef WEIR_RULES_VALUE_QUANTITY_H
#define WEIR_RULES_VALUE_QUANTITY_H

#include <stdint.h>

#include <weir.h>

#include "common/text.h"

struct number_reader;

struct rate {
    uint64_t count;
    uint64_t period_ns;
};

/*
 * Reads "5/min", "0.5/s", "1k/min", "1.5M/day", "20/90s", "3/1h30m" or "100 / min": a count as
 * count_parse() reads it, a slash, and a duration or a unit of time alone, which means one of it. A
 * decimal count becomes the smallest whole count with a longer period: 0.5/s is 1 per 2 s, 1.5/s is
 * 3 per 2 s, 2.0/s is 2 per 1 s; a whole count is kept: 2/2s is not 1/s. "100/month" is a
 * whole count per calendar month (period_ns is WEIR_MONTH). Other months and years are refused with
 * a hint, because their length varies. Zero and numbers that do not fit 64 bits are errors. A
 * bare number after the slash ("3/10") is an error if bare_ns is 0; otherwise it counts in units of
 * bare_ns (weir replay: the unit of its timestamps).
 */
int rate_parse(struct weir_text text, uint64_t bare_ns, struct rate *out, struct weir_error *error);

/* The kinds of rates in a rule file: units per period, no units at all, or any number of units. */
enum rate_kind { RATE_COUNTS, RATE_NOTHING, RATE_UNLIMITED };

static inline enum rate_kind rate_kind(struct rate rate)
{
    return rate.count == 0 ? RATE_NOTHING : rate.count == UINT64_MAX ? RATE_UNLIMITED : RATE_COUNTS;
}

/* Reads a rate as rate_parse() does, or one that allows nothing ("0/s"), or "unlimited". */
int rate_parse_limit(struct weir_text text, struct rate *out, struct weir_error *error);

/*
 * Reads "5ms", "90s", "1h30m", "0.5s" or "1 day": numbers with units, larger units first, each
 * once. The units are ns, us, ms, s, m or min, h, d or day, w or week, and their long names. The
 * sum must be a whole number of ns; 0 needs a unit too.
 */
int duration_parse(struct weir_text text, uint64_t *ns, struct weir_error *error);

/*
 * Reads "100", "1k", "1.5M", "2G", "3T" (powers of 1000) or "1_000_000". The result must be whole;
 * it may be 0.
 */
int count_parse(struct weir_text text, uint64_t *count, struct weir_error *error);

/*
 * Print a value as text that reads back as the same value, in the unit that takes the fewest
 * digits: 90s, 1.5s, 1day, 64KiB, 5/min, 1M/day. Buffers have QUANTITY_MAX bytes.
 */
#define QUANTITY_MAX 64
const char *rate_print(struct rate rate, char *buffer);
const char *duration_print(uint64_t ns, char *buffer);
const char *count_print(uint64_t count, char *buffer);
const char *size_print(uint64_t bytes, char *buffer);
/* Three digits, rounded up, in the largest unit: "22.9MB", for people. */
const char *size_print_short(uint64_t bytes, char *buffer);
const char *percent_print(uint64_t hundredths, char *buffer);

/*
 * The quantities that are one number, as rows:
 *   count, duration   as above
 *   size              "64", "64B", "512KB", "1GB" or "1.5GiB", up to T: KB = 1000, KiB = 1024; the
 *                     result must be whole bytes
 *   percent           "0".."100", "25%" or "12.5%", as hundredths of a percent (0..10000)
 */
struct quantity {
    bool (*read)(struct number_reader *r, uint64_t *number); /* reads the whole text */
    const char *(*print)(uint64_t number, char *buffer);
};

extern const struct quantity quantity_count, quantity_duration, quantity_size, quantity_percent;

/* Reads a number; `expected` completes the error "found ..., expected ". */
int quantity_parse(const struct quantity *quantity, struct weir_text text, const char *expected,
                   uint64_t *number, struct weir_error *error);

#endif
