#include "rules/file/limits.h"

#include "base/maths.h"
#include "rules/file/conditions.h"
#include "rules/file/consistency.h"
#include "rules/file/tiers.h"

#define MAX_KEYS 100000

const char *const limit_on_full_names[] = {"evict", "deny", "allow", NULL};
const char *const limit_on_missing_names[] = {"skip", "deny", NULL};
const char *const limit_failure_names[] = {"local", "open", "closed", NULL};
const char *const limit_consistency_names[] = {"", "local", "exact", "leased", "synced", NULL};
const char *const limit_align_names[] = {"clock", "key", NULL};

_Static_assert(WEIR_EVICT == 0 && WEIR_DENY_NEW == 1 && WEIR_ALLOW_NEW == 2, "order of the names");
_Static_assert(WEIR_ALIGN_CLOCK == 0 && WEIR_ALIGN_KEY == 1, "order of the names");

/* A limit while it is read, and the numbers that become its base setting. */
struct limit_reading {
    struct limit_config limit;
    struct numbers numbers;
    uint64_t ipv4_prefix;
    uint64_t ipv6_prefix;
};

#define LIMIT(member) offsetof(struct limit_reading, limit.member)
#define NUMBER(member) offsetof(struct limit_reading, numbers.member)

/* ---- readers of single fields ---- */

static void read_when(struct reader *r, const struct field *f, const struct node *node,
                      void *target)
{
    conditions_read(r, node, (struct conditions *)(void *)((char *)target + f->offset));
}

static void read_algorithm(struct reader *r, const struct field *f, const struct node *node,
                           void *target)
{
    struct limit_reading *l = target;
    struct text word = node->kind == NODE_SCALAR ? node->scalar : TEXT("");
    struct suggestion s = suggest_begin(word);
    const char *name;
    for (int algorithm = 1; (name = weir_algorithm_name(algorithm)) != NULL; algorithm++) {
        if (text_is(word, name)) {
            l->limit.algorithm = algorithm;
            return;
        }
        suggest_offer(&s, name);
    }
    unexpected_word(r, node, f->expects, &s);
    l->limit.algorithm = 0; /* suppresses checks that depend on the algorithm */
}

/* Reads a number from 1 to `most`. Anything else is a problem that names what the field expects. */
static void read_number(struct reader *r, const struct field *f, const struct node *node,
                        uint64_t most, uint64_t *out)
{
    uint64_t number = 0;
    bool good = node->kind == NODE_SCALAR && count_parse(node->scalar, &number, NULL) == 0;
    if (!good || number == 0 || number > most) {
        unexpected(r, node, f->expects);
        return;
    }
    *out = number;
}

static void read_cost(struct reader *r, const struct field *f, const struct node *node,
                      void *target)
{
    struct limit_reading *l = target;
    if (expect_scalar(r, node, f->expects) == NULL) {
        return;
    }
    if (!text_starts(node->scalar, "attribute:")) {
        read_number(r, f, node, UINT64_MAX, &l->limit.cost);
        return;
    }
    l->limit.cost_attribute = text_trim(text_after(node->scalar, strlen("attribute:")));
    if (!name_is_good(l->limit.cost_attribute)) {
        unexpected(r, node, f->expects);
    }
}

/* Reads names with | between them, such as "user|ip", into *out; false after a problem. */
static bool read_alternatives(struct reader *r, const struct node *node, struct texts *out)
{
    struct text rest = node->scalar;
    for (bool more = true; more;) {
        const char *bar = memchr(rest.at, '|', rest.len);
        struct text name = {rest.at, bar != NULL ? (size_t)(bar - rest.at) : rest.len};
        more = bar != NULL;
        rest = text_after(rest, more ? name.len + 1 : name.len);
        name = text_trim(name);
        if (!name_is_good(name)) {
            unexpected(r, node, "an attribute, or several with | between them");
            return false;
        }
        attribute_suspect(r, name, node->place);
        struct text *grown =
            arena_append(&r->source->arena, out->at, out->count, sizeof name, &name);
        if (grown == NULL) {
            return false;
        }
        out->at = grown;
        out->count++;
    }
    return true;
}

static void read_key(struct reader *r, const struct field *f, const struct node *node, void *target)
{
    struct limit_config *limit = &((struct limit_reading *)target)->limit;
    const struct node *const *items;
    if (node->kind == NODE_LIST && node->count == 0) {
        return;
    }
    size_t n = scalars_of(r, node, f->expects, &items);
    if (n > CONFIG_KEY_PARTS_MAX) {
        problem(r->problems, node->place, "found %zu parts of a key, expected at most %d", n,
                CONFIG_KEY_PARTS_MAX);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        struct texts alternatives = {0};
        if (read_alternatives(r, items[i], &alternatives)) {
            limit->key[limit->key_parts++].alternatives = alternatives;
        }
    }
}

static void read_prefix(struct reader *r, const struct field *f, const struct node *node,
                        void *target)
{
    uint64_t most = f->offset == offsetof(struct limit_reading, ipv4_prefix) ? 32 : 128;
    read_number(r, f, node, most, (uint64_t *)(void *)((char *)target + f->offset));
}

static const struct field limit_fields[] = {
    {"name", NAME_EXPECTED, "", "what answers and metrics call it; unique", field_name, LIMIT(name),
     NULL},
    {"when", "a map of attributes and values", "every request",
     "the requests that it applies to: all attributes must have one of their values", read_when,
     LIMIT(when), NULL},
    {"unless", "a map of attributes and values", "none", "the requests that it does not apply to",
     read_when, LIMIT(unless), NULL},
    {"key", "attributes, such as [user|ip]; [] for one count for everybody", "",
     "what is counted separately; a|b is the first attribute present", read_key, 0, NULL},
    {"rate", "a rate such as 100/min", "", "units per period", field_rate, NUMBER(rate), NULL},
    {"burst", "a count of at least 1, such as 150 or 2k", "the count in rate",
     "token_bucket: the most at once", field_count, NUMBER(burst), NULL},
    {"queue", "a count such as 20", "0", "leaky_bucket: places that wait", field_whole,
     NUMBER(queue), NULL},
    {"algorithm", "token_bucket, leaky_bucket, fixed_window, sliding_window or sliding_log",
     "token_bucket", "how it counts", read_algorithm, 0, NULL},
    {"cost", "a count of at least 1, or attribute:NAME", "the request's, else 1",
     "units that a request takes; attribute:NAME reads them from the request", read_cost,
     LIMIT(cost), NULL},
    {"tiers", "a map of tiers", "none", "other numbers by the value of an attribute", NULL, 0,
     NULL},
    {"overrides", "{by: ATTRIBUTE, file: PATH}", "none", "other numbers for single values", NULL, 0,
     NULL},
    {"group", NAME_EXPECTED, "none",
     "of the limits of one group only the first that applies counts, in the order of the file",
     field_name, LIMIT(group), NULL},
    {"max_keys", "a count of at least 1, such as 100k", "100k",
     "keys in use that are never forgotten", field_count, NUMBER(max_keys), NULL},
    {"max_blocks", "a count of at least 1, such as 100k", "max_keys / 128, at least 64",
     "keys that can be blocked at once", field_count, LIMIT(max_blocks), NULL},
    {"on_full", "evict, deny or allow", "evict",
     "what a new key gets when there is no room: another forgotten, a no, or a free pass",
     field_choice, LIMIT(on_full), limit_on_full_names},
    {"on_missing", "skip or deny", "skip", "what happens when no attribute of a key part is there",
     field_choice, LIMIT(on_missing), limit_on_missing_names},
    {"on_store_failure", "local, open or closed", "local", "what happens when the store is away",
     field_choice, LIMIT(on_store_failure), limit_failure_names},
    {"consistency", "local, exact, leased or synced", "exact with a store, else local",
     "how nodes share it", field_choice, LIMIT(consistency), limit_consistency_names},
    {"shard_by", "attributes of the key, such as [tenant]", "none: by the whole key",
     "limits that shard by the same values are asked in one call, also of a Redis Cluster",
     field_shard, LIMIT(shard_by), NULL},
    {"deny_cache", "a duration such as 1s, or off", "1s",
     "how long at most a node remembers that the store has denied a key", field_deny_cache,
     LIMIT(deny_cache_ns), NULL},
    {"sync", "a duration from 1ms to 1min, such as 100ms", "100ms",
     "synced: the time between two exchanges with the store", field_sync, LIMIT(sync_ns), NULL},
    {"shadow", "true or false", "false", "count and report, but never deny", field_bool,
     LIMIT(shadow), NULL},
    {"align", "clock or key", "clock",
     "fixed_window: windows begin by the clock, or for each key at a time of its own", field_choice,
     LIMIT(align), limit_align_names},
    {"retry_jitter", "0 to 100%", "0%", "adds up to this much to the Retry-After header",
     field_percent, LIMIT(retry_jitter), NULL},
    {"ipv4_prefix", "1 to 32", "32", "bits of an IPv4 address that count as one client",
     read_prefix, offsetof(struct limit_reading, ipv4_prefix), NULL},
    {"ipv6_prefix", "1 to 128", "64", "bits of an IPv6 address that count as one client",
     read_prefix, offsetof(struct limit_reading, ipv6_prefix), NULL},
};

const struct section section_limit = {"limits[]", "One limit", limit_fields,
                                      sizeof limit_fields / sizeof limit_fields[0]};

/* ---- checks ---- */

static void require_fields(struct reader *r, const struct node *node)
{
    static const struct {
        const char *name;
        const char *expected;
    } rows[] = {
        {"name", "one, such as 'name: login'"},
        {"rate", "one, such as 'rate: 5/min'"},
        {"key", "one, such as 'key: [user|ip]', or 'key: []' for one count for everybody"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (node_find(node, rows[i].name) == NULL) {
            problem(r->problems, node->place, "found a limit without '%s', expected %s",
                    rows[i].name, rows[i].expected);
        }
    }
}

/* Returns the most units that a request may take at once. */
static uint64_t quota_of(const struct limit_config *limit, const struct setting *setting)
{
    switch (limit->algorithm) {
    case WEIR_TOKEN_BUCKET:
        return setting->burst;
    case WEIR_LEAKY_BUCKET:
        return add_sat(setting->burst, 1);
    default:
        return setting->rate.count;
    }
}

/* The quota of windows and of the log is the count, so the result is their period. */
uint64_t limit_window_ns(const struct limit_config *limit, const struct setting *setting)
{
    return mul_div_up(quota_of(limit, setting), setting->rate.period_ns, setting->rate.count);
}

static void check_fields(struct reader *r, const struct node *node,
                         const struct limit_config *limit)
{
    const struct node *align = node_find(node, "align");
    shared_check_fields(r, node, limit);
    if (limit->algorithm == 0) {
        return;
    }
    numbers_check(r, node, limit->algorithm);
    if (limit->cost > 0 && limit->tiers_count == 0 && limit->cost > quota_of(limit, &limit->base)) {
        warning(r->problems, node_find(node, "cost")->place,
                "found a cost of %llu, but at most %llu fit at once: no request can ever pass",
                (unsigned long long)limit->cost, (unsigned long long)quota_of(limit, &limit->base));
    }
    if (align != NULL && limit->algorithm != WEIR_FIXED_WINDOW) {
        problem(r->problems, align->place, "found 'align', but %s has none, only fixed_window",
                weir_algorithm_name(limit->algorithm));
    }
}

void config_options(const struct limit_config *limit, const struct setting *setting,
                    struct weir_options *options)
{
    *options = (struct weir_options)WEIR_OPTIONS_INIT;
    options->algorithm = limit->algorithm;
    options->count = setting->rate.count;
    options->period_ns = setting->rate.period_ns;
    options->max_keys = limit->key_parts > 0 ? setting->max_keys : 1;
    options->max_blocks = limit->max_blocks;
    options->on_full = limit->on_full;
    options->align = limit->align;
    if (limit->algorithm == WEIR_TOKEN_BUCKET) {
        options->burst = setting->burst;
    } else if (limit->algorithm == WEIR_LEAKY_BUCKET) {
        options->queue = setting->burst;
    }
}

static uint64_t setting_bytes(const struct limit_config *limit, const struct setting *setting,
                              const char *of, struct text name, struct problems *problems)
{
    struct weir_options options;
    struct weir_error error;
    uint64_t bytes = 0;
    config_options(limit, setting, &options);
    if (weir_size(&options, &bytes, &error) != 0) {
        problem(problems, limit->rate_place, "limit '%.*s'%s%.*s: %s", TEXT_ARGS(limit->name), of,
                TEXT_ARGS(name), error.text);
    }
    return bytes;
}

uint64_t limit_bytes(const struct limit_config *limit, struct problems *problems)
{
    const struct overrides *o = &limit->overrides;
    uint64_t sum = 0;
    if (limit->tier_default.len == 0) {
        sum = setting_bytes(limit, &limit->base, "", TEXT(""), problems);
    }
    for (size_t i = 0; i < limit->tiers_count; i++) {
        const struct tier *tier = &limit->tiers[i];
        sum = add_sat(sum, setting_bytes(limit, &tier->setting, ", tier ", tier->name, problems));
    }
    for (size_t i = 0; i < o->settings_count; i++) {
        sum =
            add_sat(sum, setting_bytes(limit, &o->settings[i], ", overrides ", o->file, problems));
    }
    return sum;
}

/* ---- reading ---- */

static void init(struct reader *r, const struct node *node, struct limit_reading *l)
{
    *l = (struct limit_reading){.ipv4_prefix = 32, .ipv6_prefix = 64};
    l->limit.algorithm = WEIR_TOKEN_BUCKET;
    l->limit.place = node->place;
    l->limit.source = r->source;
    l->numbers.max_keys = MAX_KEYS;
    l->limit.deny_cache_ns = SHARED_DENY_CACHE;
    l->limit.sync_ns = SHARED_SYNC;
    l->numbers.queue = NO_QUEUE;
}

/* Reads tiers and overrides, which need the limit's own numbers to be complete. */
static void read_rest(struct reader *r, const struct node *node, struct limit_reading *l)
{
    const struct node *tiers = node_find(node, "tiers");
    const struct node *overrides = node_find(node, "overrides");
    l->limit.base = setting_of(l->limit.algorithm, &l->numbers, NULL);
    l->limit.ipv4_prefix = (unsigned)l->ipv4_prefix;
    l->limit.ipv6_prefix = (unsigned)l->ipv6_prefix;
    if (tiers != NULL) {
        tiers_read(r, tiers, &l->limit);
    }
    if (overrides != NULL) {
        overrides_read(r, overrides, &l->limit);
    }
}

/* Returns the place of one of the limit's fields, or of the limit if it does not have the field. */
static struct place place_of(const struct node *limit, const char *field)
{
    const struct node *value = node_find(limit, field);
    return value != NULL ? value->place : limit->place;
}

struct limit_config *limit_read(struct reader *r, const struct node *node)
{
    unsigned before = r->problems->errors;
    struct limit_reading l;
    init(r, node, &l);
    if (!fields_read(r, &section_limit, node, &l)) {
        return NULL;
    }
    l.limit.rate_place = place_of(node, "rate");
    l.limit.consistency_place = place_of(node, "consistency");
    l.limit.sync_place =
        node_find(node, "sync") != NULL ? place_of(node, "sync") : l.limit.sync_place;
    require_fields(r, node);
    read_rest(r, node, &l);
    check_fields(r, node, &l.limit);
    if (r->problems->errors == before) {
        (void)limit_bytes(&l.limit, r->problems);
    }
    struct limit_config *limit = arena_take(&r->source->arena, sizeof *limit);
    if (limit == NULL || r->problems->errors != before) {
        return NULL;
    }
    *limit = l.limit;
    return limit;
}
