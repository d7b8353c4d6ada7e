/* Reads one item under `limits`. */
#ifndef WEIR_RULES_FILE_LIMITS_H
#define WEIR_RULES_FILE_LIMITS_H

#include "rules/file/fields.h"

/* Returns a checked limit that refers to r->source; NULL after a problem or out of memory. */
struct limit_config *limit_read(struct reader *r, const struct node *node);

/* ---- limit_options.c ---- */

/* Returns the most units that a request may take at once. */
uint64_t limit_quota(const struct limit_config *limit, const struct setting *setting);

/*
 * Returns the time that the whole quota is for: the period; for a bucket, the time until an empty
 * one is full.
 */
uint64_t limit_window_ns(const struct limit_config *limit, const struct setting *setting);

/* Returns the longest delay of a leaky_bucket, 0 of others. */
uint64_t limit_queue_ns(const struct limit_config *limit, const struct setting *setting);

/* Returns the max_wait with which a leaky_bucket delays no request by more than delay_ns; 0:
 * it does not anyway. */
uint64_t limit_wait_ns(const struct limit_config *limit, const struct setting *setting,
                       uint64_t delay_ns);

/*
 * Returns the bytes of all tables of a limit in this process, including those that count denials
 * for a ban. Reports sizes that are impossible at the limit's rate; without `config`, those of a
 * limit that nodes share too.
 */
uint64_t limit_bytes(const struct config *config, const struct limit_config *limit,
                     struct problems *problems);

/* ---- limits.c ---- */

/* Writes all limits of s->config, for the row of the list. */
void limits_show(const struct show *s, const void *value);

/* Names of the choices as in the file, in the order of their numbers. */
extern const char *const limit_on_full_names[];
extern const char *const limit_failure_names[];
extern const char *const limit_consistency_names[];

#endif
