/* Walks over the descriptors of a file, and makes a limit of each that has a rate_limit. */
#include "rules/envoy/envoy.h"

#include "rules/envoy/envoy_limit.h"
#include "rules/value/suggest.h"

bool envoy_has_attribute(struct weir_text name)
{
    uint64_t number;
    return text_is(name, ENVOY_DOMAIN) || text_is(name, ENVOY_DESCRIPTOR) ||
           (text_starts(name, ENVOY_VALUE) &&
            text_to_u64(text_after(name, sizeof ENVOY_VALUE - 1), &number));
}

size_t envoy_put_key(struct weir_text key, char *to)
{
    static const char digits[] = "0123456789ABCDEF";
    char *at = to;
    for (size_t i = 0; i < key.len; i++) {
        unsigned char c = (unsigned char)key.at[i];
        if (c != 0 && strchr("%/*\\:", c) != NULL) {
            *at++ = '%';
            *at++ = digits[c >> 4];
            *at++ = digits[c & 15];
        } else {
            *at++ = (char)c;
        }
    }
    return (size_t)(at - to);
}

bool envoy_is_file(const struct node *root)
{
    return node_find(root, "domain") != NULL || node_find(root, "descriptors") != NULL;
}

/* ---- reading ---- */

/* Reports keys of a map other than `known`, which ends with NULL. `expected` is their list. */
static void check_keys(struct conversion *c, const struct node *map, const char *const *known,
                       const char *expected)
{
    char found[NODE_FOUND];
    for (size_t i = 0; i < map->count; i++) {
        const struct node *key = map->keys[i];
        struct suggestion s = suggest_begin(key->scalar);
        size_t j = 0;
        for (; known[j] != NULL && !text_is(key->scalar, known[j]); j++) {
            suggest_offer(&s, known[j]);
        }
        if (known[j] == NULL) {
            problem(c->problems, key->place, "found the unknown key %s%s%s%s",
                    node_found(key, found),
                    s.nearest != NULL ? "; did you mean '" : ", expected one of ",
                    s.nearest != NULL ? s.nearest : expected, s.nearest != NULL ? "'?" : "");
        }
    }
}

void envoy_unexpected(struct conversion *c, const struct node *node, const char *expected)
{
    char found[NODE_FOUND];
    problem(c->problems, node->place, "found %s, expected %s", node_found(node, found), expected);
}

const struct node *envoy_find(const struct node *map, const char *name)
{
    const struct node *node = node_find(map, name);
    bool plain = node != NULL && node->kind == NODE_SCALAR && !node->quoted;
    bool null = plain && (node->scalar.len == 0 || text_is(node->scalar, "~") ||
                          text_is_word(node->scalar, "NULL"));
    return null ? NULL : node;
}

/* Returns the text of a key that must be one, len 0 after a problem or if it is absent. */
static struct weir_text read_text(struct conversion *c, const struct node *map, const char *name)
{
    const struct node *node = envoy_find(map, name);
    if (node == NULL) {
        return TEXT("");
    }
    if (node->kind != NODE_SCALAR) {
        envoy_unexpected(c, node, "a text");
        return TEXT("");
    }
    return node->scalar;
}

bool envoy_read_bool(struct conversion *c, const struct node *map, const char *name)
{
    static const char *const words[] = {"TRUE", "YES", "ON", "Y", "FALSE", "NO", "OFF", "N"};
    const struct node *node = envoy_find(map, name);
    if (node == NULL) {
        return false;
    }
    size_t i = 0;
    while (i < 8 && !(node->kind == NODE_SCALAR && text_is_word(node->scalar, words[i]))) {
        i++;
    }
    if (i == 8) {
        envoy_unexpected(c, node, "true or false");
    }
    return i < 4;
}

/* Reports that a map lacks a text, or has an empty one. */
static void lacks(struct conversion *c, const struct node *map, const char *name)
{
    const struct node *node = node_find(map, name);
    problem(c->problems, node != NULL ? node->place : map->place,
            "found no %s, expected '%s: NAME'", name, name);
}

/* Reports a text that a condition would read as the name of a file. Returns whether it is one. */
static bool names_file(struct conversion *c, const struct node *map, const char *name)
{
    const struct node *node = node_find(map, name);
    bool is_file = node != NULL && node->kind == NODE_SCALAR && text_starts(node->scalar, "file:");
    if (is_file) {
        envoy_unexpected(c, node, "a text that does not begin with 'file:'");
    }
    return is_file;
}

static void read_descriptor(struct conversion *c, const struct node *node, struct descriptor *d)
{
    static const char *const known[] = {
        "key",        "value",           "rate_limit",      "descriptors",     "shadow_mode",
        "quota_mode", "detailed_metric", "value_to_metric", "share_threshold", "metadata",
        NULL};
    d->node = node;
    if (node->kind != NODE_MAP) {
        envoy_unexpected(c, node, "a map with 'key'");
        return;
    }
    check_keys(c, node, known,
               "key, value, rate_limit, descriptors, shadow_mode, quota_mode, share_threshold, "
               "detailed_metric, value_to_metric and metadata");
    d->key = read_text(c, node, "key");
    d->value = read_text(c, node, "value");
    d->kind = d->value.len == 0                                ? ENTRY_ANY
              : memchr(d->value.at, '*', d->value.len) != NULL ? ENTRY_WILD
                                                               : ENTRY_EXACT;
    d->share = envoy_read_bool(c, node, "share_threshold");
    d->shadow = envoy_read_bool(c, node, "shadow_mode");
    d->quota = envoy_read_bool(c, node, "quota_mode");
    (void)envoy_read_bool(c, node, "detailed_metric");
    (void)envoy_read_bool(c, node, "value_to_metric");
    if (d->key.len == 0) {
        lacks(c, node, "key");
    }
    if (names_file(c, node, "value")) {
        d->key = TEXT(""); /* so that no limit is made of it */
    }
    if (d->share && d->kind != ENTRY_WILD) {
        warning(c->problems, node->place,
                "found share_threshold without a '*' in the value: it has no effect");
    }
}

/* Reports a descriptor that has the key and the value of one before it. */
static void check_same(struct conversion *c, struct text_map *seen, const struct level *level,
                       size_t i)
{
    const struct descriptor *d = &level->at[i];
    char *both = arena_room(c->arena, d->key.len + d->value.len + 1);
    if (both == NULL || d->key.len == 0) {
        return;
    }
    memcpy(both, d->key.at, d->key.len);
    both[d->key.len] = 0;
    memcpy(both + d->key.len + 1, d->value.at, d->value.len);
    int64_t same =
        text_map_put(seen, (struct weir_text){both, d->key.len + d->value.len + 1}, (uint32_t)i);
    if (same >= 0) {
        problem(c->problems, d->node->place,
                "found a second descriptor with the key '%.*s' and %s%.*s%s, expected one; the "
                "first is "
                "in line %u",
                TEXT_CUT(d->key, 64), d->value.len > 0 ? "the value '" : "no value",
                TEXT_CUT(d->value, 64), d->value.len > 0 ? "'" : "",
                level->at[same].node->place.line);
    }
}

static bool read_level(struct conversion *c, const struct node *list, struct level *level)
{
    level->at = arena_array(c->arena, list->count, sizeof *level->at);
    struct text_map *seen = text_map_create(c->arena, list->count);
    for (size_t i = 0; level->at != NULL && seen != NULL && i < list->count; i++) {
        read_descriptor(c, list->items[i], &level->at[i]);
        check_same(c, seen, level, i);
        level->count = i + 1;
    }
    return level->at != NULL && seen != NULL;
}

/* ---- walking ---- */

static void walk(struct conversion *c, const struct node *list)
{
    struct level level = {0};
    if (list->kind != NODE_LIST) {
        envoy_unexpected(c, list, "a list of descriptors");
        return;
    }
    if (c->depth == ENVOY_ENTRIES_MAX) {
        problem(c->problems, list->place, "found descriptors below %d others, expected fewer",
                ENVOY_ENTRIES_MAX);
        return;
    }
    if (!read_level(c, list, &level)) {
        return;
    }
    c->depth++;
    for (size_t i = 0; i < level.count; i++) {
        struct descriptor *d = &level.at[i];
        if (d->key.len == 0) {
            continue;
        }
        c->path[c->depth - 1] = (struct step){d, &level};
        const struct node *rate = envoy_find(d->node, "rate_limit");
        const struct node *below = envoy_find(d->node, "descriptors");
        if (rate != NULL && c->limits->count < c->most) {
            envoy_add_limit(c, rate);
        }
        if (below != NULL) {
            walk(c, below);
        }
    }
    c->path[--c->depth] = (struct step){0};
}

struct node *envoy_convert(struct arena *arena, const struct node *root, size_t most,
                           struct weir_text *domain, struct problems *problems)
{
    /* A name of the whole has no effect in the reference server either. */
    static const char *const known[] = {"domain", "descriptors", "envoy", "name", NULL};
    struct conversion c = {.arena = arena, .problems = problems, .root = root, .most = most};
    struct node *limits = envoy_list(&c, root->place);
    struct node *top = envoy_map(&c, root->place, 2);
    c.limits = limits;
    check_keys(&c, root, known, "domain, descriptors and envoy");
    c.domain = read_text(&c, root, "domain");
    *domain = c.domain;
    if (names_file(&c, root, "domain")) {
        c.domain = TEXT("none"); /* so that nothing else complains of it */
    }
    if (c.domain.len == 0) {
        lacks(&c, root, "domain");
        c.domain = TEXT("none"); /* so that nothing else complains of it */
    }
    const struct node *descriptors = envoy_find(root, "descriptors");
    if (descriptors != NULL && limits != NULL) {
        walk(&c, descriptors);
    }
    if (top == NULL || limits == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < root->count; i++) { /* the section that weir's own files have */
        if (text_is(root->keys[i]->scalar, "envoy")) {
            envoy_put(&c, top, "envoy", root->items[i]);
        }
    }
    envoy_put(&c, top, "limits", limits);
    return top;
}
