/* Reads the files that the rules name. */
#ifndef WEIR_RULES_FILE_FILES_H
#define WEIR_RULES_FILE_FILES_H

#include "rules/file/fields.h"

/*
 * Reads a regular file of at most `most` bytes into the arena. Returns 0, or WEIR_E... with what
 * was found in *error; WEIR_ERULES: it is in UTF-16. The content is followed by a NUL byte.
 */
int file_read(struct arena *arena, const char *path, size_t most, struct weir_text *content,
              struct weir_error *error);

/*
 * Returns a file that a value of the rules names, reading it if it is new. A relative `name` starts
 * at the rule file's folder. NULL after a problem at the node, or out of memory.
 */
struct source_file *named_file(struct reader *r, const struct node *node, struct weir_text name);

/* Returns an upper bound of the number of values in a file: the number of line ends plus one. */
size_t file_lines(const struct source_file *file);

/*
 * Reports a value of a file. It is not shown, because readers of the message need not be able to
 * read the file.
 */
void file_problem(struct reader *r, struct place place, const char *expected);

/*
 * Counts the memory that the values of a file take, which is part of server.memory:
 *
 *     file_use_begin(&use, r, node, file);
 *     if (file_use_fits(&use, bytes that will be taken)) { read values into the arena }
 *     file_use_end(&use, bytes that its values will take once they are compiled);
 */
struct file_use {
    struct reader *r;
    const struct node *node; /* where the rules name the file */
    struct source_file *file;
    size_t before; /* size of the arena at the beginning */
};

void file_use_begin(struct file_use *use, struct reader *r, const struct node *node,
                    struct source_file *file);

/* Returns whether `more` bytes fit besides those that have been taken; false after a problem. */
bool file_use_fits(const struct file_use *use, uint64_t more);

void file_use_end(const struct file_use *use, uint64_t compiled);

#endif
