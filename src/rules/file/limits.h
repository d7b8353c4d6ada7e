/* One item under `limits`. */
#ifndef WEIR_RULES_FILE_LIMITS_H
#define WEIR_RULES_FILE_LIMITS_H

#include "rules/file/fields.h"

/* A checked limit that refers to r->source, or NULL after a problem (or out of memory). */
struct limit_config *limit_read(struct reader *r, const struct node *node);

/* The time that the whole quota is for: the period; of a bucket, until an empty one is full. */
uint64_t limit_window_ns(const struct limit_config *limit, const struct setting *setting);

/* Bytes of all tables of a limit; sizes that cannot be made are told at its place. */
uint64_t limit_bytes(const struct limit_config *limit, struct problems *problems);

/* Names of the choices, as the file has them. */
extern const char *const limit_on_full_names[];
extern const char *const limit_on_missing_names[];
extern const char *const limit_failure_names[];
extern const char *const limit_consistency_names[];
extern const char *const limit_align_names[];

#endif
