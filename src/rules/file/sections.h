/* The sections of the rule file besides its limits and lists. */
#ifndef WEIR_RULES_FILE_SECTIONS_H
#define WEIR_RULES_FILE_SECTIONS_H

#include "rules/file/fields.h"

void store_read(struct reader *r, const struct node *node);
void attributes_read(struct reader *r, const struct node *node);

extern const char *const section_headers_names[];

#endif
