/* Reads and checks the keys of a limit that nodes share. */
#ifndef WEIR_RULES_FILE_CONSISTENCY_H
#define WEIR_RULES_FILE_CONSISTENCY_H

#include "rules/file/fields.h"

#define SHARED_DENY_CACHE WEIR_SECOND
#define SHARED_SYNC (100 * WEIR_MILLISECOND)

/* Readers for rows: field_shard() sets a struct texts, the others a duration in ns. */
void field_shard(struct reader *r, const struct field *f, const struct node *node, void *target);
void field_deny_cache(struct reader *r, const struct field *f, const struct node *node,
                      void *target);
void field_sync(struct reader *r, const struct field *f, const struct node *node, void *target);

/* Checks a limit by itself, after all of its fields have been read. */
void shared_check_fields(struct reader *r, const struct node *node,
                         const struct limit_config *limit);

/*
 * Checks that the consistency has a store and fits the algorithm. Warns of `sync` without effect.
 */
void shared_check_limit(const struct config *config, const struct limit_config *limit,
                        struct problems *problems);

#endif
