#include "rules/file/fields.h"

static void *at(void *target, const struct field *f)
{
    return (char *)target + f->offset;
}

void unexpected(struct reader *r, const struct node *node, const char *what)
{
    char found[NODE_FOUND];
    problem(r->problems, node->place, "found %s, expected %s", node_found(node, found), what);
}

void unexpected_word(struct reader *r, const struct node *node, const char *what,
                     const struct suggestion *s)
{
    char found[NODE_FOUND];
    if (node->kind != NODE_SCALAR || s->nearest == NULL) {
        unexpected(r, node, what);
        return;
    }
    problem(r->problems, node->place, "found %s, expected %s; did you mean '%s'?",
            node_found(node, found), what, s->nearest);
}

const struct node *expect_scalar(struct reader *r, const struct node *node, const char *what)
{
    if (node->kind != NODE_SCALAR || node->scalar.len == 0) {
        unexpected(r, node, what);
        return NULL;
    }
    return node;
}

size_t scalars_of(struct reader *r, const struct node *node, const char *what,
                  const struct node *const **items)
{
    size_t n = node->kind == NODE_LIST ? node->count : 1;
    const struct node **good = arena_array(&r->source->arena, n, sizeof *good);
    size_t count = 0;
    for (size_t i = 0; i < n && good != NULL; i++) {
        const struct node *item = node->kind == NODE_LIST ? node->items[i] : node;
        if (expect_scalar(r, item, what) != NULL) {
            good[count++] = item;
        }
    }
    *items = good;
    return count;
}

const char *suggest_field(const struct section *section, struct text name)
{
    struct suggestion s = suggest_begin(name);
    for (size_t i = 0; i < section->count; i++) {
        suggest_offer(&s, section->fields[i].name);
    }
    return s.nearest;
}

void tell_unknown(struct reader *r, const struct section *section, const struct node *key)
{
    char found[NODE_FOUND];
    const char *nearest = suggest_field(section, key->scalar);
    if (nearest != NULL) {
        problem(r->problems, key->place, "unknown key %s in %s; did you mean '%s'?",
                node_found(key, found), section->name, nearest);
        return;
    }
    char names[400] = "";
    size_t used = 0;
    for (size_t i = 0; i < section->count && used < sizeof names - 32; i++) {
        const char *name = section->fields[i].name;
        memcpy(names + used, i > 0 ? ", " : "", i > 0 ? 2 : 0);
        used += i > 0 ? 2 : 0;
        memcpy(names + used, name, strlen(name) + 1);
        used += strlen(name);
    }
    problem(r->problems, key->place, "unknown key %s in %s, expected one of %s",
            node_found(key, found), section->name, names);
}

bool fields_read(struct reader *r, const struct section *section, const struct node *node,
                 void *target)
{
    if (node->kind != NODE_MAP) {
        unexpected(r, node, "a map of keys and values");
        return false;
    }
    for (size_t i = 0; i < node->count; i++) {
        const struct field *field = NULL;
        for (size_t j = 0; j < section->count && field == NULL; j++) {
            field = text_is(node->keys[i]->scalar, section->fields[j].name) ? &section->fields[j]
                                                                            : NULL;
        }
        if (field == NULL) {
            tell_unknown(r, section, node->keys[i]);
        } else if (field->read != NULL) {
            field->read(r, field, node->items[i], target);
        }
    }
    return true;
}

void field_text(struct reader *r, const struct field *f, const struct node *node, void *target)
{
    if (expect_scalar(r, node, f->expects) != NULL) {
        *(struct text *)at(target, f) = node->scalar;
    }
}

bool name_is_good(struct text name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '_' || c == '-' || c == '.';
        if (!good) {
            return false;
        }
    }
    return name.len > 0 && name.len < WEIR_RULES_NAME;
}

void field_name(struct reader *r, const struct field *f, const struct node *node, void *target)
{
    if (node->kind != NODE_SCALAR || !name_is_good(node->scalar)) {
        unexpected(r, node, f->expects);
        return;
    }
    *(struct text *)at(target, f) = node->scalar;
}

/* Reports the error of a quantity's parser, which says what it expects. True if there was one. */
static bool quantity_failed(struct reader *r, const struct node *node, int e,
                            const struct weir_error *error)
{
    if (e != 0) {
        problem(r->problems, node->place, "%s", error->text);
    }
    return e != 0;
}

void field_whole(struct reader *r, const struct field *f, const struct node *node, void *target)
{
    struct weir_error error;
    uint64_t count;
    if (expect_scalar(r, node, f->expects) != NULL &&
        !quantity_failed(r, node, count_parse(node->scalar, &count, &error), &error)) {
        *(uint64_t *)at(target, f) = count;
    }
}

void field_count(struct reader *r, const struct field *f, const struct node *node, void *target)
{
    struct weir_error error;
    uint64_t count;
    if (expect_scalar(r, node, f->expects) == NULL ||
        quantity_failed(r, node, count_parse(node->scalar, &count, &error), &error)) {
        return;
    }
    if (count == 0) {
        unexpected(r, node, f->expects);
        return;
    }
    *(uint64_t *)at(target, f) = count;
}

void field_size(struct reader *r, const struct field *f, const struct node *node, void *target)
{
    struct weir_error error;
    uint64_t bytes;
    if (expect_scalar(r, node, f->expects) != NULL &&
        !quantity_failed(r, node, size_parse(node->scalar, &bytes, &error), &error)) {
        *(uint64_t *)at(target, f) = bytes;
    }
}

void field_duration(struct reader *r, const struct field *f, const struct node *node, void *target)
{
    struct weir_error error;
    uint64_t ns;
    if (expect_scalar(r, node, f->expects) != NULL &&
        !quantity_failed(r, node, duration_parse(node->scalar, &ns, &error), &error)) {
        *(uint64_t *)at(target, f) = ns;
    }
}

void field_percent(struct reader *r, const struct field *f, const struct node *node, void *target)
{
    struct weir_error error;
    uint32_t hundredths;
    if (expect_scalar(r, node, f->expects) != NULL &&
        !quantity_failed(r, node, percent_parse(node->scalar, &hundredths, &error), &error)) {
        *(uint32_t *)at(target, f) = hundredths;
    }
}

/* The periods that the engine accepts; further limits depend on the algorithm. */
#define PERIOD_MIN_NS WEIR_MICROSECOND
#define PERIOD_MAX_NS (36525 * WEIR_DAY)

void field_rate(struct reader *r, const struct field *f, const struct node *node, void *target)
{
    struct weir_error error;
    struct rate rate;
    if (expect_scalar(r, node, f->expects) == NULL ||
        quantity_failed(r, node, rate_parse(node->scalar, 0, &rate, &error), &error)) {
        return;
    }
    if (rate.period_ns < PERIOD_MIN_NS || rate.period_ns > PERIOD_MAX_NS) {
        unexpected(r, node, "a period of 1us to 36525day");
        return;
    }
    *(struct rate *)at(target, f) = rate;
}

/*
 * Returns the number of the word that the node is; -1 after a problem. NULL ends the words. An
 * empty scalar matches no word.
 */
static int word_number(struct reader *r, const struct node *node, const char *const *words,
                       const char *what)
{
    bool scalar = node->kind == NODE_SCALAR && node->scalar.len > 0;
    struct suggestion s = suggest_begin(scalar ? node->scalar : TEXT(""));
    for (int i = 0; scalar && words[i] != NULL; i++) {
        if (text_is(node->scalar, words[i])) {
            return i;
        }
        suggest_offer(&s, words[i]);
    }
    unexpected_word(r, node, what, &s);
    return -1;
}

void field_bool(struct reader *r, const struct field *f, const struct node *node, void *target)
{
    static const char *const words[] = {"false", "true", NULL};
    int yes = word_number(r, node, words, "true or false");
    if (yes >= 0) {
        *(bool *)at(target, f) = yes != 0;
    }
}

void field_choice(struct reader *r, const struct field *f, const struct node *node, void *target)
{
    int number = word_number(r, node, f->choices, f->expects);
    if (number >= 0) {
        *(int *)at(target, f) = number;
    }
}
