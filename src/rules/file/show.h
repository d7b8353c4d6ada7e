/* Prints rules as they were read: every default filled in, secrets hidden, memory in comments. */
#ifndef WEIR_RULES_FILE_SHOW_H
#define WEIR_RULES_FILE_SHOW_H

#include <stdio.h>

#include "rules/file/config.h"

/*
 * Writes a remark about a limit's consistency into `to`, and returns true; false: there is none.
 * For callers that know the store.
 */
#define SHOW_NOTE_MAX 128
typedef bool (*show_note_fn)(const struct config *config, const struct limit_config *limit,
                             char to[SHOW_NOTE_MAX]);

/*
 * Writes YAML with comments that reads back as the same rules, except for hidden passwords. note
 * may be NULL.
 */
void config_show(const struct config *config, show_note_fn note, FILE *out);

/* Writes the exact number and, for people, the same with three digits and a unit. */
void show_bytes(FILE *out, uint64_t bytes);

#endif
