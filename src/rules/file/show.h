/* Rules as they came out of the file: every default filled in, secrets hidden, memory told. */
#ifndef WEIR_RULES_FILE_SHOW_H
#define WEIR_RULES_FILE_SHOW_H

#include <stdio.h>

#include "rules/file/config.h"

/* What whoever knows the store has to say of a limit's consistency, into `to`; false: nothing. */
#define SHOW_NOTE_MAX 128
typedef bool (*show_note_fn)(const struct config *config, const struct limit_config *limit,
                             char to[SHOW_NOTE_MAX]);

/* YAML that reads back as the same rules (but for a hidden password), with comments. note may be NULL. */
void config_show(const struct config *config, show_note_fn note, FILE *out);

#endif
