#include "support/oracle/envoy_tree.h"

#include <stdlib.h>
#include <string.h>

/* Texts that collide when they are joined, escaped or taken for patterns. */
static const char *const domains[] = {"edge", "e*", "e\\*", "a: b"};
static const char *const keys[] = {"k",       "k/k", "k%2Fk", "a:b",   "K",
                                   "value_1", "*",   "k_v",   "domain"};
static const char *const values[] = {"v",          "vw", "v/w", "/v/w/x", "\\",  "v\\", "v\\w", "V",
                                     "10.0.0.0/8", "",   "w",   "%2A",    "v w", "!v",  "~v"};
static const char *const patterns[] = {"*",  "v*",     "v/*", "*w",  "v*w",
                                       "**", "/v/*/x", "\\*", "v\\*"};

#define PICK(g, of) ((of)[oracle_between(g, 0, sizeof(of) / sizeof(of)[0] - 1)])

static bool is_text(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* ---- making ---- */

static bool has_node(const struct tree_node *parent, const char *key, const char *value)
{
    for (unsigned i = 0; i < parent->below; i++) {
        if (is_text(parent->nodes[i].key, key) && is_text(parent->nodes[i].value, value)) {
            return true;
        }
    }
    return false;
}

static void fill(struct oracle_random *g, struct tree_node *parent, unsigned depth, int *limits)
{
    parent->nodes = calloc(TREE_WIDTH, sizeof *parent->nodes);
    unsigned wanted = (unsigned)oracle_between(g, depth == 0 ? 1 : 0, TREE_WIDTH);
    const char *usual = PICK(g, keys);
    for (unsigned i = 0; i < wanted; i++) {
        const char *key = oracle_once_in(g, 4) ? PICK(g, keys) : usual;
        uint64_t kind = oracle_between(g, 0, 2);
        const char *value = kind == 0 ? NULL : kind == 1 ? PICK(g, values) : PICK(g, patterns);
        value = value != NULL && value[0] == 0 ? NULL : value;
        if (has_node(parent, key, value)) {
            continue;
        }
        struct tree_node *node = &parent->nodes[parent->below++];
        *node = (struct tree_node){.key = key, .value = value, .limit = -1};
        node->share = kind == 2 && oracle_once_in(g, 2);
        node->limit = oracle_once_in(g, 4) ? -1 : (*limits)++;
        if (depth + 1 < TREE_DEPTH && oracle_once_in(g, 2)) {
            fill(g, node, depth + 1, limits);
        }
    }
}

struct tree_node *tree_random(struct oracle_random *g)
{
    struct tree_node *root = calloc(1, sizeof *root);
    int limits = 0;
    root->value = PICK(g, domains);
    fill(g, root, 0, &limits);
    return root;
}

static void free_below(struct tree_node *node)
{
    for (unsigned i = 0; i < node->below; i++) {
        free_below(&node->nodes[i]);
    }
    free(node->nodes);
}

void tree_free(struct tree_node *root)
{
    free_below(root);
    free(root);
}

/* ---- writing ---- */

static void put_text(FILE *out, const char *text)
{
    (void)fputc('\'', out); /* none of the texts has such a quote */
    (void)fputs(text, out);
    (void)fputc('\'', out);
}

static void put_nodes(FILE *out, const struct tree_node *parent)
{
    (void)fputs("[", out);
    for (unsigned i = 0; i < parent->below; i++) {
        const struct tree_node *node = &parent->nodes[i];
        (void)fputs(i > 0 ? ", {key: " : "{key: ", out);
        put_text(out, node->key);
        if (node->value != NULL) {
            (void)fputs(", value: ", out);
            put_text(out, node->value);
        }
        if (node->share) {
            (void)fputs(", share_threshold: true", out);
        }
        if (node->limit >= 0) {
            (void)fprintf(out,
                          ", rate_limit: {name: '%d', unit: hour, requests_per_unit: 9,"
                          " weir: {max_keys: 1}}",
                          node->limit);
        }
        if (node->below > 0) {
            (void)fputs(", descriptors: ", out);
            put_nodes(out, node);
        }
        (void)fputs("}", out);
    }
    (void)fputs("]", out);
}

void tree_print(FILE *out, const struct tree_node *root)
{
    (void)fputs("domain: ", out);
    put_text(out, root->value);
    (void)fputs("\ndescriptors: ", out);
    put_nodes(out, root);
    (void)fputs("\n", out);
}

/* ---- descriptors ---- */

struct tree_descriptor tree_random_descriptor(struct oracle_random *g, const struct tree_node *root)
{
    const struct tree_node *at = root;
    struct tree_descriptor d = {.domain = oracle_once_in(g, 10) ? PICK(g, domains) : root->value};
    unsigned most = (unsigned)oracle_between(g, 1, TREE_DEPTH + 1);
    while (d.count < most) {
        const struct tree_node *next =
            at != NULL && at->below > 0 ? &at->nodes[oracle_between(g, 0, at->below - 1)] : NULL;
        bool follow = next != NULL && !oracle_once_in(g, 8);
        bool exact = follow && next->value != NULL && oracle_once_in(g, 2);
        d.keys[d.count] = follow ? next->key : PICK(g, keys);
        d.values[d.count] = exact ? next->value : PICK(g, values);
        d.count++;
        if (next != NULL && next->below == 0 && !oracle_once_in(g, 4)) {
            break;
        }
        at = next;
    }
    return d;
}

/* ---- walking ---- */

static bool matches(const char *pattern, const char *text)
{
    if (*pattern == 0) {
        return *text == 0;
    }
    if (*pattern == '*') {
        return matches(pattern + 1, text) || (*text != 0 && matches(pattern, text + 1));
    }
    return *pattern == *text && matches(pattern + 1, text + 1);
}

static bool is_wild(const struct tree_node *node)
{
    return node->value != NULL && strchr(node->value, '*') != NULL;
}

/* Returns the node to which an entry leads: that of its value, else the first pattern that matches
 * it, else that of any value. */
static const struct tree_node *step(const struct tree_node *at, const char *key, const char *value)
{
    for (unsigned i = 0; i < at->below; i++) {
        const struct tree_node *n = &at->nodes[i];
        if (is_text(n->key, key) && n->value != NULL && !is_wild(n) && is_text(n->value, value)) {
            return n;
        }
    }
    for (unsigned i = 0; i < at->below; i++) {
        const struct tree_node *n = &at->nodes[i];
        if (is_text(n->key, key) && is_wild(n) && matches(n->value, value)) {
            return n;
        }
    }
    for (unsigned i = 0; i < at->below; i++) {
        const struct tree_node *n = &at->nodes[i];
        if (is_text(n->key, key) && n->value == NULL) {
            return n;
        }
    }
    return NULL;
}

int tree_walk(const struct tree_node *root, const struct tree_descriptor *d,
              char counted[static TREE_KEY])
{
    const struct tree_node *at = root;
    counted[0] = 0;
    if (!is_text(root->value, d->domain)) {
        return -1;
    }
    for (unsigned i = 0; i < d->count && at != NULL; i++) {
        at = step(at, d->keys[i], d->values[i]);
        if (at != NULL && (at->value == NULL || (is_wild(at) && !at->share))) {
            size_t len = strlen(counted);
            (void)snprintf(counted + len, TREE_KEY - len, "%zu:%s", strlen(d->values[i]),
                           d->values[i]);
        }
    }
    return at != NULL ? at->limit : -1;
}
