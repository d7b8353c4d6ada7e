/* Reads and shows the section `attributes`: sources of values that requests do not carry. */
#include "rules/envoy/envoy.h"
#include "rules/file/sections.h"

#include "rules/file/conditions.h"
#include "rules/file/tiers.h"
#include "rules/value/cookie.h"
#include "rules/value/normalize.h"
#include "rules/value/pattern.h"

#define SOURCE_EXPECTED                                                                            \
    "header:NAME, query:NAME, cookie:NAME, path:N, path:{NAME}, 'file:PATH by ATTRIBUTE' or "      \
    "request"
#define SEGMENTS_MAX 100 /* the last one that path:N may name */

/* ---- names that rules use ---- */

/* Names of attributes that are often sent: a name that is nearly one of them is a mistake. */
static const char *const usual_names[] = {"user", "tier", "cost"};

#define USUAL_NAMES (sizeof usual_names / sizeof usual_names[0])

/*
 * Offers a name that is nearly `known`: in other letter case, or with as many wrong letters as
 * `known` has room for (none in "ip", so that "vip" is no mistake, two in "method").
 */
static void offer_near(struct suggestion *s, const char *known)
{
    unsigned limit = strlen(known) < 3 ? 0 : suggest_limit(text_of(known));
    if (suggest_distance(s->word, known) <= limit) {
        suggest_offer(s, known);
    }
}

/* Reports a name that is nearly a usual one, in rules that declare no attributes. */
static void refuse_near(struct reader *r, struct weir_text name, struct place place)
{
    char lower[WEIR_RULES_NAME];
    normalize_lower(name, lower);
    struct suggestion s = suggest_begin((struct weir_text){lower, name.len});
    for (size_t i = 0; i < ATTRIBUTE_PLAIN; i++) {
        offer_near(&s, attribute_names[i]);
    }
    for (size_t i = 0; i < USUAL_NAMES; i++) {
        if (text_is(name, usual_names[i])) {
            return;
        }
        offer_near(&s, usual_names[i]);
    }
    if (s.nearest != NULL) {
        problem(r->problems, place,
                "found the attribute '%.*s', expected '%s'; if callers send it under this name, "
                "declare it with 'attributes: {%.*s: request}'",
                TEXT_ARGS(name), s.nearest, TEXT_ARGS(name));
    }
}

/* Reports a name that the section `attributes` does not declare. */
static void refuse_undeclared(struct reader *r, const struct node *declared, struct weir_text name,
                              struct place place)
{
    struct suggestion s = suggest_begin(name);
    for (size_t i = 0; i < declared->count; i++) {
        if (text_equal(declared->keys[i]->scalar, name)) {
            return;
        }
        suggest_offer(&s, declared->keys[i]->scalar.at);
    }
    for (size_t i = 0; i < ATTRIBUTE_PLAIN; i++) {
        suggest_offer(&s, attribute_names[i]);
    }
    problem(r->problems, place,
            "found the attribute '%.*s', expected path, method, host, ip or one that 'attributes' "
            "declares (if callers send it, declare it with '%.*s: request')%s%s%s",
            TEXT_ARGS(name), TEXT_ARGS(name), s.nearest != NULL ? "; did you mean '" : "",
            s.nearest != NULL ? s.nearest : "", s.nearest != NULL ? "'?" : "");
}

void attribute_used(struct reader *r, struct weir_text name, struct place place)
{
    const struct node *declared = r->config->declared;
    if (attribute_kind_of(name) != ATTRIBUTE_PLAIN || envoy_has_attribute(name)) {
        return;
    }
    if (declared == NULL) {
        refuse_near(r, name, place);
    } else if (declared->kind == NODE_MAP) {
        refuse_undeclared(r, declared, name, place);
    }
}

/* ---- the section ---- */

/* Splits "file:PATH by ATTRIBUTE" into name and by; false if the text has another form. */
static bool split_lookup(struct weir_text text, struct attribute_source *out)
{
    struct weir_text rest = text_after(text, strlen("file:"));
    for (size_t i = rest.len; i >= 5; i--) {
        if (memcmp(rest.at + i - 4, " by ", 4) == 0) {
            out->name = text_trim((struct weir_text){rest.at, i - 4});
            out->by = text_trim(text_after(rest, i));
            return out->name.len > 0 && name_is_good(out->by);
        }
    }
    return false;
}

/* Reads the N of path:N, or the name of path:{name}. */
static bool read_segment(struct weir_text text, struct attribute_source *out)
{
    uint64_t number = 0;
    out->part = path_pattern_name(text);
    if (out->part.len > 0) {
        return name_is_good(out->part);
    }
    if (!text_to_u64(text, &number) || number < 1 || number > SEGMENTS_MAX) {
        return false;
    }
    out->segment = (unsigned)number;
    return true;
}

static const struct source_row {
    const char *prefix;
    enum source_kind kind;
    const char *by; /* where the value is a part of another one */
} source_rows[] = {
    {"header:", FROM_HEADER, ""}, {"query:", FROM_QUERY, ""}, {"cookie:", FROM_COOKIE, COOKIES},
    {"path:", FROM_PATH, "path"}, {"file:", FROM_FILE, ""},
};

static const struct source_row *source_row(struct weir_text text)
{
    for (size_t i = 0; i < sizeof source_rows / sizeof source_rows[0]; i++) {
        if (text_starts(text, source_rows[i].prefix) && text.len > strlen(source_rows[i].prefix)) {
            return &source_rows[i];
        }
    }
    return NULL;
}

/* Reads what follows the prefix of a source; false if it has another form. */
static bool read_rest(struct reader *r, struct weir_text text, struct weir_text rest,
                      struct attribute_source *out)
{
    char *lower;
    switch (out->kind) {
    case FROM_HEADER: /* names of fields are stored in lower case */
        lower = arena_take(&r->source->arena, text.len);
        if (lower != NULL) {
            normalize_lower(text, lower);
        }
        out->name = (struct weir_text){lower, lower != NULL ? text.len : 0};
        return true;
    case FROM_COOKIE:
        out->part = rest;
        return cookie_name_is_good(rest);
    case FROM_PATH:
        return read_segment(rest, out);
    case FROM_FILE:
        return split_lookup(text, out);
    default:
        return true;
    }
}

/*
 * Reads one source of an attribute; false after a problem. `request` is no source: it declares an
 * attribute that callers send.
 */
static bool read_source(struct reader *r, const struct node *node, struct weir_text attribute,
                        struct attribute_source *out)
{
    struct weir_text text = node->scalar;
    const struct source_row *row = source_row(text);
    *out = (struct attribute_source){.name = text};
    if (text_is(text, "request")) {
        return false;
    }
    if (row != NULL) {
        out->kind = row->kind;
        out->by = text_of(row->by);
    }
    if (row == NULL || !read_rest(r, text, text_after(text, strlen(row->prefix)), out)) {
        unexpected(r, node, SOURCE_EXPECTED);
        return false;
    }
    if (out->kind == FROM_PATH && text_is(attribute, "path")) {
        unexpected(r, node, "another source: the path is not a part of itself");
        return false;
    }
    if (out->kind == FROM_FILE) {
        attribute_used(r, out->by, node->place);
        lookup_read(r, node, attribute, out);
        return out->values != NULL;
    }
    return out->name.at != NULL;
}

static void read_sources(struct reader *r, const struct node *node, struct attribute_config *out)
{
    const struct node *const *items;
    size_t n = scalars_of(r, node, SOURCE_EXPECTED, &items);
    if (n > CONFIG_SOURCES_MAX) {
        problem(r->problems, node->place, "found %zu sources, expected at most %d", n,
                CONFIG_SOURCES_MAX);
        return;
    }
    out->written = texts_of(r, items, n);
    out->sources = arena_array(&r->source->arena, n, sizeof *out->sources);
    for (size_t i = 0; i < n && out->sources != NULL; i++) {
        if (read_source(r, items[i], out->name, &out->sources[out->count])) {
            out->count++;
        }
    }
}

static void read_attribute(struct reader *r, const struct node *key, const struct node *node)
{
    struct config *config = r->config;
    struct attribute_config attribute = {.name = key->scalar, .place = key->place};
    if (!name_is_good(key->scalar)) {
        unexpected(r, key, NAME_EXPECTED);
        return;
    }
    read_sources(r, node, &attribute);
    (void)arena_append(&r->source->arena, &config->attributes, &config->attributes_count,
                       sizeof attribute, &attribute);
}

/*
 * True if no attribute from `done` on is needed to look this one up. The attributes before `done`
 * are known, and requests give the others.
 */
static bool is_ready(const struct config *config, size_t done, const struct attribute_config *a)
{
    for (size_t i = 0; i < a->count; i++) {
        for (size_t j = done; a->sources[i].by.len > 0 && j < config->attributes_count; j++) {
            if (text_equal(a->sources[i].by, config->attributes[j].name)) {
                return false;
            }
        }
    }
    return true;
}

/* Sorts the attributes so that each is looked up only by those before it. */
static void sort_attributes(struct reader *r)
{
    struct config *config = r->config;
    for (size_t done = 0; done < config->attributes_count; done++) {
        size_t next = done;
        while (next < config->attributes_count &&
               !is_ready(config, done, &config->attributes[next])) {
            next++;
        }
        if (next == config->attributes_count) {
            problem(r->problems, config->attributes[done].place,
                    "found '%.*s', which is looked up by itself, expected another attribute",
                    TEXT_ARGS(config->attributes[done].name));
            return;
        }
        struct attribute_config ready = config->attributes[next];
        config->attributes[next] = config->attributes[done];
        config->attributes[done] = ready;
    }
}

static void read_attributes(struct reader *r, const struct field *f, const struct node *node,
                            void *value)
{
    (void)f;
    (void)value;
    if (node->kind != NODE_MAP) {
        unexpected(r, node, "a map of attributes and their sources");
        return;
    }
    if (node->count > CONFIG_ATTRIBUTES_MAX) {
        problem(r->problems, node->place, "found %zu attributes, expected at most %d", node->count,
                CONFIG_ATTRIBUTES_MAX);
        return;
    }
    for (size_t i = 0; i < node->count; i++) {
        read_attribute(r, node->keys[i], node->items[i]);
    }
    sort_attributes(r);
}

static void show_attributes(const struct show *s, const void *value)
{
    const struct attribute_config *const *attributes = value;
    for (size_t i = 0; i < s->config->attributes_count; i++) {
        const struct attribute_config *a = &(*attributes)[i];
        (void)fprintf(s->out, "\n  %.*s:", TEXT_ARGS(a->name));
        field_show_texts(s, &a->written);
        (void)fputs(a->count == 0 ? " # not from /v1/auth" : "", s->out);
    }
}

const struct field_type type_attributes = {.size = sizeof(struct attribute_config *),
                                           .read = read_attributes,
                                           .show = show_attributes,
                                           .shape = SHAPE_ATTRIBUTES};

/* ---- names in the braces of paths ---- */

/* How many paths have a name in braces, and the nearest of the other names. */
struct looking {
    struct weir_text name;
    size_t count;
    char nearest[WEIR_RULES_NAME]; /* "" if none is similar */
};

static void count_named(void *arg, const struct value *path)
{
    struct looking *l = arg;
    l->count += path_pattern_find(path->named, l->name) > 0;
    for (unsigned n = 1; path_nth(path->named, n).len > 0; n++) {
        struct weir_text name = path_pattern_name(path_nth(path->named, n));
        char word[WEIR_RULES_NAME];
        (void)snprintf(word, sizeof word, "%.*s", TEXT_ARGS(name));
        struct suggestion s = suggest_begin(l->name);
        suggest_offer(&s, word);
        if (name.len > 0 && s.nearest != NULL) {
            memcpy(l->nearest, word, sizeof word);
        }
    }
}

static void check_named(const struct config *config, const struct attribute_config *a,
                        const struct attribute_source *source, struct problems *problems)
{
    struct looking l = {.name = source->part};
    config_each_named(config, count_named, &l);
    if (l.count == 0) {
        problem(problems, a->place,
                "found path:{%.*s}, but no path of the rules has {%.*s}, expected one such as "
                "/users/{%.*s}/**%s%s%s",
                TEXT_ARGS(l.name), TEXT_ARGS(l.name), TEXT_ARGS(l.name),
                l.nearest[0] != 0 ? "; did you mean '" : "", l.nearest,
                l.nearest[0] != 0 ? "'?" : "");
    } else if (l.count > CONFIG_PATTERNS_MAX) {
        problem(problems, a->place, "found %zu paths with {%.*s}, expected at most %d", l.count,
                TEXT_ARGS(l.name), CONFIG_PATTERNS_MAX);
    }
}

void attributes_check(const struct config *config, struct problems *problems)
{
    if (config->limits_count < config->limits_written) {
        return; /* a limit that was refused may have the name */
    }
    for (size_t i = 0; i < config->attributes_count; i++) {
        const struct attribute_config *a = &config->attributes[i];
        for (size_t j = 0; j < a->count; j++) {
            if (a->sources[j].part.len > 0 && a->sources[j].kind == FROM_PATH) {
                check_named(config, a, &a->sources[j], problems);
            }
        }
    }
}
