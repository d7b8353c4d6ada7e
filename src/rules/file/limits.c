#include "rules/file/limits.h"

#include "base/maths.h"
#include "rules/file/ban.h"
#include "rules/file/conditions.h"
#include "rules/file/consistency.h"
#include "rules/file/foreign.h"
#include "rules/file/sections.h"
#include "rules/file/tiers.h"
#include "rules/file/yaml_write.h"

#define GCRA ALGORITHMS_END /* another name of token_bucket: read as that, and shown as that */
#define NAME(number, name, traits) [number] = #name,
static const char *const algorithm_names[] = {"", [GCRA] = "gcra", NULL, EACH_ALGORITHM(NAME)};
#undef NAME
const char *const limit_on_full_names[] = {"evict", "deny", "allow", NULL};
static const char *const on_missing_names[] = {"skip", "deny", NULL};
const char *const limit_failure_names[] = {"local", "open", "closed", NULL};
const char *const limit_consistency_names[] = {"", "local", "exact", "leased", "synced", NULL};
static const char *const align_names[] = {"clock", "key", "epoch", NULL};

_Static_assert(WEIR_EVICT == 0 && WEIR_DENY_NEW == 1 && WEIR_ALLOW_NEW == 2, "order of the names");
_Static_assert(WEIR_ALIGN_CLOCK == 0 && WEIR_ALIGN_KEY == 1 && LIMIT_ALIGN_EPOCH == 2,
               "order of the names");

/* ---- types of single fields ---- */

/* A wrong name leaves 0, which suppresses checks that depend on the algorithm. */
static void read_algorithm(struct reader *r, const struct field *f, const struct node *node,
                           void *value)
{
    int *algorithm = value;
    *algorithm = 0;
    field_read_choice(r, f, node, algorithm);
    *algorithm = *algorithm == GCRA ? WEIR_TOKEN_BUCKET : *algorithm;
}

static bool has_cost(const struct show *s)
{
    return s->limit->cost > 0 || s->limit->cost_attribute.len > 0;
}

static void read_cost(struct reader *r, const struct field *f, const struct node *node, void *value)
{
    struct limit_config *limit = value;
    if (node->kind != NODE_SCALAR || !text_starts(node->scalar, "attribute:")) {
        type_count.read(r, f, node, &limit->cost);
        return;
    }
    limit->cost_attribute = text_trim(text_after(node->scalar, strlen("attribute:")));
    if (!name_is_good(limit->cost_attribute)) {
        unexpected(r, node, f->expects);
    } else {
        attribute_used(r, limit->cost_attribute, node->place);
    }
}

static void show_cost(const struct show *s, const void *value)
{
    const struct limit_config *limit = value;
    if (limit->cost > 0) {
        type_count.show(s, &limit->cost);
    } else {
        (void)fprintf(s->out, " 'attribute:%.*s'", TEXT_ARGS(limit->cost_attribute));
    }
}

/* Reads names with | between them, such as "user|ip", into *out; false after a problem. */
static bool read_alternatives(struct reader *r, const struct node *node, struct texts *out)
{
    struct weir_text rest = node->scalar;
    for (bool more = true; more;) {
        struct weir_text before = text_before(rest, '|');
        struct weir_text name = text_trim(before);
        more = before.len < rest.len;
        rest = text_after(rest, before.len + more);
        if (!name_is_good(name)) {
            if (!foreign_key(r, node, name)) {
                unexpected(r, node, "an attribute, or several with | between them");
            }
            return false;
        }
        attribute_used(r, name, node->place);
        if (!arena_append(&r->source->arena, &out->at, &out->count, sizeof name, &name)) {
            return false;
        }
    }
    return true;
}

static void read_key(struct reader *r, const struct field *f, const struct node *node, void *value)
{
    struct limit_config *limit = value;
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
    limit->key_written = texts_of(r, items, n);
    for (size_t i = 0; i < n; i++) {
        struct texts alternatives = {0};
        if (read_alternatives(r, items[i], &alternatives)) {
            limit->key[limit->key_parts++].alternatives = alternatives;
        }
    }
}

static void show_key(const struct show *s, const void *value)
{
    field_show_texts(s, &((const struct limit_config *)value)->key_written);
}

static bool same_key(const void *left, const void *right)
{
    const struct limit_config *a = left;
    const struct limit_config *b = right;
    size_t i = 0;
    while (i < a->key_parts && i < b->key_parts &&
           field_same_texts(&a->key[i].alternatives, &b->key[i].alternatives)) {
        i++;
    }
    return i == a->key_parts && i == b->key_parts;
}

static bool message_is_good(struct weir_text text)
{
    return text.len < WEIR_RULES_MESSAGE;
}

static const struct field_type type_message = FIELD_TYPE_TEXT(message_is_good);

static const struct field deny_fields[] = {
    {"status", "a status from 400 to 499, such as 403", "the HTTP status", &type_small,
     offsetof(struct deny_config, status),
     .unset = "--auth-deny-status, 429 without it; 403 if waiting does not help", .least = 400,
     .most = 499},
    {"message", "a text of at most 255 bytes", "the `detail` of the body, for the client's user",
     &type_message, offsetof(struct deny_config, message), .unset = "none"},
};

const struct section section_deny = SECTION("deny", NULL, deny_fields);

static bool same_deny(const void *left, const void *right)
{
    const struct deny_config *a = left;
    const struct deny_config *b = right;
    return a->status == b->status && text_equal(a->message, b->message);
}

static const struct field_type type_deny = {.size = sizeof(struct deny_config),
                                            .read = field_read_inline,
                                            .show = field_show_inline,
                                            .same = same_deny};

static const struct field_type type_algorithm = {
    .size = sizeof(int), .read = read_algorithm, .show = field_show_choice};
static const struct field_type type_cost = {
    .read = read_cost, .show = show_cost, .quantity = &quantity_count};
static const struct field_type type_key = {
    .read = read_key, .show = show_key, .same = same_key, .shape = SHAPE_SCALARS};

static void read_replaces(struct reader *r, const struct field *f, const struct node *node,
                          void *value)
{
    const struct node *const *items;
    size_t n = scalars_of(r, node, f->expects, &items);
    *(struct texts *)value = texts_of(r, items, n);
}

static const struct field_type type_replaces = {.size = sizeof(struct texts),
                                                .read = read_replaces,
                                                .show = field_show_texts,
                                                .same = field_same_texts,
                                                .shape = SHAPE_SCALARS};

static const struct field_type type_log = {
    .size = sizeof(struct log_config), .read = field_read_inline, .show = field_show_inline};

static const struct field log_fields[] = {
    {"denied", "a rate such as 10/s",
     "the most denials that are logged: the first of each key and reason, then every hundredth",
     &type_rate, offsetof(struct log_config, denied), .unset = "none"},
};

const struct section section_log = SECTION("log", NULL, log_fields);

#define LIMIT(member) offsetof(struct limit_config, member)

static const struct field limit_fields[] = {
    {"name", NAME_EXPECTED, "the name in answers and metrics; must be unique", &type_name,
     LIMIT(name), .required = true},
    {"when", "a map of attributes and values",
     "the requests that the limit applies to: each attribute must have one of its values",
     &type_conditions, LIMIT(when), .unset = "every request"},
    {"unless", "a map of attributes and values, or a list of such maps",
     "the requests that the limit does not apply to", &type_either, LIMIT(unless), .unset = "none"},
    {"key", "attributes, such as [user|ip], or [] for one count of all requests",
     "the attributes whose values are counted separately; a|b is the first of them that is present",
     &type_key, 0, .required = true, .change = CHANGE_KEYS},
    {"algorithm", ALGORITHMS_EXPECTED, "how the limit counts", &type_algorithm, LIMIT(algorithm),
     .initial = "token_bucket", .choices = algorithm_names, .change = CHANGE_KEYS},
    {"rate", "a rate such as 100/min, or unlimited",
     "the units that a key gets in each period; 0/s denies every request", &type_limit_rate,
     LIMIT(base.rate), .required = true},
    {"burst", "a count of at least 1, such as 150 or 2k",
     "token_bucket: the most units that can be taken at once", &type_count, LIMIT(base.burst),
     .unset = "the count in rate", .least = 1, .traits = HAS_BURST},
    {"queue", "a count such as 20", "leaky_bucket: the units that may wait in the queue",
     &type_count, LIMIT(base.burst), .unset = "0", .traits = HAS_QUEUE},
    {"undelayed", "a count such as 8, at most that of queue",
     "leaky_bucket: units of the queue that need not wait", &type_count, LIMIT(undelayed),
     .unset = "0", .traits = HAS_QUEUE, .change = CHANGE_KEYS},
    {"max_keys", "a count of at least 1, such as 100k",
     "the number of keys in use that are never forgotten", &type_count, LIMIT(base.max_keys),
     .initial = "100k", .least = 1, .applies = setting_has_keys},
    {"cost", "a count of at least 1, or attribute:NAME",
     "units that a request takes; attribute:NAME reads them from the request, and a question "
     "about a key must give them",
     &type_cost, 0, .unset = "the cost that the request states, or 1", .least = 1,
     .applies = has_cost},
    {"tiers", "a map of tiers", "other numbers for each value of an attribute", &type_tiers,
     LIMIT(tiers), .unset = "none"},
    {"overrides", "{by: ATTRIBUTE, file: PATH}",
     "other numbers for single values of an attribute, from a file", &type_overrides,
     LIMIT(overrides), .unset = "none", .section = &section_overrides},
    {"group", NAME_EXPECTED,
     "only the first limit of a group that applies is used, in the order of the file", &type_name,
     LIMIT(group), .unset = "none"},
    {"on_store_failure", "local, open or closed", "what happens while the store does not answer",
     &type_choice, LIMIT(on_store_failure), .initial = "local", .choices = limit_failure_names,
     .change = CHANGE_SHARING},
    {"consistency", "local, exact, leased or synced", "how the nodes of a fleet share the limit",
     &type_consistency, LIMIT(consistency), .unset = "exact with a store, otherwise local",
     .choices = limit_consistency_names},
    {"shard_by", "attributes of the key, such as [tenant]",
     "limits that shard by the same values are decided in one call, even in a Redis Cluster",
     &type_shard, LIMIT(shard_by), .unset = "the whole key", .applies = limit_is_shared},
    {"deny_cache", "a duration such as 1s, or off",
     "the longest time for which a node remembers that the store has denied a key", &type_duration,
     LIMIT(deny_cache_ns), .initial = "1s", .zero = "off", .applies = limit_is_shared,
     .change = CHANGE_SHARING},
    {"sync", "a duration from 1ms to 1min, such as 100ms",
     "the time between two exchanges of a synced limit with the store", &type_duration,
     LIMIT(sync_ns), .initial = "100ms", .least = SYNC_MIN, .most = SYNC_MAX,
     .applies = limit_is_synced, .change = CHANGE_SHARING},
    {"max_blocks", "a count of at least 1, such as 100k",
     "the number of keys that can be blocked at the same time", &type_count, LIMIT(max_blocks),
     .unset = "max_keys / 128, at least 64", .least = 1, .change = CHANGE_KEYS},
    {"ban", "{denials: 20, within: 1min, for: 10min}", "blocks keys that are denied too often",
     &type_ban, LIMIT(ban), .unset = "none", .section = &section_ban},
    {"on_full", "evict, deny or allow",
     "what happens when there is no room for a new key: another key is forgotten, or the request "
     "is denied, or it is allowed and not counted. Of a limit in a store that is nearly full "
     "(memory_high of store): this node's share decides, or the request is denied, or allowed",
     &type_choice, LIMIT(on_full), .initial = "evict", .choices = limit_on_full_names,
     .change = CHANGE_KEYS},
    {"on_missing", "skip or deny", "what happens when a request lacks a part of the key",
     &type_choice, LIMIT(on_missing), .initial = "skip", .choices = on_missing_names},
    {"align", "clock, key or epoch",
     "fixed_window: where windows begin. clock: at multiples of the period since 1970, those of "
     "weeks on a Monday; key: each key has its own offset; epoch: windows of weeks, too, begin at "
     "multiples since 1970",
     &type_choice, LIMIT(align), .initial = "clock", .choices = align_names,
     .traits = IS_FIXED_WINDOW, .change = CHANGE_KEYS},
    {"shadow", "true or false", "count and report, but never deny", &type_bool, LIMIT(shadow),
     .initial = "false"},
    {"label", "a text of at most 255 bytes",
     "the name that Envoy's rate limit service tells, which Envoy may show to clients, and that "
     "`replaces` may refer to",
     &type_message, LIMIT(label), .unset = "none"},
    {"replaces", "names or labels of limits",
     "limits that do not apply to a request to which this limit applies", &type_replaces,
     LIMIT(replaces), .unset = "none"},
    {"quota_mode", "true or false",
     "of calls of Envoy's rate limit service: this limit denies a call only if every limit with "
     "quota_mode that applies to the call denies it",
     &type_bool, LIMIT(quota_mode), .initial = "false"},
    {"expose", "true or false",
     "whether clients are told the limit's name and numbers, in header fields and in the bodies of "
     "/v1/auth; Retry-After is sent in any case; with key: [] the default is false",
     &type_bool, LIMIT(expose), .initial = "true"},
    {"deny", "{status: 403, message: TEXT}",
     "what /v1/auth answers to a request that this limit denies", &type_deny, LIMIT(deny),
     .unset = "as the server is told", .section = &section_deny},
    {"log", "{denied: RATE}, such as {denied: 10/s}", "which of its decisions are logged",
     &type_log, LIMIT(log), .unset = "nothing", .section = &section_log},
    {"retry_jitter", "a percentage from 0% to 100%, such as 12.5%",
     "the most that is added to the Retry-After header at random", &type_percent,
     LIMIT(retry_jitter), .initial = "0%"},
    {"ipv4_prefix", "1 to 32", "bits of an IPv4 address that count as one client", &type_small,
     LIMIT(ipv4_prefix), .initial = "32", .least = 1, .most = 32, .change = CHANGE_KEYS},
    {"ipv6_prefix", "1 to 128", "bits of an IPv6 address that count as one client", &type_small,
     LIMIT(ipv6_prefix), .initial = "64", .least = 1, .most = 128, .change = CHANGE_KEYS},
};

const struct section section_limit =
    SECTION_WITH("limits[]", "a limit", limit_fields, foreign_rate);

/* ---- checks ---- */

static void check_fields(struct reader *r, const struct node *node,
                         const struct limit_config *limit)
{
    shared_check_fields(r, node, limit);
    ban_check(r, limit);
    if (limit->algorithm == 0) {
        return;
    }
    fields_check_algorithm(r, &section_limit, node, limit->algorithm);
    setting_check(r, node, &limit->base);
    const struct node *replaces = node_find(node, "replaces");
    if (replaces != NULL && limit_replaces(limit, limit)) {
        problem(r->problems, replaces->place, "found the limit itself, expected other limits");
    }
    const struct node *undelayed = node_find(node, "undelayed");
    if (undelayed != NULL && limit->undelayed > limit->base.burst &&
        limit_has_queue(limit, limit->base.rate)) {
        unexpected(r, undelayed, "a count such as 8, at most that of queue");
    }
    if (limit->cost > 0 && limit->tiers_count == 0 && rate_kind(limit->base.rate) == RATE_COUNTS &&
        limit->cost > limit_quota(limit, &limit->base)) {
        warning(r->problems, node_find(node, "cost")->place,
                "found a cost of %llu, expected at most %llu, which is all that can be taken at "
                "once: no request can pass",
                (unsigned long long)limit->cost,
                (unsigned long long)limit_quota(limit, &limit->base));
    }
}

/* ---- reading ---- */

/* Returns the place of one of the limit's fields, or of the limit if it does not have the field. */
static struct place place_of(const struct node *limit, const char *field)
{
    const struct node *value = node_find(limit, field);
    return value != NULL ? value->place : limit->place;
}

/* Reads tiers and overrides, which need the limit's own numbers to be complete. */
static void read_rest(struct reader *r, const struct node *node, struct limit_config *limit)
{
    const struct node *tiers = node_find(node, "tiers");
    const struct node *overrides = node_find(node, "overrides");
    setting_complete(limit, &limit->base);
    if (tiers != NULL) {
        tiers_read(r, tiers, limit);
    }
    if (overrides != NULL) {
        overrides_read(r, overrides, limit);
    }
}

struct limit_config *limit_read(struct reader *r, const struct node *node)
{
    unsigned before = r->problems->errors;
    struct limit_config *limit = arena_take(&r->source->arena, sizeof *limit);
    if (limit == NULL) {
        return NULL;
    }
    fields_init(r, &section_limit, limit);
    if (!fields_read(r, &section_limit, node, limit)) {
        return NULL;
    }
    limit->place = node->place;
    limit->source = r->source;
    limit->rate_place = place_of(node, "rate");
    limit->consistency_place = place_of(node, "consistency");
    limit->sync_place =
        node_find(node, "sync") != NULL ? place_of(node, "sync") : limit->sync_place;
    limit->ban_place = place_of(node, "ban");
    limit->expose = limit->expose && (limit->key_parts > 0 || node_find(node, "expose") != NULL);
    read_rest(r, node, limit);
    check_fields(r, node, limit);
    if (r->problems->errors == before) {
        (void)limit_bytes(NULL, limit, r->problems);
    }
    return r->problems->errors == before ? limit : NULL;
}

/* ---- showing ---- */

void limits_show(const struct show *s, const void *value)
{
    const struct config *config = value;
    struct problems quiet = {0};
    (void)fputs(config->limits_count > 0 ? "" : " []", s->out);
    for (size_t i = 0; i < config->limits_count; i++) {
        struct show one = {config, config->limits[i], NULL, s->note, s->out};
        (void)fputs("\n  # ", s->out);
        uint64_t bytes = limit_bytes(config, one.limit, &quiet);
        bool denials = one.limit->ban.denials > 0 && config_is_shared(config, one.limit);
        if (bytes == 0) {
            (void)fputs("in the store", s->out);
        } else {
            (void)fputs(denials ? "in the store; denials here: " : "", s->out);
            show_bytes(s->out, bytes);
        }
        (void)fputs("\n  - ", s->out);
        fields_show(&one, &section_limit, one.limit, "\n    ");
    }
}
