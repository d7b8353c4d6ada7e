/* Reads the files that the rules name. */
#ifndef WEIR_RULES_FILE_FILES_H
#define WEIR_RULES_FILE_FILES_H

#include "rules/file/fields.h"

/*
 * Reads a regular file of at most `most` bytes into the arena. Returns 0, or WEIR_E... with what
 * was found in *error. The content is followed by a NUL byte.
 */
int file_read(struct arena *arena, const char *path, size_t most, struct text *content,
              struct weir_error *error);

/*
 * Returns a file that a value of the rules names, reading it if it is new. A relative `name` starts
 * at the rule file's folder. NULL after a problem at the node, or out of memory.
 */
struct source_file *named_file(struct reader *r, const struct node *node, struct text name);

#endif
