/* Reads `tiers` and `overrides`, which give some requests other numbers than the limit's own. */
#ifndef WEIR_RULES_FILE_TIERS_H
#define WEIR_RULES_FILE_TIERS_H

#include "rules/file/fields.h"

/* The numbers that a limit or a tier states; 0 for those it does not. A queue may be 0. */
struct numbers {
    struct rate rate;
    uint64_t burst;
    uint64_t queue; /* or NO_QUEUE */
    uint64_t max_keys;
};

#define NO_QUEUE UINT64_MAX

/* Returns the limit's own setting, complete, if base is NULL; or a tier's, with base as default. */
struct setting setting_of(int algorithm, const struct numbers *numbers, const struct setting *base);

/*
 * Reports a burst or queue that the algorithm does not have. 0 is an unknown algorithm, which has
 * been reported: no checks.
 */
void numbers_check(struct reader *r, const struct node *map, int algorithm);

/* Read tiers and overrides, after the limit's own fields have been read. */
void tiers_read(struct reader *r, const struct node *node, struct limit_config *limit);
void overrides_read(struct reader *r, const struct node *node, struct limit_config *limit);

/*
 * Reads rows of `value,answer` for `file:F by A` in the attributes section: from the file
 * out->name, for values of out->by.
 */
void lookup_read(struct reader *r, const struct node *node, struct text attribute,
                 struct attribute_source *out);

#endif
