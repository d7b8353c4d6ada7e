/*
 * Random rule files of Envoy's reference rate limit server, random descriptors, and the limit that
 * the reference server would find for them: it walks down the tree, as its documentation says, and
 * shares nothing with src/.
 */
#ifndef WEIR_TESTS_ENVOY_TREE_H
#define WEIR_TESTS_ENVOY_TREE_H

#include <stdbool.h>
#include <stdio.h>

#include "support/oracle/oracle_trace.h"

#define TREE_DEPTH 3 /* levels of descriptors */
#define TREE_WIDTH 6 /* descriptors of a list */
#define TREE_KEY 512

struct tree_node {
    const char *key;
    const char *value; /* NULL: any */
    bool share;        /* share_threshold */
    int limit;         /* the number of its limit, -1 if it has none */
    unsigned below;    /* number of descriptors below it */
    struct tree_node *nodes;
};

/* The root has no key; it has the domain as its value. */
struct tree_node *tree_random(struct oracle_random *g);
void tree_free(struct tree_node *root);

/* Writes the file. The limit n has the name "n". */
void tree_print(FILE *out, const struct tree_node *root);

/* A descriptor with 1 to TREE_DEPTH + 1 entries. An empty value is "". */
struct tree_descriptor {
    const char *domain;
    unsigned count;
    const char *keys[TREE_DEPTH + 1];
    const char *values[TREE_DEPTH + 1];
};

/* Makes a descriptor that often goes the way of one of the tree. */
struct tree_descriptor tree_random_descriptor(struct oracle_random *g,
                                              const struct tree_node *root);

/* Returns the number of the limit that applies, -1 if none does. `counted` gets the values that the
 * limit counts apart, as one text. */
int tree_walk(const struct tree_node *root, const struct tree_descriptor *d,
              char counted[static TREE_KEY]);

#endif
