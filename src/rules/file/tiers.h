/* Reads `tiers` and `overrides`, which give some requests other numbers than the limit's own. */
#ifndef WEIR_RULES_FILE_TIERS_H
#define WEIR_RULES_FILE_TIERS_H

#include "rules/file/fields.h"

/* Fills in the numbers that a limit, one of its tiers or a row of its overrides does not state. */
void setting_complete(const struct limit_config *limit, struct setting *setting);

/* Reports a burst or queue of the map beside a rate that has none: 0/s and unlimited. */
void setting_check(struct reader *r, const struct node *node, const struct setting *setting);

/* True if the limit that is shown has a table for more than one key. */
bool setting_has_keys(const struct show *s);

/* The types of the two keys. They only show values; the functions below read them. */
extern const struct field_type type_tiers, type_overrides;

/* Read tiers and overrides, after the limit's own fields have been read. */
void tiers_read(struct reader *r, const struct node *node, struct limit_config *limit);
void overrides_read(struct reader *r, const struct node *node, struct limit_config *limit);

/*
 * Reads rows of `value,answer` for `file:F by A` in the attributes section: from the file
 * out->name, for values of out->by.
 */
void lookup_read(struct reader *r, const struct node *node, struct weir_text attribute,
                 struct attribute_source *out);

#endif
