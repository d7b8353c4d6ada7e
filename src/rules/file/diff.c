#include "rules/file/diff.h"

#include <stdlib.h>

#include "rules/file/fields.h"

#define SHOWN_MAX 60 /* bytes of a value that is shown; longer ones are said to have changed */

struct diff {
    const struct config *old;
    const struct config *next;
    config_diff_fn tell;
    void *arg;
    int changes;
    bool failed; /* there was no memory for a line */
};

/* Returns what `weir config show` prints for a field, without blanks around it, as memory of the
 * caller; "" if the field is not shown. NULL if out of memory. */
static char *show_field(const struct config *config, const struct limit_config *limit,
                        const struct field *f, const void *target)
{
    struct section one = {.name = "", .fields = f, .count = 1};
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (out == NULL) {
        return NULL;
    }
    struct show s = {.config = config, .limit = limit, .out = out};
    fields_show(&s, &one, target, "");
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        free(text);
        return NULL;
    }
    size_t name = len > 0 ? strlen(f->name) + 1 : 0; /* "rate:" */
    while (text[name] == ' ') {
        name++;
    }
    memmove(text, text + name, len - name + 1);
    return text;
}

static bool fits_line(const char *value)
{
    return strchr(value, '\n') == NULL && strlen(value) <= SHOWN_MAX;
}

/* Writes "rate 100/min -> 200/min", or "tiers changed". A value that is not set is "-". */
static void put_change(FILE *out, const char *name, const char *before, const char *after)
{
    if (fits_line(before) && fits_line(after)) {
        (void)fprintf(out, "%s %s -> %s", name, before[0] != 0 ? before : "-",
                      after[0] != 0 ? after : "-");
    } else {
        (void)fprintf(out, "%s changed", name);
    }
}

/* Writes the field, after the separator, if it has changed. Returns whether it has. */
static bool put_field(struct diff *d, FILE *out, const struct field *f,
                      const struct limit_config *old, const struct limit_config *next,
                      const char *separator)
{
    char *before = show_field(d->old, old, f, old);
    char *after = show_field(d->next, next, f, next);
    bool changed = before != NULL && after != NULL && strcmp(before, after) != 0;
    d->failed = d->failed || before == NULL || after == NULL;
    if (changed) {
        (void)fputs(separator, out);
        put_change(out, f->name, before, after);
    }
    free(before);
    free(after);
    return changed;
}

/* Returns what becomes of the keys of a limit, as src/rules/compiled/holder.c decides it. */
static const char *keys_of(const struct limit_config *old, const struct limit_config *next)
{
    bool kept = fields_same(&section_limit, CHANGE_KEYS, old, next) &&
                old->base.rate.period_ns == next->base.rate.period_ns &&
                old->base.max_keys == next->base.max_keys && old->consistency == next->consistency;
    return kept ? "keys kept" : "keys start afresh";
}

static const struct limit_config *find(const struct config *config, struct weir_text name)
{
    size_t i = 0;
    while (i < config->limits_count && !text_equal(config->limits[i]->name, name)) {
        i++;
    }
    return i < config->limits_count ? config->limits[i] : NULL;
}

/* Tells one line, which fn has written; nothing if it is empty. */
static void tell_line(struct diff *d, char **line, FILE *out)
{
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        d->failed = true;
    } else if ((*line)[0] != 0) {
        d->tell(d->arg, *line);
        d->changes++;
    }
    free(*line);
}

static void diff_limit(struct diff *d, const struct limit_config *old,
                       const struct limit_config *next)
{
    char *line = NULL;
    size_t len = 0;
    char before[WEIR_RULES_NAME + 2];
    bool some = false;
    FILE *out = open_memstream(&line, &len);
    if (out == NULL) {
        d->failed = true;
        return;
    }
    (void)snprintf(before, sizeof before, "%.*s: ", TEXT_ARGS(next->name));
    for (size_t i = 0; i < section_limit.count; i++) {
        some = put_field(d, out, &section_limit.fields[i], old, next, some ? ", " : before) || some;
    }
    if (some) {
        (void)fprintf(out, "; %s", keys_of(old, next));
    }
    tell_line(d, &line, out);
}

static void tell_whole(struct diff *d, const struct limit_config *limit, const char *what)
{
    char line[WEIR_RULES_NAME + 64];
    (void)snprintf(line, sizeof line, "%.*s: %s", TEXT_ARGS(limit->name), what);
    d->tell(d->arg, line);
    d->changes++;
}

static bool is_in(const struct limit_config *limit, struct weir_text group)
{
    return limit != NULL && text_equal(limit->group, group);
}

/* Returns "a, b": the limits of a group that are in it in the other file too, as memory of the
 * caller; NULL if out of memory. */
static char *group_order(const struct config *in, const struct config *other,
                         struct weir_text group)
{
    char *order = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&order, &len);
    const char *separator = "";
    for (size_t i = 0; out != NULL && i < in->limits_count; i++) {
        struct weir_text name = in->limits[i]->name;
        if (is_in(in->limits[i], group) && is_in(find(other, name), group)) {
            (void)fprintf(out, "%s%.*s", separator, TEXT_ARGS(name));
            separator = ", ";
        }
    }
    if (out == NULL || fclose(out) != 0) {
        free(order);
        return NULL;
    }
    return order;
}

/* Tells that a value has changed: "server.memory 1GB -> 2GB". Frees both values; one that is NULL
 * could not be made. */
static void diff_value(struct diff *d, const char *name, char *before, char *after)
{
    char *line = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&line, &len);
    d->failed = d->failed || before == NULL || after == NULL || out == NULL;
    if (out != NULL) {
        if (before != NULL && after != NULL && strcmp(before, after) != 0) {
            put_change(out, name, before, after);
        }
        tell_line(d, &line, out);
    }
    free(before);
    free(after);
}

/* Tells that the limits of a group come in another order: the first that applies is used. */
static void diff_group(struct diff *d, struct weir_text group)
{
    char name[WEIR_RULES_NAME + 16];
    (void)snprintf(name, sizeof name, "group %.*s: order", TEXT_ARGS(group));
    diff_value(d, name, group_order(d->old, d->next, group), group_order(d->next, d->old, group));
}

static void diff_groups(struct diff *d)
{
    for (size_t i = 0; i < d->next->limits_count; i++) {
        struct weir_text group = d->next->limits[i]->group;
        size_t first = 0;
        while (!text_equal(d->next->limits[first]->group, group)) {
            first++;
        }
        if (group.len > 0 && first == i) {
            diff_group(d, group);
        }
    }
}

static void diff_limits(struct diff *d)
{
    for (size_t i = 0; i < d->next->limits_count; i++) {
        const struct limit_config *next = d->next->limits[i];
        const struct limit_config *old = find(d->old, next->name);
        if (old == NULL) {
            tell_whole(d, next, "added");
        } else if (old != next) {
            diff_limit(d, old, next);
        }
    }
    for (size_t i = 0; i < d->old->limits_count; i++) {
        if (find(d->next, d->old->limits[i]->name) == NULL) {
            tell_whole(d, d->old->limits[i], "removed with its keys");
        }
    }
    diff_groups(d);
}

/* Tells of a field of the file, or of a section, that has changed. */
static void diff_field(struct diff *d, const struct field *f, const char *name, const void *old,
                       const void *next)
{
    diff_value(d, name, show_field(d->old, NULL, f, old), show_field(d->next, NULL, f, next));
}

static void diff_section(struct diff *d, const struct field *map)
{
    for (size_t i = 0; i < map->section->count; i++) {
        const struct field *f = &map->section->fields[i];
        if (f->change == CHANGE_APPLIED) {
            char name[64];
            (void)snprintf(name, sizeof name, "%s.%s", map->name, f->name);
            diff_field(d, f, name, (const char *)d->old + map->offset,
                       (const char *)d->next + map->offset);
        }
    }
}

int config_diff(const struct config *old, const struct config *next, config_diff_fn tell, void *arg)
{
    struct diff d = {.old = old, .next = next, .tell = tell, .arg = arg};
    for (size_t i = 0; i < section_top.count; i++) {
        const struct field *f = &section_top.fields[i];
        if (f->section != NULL) {
            diff_section(&d, f);
        } else if (strcmp(f->name, "limits") == 0) {
            diff_limits(&d);
        } else {
            diff_field(&d, f, f->name, old, next);
        }
    }
    return d.failed ? WEIR_ENOMEM : d.changes;
}

/* ---- what only a restart applies ---- */

void config_compare(const struct config *old, const struct config *next, const char *name,
                    struct problems *problems)
{
    struct place place = {name, 0, 0};
    for (size_t i = 0; i < section_top.count; i++) {
        const struct field *map = &section_top.fields[i];
        for (size_t j = 0; map->section != NULL && j < map->section->count; j++) {
            const struct field *f = &map->section->fields[j];
            if (f->change == CHANGE_BY_SECTION &&
                !field_same(f, (const char *)old + map->offset, (const char *)next + map->offset)) {
                warning(problems, place, "%s.%s has changed, which takes effect after a restart",
                        map->name, f->name);
            }
        }
    }
    if (old->adhoc.off != next->adhoc.off) {
        warning(problems, place, "adhoc has changed, which takes effect after a restart");
    }
}
