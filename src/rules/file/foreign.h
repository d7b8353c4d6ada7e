/*
 * Recognises what is written as in the rules of other programs, and tells the line to write here
 * instead.
 */
#ifndef WEIR_RULES_FILE_FOREIGN_H
#define WEIR_RULES_FILE_FOREIGN_H

#include "rules/file/fields.h"

/*
 * Reports a key such as `limit` or `window` of a limit that has both, with the rate that they make.
 * Returns false, and reports nothing, for other keys.
 */
bool foreign_rate(struct reader *r, const struct node *limit, const struct node *key);

/*
 * Reports a source such as header:X-Api-Key in place of an attribute's name, with the attribute to
 * declare. Returns false for other texts.
 */
bool foreign_key(struct reader *r, const struct node *node, struct weir_text part);

/*
 * Warns of a path such as /users/:id, whose segment is a text here and no placeholder, with the
 * pattern that was probably meant.
 */
void foreign_path(struct reader *r, struct weir_text path, struct place place);

#endif
