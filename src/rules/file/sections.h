/* The sections of the rule file besides its limits and lists. */
#ifndef WEIR_RULES_FILE_SECTIONS_H
#define WEIR_RULES_FILE_SECTIONS_H

#include "rules/file/fields.h"

/* The server, the store and the attributes (attributes.c) of a struct config. */
extern const struct field_type type_server, type_store, type_attributes;

#endif
