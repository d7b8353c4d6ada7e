/* What a limit that nodes share may say: its keys in the file, and what does not go together. */
#ifndef WEIR_RULES_FILE_CONSISTENCY_H
#define WEIR_RULES_FILE_CONSISTENCY_H

#include "rules/file/fields.h"

#define SHARED_DENY_CACHE WEIR_SECOND
#define SHARED_SYNC (100 * WEIR_MILLISECOND)

/* Readers for rows: struct texts, and two durations in ns. */
void field_shard(struct reader *r, const struct field *f, const struct node *node, void *target);
void field_deny_cache(struct reader *r, const struct field *f, const struct node *node,
                      void *target);
void field_sync(struct reader *r, const struct field *f, const struct node *node, void *target);

/* When all fields of a limit are read. */
void shared_check_fields(struct reader *r, const struct node *node,
                         const struct limit_config *limit);

/* What depends on the rest of the file: store and consistency. */
void shared_check_limit(const struct config *config, const struct limit_config *limit,
                        struct problems *problems);

#endif
