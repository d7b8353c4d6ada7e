/* Builds an index; index_parts.h describes its layout. */
#include <stdlib.h>

#include <weir.h>

#include "rules/compiled/index.h"
#include "rules/compiled/index_parts.h"
#include "rules/value/pattern.h"

static void add_limit(struct index *index, struct limit_list *list, uint32_t limit)
{
    if (list->limit == NONE) {
        list->limit = limit;
    } else if (list->limit != limit) {
        uint32_t i = (uint32_t)++index->used.more;
        index->more[i] = (struct limit_list){limit, list->next};
        list->next = i;
    }
}

static uint32_t add_node(struct index *index)
{
    uint32_t i = (uint32_t)index->used.nodes++;
    index->nodes[i].here.limit = NONE;
    index->nodes[i].tail.limit = NONE;
    return i;
}

static uint32_t add_bytes(struct index *index, struct weir_text t)
{
    uint32_t at = (uint32_t)index->used.bytes;
    memmove(index->bytes + at, t.at, t.len); /* the text may already be there */
    index->used.bytes += t.len;
    return at;
}

/* Takes a free slot; there always is one. */
static struct index_slot *free_slot(struct index *index, uint64_t place)
{
    size_t group = group_of(index, place);
    for (;; group = next_group(index, group)) {
        for (size_t i = group * GROUP; i < (group + 1) * GROUP; i++) {
            if (index->tags[i] == 0) {
                index->tags[i] = tag_of(place);
                return &index->slots[i];
            }
        }
    }
}

/* Returns the slot of a text; a new one has found.limit == NONE. */
static struct index_slot *add_slot(struct index *index, enum slot_kind kind, uint32_t owner,
                                   struct weir_text text)
{
    uint64_t hash = hash_text(index, text);
    const struct index_slot *known = find_slot(index, kind, owner, text, hash);
    if (known != NULL) {
        return &index->slots[known - index->slots];
    }
    struct index_slot *s = free_slot(index, place_of(kind, owner, hash));
    s->kind = kind;
    s->owner = owner;
    s->at = add_bytes(index, text);
    s->len = (uint32_t)text.len;
    s->found.limit = NONE;
    return s;
}

static uint32_t child_by_slot(struct index *index, enum slot_kind kind, uint32_t node,
                              struct weir_text text)
{
    struct index_slot *s = add_slot(index, kind, node, text);
    if (s->found.limit == NONE) {
        s->found.limit = add_node(index);
    }
    return s->found.limit;
}

/*
 * Unescapes the segment into the free bytes after those in use, where a new slot keeps it without a
 * copy.
 */
static uint32_t child_by_literal(struct index *index, uint32_t node, struct weir_text segment)
{
    char *literal = index->bytes + index->used.bytes;
    size_t len = pattern_literal(segment, literal);
    index->nodes[node].literal = 1;
    return child_by_slot(index, LITERAL, node, (struct weir_text){literal, len});
}

/* Adds a text and its number to a list. */
static void add_link(struct index *index, uint32_t *first, struct weir_text text, uint32_t number)
{
    uint32_t i = (uint32_t)++index->used.links;
    uint32_t at = add_bytes(index, text);
    index->links[i] = (struct link){at, (uint32_t)text.len, number, *first};
    *first = i;
}

static uint32_t child_by_mixed(struct index *index, uint32_t node, struct weir_text segment)
{
    const struct link *l;
    for (uint32_t i = index->nodes[node].mixed; i != 0; i = l->next) {
        l = &index->links[i];
        if (text_equal(text_at(index, l->at, l->len), segment)) {
            return l->number;
        }
    }
    uint32_t child = add_node(index);
    add_link(index, &index->nodes[node].mixed, segment, child);
    return child;
}

/* True for '*' followed by an extension, which begins with its only dot. */
static bool is_extension(struct weir_text segment)
{
    return segment.len > 2 && segment.at[0] == '*' && segment.at[1] == '.' &&
           memchr(segment.at + 2, '.', segment.len - 2) == NULL &&
           memchr(segment.at + 2, '*', segment.len - 2) == NULL &&
           memchr(segment.at + 2, '\\', segment.len - 2) == NULL;
}

static uint32_t child_by_number(struct index *index, uint32_t *child)
{
    if (*child == 0) {
        *child = add_node(index);
    }
    return *child;
}

static uint32_t child_of(struct index *index, uint32_t node, struct weir_text segment)
{
    if (text_is(segment, "**")) {
        return child_by_number(index, &index->nodes[node].any);
    }
    if (text_is(segment, "*")) {
        return child_by_number(index, &index->nodes[node].star);
    }
    if (!pattern_has_wildcard(segment)) {
        return child_by_literal(index, node, segment);
    }
    if (is_extension(segment)) {
        index->nodes[node].extension = 1;
        return child_by_slot(index, EXTENSION, node, text_after(segment, 1));
    }
    return child_by_mixed(index, node, segment);
}

/* Returns the node at which a last '**' is noted. Two in a row count as one. */
static uint32_t node_before_tail(const struct index *index, uint32_t node, uint32_t before_any)
{
    return before_any != NONE && index->nodes[before_any].any == node ? before_any : node;
}

static void add_pattern(struct index *index, const struct index_entry *e)
{
    uint32_t node = 0;
    uint32_t before_any = NONE; /* the node before the first '**' */
    struct weir_text pattern = e->text;
    index->has_patterns = true;
    for (size_t at = 1, depth = 0; at < pattern.len; depth++) {
        struct weir_text segment = path_segment(pattern, at - 1);
        bool any = text_is(segment, "**");
        at += segment.len + 1;
        if (any && at >= pattern.len) {
            node = node_before_tail(index, node, before_any);
            add_limit(index, &index->nodes[node].tail, e->limit);
            return;
        }
        if (depth == INDEX_DEPTH || (any && before_any != NONE)) {
            node = before_any != NONE ? before_any : node;
            add_link(index, &index->nodes[node].rest, pattern, e->limit);
            return;
        }
        before_any = any ? node : before_any;
        node = child_of(index, node, segment);
    }
    add_limit(index, &index->nodes[node].here, e->limit);
}

/* Returns how many of each may be used at most. */
static struct amounts amounts_of(const struct index_entry *entries, size_t n)
{
    struct amounts a = {.nodes = 1, .more = 1 + n, .links = 1};
    for (size_t i = 0; i < n; i++) {
        size_t segments = 1;
        if (entries[i].wild) {
            for (size_t k = 1; k < entries[i].text.len; k++) {
                segments += entries[i].text.at[k] == '/';
            }
            segments = segments < INDEX_DEPTH ? segments : INDEX_DEPTH;
            a.nodes += segments;
            a.links += segments + 1;
            a.bytes += entries[i].text.len; /* for the rest */
        }
        a.slots += segments;
        a.bytes += entries[i].text.len; /* for slots or mixed segments */
    }
    return a;
}

/*
 * Returns the shift for a table that is at most half full: hardly any group is full, and there
 * always is a free slot.
 */
static unsigned shift_for(size_t slots)
{
    unsigned bits = 1;
    while ((size_t)GROUP << bits < 2 * slots) {
        bits++;
    }
    return 64 - bits;
}

static struct index *allocate(struct amounts a)
{
    unsigned shift = shift_for(a.slots);
    size_t slots = (size_t)GROUP << (64 - shift);
    struct index *index =
        calloc(1, sizeof *index + slots * (sizeof(struct index_slot) + 1) +
                      a.nodes * sizeof(struct index_node) + a.more * sizeof(struct limit_list) +
                      a.links * sizeof(struct link) + a.bytes);
    if (index != NULL) {
        index->shift = shift;
        index->slots = (struct index_slot *)(index + 1);
        index->nodes = (struct index_node *)(index->slots + slots);
        index->more = (struct limit_list *)(index->nodes + a.nodes);
        index->links = (struct link *)(index->more + a.more);
        index->tags = (unsigned char *)(index->links + a.links);
        index->bytes = (char *)(index->tags + slots);
    }
    return index;
}

int index_create(const struct index_entry *entries, size_t n, struct index **out)
{
    *out = NULL;
    struct amounts amounts = amounts_of(entries, n);
    if (amounts.bytes >= NONE || amounts.slots >= NONE) {
        return WEIR_ENOMEM;
    }
    struct index *index = allocate(amounts);
    if (index == NULL) {
        return WEIR_ENOMEM;
    }
    struct hash_secret secret;
    int e = hash_secret_init(&secret);
    if (e != 0) {
        index_destroy(index);
        return e;
    }
    index->secret[0] = secret.sip[0];
    index->secret[1] = secret.sip[1] | 1;
    (void)add_node(index);
    for (size_t i = 0; i < n; i++) {
        if (entries[i].wild) {
            add_pattern(index, &entries[i]);
        } else {
            struct index_slot *slot = add_slot(index, VALUE, entries[i].attribute, entries[i].text);
            add_limit(index, &slot->found, entries[i].limit);
        }
    }
    *out = index;
    return 0;
}

void index_destroy(struct index *index)
{
    free(index);
}
