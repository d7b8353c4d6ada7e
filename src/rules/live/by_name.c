/*
 * Uses one limit by its name: the key is composed from its parts as a request would have given
 * them.
 */
#include "base/error.h"
#include "rules/compiled/holder.h"
#include "rules/live/live_ban.h"

/* Returns the number of the alternative of a part that `by` names ("b" or "b,d"), or 0, the first
 * one. Counts the names that it finds in *used. */
static size_t alternative_of(const struct texts *names, struct weir_text by, size_t *used)
{
    while (by.len > 0) {
        struct weir_text name = text_cut(&by, ',');
        for (size_t i = 0; i < names->count; i++) {
            if (text_equal(names->at[i], name)) {
                ++*used;
                return i;
            }
        }
    }
    return 0;
}

/* Refuses names in `by` that no part of the key has, or that are two alternatives of one part. */
static int check_by(const struct rule *rule, struct weir_text by, size_t used,
                    struct weir_error *error)
{
    struct weir_text rest = by;
    size_t names = 0;
    for (; rest.len > 0; names++) {
        (void)text_cut(&rest, ',');
    }
    return names == used
               ? 0
               : fail(error, WEIR_EKEY,
                      "by: found '%.*s', expected at most one attribute of each part of the key of "
                      "limit '%.*s', separated by commas",
                      TEXT_CUT(by, 64), TEXT_ARGS(rule->config->name));
}

/* Sets each part of the key as the value of the alternative that `by` names, or the first. */
static int read_parts(const struct ruleset *set, const struct rule *rule,
                      const struct weir_rules_key *key, struct request *request,
                      struct weir_error *error)
{
    struct weir_text by = key->by;
    size_t used = 0;
    int e = 0;
    for (size_t i = 0; e == 0 && i < key->parts_count; i++) {
        struct weir_text value = key->parts[i];
        unsigned attribute =
            rule->key[i][alternative_of(&rule->config->key[i].alternatives, by, &used)];
        if (value.at == NULL || value.len == 0) {
            return fail(error, WEIR_EKEY, "part %zu of the key is empty", i + 1);
        }
        if (request_has(request, attribute)) {
            return fail(error, WEIR_EINVAL, "limit '%.*s' has the same attribute twice in its key",
                        TEXT_ARGS(rule->config->name));
        }
        e = request_put(set, request, attribute, value, error);
    }
    return e != 0 ? e : check_by(rule, by, used, error);
}

static int read_tier(const struct ruleset *set, const struct rule *rule,
                     const struct weir_rules_key *key, struct request *request,
                     struct weir_error *error)
{
    struct weir_text tier = key->tier;
    if (tier.len == 0 || rule->tier_attribute == NO_ATTRIBUTE) {
        return 0;
    }
    if (request_has(request, rule->tier_attribute)) {
        return fail(error, WEIR_EINVAL, "the tier of limit '%.*s' is a part of its key",
                    TEXT_ARGS(rule->config->name));
    }
    return request_put(set, request, rule->tier_attribute, tier, error);
}

/* Reads the parts and the tier as a request would have given them. */
static int read_request(const struct ruleset *set, const struct rule *rule,
                        const struct weir_rules_key *key, struct request *request,
                        struct weir_error *error)
{
    if (key->parts_count != rule->config->key_parts) {
        return fail(error, WEIR_EKEY, "found %zu parts of a key, expected %zu for limit '%.*s'",
                    key->parts_count, rule->config->key_parts, TEXT_ARGS(rule->config->name));
    }
    int e = read_parts(set, rule, key, request, error);
    if (e == 0) {
        e = read_tier(set, rule, key, request, error);
    }
    if (e == 0) {
        e = request_derive(set, request, error);
    }
    if (e == 0 && !key_is_there(rule, request)) {
        e = fail(error, WEIR_EKEY, "a part of the key of limit '%.*s' has no value",
                 TEXT_ARGS(rule->config->name));
    }
    return e;
}

static int use(const struct ruleset *set, const struct weir_rules_key *key, rules_use_fn fn,
               void *arg, struct weir_error *error)
{
    struct request request; /* values that are not present are not read */
    char bytes[WEIR_KEY_MAX];
    char shard[WEIR_KEY_MAX];
    size_t len;
    bool unknown = false;
    struct weir_text name = key->limit;
    const struct rule *rule = ruleset_find(set, name);
    if (rule == NULL) {
        return fail(error, WEIR_ENOLIMIT, "no limit named '%.*s'",
                    (int)(name.len < WEIR_RULES_NAME ? name.len : WEIR_RULES_NAME), name.at);
    }
    request_begin(&request);
    int e = read_request(set, rule, key, &request, error);
    if (e == 0) {
        e = key_compose(set, rule, &request, bytes, &len, error);
    }
    if (e != 0) {
        return e;
    }
    const struct variant *variant = rule_variant(rule, &request, &unknown);
    size_t shard_len = variant->holder->remote != NULL ? shard_compose(rule, &request, shard) : 0;
    struct rules_found found = {
        .told = {.tier = variant->tier,
                 .cost = rule->config->cost,
                 .shadow = rule->shadow,
                 .retry_jitter = rule->config->retry_jitter,
                 .window_ns = variant->window_ns,
                 .limit = variant->holder,
                 .consistency = variant->holder->remote != NULL ? rule->mode : REMOTE_LOCAL,
                 .hidden = !rule->config->expose,
                 .log_count = rule->config->log.denied.count,
                 .log_period_ns = rule->config->log.denied.period_ns,
                 .cost_attribute = rule->config->cost_attribute},
        .remote = variant->holder->remote,
        .shard = {shard_len > 0 ? shard : NULL, shard_len},
        .kind = variant->kind};
    return fn(arg, variant->holder->limiter, (struct weir_text){bytes, len}, &found);
}

int rules_use(struct weir_rules *rules, const struct weir_rules_key *key, rules_use_fn fn,
              void *arg, struct weir_error *error)
{
    struct slot *slot = gate_enter(rules);
    int e = use(rules->set, key, fn, arg, error);
    gate_leave(slot);
    return e;
}

/* ---- public ---- */

struct user {
    weir_rules_use_fn fn;
    void *arg;
    struct weir_error *error;
};

static int use_public(void *arg, struct weir *limiter, struct weir_text key,
                      const struct rules_found *found)
{
    const struct user *u = arg;
    if (found->kind == RATE_NOTHING) {
        return fail(u->error, WEIR_ENOTSUP, "the rate is 0: every request is denied");
    }
    return u->fn(u->arg, limiter, key.at, key.len, &found->told);
}

int weir_rules_use(struct weir_rules *rules, const struct weir_rules_key *key, weir_rules_use_fn fn,
                   void *arg, struct weir_error *error)
{
    struct user user = {fn, arg, error};
    if (rules == NULL || key == NULL || fn == NULL ||
        (key->limit.at == NULL && key->limit.len > 0) ||
        (key->tier.at == NULL && key->tier.len > 0) || (key->by.at == NULL && key->by.len > 0) ||
        (key->parts == NULL && key->parts_count > 0)) {
        return fail(error, WEIR_EINVAL, "the rules, the key or the function is NULL");
    }
    return rules_use(rules, key, use_public, &user, error);
}

int weir_rules_key_parts(struct weir_rules *rules, const char *limit, size_t limit_len)
{
    if (rules == NULL || limit == NULL) {
        return WEIR_EINVAL;
    }
    struct slot *slot = gate_enter(rules);
    const struct rule *rule = ruleset_find(rules->set, (struct weir_text){limit, limit_len});
    int parts = rule != NULL ? (int)rule->config->key_parts : WEIR_ENOLIMIT;
    gate_leave(slot);
    return parts;
}

void weir_rules_count_denied(const struct weir_rules_found *found, const void *key, size_t key_len,
                             uint64_t now_ns, struct weir_answer *answer)
{
    struct denial denial = {.holder = found->limit, .key = {key, key_len}, .now_ns = now_ns};
    if (!found->shadow && denial.holder->remote == NULL) {
        ban_after(&denial, answer);
    }
}

void rules_denied(struct weir_rules *rules, void *where, const struct rules_found *found,
                  struct weir_text key, uint64_t now_ns, struct weir_answer *answer)
{
    struct denial denial = {rules, where, found->told.limit, key, found->shard, now_ns};
    if (denial.holder != NULL) {
        ban_after(&denial, answer);
    }
}

struct block_notes *rules_block_notes(const struct rules_found *found)
{
    struct holder *holder = found->told.limit;
    return &holder->notes;
}

void rules_forget_denials(const struct rules_found *found, struct weir_text key)
{
    const struct holder *holder = found->told.limit;
    if (holder != NULL && holder->denials != NULL) {
        (void)weir_reset(holder->denials, key.at, key.len);
    }
}

void weir_rules_limit_keep(void *limit)
{
    holder_keep(limit);
}

void weir_rules_limit_let_go(void *limit)
{
    holder_release(limit);
}
