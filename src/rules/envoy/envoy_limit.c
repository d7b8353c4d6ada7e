/* Makes a limit of weir's own format from a descriptor with a rate_limit. */
#include "rules/envoy/envoy_limit.h"

#include <stdio.h>

#include "base/hash.h"

#define LIMIT_KEYS 24 /* initial capacity: a converted limit has about this many keys */
#define NAME_BYTES (WEIR_RULES_NAME - 1)
#define NAME_HASH 9 /* "-" and eight digits */

/* ---- nodes ---- */

static struct node *make(struct conversion *c, enum node_kind kind, struct place place)
{
    struct node *node = arena_take(c->arena, sizeof *node);
    if (node != NULL) {
        node->kind = kind;
        node->place = place;
    }
    return node;
}

struct node *envoy_list(struct conversion *c, struct place place)
{
    return make(c, NODE_LIST, place);
}

struct node *envoy_map(struct conversion *c, struct place place, size_t room)
{
    struct node *map = make(c, NODE_MAP, place);
    if (map != NULL) {
        map->keys = arena_array(c->arena, room, sizeof(struct node *));
        map->items = arena_array(c->arena, room, sizeof(struct node *));
    }
    return map != NULL && map->keys != NULL && map->items != NULL ? map : NULL;
}

struct node *envoy_scalar(struct conversion *c, struct place place, struct weir_text text)
{
    struct node *node = make(c, NODE_SCALAR, place);
    if (node != NULL) {
        node->quoted = true;
        node->scalar = arena_text(c->arena, text);
    }
    return node != NULL && node->scalar.at != NULL ? node : NULL;
}

void envoy_append(struct conversion *c, struct node *list, struct node *item)
{
    if (list != NULL && item != NULL) {
        (void)arena_append(c->arena, &list->items, &list->count, sizeof item, &item);
    }
}

static void put_pair(struct node *map, struct node *key, struct node *value)
{
    size_t i = 0;
    while (i < map->count && !text_equal(map->keys[i]->scalar, key->scalar)) {
        i++;
    }
    map->keys[i] = key;
    map->items[i] = value;
    map->count += i == map->count;
}

void envoy_put(struct conversion *c, struct node *map, const char *key, struct node *value)
{
    struct node *name = value != NULL ? envoy_scalar(c, value->place, text_of(key)) : NULL;
    if (map != NULL && name != NULL) {
        put_pair(map, name, value);
    }
}

static void put_text(struct conversion *c, struct node *map, const char *key, struct weir_text text)
{
    envoy_put(c, map, key, envoy_scalar(c, map->place, text));
}

/* ---- conditions ---- */

/* Returns the text as a condition writes it: "*" is a wildcard only if `wild`, "\" is itself. */
static struct weir_text condition_text(struct conversion *c, struct weir_text text, bool wild)
{
    if (text_starts(text, "file:")) {
        return TEXT("none"); /* it has been reported, and must not be opened */
    }
    char *to = arena_room(c->arena, 2 * text.len + 1);
    size_t n = 0;
    for (size_t i = 0; to != NULL && i < text.len; i++) {
        if (text.at[i] == '\\' || (text.at[i] == '*' && !wild)) {
            to[n++] = '\\';
        }
        to[n++] = text.at[i];
    }
    return (struct weir_text){to != NULL ? to : "", n};
}

static struct node *value_node(struct conversion *c, const struct descriptor *d)
{
    return envoy_scalar(c, d->node->place, condition_text(c, d->value, d->kind == ENTRY_WILD));
}

static const char *value_name(struct conversion *c, size_t step)
{
    const char *name = arena_format(c->arena, ENVOY_VALUE "%zu", step + 1);
    return name != NULL ? name : "";
}

static struct weir_text descriptor_text(struct conversion *c)
{
    size_t room = 0;
    size_t n = 0;
    for (size_t i = 0; i < c->depth; i++) {
        room += ENVOY_KEY_BYTES(c->path[i].descriptor->key.len) + 1;
    }
    char *to = arena_room(c->arena, room);
    for (size_t i = 0; to != NULL && i < c->depth; i++) {
        if (i > 0) {
            to[n++] = '/';
        }
        n += envoy_put_key(c->path[i].descriptor->key, to + n);
    }
    return (struct weir_text){to != NULL ? to : "", n};
}

static struct node *make_when(struct conversion *c, struct place place)
{
    struct node *when = envoy_map(c, place, c->depth + 2);
    if (when == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < c->depth; i++) {
        const struct descriptor *d = c->path[i].descriptor;
        if (d->kind != ENTRY_ANY) {
            envoy_put(c, when, value_name(c, i), value_node(c, d));
        }
    }
    put_text(c, when, ENVOY_DESCRIPTOR, descriptor_text(c));
    put_text(c, when, ENVOY_DOMAIN, condition_text(c, c->domain, false));
    return when;
}

/* Returns the values with the same key that lead to another descriptor of the level: exact ones,
 * and those with wildcards that come before. */
static const struct node *other_values(struct conversion *c, const struct step *step)
{
    struct descriptor *d = step->descriptor;
    if (d->others != NULL || d->kind == ENTRY_EXACT) {
        return d->others;
    }
    d->others = envoy_list(c, d->node->place);
    for (size_t i = 0; d->others != NULL && i < step->level->count; i++) {
        const struct descriptor *other = &step->level->at[i];
        bool first = other->kind == ENTRY_EXACT ||
                     (other->kind == ENTRY_WILD && (d->kind == ENTRY_ANY || other < d));
        if (first && text_equal(other->key, d->key)) {
            envoy_append(c, d->others, value_node(c, other));
        }
    }
    return d->others;
}

static struct node *make_unless(struct conversion *c, struct place place)
{
    struct node *unless = envoy_list(c, place);
    for (size_t i = 0; i < c->depth; i++) {
        const struct node *others = other_values(c, &c->path[i]);
        struct node *entry = others != NULL && others->count > 0 ? envoy_map(c, place, 1) : NULL;
        if (entry != NULL) {
            envoy_put(c, entry, value_name(c, i), c->path[i].descriptor->others);
            envoy_append(c, unless, entry);
        }
    }
    return unless;
}

static struct node *make_key(struct conversion *c, struct place place)
{
    struct node *key = envoy_list(c, place);
    for (size_t i = 0; i < c->depth; i++) {
        const struct descriptor *d = c->path[i].descriptor;
        bool wild = d->kind == ENTRY_WILD && !d->share;
        if (wild || d->kind == ENTRY_ANY) {
            envoy_append(c, key, envoy_scalar(c, place, text_of(value_name(c, i))));
        }
    }
    return key;
}

/* ---- the name ---- */

static void name_put(char *name, size_t *n, struct weir_text text, struct hash *whole,
                     bool *changed)
{
    hash_mix(whole, &text.len, sizeof text.len);
    hash_mix(whole, text.at, text.len);
    for (size_t i = 0; i < text.len; i++) {
        bool good = text_is_plain(text.at[i], "_-.");
        *changed = *changed || !good || *n == NAME_BYTES;
        if (*n < NAME_BYTES) {
            name[(*n)++] = good ? text.at[i] : '_';
        }
    }
}

static bool name_is_taken(const struct conversion *c, struct weir_text name)
{
    size_t i = 0;
    while (i < c->limits->count && !text_equal(c->limits->items[i]->items[0]->scalar, name)) {
        i++;
    }
    return i < c->limits->count;
}

/* Puts the hash after the name; another one if a limit has that name, too. */
static size_t put_hash(const struct conversion *c, char *name, size_t n, struct hash *whole)
{
    n = n > NAME_BYTES - NAME_HASH ? NAME_BYTES - NAME_HASH : n;
    (void)snprintf(name + n, NAME_HASH + 1, "-%08x", (unsigned)whole->low);
    while (name_is_taken(c, (struct weir_text){name, n + NAME_HASH})) {
        hash_mix(whole, &n, sizeof n);
        (void)snprintf(name + n, NAME_HASH + 1, "-%08x", (unsigned)whole->low);
    }
    return n + NAME_HASH;
}

/* Makes a name from the domain and the way: "edge.path-_login.remote_address-1b2c3d4e". It ends
 * with a hash if characters were replaced or cut, or if another limit has the name. */
static struct node *make_name(struct conversion *c, struct place place)
{
    char name[WEIR_RULES_NAME];
    size_t n = 0;
    bool changed = false;
    struct hash whole = {0, 0};
    name_put(name, &n, c->domain, &whole, &changed);
    for (size_t i = 0; i < c->depth; i++) {
        const struct descriptor *d = c->path[i].descriptor;
        name_put(name, &n, TEXT("."), &whole, &changed);
        name_put(name, &n, d->key, &whole, &changed);
        if (d->value.len > 0) {
            name_put(name, &n, TEXT("-"), &whole, &changed);
            name_put(name, &n, d->value, &whole, &changed);
        }
    }
    if (changed || name_is_taken(c, (struct weir_text){name, n})) {
        n = put_hash(c, name, n, &whole);
    }
    return envoy_scalar(c, place, (struct weir_text){name, n});
}

/* ---- rate_limit ---- */

static const struct envoy_unit {
    const char *word;
    const char *period; /* of weir */
} units[] = {{"SECOND", "s"},  {"MINUTE", "min"},  {"HOUR", "h"},     {"DAY", "day"},
             {"WEEK", "7day"}, {"MONTH", "30day"}, {"YEAR", "365day"}};

#define UNITS (sizeof units / sizeof units[0])

static const struct envoy_unit *read_unit(struct conversion *c, const struct node *rate)
{
    const struct node *node = envoy_find(rate, "unit");
    size_t i = 0;
    while (node != NULL && i < UNITS &&
           !(node->kind == NODE_SCALAR && text_is_word(node->scalar, units[i].word))) {
        i++;
    }
    if (node == NULL) {
        problem(c->problems, rate->place, "found no unit, expected one, or 'unlimited: true'");
    } else if (i == UNITS) {
        envoy_unexpected(c, node, "second, minute, hour, day, week, month or year");
    }
    return node != NULL && i < UNITS ? &units[i] : NULL;
}

#define COUNT_EXPECTED "a whole number from 0 to 4294967295"

/* Returns the value of a digit, 99 for any other character. */
static unsigned digit_of(char c)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    const char *at = memchr(digits, c, sizeof digits - 1);
    size_t n = at != NULL ? (size_t)(at - digits) : 99;
    return (unsigned)(n >= 16 && n < 99 ? n - 6 : n);
}

/* Takes "0x", "0b" or "0o" from a number. Returns its base. */
static unsigned take_base(struct weir_text *number)
{
    static const struct {
        const char *prefix;
        unsigned base;
    } rows[] = {{"0x", 16}, {"0X", 16}, {"0b", 2}, {"0B", 2}, {"0o", 8}, {"0O", 8}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (text_starts(*number, rows[i].prefix)) {
            *number = text_after(*number, 2);
            return rows[i].base;
        }
    }
    return 10;
}

/* Reads a number as the reference server does: "1_000", "0x10", "+5". Returns false if it is none,
 * or above 4294967295. */
static bool read_number(const struct node *node, uint64_t *count)
{
    struct weir_text rest = node->scalar;
    bool any = false;
    *count = 0;
    if (node->quoted) {
        return text_to_u64(rest, count) && *count <= UINT32_MAX;
    }
    rest = text_after(rest, text_starts(rest, "+"));
    if (rest.len == 0 || digit_of(rest.at[0]) > 9) {
        return false;
    }
    unsigned base = take_base(&rest);
    for (size_t i = 0; i < rest.len; i++) {
        if (rest.at[i] == '_') {
            continue;
        }
        if (digit_of(rest.at[i]) >= base) {
            return false;
        }
        any = true;
        *count = *count * base + digit_of(rest.at[i]);
        if (*count > UINT32_MAX) {
            return false;
        }
    }
    return any;
}

static uint64_t read_count(struct conversion *c, const struct node *rate)
{
    const struct node *node = envoy_find(rate, "requests_per_unit");
    uint64_t count = 0;
    if (node == NULL) {
        problem(c->problems, rate->place,
                "found no requests_per_unit, expected " COUNT_EXPECTED "; 0 denies every request");
        return 0;
    }
    /* 010 is 8 there, and 10 to most readers. */
    bool octal = node->kind == NODE_SCALAR && node->scalar.len > 1 && node->scalar.at[0] == '0' &&
                 (digit_of(node->scalar.at[1]) < 10 || node->scalar.at[1] == '_');
    if (node->kind != NODE_SCALAR || octal || !read_number(node, &count)) {
        envoy_unexpected(c, node,
                         octal ? "a whole number that does not begin with 0" : COUNT_EXPECTED);
    }
    return count;
}

/* Returns whether a rate_limit has a rate of weir, and needs no unit. */
static bool has_own_rate(const struct node *rate)
{
    const struct node *own = envoy_find(rate, "weir");
    return own != NULL && own->kind == NODE_MAP && node_find(own, "rate") != NULL &&
           envoy_find(rate, "unit") == NULL && envoy_find(rate, "requests_per_unit") == NULL;
}

/* Puts `rate`, and `align` for windows that begin as those of the reference server. */
static void put_rate(struct conversion *c, const struct node *rate, struct node *limit)
{
    if (envoy_read_bool(c, rate, "unlimited")) {
        if (envoy_find(rate, "unit") != NULL) {
            problem(c->problems, envoy_find(rate, "unit")->place,
                    "found a unit together with 'unlimited: true', expected one of them");
        }
        put_text(c, limit, "rate", TEXT("unlimited"));
        return;
    }
    if (has_own_rate(rate)) {
        put_text(c, limit, "algorithm", TEXT("fixed_window"));
        return;
    }
    const struct envoy_unit *unit = read_unit(c, rate);
    uint64_t count = unit != NULL ? read_count(c, rate) : 0;
    if (unit == NULL) {
        put_text(c, limit, "rate", TEXT("0/s")); /* so that nothing else complains of it */
        return;
    }
    const char *text = arena_format(c->arena, "%llu/%s", (unsigned long long)count, unit->period);
    put_text(c, limit, "rate", text_of(text != NULL ? text : ""));
    put_text(c, limit, "algorithm", TEXT("fixed_window"));
    if (text_is(text_of(unit->period), "7day")) {
        put_text(c, limit, "align", TEXT("epoch"));
    }
}

static void put_replaces(struct conversion *c, const struct node *rate, struct weir_text name,
                         struct node *limit)
{
    const struct node *list = envoy_find(rate, "replaces");
    struct node *names = list != NULL ? envoy_list(c, list->place) : NULL;
    if (names == NULL) {
        return;
    }
    if (list->kind != NODE_LIST) {
        envoy_unexpected(c, list, "a list such as [{name: NAME}]");
        return;
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct node *other = node_find(list->items[i], "name");
        if (other == NULL || other->kind != NODE_SCALAR || other->scalar.len == 0) {
            envoy_unexpected(c, other != NULL ? other : list->items[i], "{name: NAME}");
        } else if (text_equal(other->scalar, name)) {
            envoy_unexpected(c, other, "the name of another limit");
        } else {
            envoy_append(c, names, envoy_scalar(c, other->place, other->scalar));
        }
    }
    if (names->count > 0) {
        envoy_put(c, limit, "replaces", names);
    }
}

/* Sets the keys that the map `weir` has: any key of a limit, which takes precedence. */
static void put_own(struct conversion *c, const struct node *rate, struct node *limit)
{
    const struct node *own = envoy_find(rate, "weir");
    if (own == NULL) {
        return;
    }
    if (own->kind != NODE_MAP) {
        envoy_unexpected(c, own, "a map of keys of a limit, such as {algorithm: token_bucket}");
        return;
    }
    struct node *wider = envoy_map(c, limit->place, LIMIT_KEYS + own->count);
    for (size_t i = 0; wider != NULL && i < limit->count; i++) {
        bool align = text_is(limit->keys[i]->scalar, "align");
        if (!align || node_find(own, "algorithm") == NULL) {
            put_pair(wider, limit->keys[i], limit->items[i]);
        }
    }
    for (size_t i = 0; wider != NULL && i < own->count; i++) {
        put_pair(wider, own->keys[i], own->items[i]);
    }
    if (wider != NULL) {
        *limit = *wider;
    }
}

static void check_rate_keys(struct conversion *c, const struct node *rate)
{
    static const char *const known[] = {"name",      "replaces", "unit", "requests_per_unit",
                                        "unlimited", "weir",     NULL};
    for (size_t i = 0; i < rate->count; i++) {
        size_t j = 0;
        while (known[j] != NULL && !text_is(rate->keys[i]->scalar, known[j])) {
            j++;
        }
        if (known[j] == NULL) {
            envoy_unexpected(c, rate->keys[i],
                             "name, replaces, unit, requests_per_unit, unlimited or weir");
        }
    }
}

void envoy_add_limit(struct conversion *c, const struct node *rate)
{
    const struct descriptor *d = c->path[c->depth - 1].descriptor;
    struct place place = d->node->place;
    struct node *limit = envoy_map(c, place, LIMIT_KEYS);
    if (limit == NULL) {
        return;
    }
    if (rate->kind != NODE_MAP) {
        envoy_unexpected(c, rate, "a map with unit and requests_per_unit, or {unlimited: true}");
        return;
    }
    check_rate_keys(c, rate);
    const struct node *name = envoy_find(rate, "name");
    struct node *unless = make_unless(c, place);
    struct node *key = make_key(c, place);
    envoy_put(c, limit, "name", make_name(c, place));
    envoy_put(c, limit, "when", make_when(c, place));
    if (unless != NULL && unless->count > 0) {
        envoy_put(c, limit, "unless", unless->count > 1 ? unless : unless->items[0]);
    }
    envoy_put(c, limit, "key", key);
    put_rate(c, rate, limit);
    if (key != NULL && key->count == 0) {
        put_text(c, limit, "expose", TEXT("true"));
    }
    if (d->shadow) {
        put_text(c, limit, "shadow", TEXT("true"));
    }
    if (d->quota) {
        put_text(c, limit, "quota_mode", TEXT("true"));
    }
    if (name != NULL && name->kind != NODE_SCALAR) {
        envoy_unexpected(c, name, "a text");
    } else if (name != NULL && name->scalar.len > 0) { /* '' is no name there */
        envoy_put(c, limit, "label", envoy_scalar(c, name->place, name->scalar));
    }
    put_replaces(c, rate, name != NULL ? name->scalar : TEXT(""), limit);
    put_own(c, rate, limit);
    envoy_append(c, c->limits, limit);
}
