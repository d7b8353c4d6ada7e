/* The sections of the rule file besides its limits and lists. */
#ifndef WEIR_RULES_FILE_SECTIONS_H
#define WEIR_RULES_FILE_SECTIONS_H

#include "rules/file/fields.h"

/* A struct store_config, and the attributes of the whole struct config. */
extern const struct field_type type_store, type_attributes;

/* True if the rules that are shown have a store, or attributes with sources. */
bool store_applies(const struct show *s);
bool attributes_apply(const struct show *s);

#endif
