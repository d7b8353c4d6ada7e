#include "rules/file/tiers.h"

#include "rules/file/files.h"
#include "rules/file/limits.h"
#include "rules/file/sections.h"
#include "rules/value/csv.h"
#include "rules/value/normalize.h"

/* ---- numbers ---- */

/*
 * Returns the numbers that a tier or a row of overrides begins with: those of the limit, except for
 * the rate, and for the burst that may depend on it.
 */
static struct setting setting_begin(const struct limit_config *limit)
{
    struct setting s = {.max_keys = limit->base.max_keys};
    s.burst = algorithm_has(limit->algorithm, HAS_QUEUE) ? limit->base.burst : 0;
    return s;
}

void setting_complete(const struct limit_config *limit, struct setting *setting)
{
    bool own_rate = setting->rate.period_ns != 0;
    if (algorithm_has(limit->algorithm, HAS_BURST) && setting->burst == 0) {
        setting->burst = own_rate ? setting->rate.count : limit->base.burst;
    }
    setting->rate = own_rate ? setting->rate : limit->base.rate;
    if (rate_kind(setting->rate) != RATE_COUNTS) {
        setting->burst = 0;
    }
}

void setting_check(struct reader *r, const struct node *node, const struct setting *setting)
{
    static const char *const names[] = {"burst", "queue"};
    char rate[QUANTITY_MAX];
    for (size_t i = 0; i < 2 && setting->rate.period_ns != 0; i++) {
        const struct node *given = node_find(node, names[i]);
        if (given != NULL && !text_is(given->scalar, "0") &&
            rate_kind(setting->rate) != RATE_COUNTS) {
            problem(r->problems, given->place, "found '%s' with the rate %s, expected it without",
                    names[i], rate_print(setting->rate, rate));
        }
    }
}

bool setting_has_keys(const struct show *s)
{
    return s->limit->key_parts > 0;
}

/* Writes the size of the setting's table as a comment, unless the limit is in the store. */
static void show_table(const struct show *s, const struct setting *setting)
{
    struct weir_options options;
    uint64_t bytes = 0;
    if (setting_is_local(s->config, s->limit, setting)) {
        config_options(s->limit, setting, &options);
        (void)weir_size(&options, &bytes, NULL);
        (void)fputs(" # ", s->out);
        show_bytes(s->out, bytes);
    }
}

/* ---- tiers ---- */

#define SETTING(member) offsetof(struct setting, member)

static const struct field tier_fields[] = {
    {"rate", "a rate such as 100/min, or unlimited",
     "the units that a key gets in each period; 0/s denies every request", &type_limit_rate,
     SETTING(rate), .unset = "the limit's"},
    {"burst", "a count of at least 1, such as 150 or 2k",
     "token_bucket: the most units that can be taken at once", &type_count, SETTING(burst),
     .unset = "the count of its own rate, or the limit's burst", .least = 1, .traits = HAS_BURST},
    {"queue", "a count such as 20", "leaky_bucket: the units that may wait in the queue",
     &type_count, SETTING(burst), .unset = "the limit's", .traits = HAS_QUEUE},
    {"max_keys", "a count of at least 1, such as 100k",
     "the number of keys in use that are never forgotten", &type_count, SETTING(max_keys),
     .unset = "the limit's", .least = 1, .applies = setting_has_keys},
};

const struct section section_tier = SECTION("tiers.NAME", NULL, tier_fields);

static const struct field tiers_fields[] = {
    {"by", NAME_EXPECTED, "the attribute that names the tier", &type_name,
     offsetof(struct limit_config, tier_by), .initial = "tier"},
    {"default", "the name of one of the tiers",
     "the tier of requests whose tier is missing or unknown", &type_name,
     offsetof(struct limit_config, tier_default), .unset = "the limit's own numbers"},
};

const struct section section_tiers = SECTION("tiers", NULL, tiers_fields);

static void read_tier(struct reader *r, const struct node *key, const struct node *node,
                      struct limit_config *limit)
{
    struct setting setting = setting_begin(limit);
    if (!name_is_good(key->scalar)) {
        unexpected(r, key, NAME_EXPECTED);
        return;
    }
    if (limit->tiers_count == CONFIG_TIERS_MAX) {
        problem(r->problems, key->place, "found too many tiers, expected at most %d",
                CONFIG_TIERS_MAX);
        return;
    }
    if (node->kind == NODE_SCALAR && suggest_field(&section_tiers, key->scalar) != NULL) {
        tell_unknown(r, &section_tiers, key);
        return;
    }
    if (!fields_read(r, &section_tier, node, &setting)) {
        return;
    }
    fields_check_algorithm(r, &section_tier, node, limit->algorithm);
    setting_complete(limit, &setting);
    setting_check(r, node, &setting);
    struct tier tier = {key->scalar, setting};
    (void)arena_append(&r->source->arena, &limit->tiers, &limit->tiers_count, sizeof tier, &tier);
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
    fields_init(r, &section_tiers, limit);
    for (size_t i = 0; i < node->count; i++) {
        const struct field *f = field_find(&section_tiers, node->keys[i]->scalar);
        if (f != NULL) {
            f->type->read(r, f, node->items[i], (char *)limit + f->offset);
        } else {
            read_tier(r, node->keys[i], node->items[i], limit);
        }
    }
    check_default(r, node, limit);
    const struct node *by = node_find(node, "by");
    attribute_used(r, limit->tier_by, by != NULL ? by->place : node->place);
    if (limit->tiers_count == 0 && r->problems->errors == before) {
        problem(r->problems, node->place, "found no tier, expected at least one, such as free: {}");
    }
}

static void show_tiers(const struct show *s, const void *value)
{
    const struct tier *tiers = *(struct tier *const *)value;
    (void)fputs("\n      ", s->out);
    fields_show(s, &section_tiers, s->limit, "\n      ");
    for (size_t i = 0; i < s->limit->tiers_count; i++) {
        (void)fprintf(s->out, "\n      %.*s: {", TEXT_ARGS(tiers[i].name));
        fields_show(s, &section_tier, &tiers[i].setting, ", ");
        (void)fputc('}', s->out);
        show_table(s, &tiers[i].setting);
    }
}

const struct field_type type_tiers = {
    .size = sizeof(struct tier *), .show = show_tiers, .shape = SHAPE_TIERS};

/* ---- tables of values ---- */

struct csv_table {
    struct reader *r;
    struct file_use use;
    struct csv csv;
    struct text_map *values;
    enum attribute_kind kind;         /* kind of the values' attribute */
    struct weir_text heading;         /* second field of a first row that names the columns */
    const struct limit_config *limit; /* overrides: whose prefixes addresses are cut to */
    size_t rows;
    char normal[NORMAL_BYTES(CSV_ROW_MAX)];
};

static struct place place_of(const struct csv_table *t, unsigned field)
{
    return (struct place){t->use.file->path, t->csv.field[field].line, t->csv.field[field].column};
}

/*
 * Opens the file as a table, which is large and therefore in the arena. Returns NULL after a
 * problem or out of memory.
 */
static struct csv_table *table_open(struct reader *r, const struct node *node,
                                    struct weir_text file, struct weir_text by,
                                    struct weir_text heading)
{
    struct arena *arena = &r->source->arena;
    struct source_file *named = named_file(r, node, file);
    struct csv_table *t = named != NULL ? arena_take(arena, sizeof *t) : NULL;
    if (t == NULL) {
        return NULL;
    }
    size_t rows = file_lines(named);
    t->r = r;
    t->kind = attribute_kind_of(by);
    t->heading = heading;
    file_use_begin(&t->use, r, node, named);
    if (file_use_fits(&t->use, text_map_bytes(rows))) {
        t->values = text_map_create(arena, rows);
    }
    csv_init(&t->csv, named->content);
    return t->values != NULL ? t : NULL;
}

/*
 * Reads the next good row, one with `least` to `most` fields, and skips the heading; false at the
 * end of the file, or when its rows take too much memory. Reports the bad rows before it.
 */
static bool table_next(struct csv_table *t, unsigned least, unsigned most, const char *what)
{
    struct weir_error error;
    for (;;) {
        int got = csv_next(&t->csv, &error);
        if (got == 0 || !file_use_fits(&t->use, 0)) {
            file_use_end(&t->use, 0);
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
        } else if (t->rows > 1 || !text_equal(t->csv.field[1].text, t->heading)) {
            return true;
        }
    }
}

/* Adds the row's value, normalised as the values of requests are. */
static void table_put(struct csv_table *t, unsigned number)
{
    struct weir_error error;
    size_t len;
    if (normalize_value(t->kind, t->csv.field[0].text, t->normal, &len, &error) != 0) {
        file_problem(t->r, place_of(t, 0),
                     t->kind == ATTRIBUTE_IP ? "an IP address such as 203.0.113.7 or 2001:db8::1"
                                             : "a path such as /search");
        return;
    }
    if (t->kind == ATTRIBUTE_IP && t->limit != NULL) {
        address_cut_bytes((uint8_t *)t->normal, len,
                          len == 4 ? t->limit->ipv4_prefix : t->limit->ipv6_prefix);
    }
    struct weir_text value = arena_text(&t->r->source->arena, (struct weir_text){t->normal, len});
    if (value.at != NULL && text_map_put(t->values, value, number) != -1) {
        problem(t->r->problems, place_of(t, 0), "found a value a second time, expected it once");
    }
}

/* ---- overrides ---- */

#define OVERRIDES(member) offsetof(struct overrides, member)

static const struct field overrides_fields[] = {
    {"by", NAME_EXPECTED, "the attribute whose value is looked up", &type_name, OVERRIDES(by),
     .required = true},
    {"file", "the path of a CSV file", "rows of value,rate[,burst]", &type_text, OVERRIDES(file),
     .required = true},
};

const struct section section_overrides = SECTION("overrides", "overrides", overrides_fields);

static bool same_setting(const struct setting *a, const struct setting *b)
{
    return a->rate.count == b->rate.count && a->rate.period_ns == b->rate.period_ns &&
           a->burst == b->burst;
}

/*
 * Returns the number of this setting among the different ones, adding it if it is new; -1 after a
 * problem.
 */
static int setting_number(struct csv_table *t, struct overrides *o, const struct setting *setting)
{
    for (size_t i = 0; i < o->settings_count; i++) {
        if (same_setting(&o->settings[i], setting)) {
            return (int)i;
        }
    }
    if (o->settings_count == CONFIG_RATES_MAX) {
        problem(t->r->problems, place_of(t, 1),
                "found too many different rates, expected at most %d", CONFIG_RATES_MAX);
        return -1;
    }
    bool added = arena_append(&t->r->source->arena, &o->settings, &o->settings_count,
                              sizeof *setting, setting);
    return added ? (int)o->settings_count - 1 : -1;
}

static void read_row(struct csv_table *t, struct limit_config *limit)
{
    struct weir_error error;
    struct setting setting = setting_begin(limit);
    bool sized = algorithm_has(limit->algorithm, HAS_BURST | HAS_QUEUE);
    if (rate_parse_limit(t->csv.field[1].text, &setting.rate, &error) != 0) {
        file_problem(t->r, place_of(t, 1), "a rate such as 100/min");
        return;
    }
    if (t->csv.fields == 3 && !sized && limit->algorithm != 0) {
        problem(t->r->problems, place_of(t, 2),
                "found a burst, which %s does not have, expected value,rate",
                weir_algorithm_name(limit->algorithm));
        return;
    }
    if (t->csv.fields == 3 && rate_kind(setting.rate) != RATE_COUNTS) {
        problem(t->r->problems, place_of(t, 2),
                "found a burst with a rate of 0 or unlimited, "
                "expected value,rate");
        return;
    }
    if (t->csv.fields == 3 && count_parse(t->csv.field[2].text, &setting.burst, &error) != 0) {
        file_problem(t->r, place_of(t, 2), "a count such as 150 or 2k");
        return;
    }
    if (t->csv.fields == 3 && setting.burst == 0 && algorithm_has(limit->algorithm, HAS_BURST)) {
        problem(t->r->problems, place_of(t, 2), "found a burst of 0, expected at least 1");
        return;
    }
    setting_complete(limit, &setting);
    int number = setting_number(t, &limit->overrides, &setting);
    if (number >= 0) {
        limit->overrides.settings[number].rows++;
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
static void size_tables(struct limit_config *limit)
{
    struct overrides *o = &limit->overrides;
    bool exact = limit->key_parts == 1 && limit->key[0].alternatives.count > 0 &&
                 text_equal(limit->key[0].alternatives.at[0], o->by);
    for (size_t i = 0; i < o->settings_count; i++) {
        struct setting *s = &o->settings[i];
        s->max_keys = exact ? room_for(s->rows) : limit->base.max_keys;
        s->rows = exact ? s->rows : 0;
    }
}

void overrides_read(struct reader *r, const struct node *node, struct limit_config *limit)
{
    static const char what[] = "value,rate or value,rate,burst";
    struct overrides *o = &limit->overrides;
    if (!fields_read(r, &section_overrides, node, o) || o->by.len == 0 || o->file.len == 0) {
        return;
    }
    attribute_used(r, o->by, node_find(node, "by")->place);
    struct csv_table *t = table_open(r, node_find(node, "file"), o->file, o->by, TEXT("rate"));
    if (t == NULL) {
        return;
    }
    t->limit = limit;
    o->values = t->values;
    while (table_next(t, 2, 3, what)) {
        read_row(t, limit);
    }
    size_tables(limit);
}

static void show_overrides(const struct show *s, const void *value)
{
    const struct overrides *o = value;
    struct limit_config only = *s->limit;
    struct problems quiet = {0};
    (void)fputs(" {", s->out);
    fields_show(s, &section_overrides, o, ", ");
    (void)fprintf(s->out, "} # %zu values, %zu different rates", text_map_count(o->values),
                  o->settings_count);
    only.tiers_count = 0;
    only.tier_default = TEXT("-"); /* do not count the limit's own table */
    uint64_t bytes = limit_bytes(s->config, &only, &quiet);
    if (bytes > 0) {
        (void)fputs(", ", s->out);
        show_bytes(s->out, bytes);
    }
}

const struct field_type type_overrides = {.size = sizeof(struct overrides), .show = show_overrides};

/* ---- attributes from a file ---- */

void lookup_read(struct reader *r, const struct node *node, struct weir_text attribute,
                 struct attribute_source *out)
{
    struct arena *arena = &r->source->arena;
    struct csv_table *t = table_open(r, node, out->name, out->by, attribute);
    if (t == NULL) {
        return;
    }
    out->values = t->values;
    while (table_next(t, 2, 2, "value,answer")) {
        struct weir_text answer = arena_text(arena, t->csv.field[1].text);
        if (arena_append(arena, &out->answers.at, &out->answers.count, sizeof answer, &answer)) {
            table_put(t, (unsigned)out->answers.count - 1);
        }
    }
}
