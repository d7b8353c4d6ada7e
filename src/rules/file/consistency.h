/* Reads and checks the keys of a limit that nodes share. */
#ifndef WEIR_RULES_FILE_CONSISTENCY_H
#define WEIR_RULES_FILE_CONSISTENCY_H

#include "rules/file/fields.h"

/*
 * The range of `sync`. Exchanges that are more frequent would leave a store little time for
 * anything else; with less frequent ones, windows would end before a node hears of them.
 */
#define SYNC_MIN WEIR_MILLISECOND
#define SYNC_MAX WEIR_MINUTE

/* An int: enum consistency. It is shown with the default filled in. */
extern const struct field_type type_consistency;
/* A struct texts. */
extern const struct field_type type_shard;

/* True if the limit that is shown has a consistency other than local, or is synced. */
bool limit_is_shared(const struct show *s);
bool limit_is_synced(const struct show *s);

/* Checks a limit by itself, after all of its fields have been read. */
void shared_check_fields(struct reader *r, const struct node *node,
                         const struct limit_config *limit);

/*
 * Checks that the consistency has a store and fits the algorithm. Warns of `sync` without effect.
 */
void shared_check_limit(const struct config *config, const struct limit_config *limit,
                        struct problems *problems);

#endif
