/* Reads `when`, `unless`, `allow` and `block`: attributes and the values that they may have. */
#ifndef WEIR_RULES_FILE_CONDITIONS_H
#define WEIR_RULES_FILE_CONDITIONS_H

#include "rules/file/fields.h"

/* Reads {path: [/login, /v1/login], method: POST}: every attribute is allowed as a key. */
void conditions_read(struct reader *r, const struct node *node, struct conditions *out);

/* Reads [{ip: [...]}, {path: ...}] and appends the entries to those already there. */
void list_read(struct reader *r, const struct node *node, struct list_config *out);

/*
 * Warns of a name that is nearly `path`, `method`, `host` or `ip`: attributes may have any name,
 * but this one was probably a mistake and would never match.
 */
void attribute_suspect(struct reader *r, struct text name, struct place place);

#endif
