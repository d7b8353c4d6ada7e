/*
 * Files that one text of the rules names: each is read once, however often it is named, so
 * that a long list costs its memory once and cannot change between two places.
 */
#ifndef WEIR_RULES_FILE_NAMED_H
#define WEIR_RULES_FILE_NAMED_H

#include "rules/file/fields.h"
#include "rules/value/normal.h"

/* The values of a list file, read as values of an attribute of one kind. */
struct named_values {
    enum attribute_kind kind;
    struct value *values;
    size_t count;
    struct named_values *next;
};

struct named_file {
    const char *path;
    struct text content; /* in the source's arena */
    struct named_values *values;
    struct named_file *next;
};

/*
 * Returns the file, reading it if it is new. A relative `name` starts at the rule file's folder.
 * NULL after a problem at the node, or out of memory.
 */
struct named_file *named_file(struct reader *r, const struct node *node, struct text name);

/*
 * Find returns the file's values for this kind, NULL if they have not been read yet. Keep adds
 * them; NULL: out of memory.
 */
const struct named_values *named_values_find(const struct named_file *file,
                                             enum attribute_kind kind);
const struct named_values *named_values_keep(struct reader *r, struct named_file *file,
                                             enum attribute_kind kind, struct value *values,
                                             size_t count);

#endif
