/*
 * The keys of the rule file as rows of a table. Reading, messages and weir.yaml(5) use the same
 * rows.
 */
#ifndef WEIR_RULES_FILE_FIELDS_H
#define WEIR_RULES_FILE_FIELDS_H

#include "rules/file/config.h"
#include "rules/file/document.h"
#include "rules/value/suggest.h"

struct named_file;

/* The state of reading one text. */
struct reader {
    struct config *config;
    struct source *source; /* owns what is read */
    struct problems *problems;
    struct text folder;       /* relative paths start here; ends with '/', or empty */
    struct named_file *files; /* those that have been read */
};

struct field {
    const char *name;
    const char *expects; /* completes "found ..., expected " */
    const char *initial; /* the default as in a file; "" if the key is required */
    const char *help;    /* one line, without a full stop */
    void (*read)(struct reader *r, const struct field *field, const struct node *node,
                 void *target);
    size_t offset;              /* in target, of the value that read() sets */
    const char *const *choices; /* field_choice: names, NULL after the last */
};

/* A map of the file with its fields, for reading and for the manual. */
struct section {
    const char *name; /* as in "limits[]" */
    const char *help;
    const struct field *fields;
    size_t count;
};

extern const struct section section_top, section_server, section_store, section_adhoc,
    section_limit, section_tiers, section_tier, section_overrides;

/* Reads a map by its rows. Reports unknown keys, with a suggestion. False if the node is no map. */
bool fields_read(struct reader *r, const struct section *section, const struct node *node,
                 void *target);

/* Returns the name of the field that was probably meant, NULL if none is similar. */
const char *suggest_field(const struct section *section, struct text name);

/* Reports a key that the section does not have, with a suggestion. */
void tell_unknown(struct reader *r, const struct section *section, const struct node *key);

/* Reports "found <node>, expected <what>". */
void unexpected(struct reader *r, const struct node *node, const char *what);

/* Reports the same for one of several words, with the word that was probably meant, if any. */
void unexpected_word(struct reader *r, const struct node *node, const char *what,
                     const struct suggestion *s);

/* Returns the node if it is a scalar that is not empty. Otherwise reports it and returns NULL. */
const struct node *expect_scalar(struct reader *r, const struct node *node, const char *what);

/*
 * Makes an array of nodes from a scalar or a list of scalars; returns their number. Other items are
 * reported and left out.
 */
size_t scalars_of(struct reader *r, const struct node *node, const char *what,
                  const struct node *const **items);

/*
 * Readers for rows: each sets the field at target + offset. field_count() reads a number of at
 * least 1, field_whole() one of at least 0.
 */
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

/* True for 1 to 63 bytes of letters, digits, '_', '-' and '.'. */
bool name_is_good(struct text name);

#define NAME_EXPECTED "a name of letters, digits, '_', '-' and '.', up to 63 bytes"

#endif
