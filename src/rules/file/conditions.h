/* `when`, `unless`, `allow`, `block`: attributes and the values that they may have. */
#ifndef WEIR_RULES_FILE_CONDITIONS_H
#define WEIR_RULES_FILE_CONDITIONS_H

#include "rules/file/fields.h"

/* {path: [/login, /v1/login], method: POST}: every attribute is allowed as a key. */
void conditions_read(struct reader *r, const struct node *node, struct conditions *out);

/* [{ip: [...]}, {path: ...}]; more entries are put behind those that are there. */
void list_read(struct reader *r, const struct node *node, struct list_config *out);

/*
 * Attributes may have any name; one that is nearly `path`, `method`, `host` or
 * `ip` was probably meant to be it, and would never match: a warning.
 */
void attribute_suspect(struct reader *r, struct text name, struct place place);

#endif
