/* The built-in limit `adhoc`, in which CL.THROTTLE keeps its keys: one table for any numbers. */
#ifndef WEIR_RULES_FILE_ADHOC_H
#define WEIR_RULES_FILE_ADHOC_H

#include "rules/file/fields.h"

/* The longest time in which a burst of CL.THROTTLE may refill: the most years of 365 days that the
 * word of a bucket can hold. It is the burst of the limiter whose table CL.THROTTLE uses; a file of
 * an older version, with another burst and the same period, keeps its keys. */
#define ADHOC_YEARS 36

/* A struct adhoc_config: `off` or a map. */
extern const struct field_type type_adhoc;

/* Reports a limit of the same name, and a consistency that cannot be. */
void adhoc_check(const struct config *config, struct problems *problems);

/* Sets the options for its limiter, which `weir serve` opens. */
void adhoc_options(uint64_t max_keys, int on_full, struct weir_options *options);

/* Returns whether the fleet decides it. */
bool adhoc_is_shared(const struct config *config);

/* Returns the bytes of its table, 0 if it is off or in the store. Reports an impossible size. */
uint64_t adhoc_bytes(const struct config *config, struct problems *problems);

#endif
