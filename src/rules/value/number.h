/*
 * The parts that quantities are read from: exact decimal numbers, units, the end with its error.
 *
 * A number is a fraction of two 128-bit integers until its unit is known: 1.5 is 3/2, and 3/2 of an
 * hour is a whole number of ns. The functions that read return false after they have set the reason
 * in the reader; number_refuse() makes the error from it.
 */
#ifndef WEIR_RULES_VALUE_NUMBER_H
#define WEIR_RULES_VALUE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "base/maths.h"
#include "common/text.h"
#include "rules/value/units.h"

struct fraction {
    u128 top;
    u128 bottom; /* at least 1; has no common divisor with top */
};

/* The text that is left to read, and the reason why reading stopped before its end. */
struct number_reader {
    struct weir_text rest;
    const char *why;
    struct weir_text where;   /* the bytes that `why` is about; may be empty */
    const struct unit *units; /* the rows in which a unit was not found, or NULL */
};

/* Sets the reason why reading stopped; returns false. */
bool number_stop(struct number_reader *r, const char *why, struct weir_text where);

/* Does the same for the present place: "a unit is missing", or "a unit is missing at 'x'". */
#define NUMBER_MISSING(r, what)                                                                    \
    number_stop(r, (r)->rest.len > 0 ? what " is missing at" : what " is missing", (r)->rest)

/* Sets the error "found 'text', expected ...; why"; returns WEIR_EINVAL. */
int number_refuse(const struct number_reader *r, struct weir_text text, const char *expected,
                  struct weir_error *error);

bool number_digit_at(struct weir_text t, size_t i);  /* '0'..'9', whatever the locale */
bool number_letter_at(struct weir_text t, size_t i); /* a letter that names of units may have */
void number_skip_blanks(struct number_reader *r);    /* spaces and tabs */

/* Reads a number: "1", "1.5", "1_000"; "007" is 7. */
bool number_read(struct number_reader *r, struct fraction *f);
/* Reads one of the units, which must be present; blanks may precede it. */
bool number_read_name(struct number_reader *r, const struct unit *rows, const struct unit **unit);
/* Does the same; the unit must have a fixed length. */
bool number_read_unit(struct number_reader *r, const struct unit *rows, const struct unit **unit);
/* Reads a number and a unit, which may be left out. */
bool number_read_scaled(struct number_reader *r, const struct unit *rows, struct fraction *f);
/* True if nothing but blanks is left. */
bool number_read_end(struct number_reader *r);

bool number_multiply(struct number_reader *r, struct fraction *f, uint64_t factor);
/* Sets *out to the fraction as 64 bits; `why` is the reason if it is not whole. */
bool number_to_whole(struct number_reader *r, const struct fraction *f, const char *why,
                     uint64_t *out);

extern const char number_too_large[]; /* the reason if 64 bits are not enough */
extern const char number_varies[];    /* the reason if a unit has no fixed length */

#endif
