/* Files that the rules name, read as a whole. */
#ifndef WEIR_RULES_FILE_FILES_H
#define WEIR_RULES_FILE_FILES_H

#include "common/arena.h"

/*
 * The content of a regular file of at most `most` bytes. 0; WEIR_E... with what
 * was found. The text is terminated behind its length.
 */
int file_read(struct arena *arena, const char *path, size_t most, struct text *content,
              struct weir_error *error);

#endif
