/*
 * A YAML text as a tree of scalars, lists and maps, each with its place in the text. Keys of a map
 * are unique. Anchors and aliases work; what they expand to is bounded.
 */
#ifndef WEIR_RULES_YAML_DOCUMENT_H
#define WEIR_RULES_YAML_DOCUMENT_H

#include <stdbool.h>

#include "common/arena.h"
#include "rules/yaml/problems.h"
#include "rules/value/quote.h"

enum node_kind { NODE_SCALAR, NODE_LIST, NODE_MAP };

struct node {
    enum node_kind kind;
    bool quoted; /* a scalar in quotes or a block */
    struct place place;
    struct weir_text scalar; /* followed by a NUL byte */
    size_t count;            /* number of items or of pairs */
    struct node **items;     /* map: the values */
    struct node **keys;      /* map: scalars */
};

#define DOCUMENT_BYTES_MAX (16u << 20)
#define DOCUMENT_NODES_MAX 1000000u
#define DOCUMENT_KEYS_MAX 4096u /* in one map: each is compared with all before it */
#define DOCUMENT_DEPTH_MAX 32u
#define DOCUMENT_ANCHORS_MAX 1000u

/*
 * Reads a text; everything is allocated in the arena. Returns NULL after a problem has been
 * reported, or out of memory (arena->failed).
 */
struct node *document_read(struct arena *arena, const char *file, struct weir_text text,
                           struct problems *problems);

/* Returns the number of nodes, including those of aliases: at most DOCUMENT_NODES_MAX. */
size_t node_count(const struct node *node);

/* Returns the value of a key, NULL if there is none. */
struct node *node_find(const struct node *map, const char *key);

/*
 * Describes a node for messages: "'text'", "a list", "a map", "nothing". buffer has NODE_FOUND
 * bytes.
 */
#define NODE_FOUND QUOTE_MAX
const char *node_found(const struct node *node, char *buffer);

#endif
