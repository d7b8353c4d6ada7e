/* The units that quantities are read and printed in: rows, from small to large. */
#ifndef WEIR_RULES_VALUE_UNITS_H
#define WEIR_RULES_VALUE_UNITS_H

#include <stdint.h>

#include "common/text.h"

struct unit {
    uint64_t times;     /* number of smallest units; 0: known, but without a fixed length */
    const char *symbol; /* as printed; NULL after the last row */
    const char *names;  /* as read, separated by spaces; the symbol is one of them */
};

extern const struct unit units_of_time[];  /* in ns */
extern const struct unit units_of_count[]; /* the first row stands for no unit */
extern const struct unit units_of_size[];  /* in bytes; the first row stands for no unit */

/* Returns the row that has this name, or NULL. Upper and lower case differ. */
const struct unit *unit_find(const struct unit *rows, struct weir_text name);

#endif
