/*
 * The keys of the rule file as rows of a table. The same rows read a key, fill in its default,
 * check it, describe it in weir.yaml(5), show it (`weir config show`) and compare it in a reload.
 */
#ifndef WEIR_RULES_FILE_FIELDS_H
#define WEIR_RULES_FILE_FIELDS_H

#include "rules/file/config.h"
#include "rules/yaml/document.h"
#include "rules/file/show.h"
#include "rules/value/suggest.h"

struct field;

/* The state of reading one text. */
struct reader {
    struct config *config;
    struct source *source; /* owns what is read */
    struct problems *problems;
    struct weir_text folder; /* relative paths start here; ends with '/', or empty */
    bool no_files; /* the text must not name files: its sender may not be able to read them */
};

/* The state of showing rules. */
struct show {
    const struct config *config;
    const struct limit_config *limit; /* the limit that is being shown, or NULL */
    const struct field *field;        /* the field that is being shown */
    show_note_fn note;                /* may be NULL */
    FILE *out;
};

/* The form of a value in YAML, for the JSON Schema; other members of its row describe a scalar. */
enum field_shape {
    SHAPE_SCALAR, /* a map if the row has a section */
    SHAPE_SCALAR_OR_MAP,
    SHAPE_SCALARS, /* a scalar or a list of them */
    SHAPE_CONDITIONS,
    SHAPE_CONDITIONS_LIST,
    SHAPE_CONDITIONS_EITHER, /* a map or a list of maps */
    SHAPE_ATTRIBUTES,
    SHAPE_TIERS,
    SHAPE_LIMITS
};

/* How values are read, shown and compared. */
struct field_type {
    size_t size; /* bytes of a value, all 0 if it is not set; 0: it is shown in any case */
    /* Sets *value, or reports a problem and leaves it. NULL: the section's reader does it. */
    void (*read)(struct reader *r, const struct field *f, const struct node *node, void *value);
    void (*show)(const struct show *s, const void *value); /* a space and the value */
    bool (*same)(const void *a, const void *b);            /* NULL: compares the bytes */
    const struct quantity *quantity;                       /* of the types that are numbers */
    bool (*good)(struct weir_text text); /* of texts; NULL: any that is not empty */
    enum field_shape shape;
};

/* What a reload does if a value has changed. */
enum field_change {
    CHANGE_BY_SECTION, /* server, store, adhoc: warns of a needed restart; limits: applies it */
    CHANGE_APPLIED,
    CHANGE_KEYS,   /* the keys of the limit start afresh */
    CHANGE_SHARING /* the same, but only if nodes share the limit */
};

struct field {
    const char *name;
    const char *expects; /* completes "found ..., expected " */
    const char *help;    /* one line, without a full stop */
    const struct field_type *type;
    size_t offset; /* of the value in the struct that the map is read into */
    bool required;
    const char *initial;           /* the default as in a file, a scalar; NULL: none */
    const char *unset;             /* without a default: what a missing key means, for the manual */
    const struct section *section; /* of a key whose value is a map by rows */
    const char *const *choices;    /* type_choice: names, NULL after the last */
    const char *zero;              /* quantities: a word for 0 */
    uint64_t least;                /* quantities: the range; */
    uint64_t most;                 /* 0: unlimited */
    unsigned traits;               /* of the algorithms that have this key; 0: all */
    bool (*applies)(const struct show *s); /* NULL: always; otherwise not shown if it says false */
    bool once; /* may be in only one file of a folder; section_top only */
    enum field_change change;
};

/* A map of the file with its fields. */
struct section {
    const char *name;
    const char *item; /* "found ITEM without ..."; NULL: required keys are checked elsewhere */
    const struct field *fields;
    size_t count;
    /* Reports an unknown key of a map better than tell_unknown() does; false: it does not know it.
     * May be NULL. */
    bool (*foreign)(struct reader *r, const struct node *map, const struct node *key);
};

#define SECTION_WITH(name, item, fields, foreign)                                                  \
    {                                                                                              \
        name, item, fields, sizeof(fields) / sizeof(fields)[0], foreign                            \
    }
#define SECTION(name, item, fields) SECTION_WITH(name, item, fields, NULL)

extern const struct section section_top, section_server, section_server_tls, section_store,
    section_store_tls, section_adhoc, section_envoy, section_limit, section_tiers, section_tier,
    section_overrides, section_ban, section_deny, section_log;

/* Sets the defaults of all fields that have one. */
void fields_init(struct reader *r, const struct section *section, void *target);

/*
 * Reads a map by its rows. Reports unknown keys, with a suggestion, and required keys that are
 * missing. False if the node is no map.
 */
bool fields_read(struct reader *r, const struct section *section, const struct node *node,
                 void *target);

/* Reports keys of the map that the algorithm does not have. 0 is an unknown algorithm: no check. */
void fields_check_algorithm(struct reader *r, const struct section *section, const struct node *map,
                            int algorithm);

/* Writes "name: value" for each field that has something to show, with the separator between. */
void fields_show(const struct show *s, const struct section *section, const void *target,
                 const char *separator);

/* True if the two values of a field are the same. a and b are what the map was read into. */
bool field_same(const struct field *f, const void *a, const void *b);

/* True if all fields whose change has this effect are the same. */
bool fields_same(const struct section *section, enum field_change change, const void *a,
                 const void *b);

/* Returns the section's field of this name, NULL if there is none. */
const struct field *field_find(const struct section *section, struct weir_text name);

/* Returns the name of the field that was probably meant, NULL if none is similar. */
const char *suggest_field(const struct section *section, struct weir_text name);

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

/* Returns the texts of scalars; none if n is 0 or there is no memory. */
struct texts texts_of(struct reader *r, const struct node *const *items, size_t n);

/* The value is a struct weir_text; of type_name, a good name. */
extern const struct field_type type_text, type_name;
/* A uint64_t. */
extern const struct field_type type_count, type_size, type_duration;
/* A uint32_t: a small count; hundredths of a percent. */
extern const struct field_type type_small, type_percent;
/* A struct rate, a bool, an int that is the number of one of the choices. */
extern const struct field_type type_rate, type_bool, type_choice;
/* A struct rate that may be 0 or unlimited (rate_kind()). */
extern const struct field_type type_limit_rate;
/* A struct that field.section describes. */
extern const struct field_type type_map;

/* For types that differ from these only in part. */
void field_read_text(struct reader *r, const struct field *f, const struct node *node, void *value);
void field_show_text(const struct show *s, const void *value);
void field_show_texts(const struct show *s, const void *value); /* of a struct texts */
bool field_same_text(const void *a, const void *b);
bool field_same_texts(const void *a, const void *b);
#define FIELD_TYPE_TEXT(good)                                                                      \
    {                                                                                              \
        sizeof(struct weir_text), field_read_text, field_show_text, field_same_text, NULL, good,   \
            SHAPE_SCALAR                                                                           \
    }
void field_read_map(struct reader *r, const struct field *f, const struct node *node, void *value);
void field_show_map(const struct show *s, const void *value);
/* Reads a map, or reports that the value is not what the field expects; shows {a: 1, b: 2}. */
void field_read_inline(struct reader *r, const struct field *f, const struct node *node,
                       void *value);
void field_show_inline(const struct show *s, const void *value);
void field_read_choice(struct reader *r, const struct field *f, const struct node *node,
                       void *value);
void field_show_choice(const struct show *s, const void *value);

/* True for 1 to 63 bytes of letters, digits, '_', '-' and '.'. */
bool name_is_good(struct weir_text name);

#define NAME_EXPECTED "a name of letters, digits, '_', '-' and '.', up to 63 bytes"

#endif
