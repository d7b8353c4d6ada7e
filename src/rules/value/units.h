/* The units that quantities are read and printed in: rows, from small to large. */
#ifndef WEIR_RULES_VALUE_UNITS_H
#define WEIR_RULES_VALUE_UNITS_H

#include <stdint.h>

#include "common/text.h"

struct unit {
    uint64_t times;     /* how many of the smallest; 0: known, but of no fixed length */
    const char *symbol; /* as printed; NULL behind the last row */
    const char *names;  /* as read, a space between two; the symbol is one of them */
};

extern const struct unit units_of_time[];  /* in ns */
extern const struct unit units_of_count[]; /* the first row is no unit at all */
extern const struct unit units_of_size[];  /* in bytes, likewise */

/* The row that has this name, or NULL. Upper and lower case differ. */
const struct unit *unit_find(const struct unit *rows, struct text name);

#endif
