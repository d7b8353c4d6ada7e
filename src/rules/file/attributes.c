/* Reads and shows the section `attributes`: where values come from that a request does not carry. */
#include "rules/file/sections.h"

#include "rules/file/tiers.h"
#include "rules/value/normalize.h"

#define SOURCE_EXPECTED "header:NAME, query:NAME or 'file:PATH by ATTRIBUTE'"

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

/* Reads one source of an attribute; false after a problem. */
static bool read_source(struct reader *r, const struct node *node, struct text attribute,
                        struct attribute_source *out)
{
    struct text text = node->scalar;
    *out = (struct attribute_source){0};
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
        lookup_read(r, node, attribute, out);
        return out->values != NULL;
    }
    unexpected(r, node, SOURCE_EXPECTED);
    return false;
}

static void read_attribute(struct reader *r, const struct node *key, const struct node *node,
                           struct attribute_config *out)
{
    const struct node *const *items;
    if (!name_is_good(key->scalar)) {
        unexpected(r, key, NAME_EXPECTED);
        return;
    }
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
    struct config *config = r->config;
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
        struct attribute_config attribute = {.name = node->keys[i]->scalar,
                                             .place = node->keys[i]->place};
        read_attribute(r, node->keys[i], node->items[i], &attribute);
        (void)arena_append(&r->source->arena, &config->attributes, &config->attributes_count,
                           sizeof attribute, &attribute);
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

/* ---- keys that clients write ---- */

/*
 * What a client can do about a part of a key: make up a value, choose one of those that the
 * application has (path, method, host), or nothing that the rules know of.
 */
enum part_source { PART_MADE_UP, PART_CHOSEN, PART_GIVEN };

/* Returns the source of the attribute that a client writes; NULL if there is none. A lookup in a
 * file gives only values of the file. */
static const struct attribute_source *written_source(const struct config *config, struct text name)
{
    for (size_t i = 0; i < config->attributes_count; i++) {
        const struct attribute_config *a = &config->attributes[i];
        for (size_t j = 0; text_equal(a->name, name) && j < a->count; j++) {
            if (a->sources[j].kind != FROM_FILE) {
                return &a->sources[j];
            }
        }
    }
    return NULL;
}

/* Finds what a client can do about a part; a source that it writes is set in *source. A gateway
 * always knows the address, so alternatives after `ip` are never used. */
static enum part_source source_of_part(const struct config *config, const struct texts *names,
                                       const struct attribute_source **source)
{
    for (size_t i = 0; i < names->count; i++) {
        const struct attribute_source *written = written_source(config, names->at[i]);
        enum attribute_kind kind = attribute_kind_of(names->at[i]);
        if (written != NULL) {
            *source = written;
            return PART_MADE_UP;
        }
        if (kind != ATTRIBUTE_PLAIN) {
            return kind == ATTRIBUTE_IP ? PART_GIVEN : PART_CHOSEN;
        }
    }
    return PART_GIVEN;
}

void config_warn_written(const struct config *config, struct problems *problems)
{
    for (size_t i = 0; i < config->limits_count; i++) {
        const struct limit_config *limit = config->limits[i];
        const struct attribute_source *source = NULL;
        size_t given = 0;
        for (size_t j = 0; j < limit->key_parts; j++) {
            given += source_of_part(config, &limit->key[j].alternatives, &source) == PART_GIVEN;
        }
        if (source != NULL && given == 0) {
            warning(problems, limit->place,
                    "limit '%.*s': clients can make up its key, which comes from %.*s, and get a "
                    "new quota with each value%s; expected ip in the key, or a gateway that sets "
                    "or removes what clients write there",
                    TEXT_ARGS(limit->name), TEXT_ARGS(source->name),
                    limit->ban.denials > 0 ? ", or get the keys of others banned" : "");
        }
    }
}
