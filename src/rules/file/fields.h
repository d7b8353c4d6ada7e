/*
 * The keys of the rule file as rows: what is read, what messages expect, and
 * what weir.yaml(5) lists come from the same place.
 */
#ifndef WEIR_RULES_FILE_FIELDS_H
#define WEIR_RULES_FILE_FIELDS_H

#include "rules/file/config.h"
#include "rules/file/document.h"
#include "rules/value/suggest.h"

struct named_file;

/* One text being read. */
struct reader {
    struct config *config;
    struct source *source; /* where what is read goes */
    struct problems *problems;
    struct text folder;       /* files are looked for from here; ends with '/', or empty */
    struct named_file *files; /* that have been read */
};

struct field {
    const char *name;
    const char *expects; /* completes "found ..., expected " */
    const char *initial; /* the default, as one would write it; "" if it must be given */
    const char *help;    /* one line, without a full stop */
    void (*read)(struct reader *r, const struct field *field, const struct node *node,
                 void *target);
    size_t offset;              /* of what read() fills in, within target */
    const char *const *choices; /* field_choice: names, NULL behind the last */
};

/* A map of the file: its fields, for reading and for the manual. */
struct section {
    const char *name; /* as in "limits[]" */
    const char *help;
    const struct field *fields;
    size_t count;
};

extern const struct section section_top, section_server, section_store, section_adhoc,
    section_limit, section_tiers, section_tier, section_overrides;

/* Reads a map by its rows; tells what is unknown, with a suggestion. False if it is no map. */
bool fields_read(struct reader *r, const struct section *section, const struct node *node,
                 void *target);

/* The field that was probably meant, NULL if none is near. */
const char *suggest_field(const struct section *section, struct text name);

/* A key that the section does not have, with a suggestion. */
void tell_unknown(struct reader *r, const struct section *section, const struct node *key);

/* "found <node>, expected <what>" */
void unexpected(struct reader *r, const struct node *node, const char *what);

/* The same of one of several words, with the one that was probably meant, if any. */
void unexpected_word(struct reader *r, const struct node *node, const char *what,
                     const struct suggestion *s);

/* NULL, or after a complaint NULL too, unless the node is a scalar with something in it. */
const struct node *expect_scalar(struct reader *r, const struct node *node, const char *what);

/* A scalar or a list of scalars as an array of nodes: the good ones, after complaints. */
size_t scalars_of(struct reader *r, const struct node *node, const char *what,
                  const struct node *const **items);

/* Readers for rows: each fills the field at target + offset. A count is at least 1, a whole 0. */
void field_text(struct reader *r, const struct field *f, const struct node *node, void *target);
void field_name(struct reader *r, const struct field *f, const struct node *node, void *target);
void field_count(struct reader *r, const struct field *f, const struct node *node, void *target);
void field_whole(struct reader *r, const struct field *f, const struct node *node, void *target);
void field_size(struct reader *r, const struct field *f, const struct node *node, void *target);
void field_duration(struct reader *r, const struct field *f, const struct node *node, void *target);
void field_percent(struct reader *r, const struct field *f, const struct node *node, void *target);
void field_rate(struct reader *r, const struct field *f, const struct node *node, void *target);
void field_bool(struct reader *r, const struct field *f, const struct node *node, void *target);
void field_choice(struct reader *r, const struct field *f, const struct node *node, void *target);

/* Letters, digits, '_', '-', '.', up to 63 bytes. */
bool name_is_good(struct text name);

#define NAME_EXPECTED "a name of letters, digits, '_', '-' and '.', up to 63 bytes"

#endif
