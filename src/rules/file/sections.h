/* The sections of the rule file besides its limits and lists. */
#ifndef WEIR_RULES_FILE_SECTIONS_H
#define WEIR_RULES_FILE_SECTIONS_H

#include "rules/file/fields.h"

/* The server, the store (store_section.c) and the attributes (attributes.c) of a struct config. */
extern const struct field_type type_server, type_store, type_attributes;

/* A struct networks, shown only if it is given. */
extern const struct field_type type_networks;

/*
 * Reports a name that rules use for an attribute and that no request will have: with a section
 * `attributes`, a name that is neither declared there nor built in; without it, one that is nearly
 * a usual name.
 */
void attribute_used(struct reader *r, struct weir_text name, struct place place);

/* Reports sources path:{name} for which no path of the rules has that name. */
void attributes_check(const struct config *config, struct problems *problems);

/* Reads the mode of a file in octal, such as 0660. Returns false if it is not one of 1 to 0777. */
#define MODE_EXPECTED "a mode in octal from 0001 to 0777, such as 0660"
bool mode_parse(struct weir_text text, unsigned *mode);

#endif
