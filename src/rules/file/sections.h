/* The sections of the rule file besides its limits and lists. */
#ifndef WEIR_RULES_FILE_SECTIONS_H
#define WEIR_RULES_FILE_SECTIONS_H

#include "rules/file/fields.h"

/* The store and the attributes of a struct config. */
extern const struct field_type type_store, type_attributes;

#endif
