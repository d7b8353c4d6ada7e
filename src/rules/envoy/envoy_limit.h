/* One limit of a file of Envoy's reference server, on the way from its root. */
#ifndef WEIR_RULES_ENVOY_ENVOY_LIMIT_H
#define WEIR_RULES_ENVOY_ENVOY_LIMIT_H

#include "common/text_map.h"
#include "rules/envoy/envoy.h"

enum entry_kind { ENTRY_EXACT, ENTRY_WILD, ENTRY_ANY };

struct descriptor {
    const struct node *node;
    struct weir_text key;
    struct weir_text value;
    enum entry_kind kind;
    bool share; /* all values that match count as one */
    bool shadow;
    bool quota;
    struct node *others; /* values that lead to other descriptors; NULL: not made yet */
};

/* The descriptors of one list. */
struct level {
    struct descriptor *at;
    size_t count;
};

struct step {
    struct descriptor *descriptor;
    const struct level *level;
};

struct conversion {
    struct arena *arena;
    struct problems *problems;
    const struct node *root;
    struct weir_text domain;
    struct step path[ENVOY_ENTRIES_MAX];
    size_t depth;
    struct node *limits; /* the list that is being made */
    size_t most;         /* limits of it */
};

/* Adds the limit of the last descriptor of the path; `rate` is its rate_limit. */
void envoy_add_limit(struct conversion *c, const struct node *rate);

/* Reports "found <node>, expected <what>". */
void envoy_unexpected(struct conversion *c, const struct node *node, const char *expected);

/* Returns the value of a key; NULL if the key is absent or its value is a null, such as ~. */
const struct node *envoy_find(const struct node *map, const char *name);

/* Reads a key that is true or false; false if it is absent. */
bool envoy_read_bool(struct conversion *c, const struct node *map, const char *name);

/* ---- making nodes; NULL or no effect when out of memory ---- */

struct node *envoy_list(struct conversion *c, struct place place);
struct node *envoy_map(struct conversion *c, struct place place, size_t room);
struct node *envoy_scalar(struct conversion *c, struct place place, struct weir_text text);

/* Appends to a list. */
void envoy_append(struct conversion *c, struct node *list, struct node *item);

/* Sets a key of a map, which has room for it. */
void envoy_put(struct conversion *c, struct node *map, const char *key, struct node *value);

#endif
