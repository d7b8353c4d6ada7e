/* Checks rules as a whole, after each part has been found good. */
#include "base/maths.h"
#include "rules/file/adhoc.h"
#include "rules/file/consistency.h"
#include "rules/yaml/document.h"
#include "rules/value/suggest.h"
#include "rules/file/limits.h"

static uint64_t limits_bytes(const struct config *config, struct problems *problems)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < config->limits_count; i++) {
        sum = add_sat(sum, limit_bytes(config, config->limits[i], problems));
    }
    return sum;
}

uint64_t config_bytes(const struct config *config, struct problems *problems)
{
    return add_sat(adhoc_bytes(config, problems), limits_bytes(config, problems));
}

/* Returns the file that takes the most memory of those that the rules name; NULL if none takes any,
 * because there is none or it could not be read. */
static const struct source_file *largest_file(const struct config *config)
{
    const struct source_file *largest = NULL;
    for (size_t i = 0; i < config->sources_count; i++) {
        for (const struct source_file *f = config->sources[i]->files; f != NULL; f = f->next) {
            largest = f->bytes > (largest != NULL ? largest->bytes : 0) ? f : largest;
        }
    }
    return largest;
}

static void check_memory(const struct config *config, struct problems *problems, struct place place)
{
    char need[QUANTITY_MAX];
    char have[QUANTITY_MAX];
    char files[QUANTITY_MAX];
    char list[QUANTITY_MAX];
    uint64_t tables = config_bytes(config, problems);
    uint64_t sum = add_sat(tables, CONFIG_TOP_BYTES);
    const struct source_file *largest = largest_file(config);
    if (largest != NULL && add_sat(sum, config->files_bytes) > config->server.memory) {
        problem(problems, place,
                "found limits that need %s, files that need %s, mostly %s, and %s for the keys "
                "denied most, expected at most %s together: shorten the files, lower max_keys or "
                "raise server.memory",
                size_print_short(tables, need), size_print_short(config->files_bytes, files),
                largest->path, size_print_short(CONFIG_TOP_BYTES, list),
                size_print_short(config->server.memory, have));
    } else if (sum > config->server.memory) {
        problem(problems, place,
                "found limits%s that need %s, and %s for the keys denied most, expected at most %s "
                "together: lower max_keys or raise server.memory",
                config->adhoc.off || adhoc_is_shared(config) ? "" : " and adhoc",
                size_print_short(tables, need), size_print_short(CONFIG_TOP_BYTES, list),
                size_print_short(config->server.memory, have));
    }
}

/* Returns how many tables the limits need: one for each limit, or for each of its tiers. */
static size_t count_tables(const struct config *config)
{
    size_t n = 0;
    for (size_t i = 0; i < config->limits_count; i++) {
        const struct limit_config *limit = config->limits[i];
        n += limit->tiers_count + (limit->tier_default.len == 0) + (limit->ban.denials > 0);
    }
    return n;
}

static size_t wild_bytes(const struct conditions *conditions)
{
    size_t n = 0;
    for (size_t i = 0; i < conditions->count; i++) {
        const struct condition *one = &conditions->at[i];
        for (size_t j = 0; j < one->count; j++) {
            n += one->values[j].kind == VALUE_PATTERN ? one->values[j].text.len : 0;
        }
    }
    return n;
}

static size_t list_wild_bytes(const struct list_config *list)
{
    size_t n = 0;
    for (size_t i = 0; i < list->count; i++) {
        n += wild_bytes(&list->entries[i]);
    }
    return n;
}

static void add_named(void *arg, const struct value *path)
{
    *(size_t *)arg += path->text.len;
}

/* Returns the total length of named path patterns times the number of attribute sources that use
 * them: the bytes that one request may be compared with. */
static size_t named_bytes(const struct config *config)
{
    size_t sources = 0;
    size_t bytes = 0;
    for (size_t i = 0; i < config->attributes_count; i++) {
        for (size_t j = 0; j < config->attributes[i].count; j++) {
            sources += config->attributes[i].sources[j].kind == FROM_PATH;
        }
    }
    config_each_named(config, add_named, &bytes);
    return sources * bytes;
}

/* Returns the bytes of values with wildcards that a request may be compared with. */
static size_t all_wild_bytes(const struct config *config)
{
    size_t n =
        list_wild_bytes(&config->allow) + list_wild_bytes(&config->block) + named_bytes(config);
    for (size_t i = 0; i < config->limits_count; i++) {
        n += wild_bytes(&config->limits[i]->when) + list_wild_bytes(&config->limits[i]->unless);
    }
    return n;
}

/* Reports tables that do not fit into a sandbox, which has no built-in limit. */
static void check_sandbox(const struct config *config, struct problems *problems,
                          struct place place)
{
    char need[QUANTITY_MAX];
    char have[QUANTITY_MAX];
    size_t tables = count_tables(config);
    uint64_t bytes = limits_bytes(config, problems);
    if (tables > CONFIG_SANDBOX_TABLES) {
        problem(problems, place,
                "found limits that need %zu tables, expected at most %d in a sandbox: try fewer "
                "limits and tiers at a time",
                tables, CONFIG_SANDBOX_TABLES);
    } else if (bytes > CONFIG_SANDBOX_BYTES) {
        problem(problems, place,
                "found limits that need %s, expected at most %s in a sandbox: lower max_keys or "
                "max_blocks, or try fewer limits at a time",
                size_print_short(bytes, need), size_print_short(CONFIG_SANDBOX_BYTES, have));
    }
    if (all_wild_bytes(config) > CONFIG_SANDBOX_WILD) {
        problem(problems, place,
                "found values with wildcards of %zu bytes, expected at most %d in a sandbox: try "
                "fewer limits at a time",
                all_wild_bytes(config), CONFIG_SANDBOX_WILD);
    }
}

/* Returns whether a limit has the name, or the label. Offers all names for a suggestion. */
static bool is_name(const struct config *config, struct weir_text name, struct suggestion *s)
{
    for (size_t i = 0; i < config->limits_count; i++) {
        const struct limit_config *limit = config->limits[i];
        if (text_equal(limit->name, name) || text_equal(limit->label, name)) {
            return true;
        }
        suggest_offer(s, limit->name.at);
        if (limit->label.len > 0) {
            suggest_offer(s, limit->label.at);
        }
    }
    return false;
}

void replaces_check(const struct config *config, struct limit_config *limit,
                    struct problems *problems)
{
    bool envoy = limit->source->domain.len > 0;
    size_t kept = 0;
    for (size_t i = 0; i < limit->replaces.count; i++) {
        struct weir_text name = limit->replaces.at[i];
        struct suggestion s = suggest_begin(name);
        if (is_name(config, name, &s)) {
            limit->replaces.at[kept++] = name;
            continue;
        }
        (envoy ? warning : problem)(
            problems, limit->place,
            "found '%.*s' in 'replaces' of limit '%.*s', expected the name or label of another "
            "limit%s%s%s",
            TEXT_CUT(name, 64), TEXT_ARGS(limit->name), s.nearest != NULL ? "; did you mean '" : "",
            s.nearest != NULL ? s.nearest : "", s.nearest != NULL ? "'?" : "");
    }
    limit->replaces.count = kept;
}

static bool first_of_group(const struct config *config, size_t i)
{
    const struct limit_config *limit = config->limits[i];
    for (size_t j = 0; limit->group.len > 0 && j < i; j++) {
        const struct limit_config *other = config->limits[j];
        if (!other->shadow && other->when.count == 0 && text_equal(other->group, limit->group)) {
            return false;
        }
    }
    return true;
}

/* Returns whether one of the attributes is in nearly every request: gateways send these. */
static bool nearly_always_there(const struct key_attribute *part)
{
    static const char *const sent[] = {"ip", "path", "method", "host"};
    for (size_t i = 0; i < part->alternatives.count; i++) {
        for (size_t j = 0; j < sizeof sent / sizeof sent[0]; j++) {
            if (text_is(part->alternatives.at[i], sent[j])) {
                return true;
            }
        }
    }
    return false;
}

/* Returns whether the limit has a key in nearly every request, or (`every`) applies to each. */
static bool applies(const struct limit_config *limit, bool every)
{
    if (limit->key_parts == 0 || limit->on_missing == MISSING_DENY) {
        return true;
    }
    size_t there = 0;
    while (!every && there < limit->key_parts && nearly_always_there(&limit->key[there])) {
        there++;
    }
    return there == limit->key_parts;
}

/* Returns the limit that is one too many for a request, or NULL. */
static const struct limit_config *find_too_many(const struct config *config, bool every)
{
    size_t n = 0;
    for (size_t i = 0; i < config->limits_count; i++) {
        const struct limit_config *limit = config->limits[i];
        bool always = limit->when.count == 0 && limit->unless.count == 0 && applies(limit, every);
        if (!limit->shadow && always && first_of_group(config, i) && ++n > WEIR_SEVERAL_MAX) {
            return limit;
        }
    }
    return NULL;
}

/* Reports more limits for every request, or for nearly every, than can be decided at once: such
 * requests fail, and a gateway may let them pass. */
static void check_always(const struct config *config, struct problems *problems)
{
    const struct limit_config *limit = find_too_many(config, true);
    if (limit != NULL) {
        problem(problems, limit->place,
                "found too many limits that apply to every request, expected at most %d",
                WEIR_SEVERAL_MAX);
        return;
    }
    limit = find_too_many(config, false);
    if (limit != NULL) {
        warning(problems, limit->place,
                "found too many limits that apply to every request with an address, path, method "
                "and host, expected at most %d: such requests are refused; give limits a 'when' or "
                "a 'group'",
                WEIR_SEVERAL_MAX);
    }
}

static void check_presence(const struct config *config, struct place place,
                           struct problems *problems)
{
    for (size_t i = 0; i < config->sources_count; i++) {
        if (config->sources[i]->damaged || config->sources[i]->root->kind != NODE_MAP) {
            return; /* the limits may be in this text */
        }
    }
    if (!config->has_limits && config->sources_count > 0) {
        problem(problems, place, "found no 'limits', expected a list of limits");
    } else if (config->has_limits && config->limits_written == 0) {
        warning(problems, place, "found no limit: every request will be allowed");
    }
}

int config_check(const struct config *config, const char *name, struct problems *problems)
{
    struct place whole = {name, 0, 0};
    for (size_t i = 0; i < config->limits_count; i++) {
        shared_check_limit(config, config->limits[i], problems);
    }
    adhoc_check(config, problems);
    check_always(config, problems);
    check_presence(config, whole, problems);
    if (config->sandbox) {
        check_sandbox(config, problems, whole);
    } else if (!config->memory_is_wrong) {
        check_memory(config, problems, whole);
    }
    return problems->errors == 0 ? 0 : WEIR_ERULES;
}
