/* Reads and shows the section `attributes`: where values come from that a request does not carry. */
#include "rules/file/sections.h"

#include "rules/file/tiers.h"
#include "rules/value/normalize.h"

#define SOURCE_EXPECTED "header:NAME, query:NAME, 'file:PATH by ATTRIBUTE' or request"

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
static void refuse_near(struct reader *r, struct text name, struct place place)
{
    char lower[WEIR_RULES_NAME];
    normalize_lower(name, lower);
    struct suggestion s = suggest_begin((struct text){lower, name.len});
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
static void refuse_undeclared(struct reader *r, const struct node *declared, struct text name,
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

void attribute_used(struct reader *r, struct text name, struct place place)
{
    const struct node *declared = r->config->declared;
    if (attribute_kind_of(name) != ATTRIBUTE_PLAIN) {
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
static bool split_lookup(struct text text, struct attribute_source *out)
{
    struct text rest = text_after(text, strlen("file:"));
    for (size_t i = rest.len; i >= 5; i--) {
        if (memcmp(rest.at + i - 4, " by ", 4) == 0) {
            out->name = text_trim((struct text){rest.at, i - 4});
            out->by = text_trim(text_after(rest, i));
            return out->name.len > 0 && name_is_good(out->by);
        }
    }
    return false;
}

/*
 * Reads one source of an attribute; false after a problem. `request` is no source: it declares an
 * attribute that callers send.
 */
static bool read_source(struct reader *r, const struct node *node, struct text attribute,
                        struct attribute_source *out)
{
    struct text text = node->scalar;
    *out = (struct attribute_source){0};
    if (text_is(text, "request")) {
        return false;
    }
    if (text_starts(text, "header:") && text.len > strlen("header:")) {
        char *lower = arena_take(&r->source->arena, text.len);
        if (lower != NULL) {
            normalize_lower(text, lower);
        }
        out->kind = FROM_HEADER;
        out->name = (struct text){lower, text.len};
        return lower != NULL;
    }
    if (text_starts(text, "query:") && text.len > strlen("query:")) {
        out->kind = FROM_QUERY;
        out->name = text;
        return true;
    }
    if (text_starts(text, "file:") && split_lookup(text, out)) {
        out->kind = FROM_FILE;
        attribute_used(r, out->by, node->place);
        lookup_read(r, node, attribute, out);
        return out->values != NULL;
    }
    unexpected(r, node, SOURCE_EXPECTED);
    return false;
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
        for (size_t j = done; a->sources[i].kind == FROM_FILE && j < config->attributes_count;
             j++) {
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
            problem(
                r->problems, config->attributes[done].place,
                "found '%.*s', which is looked up by itself, expected another attribute after 'by'",
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
    }
}

const struct field_type type_attributes = {
    .size = sizeof(struct attribute_config *), .read = read_attributes, .show = show_attributes};
