/* The sections of the rule file besides its limits and lists. */
#ifndef WEIR_POLICY_SECTIONS_H
#define WEIR_POLICY_SECTIONS_H

#include "policy/fields.h"

void store_read(struct reader *r, const struct node *node);
void attributes_read(struct reader *r, const struct node *node);

extern const char *const section_headers_names[];

#endif
