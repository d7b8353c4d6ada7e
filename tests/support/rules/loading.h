/* Loads rules from a text or a file, collects the messages, and returns what `weir config show`
 * prints. */
#ifndef WEIR_TESTS_SUPPORT_LOADING_H
#define WEIR_TESTS_SUPPORT_LOADING_H

#include <weir_rules.h>

#include "common/text.h"
#include "rules/yaml/problems.h"

/* The messages: "line:column: text" and a line end each; a warning begins with "warning: ". */
struct loading {
    char told[8192];
    size_t len;
    unsigned errors;
    unsigned warnings;
};

/* For struct weir_rules_options.message and struct problems.tell; arg is a struct loading. */
void loading_message(void *arg, const struct weir_rules_message *message);

/* Return the messages of weir_rules_open_text() for a text; "" if there are none. Valid until the
 * next call. */
const char *loading_told(struct weir_text yaml);
const char *loading_told_of(const char *yaml);

/* The same for a file or folder. */
const char *loading_told_file(const char *path);

/* Return what `weir config show` prints for a text, to be freed. The test fails if the text has
 * errors. */
char *loading_show(struct weir_text yaml);
char *loading_show_of(const char *yaml);
char *loading_show_file(const char *path);

/* Returns true if one of the lines is this one, apart from leading blanks. */
bool loading_has_line(const char *shown, const char *line);

/* Writes a text file into a folder of unit_folder(). */
void loading_write(const char *folder, const char *name, const char *content);

#endif
