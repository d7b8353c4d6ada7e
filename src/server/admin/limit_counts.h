/* What limits have counted, and what came in addition since an earlier look. */
#ifndef WEIR_SERVER_ADMIN_LIMIT_COUNTS_H
#define WEIR_SERVER_ADMIN_LIMIT_COUNTS_H

#include "server/admin/numbers.h"

struct limit_counts {
    char name[WEIR_RULES_NAME];
    uint64_t allowed;
    uint64_t denied; /* deny and never */
    uint64_t shadow_denied;
    uint64_t missing;
    uint64_t uncovered; /* as in struct weir_rules_limit */
};

/* Sorted by name. Zeroed, it has none. */
struct limits_counted {
    struct limit_counts *limits;
    size_t count;
};

/* Reads the counts of all limits. Returns false if out of memory. */
bool limits_counted_read(const struct numbers *n, struct limits_counted *counted);
void limits_counted_finish(struct limits_counted *counted);

/*
 * Fills `since` (now->count) with what each limit of `now` has counted since `before`. A limit that
 * was made, or made again, in between starts at 0.
 */
void limits_counted_since(const struct limits_counted *before, const struct limits_counted *now,
                          struct limit_counts *since);

#endif
