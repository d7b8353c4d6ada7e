/* The key `ban` of a limit: keys that are denied too often are blocked for a time. */
#ifndef WEIR_RULES_FILE_BAN_H
#define WEIR_RULES_FILE_BAN_H

#include "rules/file/fields.h"

extern const struct field_type type_ban; /* a struct ban_config */

/* Warns of a ban that would block all requests at once, because they share one key. */
void ban_check(struct reader *r, const struct limit_config *limit);

/*
 * Sets the options for the limiter that counts the denials of one setting of a limit: a fixed
 * window whose quota is the number of denials. It has room for as many keys as the limit.
 */
void ban_options(const struct limit_config *limit, const struct setting *setting,
                 struct weir_options *options);

/* True if the two count denials in the same way; for how long they ban may differ. */
bool ban_counts_same(const struct ban_config *a, const struct ban_config *b);

#endif
