/* `tiers` and `overrides`: who gets other numbers than the limit's own. */
#ifndef WEIR_RULES_FILE_TIERS_H
#define WEIR_RULES_FILE_TIERS_H

#include "rules/file/fields.h"

/* What a limit or a tier may say of its numbers; zero where it does not. A queue may be 0. */
struct numbers {
    struct rate rate;
    uint64_t burst;
    uint64_t queue; /* or NO_QUEUE */
    uint64_t max_keys;
};

#define NO_QUEUE UINT64_MAX

/* The limit's own, complete: base is NULL; or a tier's, on top of the limit's. */
struct setting setting_of(int algorithm, const struct numbers *numbers, const struct setting *base);

/* Tells of a burst or queue that the algorithm (0: a wrong one was told of) does not have. */
void numbers_check(struct reader *r, const struct node *map, int algorithm);

/* After the limit's own fields have been read. */
void tiers_read(struct reader *r, const struct node *node, struct limit_config *limit);
void overrides_read(struct reader *r, const struct node *node, struct limit_config *limit);

/* Rows of `value,answer`, for `file:F by A` in the attributes section: out->name and out->by. */
void lookup_read(struct reader *r, const struct node *node, struct text attribute,
                 struct attribute_source *out);

#endif
