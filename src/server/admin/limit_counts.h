/* What limits have counted, and what came in addition since an earlier look. */
#ifndef WEIR_SERVER_ADMIN_LIMIT_COUNTS_H
#define WEIR_SERVER_ADMIN_LIMIT_COUNTS_H

#include "server/status/numbers.h"

struct limit_counts {
    char name[WEIR_RULES_NAME];
    uint64_t allowed;
    uint64_t denied; /* deny and never */
    uint64_t shadow_denied;
    uint64_t reasons[REQUEST_REASONS]; /* of the denied ones, by reason, but for those of LIMIT */
    uint64_t missing;
    uint64_t uncovered; /* as in struct weir_rules_limit */
    /* Per second, over about the last RATE_SPAN_S seconds; limits_counted_rate() sets them. */
    double denied_rate;
    double decided_rate;
};

#define RATE_SPAN_S 10 /* the weight of a second halves about each 7 s */

static inline uint64_t limit_decisions(const struct limit_counts *l)
{
    return l->allowed + l->denied + l->shadow_denied;
}

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

/*
 * Sets the rates of `now` from those of `before` and from what was counted in the `seconds` between
 * them, as limits_counted_since() says.
 */
void limits_counted_rate(const struct limits_counted *before, struct limits_counted *now,
                         const struct limit_counts *since, double seconds);

/* Returns what is known of a limit; NULL if there is none of this name. */
const struct limit_counts *limits_counted_find(const struct limits_counted *counted,
                                               const char *name);

#endif
