#include "rules/file/fields.h"

#include <stdio.h>

#include "rules/file/yaml_write.h"

/* ---- messages ---- */

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

struct texts texts_of(struct reader *r, const struct node *const *items, size_t n)
{
    struct texts texts = {0};
    texts.at = n > 0 ? arena_array(&r->source->arena, n, sizeof *texts.at) : NULL;
    while (texts.at != NULL && texts.count < n) {
        texts.at[texts.count] = items[texts.count]->scalar;
        texts.count++;
    }
    return texts;
}

const char *suggest_field(const struct section *section, struct weir_text name)
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
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "",
                                 section->fields[i].name);
    }
    problem(r->problems, key->place, "unknown key %s in %s, expected one of %s",
            node_found(key, found), section->name, names);
}

/* ---- maps ---- */

static void *value_in(const struct field *f, void *target)
{
    return (char *)target + f->offset;
}

static const void *value_of(const struct field *f, const void *target)
{
    return (const char *)target + f->offset;
}

const struct field *field_find(const struct section *section, struct weir_text name)
{
    for (size_t i = 0; i < section->count; i++) {
        if (text_is(name, section->fields[i].name)) {
            return &section->fields[i];
        }
    }
    return NULL;
}

void fields_init(struct reader *r, const struct section *section, void *target)
{
    for (size_t i = 0; i < section->count; i++) {
        const struct field *f = &section->fields[i];
        if (f->initial != NULL) {
            struct node node = {.kind = NODE_SCALAR, .scalar = text_of(f->initial)};
            f->type->read(r, f, &node, value_in(f, target));
        }
    }
}

/* Reports a key that a second file of a folder has, and returns false. */
static bool may_read(struct reader *r, const struct section *section, const struct field *f,
                     const struct node *node)
{
    if (f->once) {
        unsigned bit =
            1u << (f - section->fields); /* limits have more than 32 fields, none `once` */
        if ((r->config->seen & bit) != 0) {
            problem(r->problems, node->place,
                    "found this section in a second file, expected it in one file of the folder");
            return false;
        }
        r->config->seen |= bit;
    }
    return f->type->read != NULL;
}

static void tell_key(struct reader *r, const struct section *section, const struct node *map,
                     const struct node *key)
{
    if (section->foreign == NULL || !section->foreign(r, map, key)) {
        tell_unknown(r, section, key);
    }
}

bool fields_read(struct reader *r, const struct section *section, const struct node *node,
                 void *target)
{
    if (node->kind != NODE_MAP) {
        unexpected(r, node, "a map of keys and values");
        return false;
    }
    for (size_t i = 0; i < node->count; i++) {
        const struct field *f = field_find(section, node->keys[i]->scalar);
        if (f == NULL) {
            tell_key(r, section, node, node->keys[i]);
        } else if (may_read(r, section, f, node->items[i])) {
            f->type->read(r, f, node->items[i], value_in(f, target));
        }
    }
    for (size_t i = 0; section->item != NULL && i < section->count; i++) {
        const struct field *f = &section->fields[i];
        if (f->required && node_find(node, f->name) == NULL) {
            problem(r->problems, node->place, "found %s without '%s', expected %s", section->item,
                    f->name, f->expects);
        }
    }
    return true;
}

/* Reports a key of another algorithm, with the key that this one has for the same value, if any. */
static void tell_algorithm(struct reader *r, const struct section *section, const struct node *key,
                           const struct field *f, int algorithm)
{
    char owners[ALGORITHM_LIST_MAX];
    const char *name = weir_algorithm_name(algorithm);
    for (size_t i = 0; i < section->count; i++) {
        const struct field *other = &section->fields[i];
        if (other->offset == f->offset && algorithm_has(algorithm, other->traits)) {
            problem(r->problems, key->place, "found '%s' with %s, expected '%s'", f->name, name,
                    other->name);
            return;
        }
    }
    problem(r->problems, key->place, "found '%s' with %s, expected it with %s only", f->name, name,
            algorithm_list(f->traits, owners));
}

void fields_check_algorithm(struct reader *r, const struct section *section, const struct node *map,
                            int algorithm)
{
    for (size_t i = 0; algorithm != 0 && i < map->count; i++) {
        const struct field *f = field_find(section, map->keys[i]->scalar);
        if (f != NULL && f->traits != 0 && !algorithm_has(algorithm, f->traits)) {
            tell_algorithm(r, section, map->keys[i], f, algorithm);
        }
    }
}

static bool is_zero(const unsigned char *bytes, size_t size)
{
    while (size > 0 && bytes[size - 1] == 0) {
        size--;
    }
    return size == 0;
}

/*
 * True unless the field does not apply to the limit, or is not set and has no default. A number
 * that must not be 0 is not set if it is.
 */
static bool is_shown(const struct show *s, const void *value)
{
    const struct field *f = s->field;
    if ((f->applies != NULL && !f->applies(s)) ||
        (f->traits != 0 && !algorithm_has(s->limit->algorithm, f->traits))) {
        return false;
    }
    bool never_zero = f->least > 0 && f->zero == NULL;
    bool optional = !f->required && f->initial == NULL && (f->traits == 0 || never_zero);
    return !optional || f->type->size == 0 || !is_zero(value, f->type->size);
}

void fields_show(const struct show *s, const struct section *section, const void *target,
                 const char *separator)
{
    const char *before = "";
    for (size_t i = 0; i < section->count; i++) {
        struct show one = *s;
        one.field = &section->fields[i];
        const void *value = value_of(one.field, target);
        if (is_shown(&one, value)) {
            (void)fprintf(s->out, "%s%s:", before, one.field->name);
            one.field->type->show(&one, value);
            before = separator;
        }
    }
}

bool field_same(const struct field *f, const void *a, const void *b)
{
    return f->type->same != NULL ? f->type->same(value_of(f, a), value_of(f, b))
                                 : memcmp(value_of(f, a), value_of(f, b), f->type->size) == 0;
}

bool fields_same(const struct section *section, enum field_change change, const void *a,
                 const void *b)
{
    for (size_t i = 0; i < section->count; i++) {
        if (section->fields[i].change == change && !field_same(&section->fields[i], a, b)) {
            return false;
        }
    }
    return true;
}

void field_read_map(struct reader *r, const struct field *f, const struct node *node, void *value)
{
    (void)fields_read(r, f->section, node, value);
}

void field_show_map(const struct show *s, const void *value)
{
    (void)fputs("\n  ", s->out);
    fields_show(s, s->field->section, value, "\n  ");
}

const struct field_type type_map = {.read = field_read_map, .show = field_show_map};

void field_read_inline(struct reader *r, const struct field *f, const struct node *node,
                       void *value)
{
    if (node->kind == NODE_MAP) {
        field_read_map(r, f, node, value);
    } else {
        unexpected(r, node, f->expects);
    }
}

void field_show_inline(const struct show *s, const void *value)
{
    (void)fputs(" {", s->out);
    fields_show(s, s->field->section, value, ", ");
    (void)fputc('}', s->out);
}

/* ---- texts ---- */

void field_read_text(struct reader *r, const struct field *f, const struct node *node, void *value)
{
    bool (*good)(struct weir_text) = f->type->good;
    if (node->kind != NODE_SCALAR || node->scalar.len == 0 ||
        (good != NULL && !good(node->scalar))) {
        unexpected(r, node, f->expects);
        return;
    }
    *(struct weir_text *)value = node->scalar;
}

bool name_is_good(struct weir_text name)
{
    return name.len < WEIR_RULES_NAME && text_is_made_of(name, "_-.");
}

void field_show_text(const struct show *s, const void *value)
{
    (void)fputc(' ', s->out);
    yaml_put(s->out, *(const struct weir_text *)value);
}

void field_show_texts(const struct show *s, const void *value)
{
    (void)fputc(' ', s->out);
    yaml_put_list(s->out, value);
}

bool field_same_text(const void *a, const void *b)
{
    return text_equal(*(const struct weir_text *)a, *(const struct weir_text *)b);
}

bool field_same_texts(const void *left, const void *right)
{
    const struct texts *a = left;
    const struct texts *b = right;
    size_t i = 0;
    while (i < a->count && i < b->count && text_equal(a->at[i], b->at[i])) {
        i++;
    }
    return i == a->count && i == b->count;
}

const struct field_type type_text = FIELD_TYPE_TEXT(NULL);
const struct field_type type_name = FIELD_TYPE_TEXT(name_is_good);

/* ---- quantities ---- */

static void read_quantity(struct reader *r, const struct field *f, const struct node *node,
                          void *value)
{
    struct weir_error error;
    uint64_t number = 0;
    bool zero = f->zero != NULL && node->kind == NODE_SCALAR &&
                (text_is(node->scalar, f->zero) || (f->least == 0 && text_is(node->scalar, "0")));
    if (!zero && expect_scalar(r, node, f->expects) == NULL) {
        return;
    }
    if (!zero &&
        quantity_parse(f->type->quantity, node->scalar, f->expects, &number, &error) != 0) {
        problem(r->problems, node->place, "%s", error.text);
        return;
    }
    if (!zero && (number < f->least || (f->most != 0 && number > f->most))) {
        unexpected(r, node, f->expects);
        return;
    }
    if (f->type->size == sizeof(uint32_t)) {
        *(uint32_t *)value = (uint32_t)number;
    } else {
        *(uint64_t *)value = number;
    }
}

static void show_quantity(const struct show *s, const void *value)
{
    const struct field *f = s->field;
    char text[QUANTITY_MAX];
    uint64_t number =
        f->type->size == sizeof(uint32_t) ? *(const uint32_t *)value : *(const uint64_t *)value;
    bool zero = number == 0 && f->zero != NULL;
    (void)fprintf(s->out, " %s", zero ? f->zero : f->type->quantity->print(number, text));
}

#define QUANTITY(type, quantity)                                                                   \
    {                                                                                              \
        sizeof(type), read_quantity, show_quantity, NULL, quantity, NULL, SHAPE_SCALAR             \
    }

const struct field_type type_count = QUANTITY(uint64_t, &quantity_count);
const struct field_type type_size = QUANTITY(uint64_t, &quantity_size);
const struct field_type type_duration = QUANTITY(uint64_t, &quantity_duration);
const struct field_type type_small = QUANTITY(uint32_t, &quantity_count);
const struct field_type type_percent = QUANTITY(uint32_t, &quantity_percent);

/* The periods that the engine accepts; further limits depend on the algorithm. */
#define PERIOD_MIN_NS WEIR_MICROSECOND
#define PERIOD_MAX_NS (36525 * WEIR_DAY)

static void read_rate(struct reader *r, const struct field *f, const struct node *node, void *value)
{
    struct weir_error error;
    struct rate rate;
    if (expect_scalar(r, node, f->expects) == NULL) {
        return;
    }
    bool limit = f->type == &type_limit_rate;
    if ((limit ? rate_parse_limit(node->scalar, &rate, &error)
               : rate_parse(node->scalar, 0, &rate, &error)) != 0) {
        problem(r->problems, node->place, "%s", error.text);
    } else if (rate.period_ns < PERIOD_MIN_NS || rate.period_ns > PERIOD_MAX_NS) {
        unexpected(r, node, "a period from 1us to 36525day");
    } else {
        *(struct rate *)value = rate;
    }
}

static void show_rate(const struct show *s, const void *value)
{
    char text[QUANTITY_MAX];
    (void)fprintf(s->out, " %s", rate_print(*(const struct rate *)value, text));
}

const struct field_type type_rate = {
    .size = sizeof(struct rate), .read = read_rate, .show = show_rate};
const struct field_type type_limit_rate = {
    .size = sizeof(struct rate), .read = read_rate, .show = show_rate};

/* ---- words ---- */

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

static const char *const bool_words[] = {"false", "true", NULL};

static void read_bool(struct reader *r, const struct field *f, const struct node *node, void *value)
{
    int yes = word_number(r, node, bool_words, f->expects);
    if (yes >= 0) {
        *(bool *)value = yes != 0;
    }
}

static void show_bool(const struct show *s, const void *value)
{
    (void)fprintf(s->out, " %s", bool_words[*(const bool *)value]);
}

void field_read_choice(struct reader *r, const struct field *f, const struct node *node,
                       void *value)
{
    int number = word_number(r, node, f->choices, f->expects);
    if (number >= 0) {
        *(int *)value = number;
    }
}

void field_show_choice(const struct show *s, const void *value)
{
    (void)fprintf(s->out, " %s", s->field->choices[*(const int *)value]);
}

const struct field_type type_bool = {.size = sizeof(bool), .read = read_bool, .show = show_bool};
const struct field_type type_choice = {
    .size = sizeof(int), .read = field_read_choice, .show = field_show_choice};
