/*
 * The JSON Schema (2020-12) of rule files, for editors: each section is a definition, each row a
 * property. It says which keys there are and of which type, not all that `weir config check` finds:
 * numbers with units are checked by their form, and keys that depend on others not at all.
 *
 * A scalar of a rule file is a text to weir, however it is written. To a YAML parser 5 is a number
 * and true a boolean, so these are accepted where a text is.
 */
#include "schema.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules/file/fields.h"

#define NUMBER "[0-9][0-9_.]*"
#define RATE NUMBER "\\s*[kMGT]?\\s*/\\s*([a-z]+|(" NUMBER "\\s*[a-z]+\\s*)+)"
#define NAME_PATTERN "^[A-Za-z0-9_.-]{1,63}$"
#define URL_PATTERN "^rediss?(-sentinel|-cluster)?://.+$"
#define SOURCE_PATTERN                                                                             \
    "^(request|header:.+|query:.+|cookie:.+|path:[0-9]+|path:\\{.+\\}|file:.+ by .+)$"

/* ---- scalars ---- */

static json_t *scalar(void)
{
    return json_pack("{s:[s,s,s]}", "type", "string", "number", "boolean");
}

/* A pattern applies to strings only: numbers and booleans have no other form. */
static json_t *scalar_like(const char *pattern)
{
    json_t *s = scalar();
    (void)json_object_set_new(s, "pattern", json_string(pattern));
    return s;
}

static json_t *text_like(const char *pattern)
{
    return json_pack("{s:s,s:s}", "type", "string", "pattern", pattern);
}

/* The form of numbers with units; of counts also their range. */
static json_t *number(const struct field *f)
{
    const struct quantity *q = f->type->quantity;
    const char *pattern = q == &quantity_duration  ? "^\\s*(" NUMBER "\\s*[a-z]+\\s*)+$"
                          : q == &quantity_size    ? "^\\s*" NUMBER "\\s*[A-Za-z]*\\s*$"
                          : q == &quantity_percent ? "^\\s*" NUMBER "\\s*%?\\s*$"
                                                   : "^\\s*" NUMBER "\\s*[kMGT]?\\s*$";
    json_t *plain = json_pack("{s:s,s:I}", "type", "number", "minimum",
                              q == &quantity_count ? (json_int_t)f->least : 0);
    if (q == &quantity_count && f->most > 0) {
        (void)json_object_set_new(plain, "maximum", json_integer((json_int_t)f->most));
    }
    json_t *any = json_pack("[o,o]", plain, text_like(pattern));
    if (f->zero != NULL) {
        (void)json_array_append_new(any, json_pack("{s:s}", "const", f->zero));
    }
    if (strstr(f->expects, "attribute:") != NULL) {
        (void)json_array_append_new(any, text_like("^attribute:.+$"));
    }
    return json_pack("{s:o}", "anyOf", any);
}

static json_t *words(const struct field *f)
{
    json_t *list = json_array();
    for (size_t i = 0; f->choices[i] != NULL; i++) {
        if (f->choices[i][0] != 0) {
            (void)json_array_append_new(list, json_string(f->choices[i]));
        }
    }
    return json_pack("{s:o}", "enum", list);
}

static json_t *one_scalar(const struct field *f)
{
    if (f->choices != NULL) {
        return words(f);
    }
    if (f->type == &type_bool) {
        return json_pack("{s:[b,b,s,s]}", "enum", 1, 0, "true", "false");
    }
    if (f->type->quantity != NULL) {
        return number(f);
    }
    if (f->type == &type_rate) {
        return text_like("^\\s*" RATE "\\s*$");
    }
    if (f->type == &type_limit_rate) {
        return text_like("^\\s*(unlimited|" RATE ")\\s*$");
    }
    if (strcmp(f->name, "version") == 0) {
        return json_pack("{s:[i,s]}", "enum", 1, "1");
    }
    if (strcmp(f->name, "url") == 0) {
        return text_like(URL_PATTERN);
    }
    return f->type->good == name_is_good ? scalar_like(NAME_PATTERN) : scalar();
}

/* ---- lists and maps ---- */

static json_t *list_of(json_t *item, int least)
{
    return json_pack("{s:s,s:o,s:i}", "type", "array", "items", item, "minItems", least);
}

static json_t *one_or_list(json_t *item, int least)
{
    return json_pack("{s:[O,o]}", "anyOf", item, list_of(item, least));
}

/* Writes the name of a definition: that of the section, without brackets. */
static const char *definition(const char *section, char name[64])
{
    (void)snprintf(name, 64, "%.*s", (int)strcspn(section, "["), section);
    return name;
}

static json_t *reference(const char *section)
{
    char name[64];
    return json_pack("{s:s+}", "$ref", "#/$defs/", definition(section, name));
}

static json_t *map_of(json_t *value, int least)
{
    return json_pack("{s:s,s:o,s:o,s:i}", "type", "object", "propertyNames",
                     json_pack("{s:s}", "pattern", NAME_PATTERN), "additionalProperties", value,
                     "minProperties", least);
}

static json_t *properties(const struct section *section);

/* A map of tiers: its own keys, and any other name is a tier. */
static json_t *tiers(void)
{
    return json_pack("{s:s,s:o,s:o,s:o}", "type", "object", "properties",
                     properties(&section_tiers), "propertyNames",
                     json_pack("{s:s}", "pattern", NAME_PATTERN), "additionalProperties",
                     reference(section_tier.name));
}

static json_t *value_of(const struct field *f)
{
    switch (f->type->shape) {
    case SHAPE_SCALAR_OR_MAP:
        return json_pack("{s:[o,o]}", "anyOf",
                         strcmp(f->name, "store") == 0 ? text_like(URL_PATTERN)
                                                       : json_pack("{s:s}", "const", "off"),
                         reference(f->section->name));
    case SHAPE_SCALARS:
        return one_or_list(scalar(), 0);
    case SHAPE_CONDITIONS:
        return reference("conditions");
    case SHAPE_CONDITIONS_EITHER:
        return one_or_list(reference("conditions"), 1);
    case SHAPE_CONDITIONS_LIST:
        return list_of(reference("conditions"), 0);
    case SHAPE_ATTRIBUTES:
        return map_of(one_or_list(text_like(SOURCE_PATTERN), 0), 0);
    case SHAPE_TIERS:
        return tiers();
    case SHAPE_LIMITS:
        return list_of(reference(section_limit.name), 0);
    case SHAPE_SCALAR:
        return f->section != NULL ? reference(f->section->name) : one_scalar(f);
    }
    return NULL;
}

/* ---- rows ---- */

/* Returns the default as the file would have it: a boolean, a whole number or a text. */
static json_t *initial(const struct field *f)
{
    bool digits = strspn(f->initial, "0123456789") == strlen(f->initial) && f->initial[0] != '0';
    if (f->type == &type_bool) {
        return json_boolean(strcmp(f->initial, "true") == 0);
    }
    return digits ? json_integer(strtoll(f->initial, NULL, 10)) : json_string(f->initial);
}

static json_t *property(const struct field *f)
{
    char text[1024];
    json_t *p = value_of(f);
    (void)snprintf(text, sizeof text, "%s. Value: %s.%s%s%s", f->help, f->expects,
                   f->unset != NULL ? " Default: " : "", f->unset != NULL ? f->unset : "",
                   f->unset != NULL ? "." : "");
    (void)json_object_set_new(p, "description", json_string(text));
    if (f->initial != NULL) {
        (void)json_object_set_new(p, "default", initial(f));
    }
    return p;
}

static json_t *properties(const struct section *section)
{
    json_t *all = json_object();
    for (size_t i = 0; i < section->count; i++) {
        (void)json_object_set_new(all, section->fields[i].name, property(&section->fields[i]));
    }
    return all;
}

static json_t *map_by_rows(const struct section *section)
{
    json_t *required = json_array();
    for (size_t i = 0; i < section->count; i++) {
        if (section->item != NULL && section->fields[i].required) {
            (void)json_array_append_new(required, json_string(section->fields[i].name));
        }
    }
    return json_pack("{s:s,s:o,s:o,s:b}", "type", "object", "properties", properties(section),
                     "required", required, "additionalProperties", 0);
}

/* Puts the sections that the rows of this one refer to. */
static void put_definitions(json_t *to, const struct section *section)
{
    for (size_t i = 0; i < section->count; i++) {
        const struct section *of = section->fields[i].section;
        char name[64];
        if (of != NULL && json_object_get(to, definition(of->name, name)) == NULL) {
            (void)json_object_set_new(to, name, map_by_rows(of));
            put_definitions(to, of);
        }
    }
}

char *schema_text(void)
{
    char name[64];
    json_t *definitions = json_object();
    put_definitions(definitions, &section_top);
    put_definitions(definitions, &section_limit);
    (void)json_object_set_new(definitions, definition(section_limit.name, name),
                              map_by_rows(&section_limit));
    (void)json_object_set_new(definitions, section_tier.name, map_by_rows(&section_tier));
    (void)json_object_set_new(definitions, "conditions", map_of(one_or_list(scalar(), 1), 1));
    json_t *all =
        json_pack("{s:s,s:s,s:s}", "$schema", "https://json-schema.org/draft/2020-12/schema",
                  "title", "weir.yaml", "description",
                  "Rules for weir. weir.yaml(5) describes them; `weir config check` "
                  "finds mistakes that a schema cannot find.");
    (void)json_object_update_new(all, map_by_rows(&section_top));
    (void)json_object_set_new(all, "$defs", definitions);
    char *text = json_dumps(all, JSON_INDENT(1));
    json_decref(all);
    return text;
}
