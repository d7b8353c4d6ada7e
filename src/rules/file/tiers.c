#include "rules/file/tiers.h"

#include <stddef.h>

#include "rules/file/named.h"
#include "rules/value/csv.h"

/* ---- numbers ---- */

static uint64_t given(uint64_t number, uint64_t otherwise)
{
    return number != 0 ? number : otherwise;
}

struct setting setting_of(int algorithm, const struct numbers *numbers, const struct setting *base)
{
    bool own_rate = base == NULL || numbers->rate.count != 0;
    struct setting s = {.rate = own_rate ? numbers->rate : base->rate,
                        .max_keys = given(numbers->max_keys, base != NULL ? base->max_keys : 0)};
    if (algorithm == WEIR_TOKEN_BUCKET) { /* a new rate without a burst gets a new burst */
        s.burst = given(numbers->burst, own_rate ? s.rate.count : base->burst);
    } else if (algorithm == WEIR_LEAKY_BUCKET) {
        s.burst = numbers->queue != NO_QUEUE ? numbers->queue : base != NULL ? base->burst : 0;
    }
    return s;
}

void numbers_check(struct reader *r, const struct node *map, int algorithm)
{
    for (size_t i = 0; i < map->count && algorithm != 0; i++) {
        const struct node *key = map->keys[i];
        bool burst = text_is(key->scalar, "burst") && algorithm != WEIR_TOKEN_BUCKET;
        bool queue = text_is(key->scalar, "queue") && algorithm != WEIR_LEAKY_BUCKET;
        if (burst || queue) {
            problem(r->problems, key->place, "found '%s', but %s has none%s",
                    burst ? "burst" : "queue", weir_algorithm_name(algorithm),
                    burst && algorithm == WEIR_LEAKY_BUCKET   ? ", expected 'queue'"
                    : queue && algorithm == WEIR_TOKEN_BUCKET ? ", expected 'burst'"
                                                              : "");
        }
    }
}

/* ---- tiers ---- */

static const struct field tier_fields[] = {
    {"rate", "a rate such as 100/min", "the limit's", "units per period", field_rate,
     offsetof(struct numbers, rate), NULL},
    {"burst", "a count of at least 1, such as 150 or 2k",
     "the count of its own rate, else the limit's burst", "token_bucket: the most at once",
     field_count, offsetof(struct numbers, burst), NULL},
    {"queue", "a count such as 20", "the limit's", "leaky_bucket: places that wait", field_whole,
     offsetof(struct numbers, queue), NULL},
    {"max_keys", "a count of at least 1, such as 100k", "the limit's",
     "keys that are never forgotten", field_count, offsetof(struct numbers, max_keys), NULL},
};

const struct section section_tier = {"tiers.NAME",
                                     "One tier: a limit of its own, with its own keys", tier_fields,
                                     sizeof tier_fields / sizeof tier_fields[0]};

static const struct field tiers_fields[] = {
    {"by", NAME_EXPECTED, "tier", "the attribute that names the tier", field_name,
     offsetof(struct limit_config, tier_by), NULL},
    {"default", "the name of one of the tiers", "the limit's own numbers",
     "the tier of requests whose tier is missing or unknown", field_name,
     offsetof(struct limit_config, tier_default), NULL},
};

const struct section section_tiers = {
    "tiers", "By the value of an attribute, other numbers. Every other key is the name of a tier",
    tiers_fields, sizeof tiers_fields / sizeof tiers_fields[0]};

static const struct field *tiers_field(struct text name)
{
    for (size_t i = 0; i < section_tiers.count; i++) {
        if (text_is(name, tiers_fields[i].name)) {
            return &tiers_fields[i];
        }
    }
    return NULL;
}

static void read_tier(struct reader *r, const struct node *key, const struct node *node,
                      struct limit_config *limit)
{
    struct numbers numbers = {.queue = NO_QUEUE};
    if (!name_is_good(key->scalar)) {
        unexpected(r, key, NAME_EXPECTED);
        return;
    }
    if (limit->tiers_count == CONFIG_TIERS_MAX) {
        problem(r->problems, key->place, "found more than %d tiers, expected fewer",
                CONFIG_TIERS_MAX);
        return;
    }
    if (node->kind == NODE_SCALAR && suggest_field(&section_tiers, key->scalar) != NULL) {
        tell_unknown(r, &section_tiers, key);
        return;
    }
    if (!fields_read(r, &section_tier, node, &numbers)) {
        return;
    }
    numbers_check(r, node, limit->algorithm);
    limit->tiers[limit->tiers_count++] =
        (struct tier){key->scalar, setting_of(limit->algorithm, &numbers, &limit->base)};
}

static void check_default(struct reader *r, const struct node *node, struct limit_config *limit)
{
    const struct node *value = node_find(node, "default");
    struct suggestion s = suggest_begin(limit->tier_default);
    if (value == NULL || limit->tier_default.len == 0) {
        return;
    }
    for (size_t i = 0; i < limit->tiers_count; i++) {
        if (text_equal(limit->tiers[i].name, limit->tier_default)) {
            return;
        }
        suggest_offer(&s, limit->tiers[i].name.at);
    }
    unexpected_word(r, value, "the name of one of the tiers", &s);
}

void tiers_read(struct reader *r, const struct node *node, struct limit_config *limit)
{
    unsigned before = r->problems->errors;
    if (node->kind != NODE_MAP) {
        unexpected(r, node, "a map of tiers");
        return;
    }
    limit->tier_by = TEXT("tier");
    limit->tiers = arena_array(&r->source->arena, CONFIG_TIERS_MAX, sizeof(struct tier));
    if (limit->tiers == NULL) {
        return;
    }
    for (size_t i = 0; i < node->count; i++) {
        const struct field *field = tiers_field(node->keys[i]->scalar);
        if (field != NULL) {
            field->read(r, field, node->items[i], limit);
        } else {
            read_tier(r, node->keys[i], node->items[i], limit);
        }
    }
    check_default(r, node, limit);
    if (limit->tiers_count == 0 && r->problems->errors == before) {
        problem(r->problems, node->place, "found no tier, expected at least one, such as free: {}");
    }
}

/* ---- tables of values ---- */

/* Returns an upper bound of the number of rows: the number of line ends plus one. */
static size_t count_lines(struct text content)
{
    size_t n = 1;
    for (size_t i = 0; i < content.len; i++) {
        n += content.at[i] == '\n';
    }
    return n;
}

struct table {
    struct reader *r;
    const char *path;
    struct csv csv;
    struct text_map *values;
    enum attribute_kind kind;         /* kind of the values' attribute */
    const struct limit_config *limit; /* overrides: whose prefixes addresses are cut to */
    size_t rows;
    char normal[NORMAL_BYTES(CSV_ROW_MAX)];
};

static struct place place_of(const struct table *t, unsigned field)
{
    return (struct place){t->path, t->csv.field[field].line, t->csv.field[field].column};
}

/*
 * Opens the file as a table, which is large and therefore in the arena. Returns NULL after a
 * problem or out of memory.
 */
static struct table *table_open(struct reader *r, const struct node *node, struct text file,
                                struct text by)
{
    struct arena *arena = &r->source->arena;
    const struct named_file *named = named_file(r, node, file);
    struct table *t = named != NULL ? arena_take(arena, sizeof *t) : NULL;
    if (t == NULL) {
        return NULL;
    }
    t->r = r;
    t->path = named->path;
    t->kind = attribute_kind_of(by);
    t->values = text_map_create(arena, count_lines(named->content));
    csv_init(&t->csv, named->content);
    return t->values != NULL ? t : NULL;
}

/*
 * Reads the next good row, one with `least` to `most` fields; false at the end of the file. Reports
 * the bad rows before it.
 */
static bool table_next(struct table *t, unsigned least, unsigned most, const char *what)
{
    struct weir_error error;
    for (;;) {
        int got = csv_next(&t->csv, &error);
        if (got == 0) {
            return false;
        }
        t->rows++;
        if (got < 0) {
            problem(t->r->problems, place_of(t, 0), "%s", error.text);
        } else if (t->csv.fields < least || t->csv.fields > most) {
            problem(t->r->problems, place_of(t, 0), "found %u field%s, expected %s", t->csv.fields,
                    t->csv.fields == 1 ? "" : "s", what);
        } else if (t->csv.field[0].text.len == 0) {
            problem(t->r->problems, place_of(t, 0), "found an empty value, expected %s", what);
        } else {
            return true;
        }
    }
}

/* Zeroes the bits of an address that follow its prefix. */
static void cut_bytes(char *bytes, size_t len, unsigned prefix)
{
    for (size_t i = 0; i < len; i++) {
        unsigned kept = prefix > 8 * i ? prefix - 8 * (unsigned)i : 0;
        if (kept < 8) {
            bytes[i] = (char)((unsigned char)bytes[i] & (0xff00u >> kept));
        }
    }
}

/* Adds the row's value, normalised as the values of requests are. */
static void table_put(struct table *t, unsigned number)
{
    struct weir_error error;
    struct text written = t->csv.field[0].text;
    char found[QUOTE_MAX];
    size_t len;
    if (normal_value(t->kind, written, t->normal, &len, &error) != 0) {
        problem(t->r->problems, place_of(t, 0), "%s", error.text);
        return;
    }
    if (t->kind == ATTRIBUTE_IP && t->limit != NULL) {
        cut_bytes(t->normal, len, len == 4 ? t->limit->ipv4_prefix : t->limit->ipv6_prefix);
    }
    struct text value = arena_text(&t->r->source->arena, (struct text){t->normal, len});
    if (value.at != NULL && text_map_put(t->values, value, number) != -1) {
        problem(t->r->problems, place_of(t, 0), "found %s a second time, expected it once",
                quote(written, found));
    }
}

/* ---- overrides ---- */

struct overrides_reading {
    struct text by;
    struct text file;
};

static const struct field overrides_fields[] = {
    {"by", NAME_EXPECTED, "", "the attribute whose value is looked up", field_name,
     offsetof(struct overrides_reading, by), NULL},
    {"file", "the path of a CSV file", "", "rows of value,rate[,burst]", field_text,
     offsetof(struct overrides_reading, file), NULL},
};

const struct section section_overrides = {
    "overrides", "For single values of an attribute, other numbers, from a file", overrides_fields,
    sizeof overrides_fields / sizeof overrides_fields[0]};

static bool same_setting(const struct setting *a, const struct setting *b)
{
    return a->rate.count == b->rate.count && a->rate.period_ns == b->rate.period_ns &&
           a->burst == b->burst;
}

/*
 * Returns the number of this setting among the different ones, adding it if it is new; -1 after a
 * problem.
 */
static int setting_number(struct table *t, struct overrides *o, const struct setting *setting)
{
    for (size_t i = 0; i < o->settings_count; i++) {
        if (same_setting(&o->settings[i], setting)) {
            return (int)i;
        }
    }
    if (o->settings_count == CONFIG_RATES_MAX) {
        problem(t->r->problems, place_of(t, 1),
                "found more than %d different rates, expected fewer", CONFIG_RATES_MAX);
        return -1;
    }
    o->settings[o->settings_count] = *setting;
    return (int)o->settings_count++;
}

static void read_row(struct table *t, struct limit_config *limit, uint64_t *keys)
{
    struct weir_error error;
    struct numbers numbers = {.queue = NO_QUEUE};
    bool bucket = limit->algorithm == WEIR_TOKEN_BUCKET || limit->algorithm == WEIR_LEAKY_BUCKET;
    uint64_t *third = limit->algorithm == WEIR_LEAKY_BUCKET ? &numbers.queue : &numbers.burst;
    if (rate_parse(t->csv.field[1].text, 0, &numbers.rate, &error) != 0) {
        problem(t->r->problems, place_of(t, 1), "%s", error.text);
        return;
    }
    if (t->csv.fields == 3 && !bucket && limit->algorithm != 0) {
        problem(t->r->problems, place_of(t, 2), "found a burst, but %s has none",
                weir_algorithm_name(limit->algorithm));
        return;
    }
    if (t->csv.fields == 3 && count_parse(t->csv.field[2].text, third, &error) != 0) {
        problem(t->r->problems, place_of(t, 2), "%s", error.text);
        return;
    }
    if (t->csv.fields == 3 && numbers.burst == 0 && limit->algorithm == WEIR_TOKEN_BUCKET) {
        problem(t->r->problems, place_of(t, 2), "found a burst of 0, expected at least 1");
        return;
    }
    struct setting setting = setting_of(limit->algorithm, &numbers, &limit->base);
    int number = setting_number(t, &limit->overrides, &setting);
    if (number >= 0) {
        keys[number]++;
        table_put(t, (unsigned)number);
    }
}

/*
 * Returns twice the number of rows, at least 64, as a power of two: the table can stay when a few
 * rows are added.
 */
static uint64_t room_for(uint64_t rows)
{
    uint64_t room = 64;
    while (room < 2 * rows) {
        room *= 2;
    }
    return room;
}

/*
 * Sets max_keys of each setting. If the key is the very value that is looked up, each row is one
 * key. Otherwise the number of keys is unknown, and the limit's own max_keys is used.
 */
static void size_tables(struct limit_config *limit, const uint64_t *keys)
{
    struct overrides *o = &limit->overrides;
    bool exact = limit->key_parts == 1 && limit->key[0].alternatives.count > 0 &&
                 text_equal(limit->key[0].alternatives.at[0], o->by);
    for (size_t i = 0; i < o->settings_count; i++) {
        o->settings[i].max_keys = exact ? room_for(keys[i]) : limit->base.max_keys;
        o->settings[i].rows = exact ? keys[i] : 0;
    }
}

/* True for a first row that names the columns: its second field is "rate". */
static bool names_columns(const struct table *t)
{
    return t->rows == 1 && text_is(t->csv.field[1].text, "rate");
}

void overrides_read(struct reader *r, const struct node *node, struct limit_config *limit)
{
    static const char what[] = "value,rate or value,rate,burst";
    struct overrides_reading asked = {0};
    struct overrides *o = &limit->overrides;
    if (!fields_read(r, &section_overrides, node, &asked)) {
        return;
    }
    if (node_find(node, "by") == NULL || node_find(node, "file") == NULL) {
        problem(r->problems, node->place, "found no '%s', expected {by: ATTRIBUTE, file: PATH}",
                node_find(node, "by") == NULL ? "by" : "file");
        return;
    }
    if (asked.by.len == 0 || asked.file.len == 0) {
        return; /* already reported */
    }
    struct table *t = table_open(r, node_find(node, "file"), asked.file, asked.by);
    uint64_t *keys = arena_array(&r->source->arena, CONFIG_RATES_MAX, sizeof *keys);
    o->settings = arena_array(&r->source->arena, CONFIG_RATES_MAX, sizeof *o->settings);
    if (t == NULL || keys == NULL || o->settings == NULL) {
        return;
    }
    t->limit = limit;
    o->by = asked.by;
    o->file = asked.file;
    o->values = t->values;
    while (table_next(t, 2, 3, what)) {
        if (!names_columns(t)) {
            read_row(t, limit, keys);
        }
    }
    size_tables(limit, keys);
}

/* ---- attributes from a file ---- */

void lookup_read(struct reader *r, const struct node *node, struct text attribute,
                 struct attribute_source *out)
{
    struct arena *arena = &r->source->arena;
    struct table *t = table_open(r, node, out->name, out->by);
    if (t == NULL) {
        return;
    }
    out->values = t->values;
    while (table_next(t, 2, 2, "value,answer")) {
        if (t->rows == 1 && text_equal(t->csv.field[1].text, attribute)) {
            continue; /* this first row names the columns */
        }
        struct text answer = arena_text(arena, t->csv.field[1].text);
        struct text *grown =
            arena_append(arena, out->answers.at, out->answers.count, sizeof answer, &answer);
        if (grown != NULL) {
            out->answers.at = grown;
            table_put(t, (unsigned)out->answers.count++);
        }
    }
}
