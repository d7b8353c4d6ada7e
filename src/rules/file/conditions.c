#include "rules/file/conditions.h"

#include "rules/file/files.h"
#include "rules/file/foreign.h"
#include "rules/file/sections.h"
#include "rules/value/normalize.h"
#include "rules/value/pattern.h"

/* The condition that is being read. */
struct condition_reading {
    struct reader *r;
    struct condition *out;
    enum attribute_kind kind;
    unsigned patterns; /* their number so far */
    size_t room;       /* values of a file, which are not shown: their most; otherwise 0 */
};

/* The most that a value takes once it is compiled: three places in a map, one of which it fills, or
 * the two ends of a network. Patterns are few. */
#define COMPILED_BYTES 48

static void add(struct condition_reading *c, const struct value *value, struct place place)
{
    c->patterns += value->kind == VALUE_PATTERN;
    if (value->kind == VALUE_PATTERN && c->patterns > CONFIG_PATTERNS_MAX) {
        if (c->patterns == CONFIG_PATTERNS_MAX + 1) {
            problem(c->r->problems, place, "found too many values with '*', expected at most %d",
                    CONFIG_PATTERNS_MAX);
        }
        return;
    }
    if (c->room > 0) {
        c->out->values[c->out->count++] = *value;
    } else {
        (void)arena_append(&c->r->source->arena, &c->out->values, &c->out->count, sizeof *value,
                           value);
    }
}

/* Reports a value that cannot be read. */
static void refuse(struct condition_reading *c, struct place place, const char *expected,
                   const struct weir_error *error)
{
    if (c->room > 0) {
        file_problem(c->r, place, expected);
    } else {
        problem(c->r->problems, place, "%s", error->text);
    }
}

static void add_network(struct condition_reading *c, struct weir_text text, struct place place)
{
    struct weir_error error;
    struct value value = {.kind = VALUE_NETWORK};
    if (cidr_parse(text, &value.network, &error) != 0) {
        refuse(c, place, "a network such as 10.0.0.0/8 or ::1, with no bits after its prefix",
               &error);
        return;
    }
    add(c, &value, place);
}

/* Warns of a method that is nearly one of the standard ones. */
static void suspect_method(struct condition_reading *c, struct weir_text text, struct place place)
{
    static const char *const methods[] = {"GET",     "HEAD",    "POST",  "PUT",  "DELETE",
                                          "CONNECT", "OPTIONS", "TRACE", "PATCH"};
    struct suggestion s = suggest_begin(text);
    char found[QUOTE_MAX];
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        suggest_offer(&s, methods[i]);
    }
    if (s.nearest != NULL && s.distance > 0) {
        warning(c->r->problems, place,
                "found the method %s, which hardly any client sends; did you mean '%s'?",
                quote(text, found), s.nearest);
    }
}

/* Warns of a text, as it is written, that is no host. */
static void suspect_host(struct condition_reading *c, struct weir_text text, struct place place)
{
    char found[QUOTE_MAX];
    if (!is_host(text)) {
        warning(c->r->problems, place,
                "found the host %s, which no request has, expected a name such as api.example",
                quote(text, found));
    }
}

/* Adds a value or pattern, with methods and hosts normalised as those of requests are. */
static void add_text(struct condition_reading *c, struct weir_text text, struct place place)
{
    struct value value = {.kind = VALUE_PATTERN, .text = text};
    char *to = arena_take(&c->r->source->arena, text.len + 1);
    if (to == NULL) {
        return;
    }
    if (c->kind == ATTRIBUTE_PATH && memchr(text.at, '{', text.len) != NULL) {
        value.text = (struct weir_text){to, path_pattern_plain(text, to)};
        value.named = text_equal(value.text, text) ? TEXT("") : text;
    }
    if (!pattern_has_wildcard(value.text)) {
        value = (struct value){.kind = VALUE_EXACT, .text = {to, pattern_literal(text, to)}};
    }
    if (c->kind == ATTRIBUTE_METHOD) {
        normalize_method(value.text, to);
        value.text.at = to;
        if (value.kind == VALUE_EXACT) {
            suspect_method(c, value.text, place);
        }
    } else if (c->kind == ATTRIBUTE_HOST) {
        if (value.kind == VALUE_EXACT) {
            suspect_host(c, value.text, place);
        }
        value.text = (struct weir_text){to, normalize_host(value.text, to)};
    } else if (c->kind == ATTRIBUTE_PATH) {
        foreign_path(c->r, text, place);
    }
    add(c, &value, place);
}

static void add_value(struct condition_reading *c, struct weir_text text, struct place place)
{
    struct weir_error error;
    if (c->kind == ATTRIBUTE_IP) {
        add_network(c, text, place);
    } else if (c->kind == ATTRIBUTE_PATH && path_pattern_check(text, &error) != 0) {
        refuse(c, place, "a path pattern such as /search/**", &error);
    } else if (text.len > WEIR_RULES_VALUE_MAX) {
        problem(c->r->problems, place, "found a value of %zu bytes, expected at most %d", text.len,
                WEIR_RULES_VALUE_MAX);
    } else {
        add_text(c, text, place);
    }
}

/*
 * Adds a value for each line, as long as there is memory for them; blank lines and lines that begin
 * with # are skipped.
 */
static void add_lines(struct condition_reading *c, const struct file_use *use)
{
    const char *path = use->file->path;
    struct weir_text content = use->file->content;
    unsigned line = 0;
    if (text_starts(content, "\xef\xbb\xbf")) {
        content = text_after(content, 3);
    }
    while (content.len > 0) {
        struct weir_text written = text_cut(&content, '\n');
        struct weir_text value = text_trim(written);
        struct place place = {path, ++line, (unsigned)(value.at - written.at) + 1};
        if (value.len > 0 && value.at[0] != '#') {
            if (!file_use_fits(use, c->out->count * COMPILED_BYTES)) {
                return;
            }
            add_value(c, value, place);
        }
    }
}

/* The values of a list file, read as values of an attribute of one kind. */
struct file_values {
    enum attribute_kind kind;
    struct value *at;
    size_t count;
    struct file_values *next;
};

/* Reads the values of a file. Returns NULL after a problem. */
static const struct file_values *read_values(const struct condition_reading *c,
                                             const struct node *node, struct source_file *file)
{
    struct arena *arena = &c->r->source->arena;
    struct condition all = {0};
    struct condition_reading own = {
        .r = c->r, .out = &all, .kind = c->kind, .room = file_lines(file)};
    struct file_use use;
    struct file_values *v = NULL;
    file_use_begin(&use, c->r, node, file);
    if (file_use_fits(&use, own.room * sizeof *all.values)) {
        all.values = arena_array(arena, own.room, sizeof *all.values);
        v = arena_take(arena, sizeof *v);
    }
    if (v != NULL && all.values != NULL) {
        add_lines(&own, &use);
        *v = (struct file_values){c->kind, all.values, all.count, file->values};
        file->values = v;
    }
    file_use_end(&use, all.count * COMPILED_BYTES);
    return v;
}

/*
 * Returns the values of a file, which is read unless another condition has read it; NULL after a
 * problem.
 */
static const struct file_values *values_of(struct condition_reading *c, const struct node *node,
                                           struct source_file **of)
{
    struct weir_text name = text_trim(text_after(node->scalar, strlen("file:")));
    if (name.len == 0) {
        unexpected(c->r, node, "file:PATH");
        return NULL;
    }
    struct source_file *file = named_file(c->r, node, name);
    *of = file;
    struct file_values *v = file != NULL ? file->values : NULL;
    while (v != NULL && v->kind != c->kind) {
        v = v->next;
    }
    if (file == NULL || v != NULL) {
        return v;
    }
    return read_values(c, node, file);
}

/*
 * Adds the values of a file. If the condition has no other values (`alone`), it shares those of the
 * file with all such conditions.
 */
static void add_file(struct condition_reading *c, const struct node *node, bool alone)
{
    struct source_file *file;
    const struct file_values *v = values_of(c, node, &file);
    if (v == NULL) {
        return;
    }
    if (alone) {
        c->out->values = v->at;
        c->out->count = v->count;
        c->out->shared = true;
        return;
    }
    struct file_use use;
    file_use_begin(&use, c->r, node, file);
    for (size_t i = 0; i < v->count && file_use_fits(&use, c->out->count * COMPILED_BYTES); i++) {
        add(c, &v->at[i], node->place);
    }
    file_use_end(&use, v->count * COMPILED_BYTES);
}

static void read_condition(struct reader *r, const struct node *key, const struct node *node,
                           struct condition *out)
{
    static const char what[] = "a value, a list of values, or file:PATH";
    struct condition_reading c = {.r = r, .out = out, .kind = attribute_kind_of(key->scalar)};
    const struct node *const *items;
    if (!name_is_good(key->scalar)) {
        unexpected(r, key, NAME_EXPECTED);
        return;
    }
    out->attribute = key->scalar;
    attribute_used(r, key->scalar, key->place);
    if (node->kind == NODE_LIST && node->count == 0) {
        unexpected(r, node, "at least one value: an empty list matches nothing");
        return;
    }
    size_t n = scalars_of(r, node, what, &items);
    out->written = texts_of(r, items, n);
    for (size_t i = 0; i < n; i++) {
        if (text_starts(items[i]->scalar, "file:")) {
            add_file(&c, items[i], n == 1);
        } else {
            add_value(&c, items[i]->scalar, items[i]->place);
        }
    }
}

static void read_conditions(struct reader *r, const struct field *f, const struct node *node,
                            void *value)
{
    struct conditions *out = value;
    (void)f;
    if (node->kind != NODE_MAP || node->count == 0) {
        unexpected(r, node, "a map of attributes and values, such as {path: /login}");
        return;
    }
    out->place = node->place;
    out->at = arena_array(&r->source->arena, node->count, sizeof *out->at);
    for (size_t i = 0; i < node->count && out->at != NULL; i++) {
        read_condition(r, node->keys[i], node->items[i], &out->at[out->count]);
        out->count++;
    }
}

static void put_conditions(const struct show *s, const struct conditions *conditions)
{
    for (size_t i = 0; i < conditions->count; i++) {
        const struct condition *c = &conditions->at[i];
        (void)fprintf(s->out, "%s%.*s:", i > 0 ? ", " : "{", TEXT_ARGS(c->attribute));
        field_show_texts(s, &c->written);
    }
    (void)fputc('}', s->out);
}

static void show_conditions(const struct show *s, const void *value)
{
    (void)fputc(' ', s->out);
    put_conditions(s, value);
}

static void read_list(struct reader *r, const struct field *f, const struct node *node, void *value)
{
    struct list_config *out = value;
    if (node->kind != NODE_LIST) {
        unexpected(r, node, "a list of maps, such as [{ip: 10.0.0.0/8}, {path: /healthz}]");
        return;
    }
    for (size_t i = 0; i < node->count; i++) {
        unsigned before = r->problems->errors;
        struct conditions entry = {0};
        read_conditions(r, f, node->items[i], &entry);
        if (r->problems->errors == before) {
            (void)arena_append(&r->source->arena, &out->entries, &out->count, sizeof entry, &entry);
        }
    }
}

/* Reads a map, or a list of maps, one of which must hold. */
static void read_either(struct reader *r, const struct field *f, const struct node *node,
                        void *value)
{
    struct node *items = (struct node *)(uintptr_t)node;
    struct node one = {.kind = NODE_LIST, .place = node->place, .count = 1, .items = &items};
    if (node->kind == NODE_LIST && node->count == 0) {
        unexpected(r, node, "at least one map");
        return;
    }
    read_list(r, f, node->kind == NODE_LIST ? node : &one, value);
}

static void show_either(const struct show *s, const void *value)
{
    const struct list_config *list = value;
    if (list->count == 1) {
        show_conditions(s, &list->entries[0]);
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        (void)fputs(i > 0 ? ", " : " [", s->out);
        put_conditions(s, &list->entries[i]);
    }
    (void)fputc(']', s->out);
}

static void show_list(const struct show *s, const void *value)
{
    const struct list_config *list = value;
    for (size_t i = 0; i < list->count; i++) {
        (void)fputs("\n  -", s->out);
        show_conditions(s, &list->entries[i]);
    }
}

const struct field_type type_conditions = {.size = sizeof(struct conditions),
                                           .read = read_conditions,
                                           .show = show_conditions,
                                           .shape = SHAPE_CONDITIONS};
const struct field_type type_list = {.size = sizeof(struct list_config),
                                     .read = read_list,
                                     .show = show_list,
                                     .shape = SHAPE_CONDITIONS_LIST};
const struct field_type type_either = {.size = sizeof(struct list_config),
                                       .read = read_either,
                                       .show = show_either,
                                       .shape = SHAPE_CONDITIONS_EITHER};

/* ---- paths with names ---- */

static void each_named(const struct conditions *conditions, config_named_fn fn, void *arg)
{
    for (size_t i = 0; i < conditions->count; i++) {
        const struct condition *c = &conditions->at[i];
        bool path = attribute_kind_of(c->attribute) == ATTRIBUTE_PATH;
        for (size_t j = 0; path && j < c->count; j++) {
            if (c->values[j].named.len > 0) {
                fn(arg, &c->values[j]);
            }
        }
    }
}

static void each_named_of(const struct list_config *list, config_named_fn fn, void *arg)
{
    for (size_t i = 0; i < list->count; i++) {
        each_named(&list->entries[i], fn, arg);
    }
}

void config_each_named(const struct config *config, config_named_fn fn, void *arg)
{
    for (size_t i = 0; i < config->limits_count; i++) {
        each_named(&config->limits[i]->when, fn, arg);
        each_named_of(&config->limits[i]->unless, fn, arg);
    }
    each_named_of(&config->allow, fn, arg);
    each_named_of(&config->block, fn, arg);
}
