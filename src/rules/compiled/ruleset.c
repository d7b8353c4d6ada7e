/*
 * Compiles rules: puts conditions into the index and opens a limiter for each setting.
 * ruleset_tests.c turns names into numbers and conditions into tests.
 */
#include "rules/compiled/ruleset.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/maths.h"
#include "rules/compiled/holder.h"
#include "rules/compiled/ruleset_tests.h"
#include "rules/file/limits.h"
#include "rules/value/pattern.h"

/* ---- attributes ---- */

/* The patterns that have one name in braces, while they are collected. */
struct capturing {
    struct ruleset *set;
    struct weir_text name;
    struct captures *to;
};

static void add_capture(void *arg, const struct value *path)
{
    const struct capturing *c = arg;
    struct capture one = {path->text, path_pattern_find(path->named, c->name)};
    if (one.segment > 0) {
        (void)arena_append(&c->set->arena, &c->to->at, &c->to->count, sizeof one, &one);
    }
}

static void compile_captures(struct ruleset *set, const struct attribute_source *source,
                             struct captures *to)
{
    struct capture every = {TEXT(""), source->segment};
    struct capturing named = {set, source->part, to};
    if (source->part.len > 0) {
        config_each_named(&set->config, add_capture, &named);
    } else {
        (void)arena_append(&set->arena, &to->at, &to->count, sizeof every, &every);
    }
}

static void compile_source(struct ruleset *set, const struct attribute_source *source,
                           struct derived *to, size_t i)
{
    unsigned number = ruleset_number(set, source->by.len > 0 ? source->by : source->name);
    to->source[i] = (unsigned char)number;
    if (source->kind == FROM_COOKIE) {
        set->cookies = number;
    } else if (source->kind == FROM_PATH) {
        compile_captures(set, source, &to->captures[i]);
    }
}

static void compile_derived(struct ruleset *set)
{
    const struct config *config = &set->config;
    set->cookies = NO_ATTRIBUTE;
    set->derived = arena_array(&set->arena, config->attributes_count, sizeof *set->derived);
    for (size_t i = 0; set->derived != NULL && i < config->attributes_count; i++) {
        const struct attribute_config *from = &config->attributes[i];
        if (from->count == 0) { /* callers send it */
            continue;
        }
        struct derived *to = &set->derived[set->derived_count++];
        to->config = from;
        to->attribute = ruleset_number(set, from->name);
        for (size_t j = 0; j < from->count; j++) {
            compile_source(set, &from->sources[j], to, j);
        }
    }
}

/* ---- the index ---- */

struct entries {
    struct index_entry *at;
    size_t count;
};

static bool all_exact(const struct condition *condition)
{
    for (size_t i = 0; i < condition->count; i++) {
        if (condition->values[i].kind != VALUE_EXACT) {
            return false;
        }
    }
    return true;
}

/*
 * Returns the condition that the index answers: the path if there is one; otherwise, of the
 * conditions that list exact values, the one with the fewest. SIZE_MAX: none.
 */
static size_t choose(const struct conditions *when)
{
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < when->count; i++) {
        enum attribute_kind kind = attribute_kind_of(when->at[i].attribute);
        if (kind == ATTRIBUTE_PATH) {
            return i;
        }
        if (kind != ATTRIBUTE_IP && all_exact(&when->at[i]) &&
            (best == SIZE_MAX || when->at[i].count < when->at[best].count)) {
            best = i;
        }
    }
    return best;
}

static void add_entries(struct ruleset *set, struct entries *entries, unsigned rule,
                        const struct condition *condition)
{
    unsigned attribute = ruleset_number(set, condition->attribute);
    for (size_t i = 0; i < condition->count; i++) {
        const struct value *value = &condition->values[i];
        struct index_entry entry = {attribute, rule, value->kind == VALUE_PATTERN, value->text};
        (void)arena_append(&set->arena, &entries->at, &entries->count, sizeof entry, &entry);
    }
    if (attribute != NUMBER_PATH && attribute < ATTRIBUTES_MAX) {
        set->indexed |= UINT64_C(1) << attribute;
    }
}

/* ---- rules ---- */

/* Returns the numbers of attributes, then NO_ATTRIBUTE; NULL: out of memory. */
static unsigned char *numbers_of(struct ruleset *set, const struct texts *names)
{
    unsigned char *numbers = arena_take(&set->arena, names->count + 1);
    for (size_t i = 0; numbers != NULL && i < names->count; i++) {
        numbers[i] = (unsigned char)ruleset_number(set, names->at[i]);
    }
    if (numbers != NULL) {
        numbers[names->count] = NO_ATTRIBUTE;
    }
    return numbers;
}

/* Returns the number of an attribute that a limit may name; NO_ATTRIBUTE if it does not. */
static unsigned optional_number(struct ruleset *set, struct weir_text name)
{
    return name.len > 0 ? ruleset_number(set, name) : NO_ATTRIBUTE;
}

static void compile_key(struct ruleset *set, const struct limit_config *limit, struct rule *rule)
{
    rule->key_parts = (unsigned char)limit->key_parts;
    rule->shard = numbers_of(set, &limit->shard_by);
    for (size_t i = 0; i < limit->key_parts; i++) {
        rule->key[i] = numbers_of(set, &limit->key[i].alternatives);
        for (const unsigned char *n = rule->key[i]; n != NULL && *n < ATTRIBUTES_MAX; n++) {
            rule->key_bits[i] |= UINT64_C(1) << *n;
        }
    }
}

static void compile_variants(struct ruleset *set, const struct limit_config *limit,
                             struct rule *rule)
{
    const struct overrides *o = &limit->overrides;
    size_t n = 1 + limit->tiers_count + o->settings_count;
    rule->variants = arena_array(&set->arena, n, sizeof *rule->variants);
    rule->tiers = text_map_create(&set->arena, limit->tiers_count);
    if (rule->variants == NULL || rule->tiers == NULL) {
        return;
    }
    rule->variants[0].setting = &limit->base;
    for (unsigned i = 0; i < limit->tiers_count; i++) {
        const struct tier *tier = &limit->tiers[i];
        rule->variants[i + 1].setting = &tier->setting;
        rule->variants[i + 1].tier = tier->name;
        (void)text_map_put(rule->tiers, tier->name, i + 1);
        if (text_equal(tier->name, limit->tier_default)) {
            rule->variant_default = i + 1;
        }
    }
    rule->override_first = (unsigned)limit->tiers_count + 1;
    for (size_t i = 0; i < o->settings_count; i++) {
        rule->variants[rule->override_first + i].setting = &o->settings[i];
    }
    rule->variants_count = n;
    for (size_t i = 0; i < n; i++) {
        struct variant *v = &rule->variants[i];
        v->window_ns = limit_window_ns(limit, v->setting);
        v->hold_ns = limit_wait_ns(limit, v->setting, set->config.server.hold_max_ns);
        v->no_delay_ns = limit_wait_ns(limit, v->setting, 0);
        v->held_ns = min_u64(limit_queue_ns(limit, v->setting), set->config.server.hold_max_ns);
        v->kind = rate_kind(v->setting->rate);
        rule->partly_here |= v->kind != RATE_COUNTS;
    }
    rule->tier_attribute = optional_number(set, limit->tier_by);
    rule->override_attribute = optional_number(set, o->by);
}

/*
 * Returns the number of the limit's group, from 1 on; 0: none. Shadow limits have groups of their
 * own.
 */
static unsigned group_number(const struct ruleset *set, const struct limit_config *limit,
                             size_t rule)
{
    for (size_t i = 0; limit->group.len > 0 && i < rule; i++) {
        const struct limit_config *other = set->rules[i].config;
        if (other->shadow == limit->shadow && text_equal(other->group, limit->group)) {
            return set->rules[i].group;
        }
    }
    return limit->group.len > 0 ? (unsigned)rule + 1 : 0;
}

_Static_assert(REMOTE_SYNCED == CONSISTENCY_SYNCED - CONSISTENCY_LOCAL, "order of the names");

static void compile_rule(struct ruleset *set, size_t i, struct entries *entries)
{
    const struct limit_config *limit = set->config.limits[i];
    struct rule *rule = &set->rules[i];
    size_t indexed = choose(&limit->when);
    rule->indexed = indexed;
    rule->indexed_attribute = NO_ATTRIBUTE;
    rule->config = limit;
    rule->shadow = limit->shadow;
    rule->deny_missing = limit->on_missing == MISSING_DENY;
    set->replaces = set->replaces || limit->replaces.count > 0;
    rule->group = group_number(set, limit, i);
    rule->cost_attribute = optional_number(set, limit->cost_attribute);
    rule->mode = config_is_shared(&set->config, limit)
                     ? config_consistency(&set->config, limit->consistency) - CONSISTENCY_LOCAL
                     : REMOTE_LOCAL;
    compile_key(set, limit, rule);
    compile_variants(set, limit, rule);
    ruleset_tests(set, &limit->when, indexed, &rule->when);
    ruleset_list(set, &limit->unless, &rule->unless, &rule->unless_count);
    if (indexed != SIZE_MAX) {
        rule->indexed_attribute = ruleset_number(set, limit->when.at[indexed].attribute);
        add_entries(set, entries, (unsigned)i, &limit->when.at[indexed]);
    } else {
        index_found_set(&set->always, (unsigned)i);
    }
}

static void compile_rules(struct ruleset *set, struct entries *entries)
{
    size_t n = set->config.limits_count;
    set->rules = arena_array(&set->arena, n, sizeof *set->rules);
    set->limits = text_map_create(&set->arena, n);
    for (size_t i = 0; !set->arena.failed && i < n; i++) {
        set->rules_count = i + 1;
        (void)text_map_put(set->limits, set->config.limits[i]->name, (uint32_t)i);
        compile_rule(set, i, entries);
    }
}

static int open_limiters(struct ruleset *set, const struct weir_rules_options *options,
                         const struct ruleset *old, struct problems *problems,
                         struct weir_error *error)
{
    for (size_t i = 0; i < set->rules_count; i++) {
        struct rule *rule = &set->rules[i];
        for (size_t j = 0; j < rule->variants_count; j++) {
            if (j == 0 && rule->variant_default != 0) {
                continue; /* with a default tier no request uses the limit's own numbers */
            }
            int e = holder_find(set, options, old, rule, &rule->variants[j], problems, error);
            if (e != 0 && e != WEIR_ERULES) { /* problems of the file are reported for all limits */
                return e;
            }
        }
    }
    return problems->errors == 0 ? 0 : problems_fail(problems, error);
}

/* ---- the whole ---- */

/* The functions above need no result: the arena remembers that there was no memory. */
static int compile(struct ruleset *set)
{
    struct entries entries = {0};
    /* Room for one more than allowed: ruleset_number() finds out when there are too many. */
    set->names = text_map_create(&set->arena, ATTRIBUTES_MAX + 1);
    set->attributes = arena_array(&set->arena, ATTRIBUTES_MAX, sizeof *set->attributes);
    if (set->names == NULL || set->attributes == NULL) {
        return WEIR_ENOMEM;
    }
    set->attributes_count = NUMBERS_FIXED;
    int e = misspelt_init(set);
    if (e != 0) {
        return e;
    }
    compile_derived(set);
    ruleset_list(set, &set->config.allow, &set->allow, &set->allow_count);
    ruleset_list(set, &set->config.block, &set->block, &set->block_count);
    compile_rules(set, &entries);
    return set->arena.failed ? WEIR_ENOMEM : index_create(entries.at, entries.count, &set->index);
}

/* Reports that the rules use more attributes than there are numbers, and returns false. */
static bool numbers_suffice(const struct ruleset *set, struct problems *problems)
{
    if (set->attributes_count < ATTRIBUTES_MAX) {
        return true;
    }
    const struct limit_config *last =
        set->config.limits_count > 0 ? set->config.limits[set->config.limits_count - 1] : NULL;
    problem(
        problems, last != NULL ? last->place : (struct place){"rules", 0, 0},
        "found too many different attributes in the rules, expected at most %d, including sources",
        ATTRIBUTES_MAX - NUMBERS_FIXED - 1);
    return false;
}

int ruleset_create(struct config *config, const struct weir_rules_options *options,
                   struct state *state, const struct ruleset *old, struct problems *problems,
                   struct ruleset **out, struct weir_error *error)
{
    struct ruleset *set = calloc(1, sizeof *set);
    if (set == NULL) {
        config_finish(config);
        return fail(error, WEIR_ENOMEM, "out of memory for the rules");
    }
    set->config = *config;
    set->state = state;
    *config = (struct config){0};
    int e = compile(set);
    if (e != 0) {
        (void)fail(error, e, "%s for the rules", weir_strerror(e));
    } else if (!numbers_suffice(set, problems)) {
        e = problems_fail(problems, error);
    } else if (options != NULL) {
        set->fleet = options->fleet;
        set->denied = options->denied;
        set->denied_arg = options->denied_arg;
        set->listed = options->listed;
        set->listed_arg = options->listed_arg;
        set->misspelt = options->misspelt;
        set->misspelt_arg = options->misspelt_arg;
        e = open_limiters(set, options, old, problems, error);
    }
    if (e != 0) {
        ruleset_destroy(set);
        return e;
    }
    *out = set;
    return 0;
}

bool ruleset_needs_ip(const struct ruleset *set)
{
    for (size_t i = 0; i < set->derived_count; i++) {
        if (set->derived[i].attribute == NUMBER_IP) {
            return false;
        }
    }
    return text_map_find(set->names, text_of(attribute_names[ATTRIBUTE_IP])) >= 0;
}

void ruleset_change(struct ruleset *set)
{
    for (size_t i = 0; i < set->changes_count; i++) {
        holder_change(&set->changes[i]);
    }
}

void ruleset_forget_changes(struct ruleset *set)
{
    for (size_t i = 0; i < set->changes_count; i++) {
        weir_close(set->changes[i].denials);
    }
    set->changes_count = 0;
}

void ruleset_destroy(struct ruleset *set)
{
    if (set == NULL) {
        return;
    }
    ruleset_forget_changes(set);
    for (size_t i = 0; i < set->rules_count; i++) {
        for (size_t j = 0; j < set->rules[i].variants_count; j++) {
            holder_release(set->rules[i].variants[j].holder);
        }
    }
    for (size_t i = 0; i < set->networks_count; i++) {
        cidr_set_destroy(set->networks[i]);
    }
    index_destroy(set->index);
    arena_finish(&set->arena);
    config_finish(&set->config);
    free(set);
}
