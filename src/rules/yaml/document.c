#include "rules/yaml/document.h"

#include <yaml.h>

/*
 * Nodes are composed from libyaml's events, not by its yaml_parser_load(): that takes quadratic
 * time for deep nesting and for many anchors, and leaks when it runs out of memory.
 */

/* A node that aliases may refer to. */
struct anchor {
    const char *name;
    struct node *node; /* NULL while it is being read, and if that failed */
    unsigned nodes;    /* number of nodes in it, including those of aliases */
};

struct parsing {
    yaml_parser_t parser;
    struct arena *arena;
    const char *file;
    struct weir_text text;
    struct problems *problems;
    unsigned nodes; /* number of nodes so far, including those of aliases */
    struct anchor *anchors;
    size_t anchors_count;
    bool ended;
    bool stopped; /* after a problem that makes further reading useless */
};

static struct place place_of(const struct parsing *r, yaml_mark_t mark)
{
    return (struct place){r->file, (unsigned)mark.line + 1, (unsigned)mark.column + 1};
}

/* ---- events ---- */

/* Turns an offset into line and column, because errors of libyaml's reader only have an offset. */
static struct place place_of_byte(const struct parsing *r, size_t offset)
{
    struct place place = {r->file, 1, 1};
    for (size_t i = 0; i < offset && i < r->text.len; i++) {
        bool end = r->text.at[i] == '\n';
        place.line += end;
        place.column = end ? 1 : place.column + 1;
    }
    return place;
}

/*
 * True if the place is a tab after nothing but blanks, which YAML does not allow. libyaml counts
 * columns in characters; those before such a tab are one byte each.
 */
static bool is_indented_by_tab(const struct parsing *r, struct place place)
{
    struct weir_text rest = r->text;
    for (unsigned line = 1; line < place.line; line++) {
        (void)text_cut(&rest, '\n');
    }
    unsigned column = 1;
    while (column < place.column && column <= rest.len &&
           (rest.at[column - 1] == ' ' || rest.at[column - 1] == '\t')) {
        column++;
    }
    return column == place.column && column <= rest.len && rest.at[column - 1] == '\t';
}

static void tell_syntax(struct parsing *r)
{
    const yaml_parser_t *parser = &r->parser;
    const char *what = parser->problem != NULL ? parser->problem : "unreadable";
    const char *context = parser->context != NULL ? parser->context : "";
    if (parser->error == YAML_MEMORY_ERROR || parser->error == YAML_NO_ERROR) {
        r->arena->failed = true; /* libyaml sets no error if it fails to copy a text */
    } else if (parser->error == YAML_READER_ERROR) {
        problem(r->problems, place_of_byte(r, parser->problem_offset),
                "YAML: %s, expected UTF-8 without control characters", what);
    } else if (is_indented_by_tab(r, place_of(r, parser->problem_mark))) {
        problem(r->problems, place_of(r, parser->problem_mark),
                "found a tab at the beginning of a line, expected spaces: YAML does not allow tabs "
                "there");
    } else if (context[0] != 0 && parser->context_mark.line != parser->problem_mark.line) {
        problem(r->problems, place_of(r, parser->problem_mark),
                "YAML: %s, %s that begins in line %zu, column %zu", what, context,
                parser->context_mark.line + 1, parser->context_mark.column + 1);
    } else {
        problem(r->problems, place_of(r, parser->problem_mark), "YAML: %s%s%s", what,
                context[0] != 0 ? ", " : "", context);
    }
}

/*
 * Reads the next event, which the caller must delete. Returns false at the end of the stream and
 * after a problem that stops reading.
 */
static bool next_event(struct parsing *r, yaml_event_t *event)
{
    if (r->ended || r->stopped) {
        return false;
    }
    if (!yaml_parser_parse(&r->parser, event)) {
        tell_syntax(r);
        r->stopped = true;
    }
    return !r->stopped;
}

/* ---- anchors ---- */

static struct anchor *find_anchor(const struct parsing *r, const char *name)
{
    for (size_t i = r->anchors_count; i > 0; i--) { /* the last one of that name is used */
        if (strcmp(r->anchors[i - 1].name, name) == 0) {
            return &r->anchors[i - 1];
        }
    }
    return NULL;
}

/* Returns the number of the node's anchor, or SIZE_MAX if it has none or after a problem. */
static size_t add_anchor(struct parsing *r, const yaml_event_t *event)
{
    const yaml_char_t *name =
        event->data.scalar.anchor; /* lists and maps have it in the same place */
    if (name == NULL) {
        return SIZE_MAX;
    }
    if (r->anchors_count == DOCUMENT_ANCHORS_MAX) {
        problem(r->problems, place_of(r, event->start_mark),
                "found too many anchors, expected at most %u", DOCUMENT_ANCHORS_MAX);
        r->stopped = true;
        return SIZE_MAX;
    }
    struct anchor anchor = {.name = arena_text(r->arena, text_of((const char *)name)).at};
    if (anchor.name == NULL ||
        !arena_append(r->arena, &r->anchors, &r->anchors_count, sizeof anchor, &anchor)) {
        r->stopped = true;
        return SIZE_MAX;
    }
    return r->anchors_count - 1;
}

/* ---- nodes ---- */

static struct node *read_node(struct parsing *r, const yaml_event_t *event, unsigned depth);

/* Reads the next node of a list or map into *node, NULL after a problem; false at its end. */
static bool next_node(struct parsing *r, unsigned depth, struct node **node)
{
    yaml_event_t event;
    if (!next_event(r, &event)) {
        return false;
    }
    bool more = event.type != YAML_SEQUENCE_END_EVENT && event.type != YAML_MAPPING_END_EVENT;
    *node = more ? read_node(r, &event, depth) : NULL;
    yaml_event_delete(&event);
    return more;
}

static void read_scalar(struct parsing *r, const yaml_event_t *event, struct node *to)
{
    struct weir_text text = {(const char *)event->data.scalar.value, event->data.scalar.length};
    to->kind = NODE_SCALAR;
    to->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    to->scalar = arena_text(r->arena, text);
    if (text.len > 0 && memchr(text.at, 0, text.len) != NULL) {
        problem(r->problems, to->place, "found a NUL byte in a text, expected none");
    }
}

static void read_list(struct parsing *r, struct node *to, unsigned depth)
{
    struct node *item;
    to->kind = NODE_LIST;
    while (next_node(r, depth + 1, &item)) {
        if (item != NULL) {
            (void)arena_append(r->arena, &to->items, &to->count, sizeof item, &item);
        }
    }
}

/* Returns the key of a map that has this text, or NULL. */
static const struct node *find_key(const struct node *map, struct weir_text text)
{
    for (size_t i = 0; i < map->count; i++) {
        if (text_equal(map->keys[i]->scalar, text)) {
            return map->keys[i];
        }
    }
    return NULL;
}

/* Reports a key that is no scalar or that the map already has, and returns false. */
static bool key_is_good(struct parsing *r, const struct node *key, const struct node *map)
{
    char found[NODE_FOUND];
    if (key->kind != NODE_SCALAR) {
        problem(r->problems, key->place, "found %s as a key, expected a name",
                node_found(key, found));
        return false;
    }
    const struct node *first = find_key(map, key->scalar);
    if (first != NULL) {
        problem(r->problems, key->place,
                "found %s a second time, expected it once; the first is in line %u",
                node_found(key, found), first->place.line);
    }
    return first == NULL;
}

static void add_pair(struct parsing *r, struct node *map, struct node *key, struct node *value)
{
    if (map->count == DOCUMENT_KEYS_MAX) {
        problem(r->problems, key->place, "found too many keys in a map, expected at most %u",
                DOCUMENT_KEYS_MAX);
        r->stopped = true;
        return;
    }
    size_t keys = map->count;
    if (arena_append(r->arena, &map->keys, &keys, sizeof key, &key)) {
        (void)arena_append(r->arena, &map->items, &map->count, sizeof value, &value);
    }
}

/* Adds the pairs of another map whose keys this one does not have. */
static void merge_map(struct parsing *r, struct node *to, const struct node *from)
{
    char found[NODE_FOUND];
    if (from->kind != NODE_MAP) {
        problem(r->problems, from->place, "found %s to merge, expected a map or a list of maps",
                node_found(from, found));
        return;
    }
    for (size_t i = 0; i < from->count && !r->stopped; i++) {
        if (find_key(to, from->keys[i]->scalar) == NULL) {
            add_pair(r, to, from->keys[i], from->items[i]);
        }
    }
}

/* Adds what a merge key (<<) names: a map, or a list of maps; earlier ones take precedence. */
static void merge(struct parsing *r, struct node *to, const struct node *from)
{
    if (from->kind != NODE_LIST) {
        merge_map(r, to, from);
        return;
    }
    for (size_t i = 0; i < from->count; i++) {
        merge_map(r, to, from->items[i]);
    }
}

static bool is_merge_key(const struct node *key)
{
    return key->kind == NODE_SCALAR && !key->quoted && text_is(key->scalar, "<<");
}

static void read_map(struct parsing *r, struct node *to, unsigned depth)
{
    struct node *key;
    struct node *value;
    struct node *merged = NULL;
    to->kind = NODE_MAP;
    while (next_node(r, depth + 1, &key) && next_node(r, depth + 1, &value)) {
        if (key == NULL || value == NULL) {
            continue;
        }
        if (!is_merge_key(key)) {
            if (key_is_good(r, key, to)) {
                add_pair(r, to, key, value);
            }
        } else if (merged == NULL) {
            merged = value;
        } else {
            problem(r->problems, key->place, "found '<<' a second time, expected a list of maps");
        }
    }
    if (merged != NULL) { /* last: the map's own keys take precedence */
        merge(r, to, merged);
    }
}

/* Adds n to the number of nodes. Returns false after reporting that there are too many. */
static bool count_nodes(struct parsing *r, unsigned n, struct place place)
{
    r->nodes += n;
    if (r->nodes <= DOCUMENT_NODES_MAX) {
        return true;
    }
    problem(r->problems, place,
            "found too many values, expected at most %u, including those of aliases",
            DOCUMENT_NODES_MAX);
    r->stopped = true;
    return false;
}

static struct node *read_alias(struct parsing *r, const yaml_event_t *event)
{
    struct place place = place_of(r, event->start_mark);
    const struct anchor *anchor = find_anchor(r, (const char *)event->data.alias.anchor);
    if (anchor == NULL || anchor->node == NULL) {
        problem(r->problems, place, "found an alias %s, expected an alias of an earlier anchor",
                anchor == NULL ? "without anchor" : "within its own anchor");
        return NULL;
    }
    return count_nodes(r, anchor->nodes, place) ? anchor->node : NULL;
}

/* Returns NULL after a problem. The event stays the caller's. */
static struct node *read_node(struct parsing *r, const yaml_event_t *event, unsigned depth)
{
    struct place place = place_of(r, event->start_mark);
    if (event->type == YAML_ALIAS_EVENT) {
        return read_alias(r, event);
    }
    if (depth + (event->type != YAML_SCALAR_EVENT) > DOCUMENT_DEPTH_MAX) {
        problem(r->problems, place, "found too many nested levels, expected at most %u",
                DOCUMENT_DEPTH_MAX);
        r->stopped = true;
        return NULL;
    }
    unsigned before = r->nodes;
    size_t anchor = add_anchor(r, event);
    struct node *to = arena_take(r->arena, sizeof *to);
    if (r->stopped || to == NULL || !count_nodes(r, 1, place)) {
        r->stopped = true;
        return NULL;
    }
    to->place = place;
    if (event->type == YAML_SCALAR_EVENT) {
        read_scalar(r, event, to);
    } else if (event->type == YAML_SEQUENCE_START_EVENT) {
        read_list(r, to, depth);
    } else {
        read_map(r, to, depth);
    }
    if (anchor != SIZE_MAX) {
        r->anchors[anchor].node = to;
        r->anchors[anchor].nodes = r->nodes - before;
    }
    return to;
}

/* ---- the whole ---- */

static struct node *read_stream(struct parsing *r)
{
    struct node *root = NULL;
    unsigned documents = 0;
    yaml_event_t event;
    while (next_event(r, &event)) {
        if (event.type == YAML_DOCUMENT_START_EVENT && ++documents == 2) {
            problem(r->problems, place_of(r, event.start_mark),
                    "found a second YAML document, expected one in a file");
            r->stopped = true;
        } else if (event.type >= YAML_ALIAS_EVENT) { /* this and later types begin a node */
            root = read_node(r, &event, 0);
        }
        r->ended = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    if (documents == 0 && r->ended) {
        problem(r->problems, (struct place){r->file, 1, 1}, "found nothing, expected rules");
    }
    return r->stopped || r->arena->failed ? NULL : root;
}

struct node *document_read(struct arena *arena, const char *file, struct weir_text text,
                           struct problems *problems)
{
    struct parsing r = {.arena = arena, .file = file, .text = text, .problems = problems};
    const char *input = text.at != NULL ? text.at : ""; /* libyaml does not accept NULL */
    if (text.len > DOCUMENT_BYTES_MAX) {
        problem(problems, (struct place){file, 0, 0}, "found %zu bytes, expected at most %u",
                text.len, DOCUMENT_BYTES_MAX);
        return NULL;
    }
    if (!yaml_parser_initialize(&r.parser)) {
        arena->failed = true;
        return NULL;
    }
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)input, text.len);
    struct node *root = read_stream(&r);
    yaml_parser_delete(&r.parser);
    return root;
}

size_t node_count(const struct node *node)
{
    size_t n = 1 + (node->kind == NODE_MAP ? node->count : 0);
    for (size_t i = 0; i < node->count; i++) {
        n += node_count(node->items[i]);
    }
    return n;
}

struct node *node_find(const struct node *map, const char *key)
{
    for (size_t i = 0; map->kind == NODE_MAP && i < map->count; i++) {
        if (text_is(map->keys[i]->scalar, key)) {
            return map->items[i];
        }
    }
    return NULL;
}

const char *node_found(const struct node *node, char *buffer)
{
    if (node->kind != NODE_SCALAR) {
        static const char *const names[2][2] = {{"a list", "an empty list"},
                                                {"a map", "an empty map"}};
        return names[node->kind == NODE_MAP][node->count == 0];
    }
    if (node->scalar.len == 0) {
        return node->quoted ? "an empty text" : "nothing";
    }
    return quote(node->scalar, buffer);
}
