/* Reads `when`, `unless`, `allow` and `block`: attributes and the values that they may have. */
#ifndef WEIR_RULES_FILE_CONDITIONS_H
#define WEIR_RULES_FILE_CONDITIONS_H

#include "rules/file/fields.h"

/* A struct conditions: {path: [/login, /v1/login], method: POST}; any attribute may be a key. */
extern const struct field_type type_conditions;

/* A struct list_config: [{ip: [...]}, {path: ...}]; entries are added to those already there. */
extern const struct field_type type_list;

/* The same, of which a single entry may be written without the list. */
extern const struct field_type type_either;

#endif
