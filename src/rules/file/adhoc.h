/* The built-in limit `adhoc`, where CL.THROTTLE keeps its keys: one table for any numbers. */
#ifndef WEIR_RULES_FILE_ADHOC_H
#define WEIR_RULES_FILE_ADHOC_H

#include "rules/file/fields.h"

void adhoc_init(struct adhoc_config *adhoc);

/* `off`, or a map. */
void adhoc_read(struct reader *r, const struct node *node);

/* Tells of a limit of the same name, and of a consistency without a store. */
void adhoc_check(const struct config *config, struct problems *problems);

/* The options that make its limiter: what `weir serve` opens. */
void adhoc_options(uint64_t max_keys, int on_full, struct weir_options *options);

/* Bytes of its table, 0 if it is off; a size that cannot be made is told. */
uint64_t adhoc_bytes(const struct adhoc_config *adhoc, struct problems *problems);

#endif
