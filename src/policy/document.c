#include "policy/document.h"

#include <yaml.h>

struct reading {
    yaml_document_t yaml;
    struct arena *arena;
    const char *file;
    struct text text;
    struct problems *problems;
    unsigned nodes;
    struct node *root;
};

static struct place place_of(const struct reading *r, yaml_mark_t mark)
{
    return (struct place){r->file, (unsigned)mark.line + 1, (unsigned)mark.column + 1};
}

static struct node *read_node(struct reading *r, int id, unsigned depth);

static void read_scalar(struct reading *r, const yaml_node_t *from, struct node *to)
{
    to->kind = NODE_SCALAR;
    to->quoted = from->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    to->scalar = arena_text(
        r->arena, (struct text){(const char *)from->data.scalar.value, from->data.scalar.length});
}

static void read_list(struct reading *r, const yaml_node_t *from, struct node *to, unsigned depth)
{
    size_t n = (size_t)(from->data.sequence.items.top - from->data.sequence.items.start);
    to->kind = NODE_LIST;
    to->items = arena_array(r->arena, n, sizeof(struct node *));
    for (size_t i = 0; to->items != NULL && i < n; i++) {
        struct node *item = read_node(r, from->data.sequence.items.start[i], depth + 1);
        if (item == NULL) {
            return;
        }
        to->items[to->count++] = item;
    }
}

/* NULL after a problem: a key that is no scalar, or there twice. */
static struct node *read_key(struct reading *r, int id, const struct node *map, unsigned depth)
{
    char found[NODE_FOUND];
    struct node *key = read_node(r, id, depth);
    if (key == NULL) {
        return NULL;
    }
    if (key->kind != NODE_SCALAR) {
        problem(r->problems, key->place, "found %s as a key, expected a name",
                node_found(key, found));
        return NULL;
    }
    for (size_t i = 0; i < map->count; i++) {
        if (text_equal(map->keys[i]->scalar, key->scalar)) {
            problem(r->problems, key->place,
                    "found %s a second time, expected it once; the first is in line %u",
                    node_found(key, found), map->keys[i]->place.line);
            return NULL;
        }
    }
    return key;
}

static void read_map(struct reading *r, const yaml_node_t *from, struct node *to, unsigned depth)
{
    const yaml_node_pair_t *pair = from->data.mapping.pairs.start;
    size_t n = (size_t)(from->data.mapping.pairs.top - pair);
    to->kind = NODE_MAP;
    if (n > DOCUMENT_KEYS_MAX) {
        problem(r->problems, to->place, "found %zu keys, expected at most %u", n,
                DOCUMENT_KEYS_MAX);
        return;
    }
    to->items = arena_array(r->arena, n, sizeof(struct node *));
    to->keys = arena_array(r->arena, n, sizeof(struct node *));
    for (size_t i = 0; to->items != NULL && to->keys != NULL && i < n; i++) {
        struct node *key = read_key(r, pair[i].key, to, depth + 1);
        struct node *value = read_node(r, pair[i].value, depth + 1);
        if (key != NULL && value != NULL) {
            to->keys[to->count] = key;
            to->items[to->count++] = value;
        }
    }
}

static struct node *read_node(struct reading *r, int id, unsigned depth)
{
    const yaml_node_t *from = yaml_document_get_node(&r->yaml, id);
    if (depth > DOCUMENT_DEPTH_MAX) {
        if (r->nodes <= DOCUMENT_NODES_MAX) {
            problem(r->problems, place_of(r, from->start_mark),
                    "found more than %u levels, aliases included, expected a rule file",
                    DOCUMENT_DEPTH_MAX);
        }
        r->nodes = DOCUMENT_NODES_MAX + 1; /* once is enough */
        return NULL;
    }
    if (r->nodes++ == DOCUMENT_NODES_MAX) {
        problem(r->problems, place_of(r, from->start_mark),
                "found more than %u values, aliases included, expected fewer", DOCUMENT_NODES_MAX);
    }
    struct node *to =
        r->nodes > DOCUMENT_NODES_MAX ? NULL : arena_take(r->arena, sizeof(struct node));
    if (to == NULL) {
        return NULL;
    }
    to->place = place_of(r, from->start_mark);
    switch (from->type) {
    case YAML_SEQUENCE_NODE:
        read_list(r, from, to, depth);
        break;
    case YAML_MAPPING_NODE:
        read_map(r, from, to, depth);
        break;
    default:
        read_scalar(r, from, to);
        break;
    }
    return to;
}

/* libyaml's reader knows bytes only. */
static struct place place_of_byte(const struct reading *r, size_t offset)
{
    struct place place = {r->file, 1, 1};
    for (size_t i = 0; i < offset && i < r->text.len; i++) {
        bool end = r->text.at[i] == '\n';
        place.line += end;
        place.column = end ? 1 : place.column + 1;
    }
    return place;
}

static void tell_syntax(struct reading *r, const yaml_parser_t *parser)
{
    const char *what = parser->problem != NULL ? parser->problem : "unreadable";
    const char *context = parser->context != NULL ? parser->context : "";
    if (parser->error == YAML_MEMORY_ERROR) {
        r->arena->failed = true;
    } else if (parser->error == YAML_READER_ERROR) {
        problem(r->problems, place_of_byte(r, parser->problem_offset),
                "YAML: %s, expected UTF-8 without control characters", what);
    } else if (context[0] != 0 && parser->context_mark.line != parser->problem_mark.line) {
        problem(r->problems, place_of(r, parser->problem_mark),
                "YAML: %s, %s that begins in line %zu, column %zu", what, context,
                parser->context_mark.line + 1, parser->context_mark.column + 1);
    } else {
        problem(r->problems, place_of(r, parser->problem_mark), "YAML: %s%s%s", what,
                context[0] != 0 ? ", " : "", context);
    }
}

/* Into r->root, which stays NULL after a problem. */
static bool compose(struct reading *r, yaml_parser_t *parser)
{
    if (!yaml_parser_load(parser, &r->yaml)) {
        tell_syntax(r, parser);
        return false;
    }
    yaml_document_t second;
    if (yaml_document_get_root_node(&r->yaml) == NULL) {
        problem(r->problems, (struct place){r->file, 1, 1}, "found nothing, expected rules");
    } else {
        r->root = read_node(r, 1, 0);
    }
    yaml_document_delete(&r->yaml);
    if (!yaml_parser_load(parser, &second)) {
        tell_syntax(r, parser);
        return false;
    }
    const yaml_node_t *more = yaml_document_get_root_node(&second);
    if (more != NULL) {
        problem(r->problems, place_of(r, more->start_mark),
                "found a second document, expected one in a file");
        r->root = NULL;
    }
    yaml_document_delete(&second);
    return true;
}

/* ---- before it is composed ---- */

/* What counts against the bounds of the event, and its anchor. */
static const yaml_char_t *measure(const yaml_event_t *event, unsigned *depth)
{
    switch (event->type) {
    case YAML_SEQUENCE_START_EVENT:
        ++*depth;
        return event->data.sequence_start.anchor;
    case YAML_MAPPING_START_EVENT:
        ++*depth;
        return event->data.mapping_start.anchor;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        --*depth;
        return NULL;
    case YAML_SCALAR_EVENT:
        return event->data.scalar.anchor;
    default:
        return NULL;
    }
}

/*
 * libyaml takes quadratic time to compose deep nesting and many anchors, but
 * not to read them: a first pass over the events refuses both.
 */
static bool check_events(struct reading *r, yaml_parser_t *parser)
{
    unsigned depth = 0;
    unsigned anchors = 0;
    for (bool more = true; more;) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) {
            tell_syntax(r, parser);
            return false;
        }
        struct place place = place_of(r, event.start_mark);
        anchors += measure(&event, &depth) != NULL;
        more = event.type != YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (depth > DOCUMENT_DEPTH_MAX) {
            problem(r->problems, place, "found more than %u levels, expected a rule file",
                    DOCUMENT_DEPTH_MAX);
            return false;
        }
        if (anchors > DOCUMENT_ANCHORS_MAX) {
            problem(r->problems, place, "found more than %u anchors, expected fewer",
                    DOCUMENT_ANCHORS_MAX);
            return false;
        }
    }
    return true;
}

/* Runs one of the passes over the text, with a parser of its own. */
static bool with_parser(struct reading *r, struct text text,
                        bool (*pass)(struct reading *r, yaml_parser_t *parser))
{
    const char *input = text.at != NULL ? text.at : ""; /* libyaml insists */
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        r->arena->failed = true;
        return false;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)input, text.len);
    bool good = pass(r, &parser);
    yaml_parser_delete(&parser);
    return good;
}

struct node *document_read(struct arena *arena, const char *file, struct text text,
                           struct problems *problems)
{
    struct reading r = {.arena = arena, .file = file, .text = text, .problems = problems};
    unsigned before = problems->errors;
    if (text.len > DOCUMENT_BYTES_MAX) {
        problem(problems, (struct place){file, 0, 0}, "found %zu bytes, expected at most %u",
                text.len, DOCUMENT_BYTES_MAX);
        return NULL;
    }
    if (!with_parser(&r, text, check_events)) {
        return NULL;
    }
    (void)with_parser(&r, text, compose);
    bool nothing = r.root != NULL && r.root->count == 0 && problems->errors > before;
    return arena->failed || nothing ? NULL : r.root;
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
