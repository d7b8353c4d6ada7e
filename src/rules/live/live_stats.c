/* Reads the statistics of rules in use. */
#include <stdio.h>

#include "base/atomic.h"
#include "rules/live/live.h"

_Static_assert(REMOTE_FAILURES == sizeof((struct weir_rules_limit *)0)->degraded / sizeof(uint64_t),
               "a count for each policy");

/* Adds the numbers of the limit's ban. */
static int read_ban(const struct holder *holder, struct weir_rules_limit *limit)
{
    struct weir_stats denials = {.size = sizeof denials};
    limit->bans = load_relaxed(&holder->bans);
    limit->bans_failed = load_relaxed(&holder->bans_failed);
    int e = holder->denials != NULL ? weir_stats_read(holder->denials, &denials) : 0;
    limit->denials_evicted = denials.evicted;
    limit->stats.bytes += denials.bytes;
    return e;
}

void live_read_counts(const struct remote_ops *ops, const void *remote,
                      struct weir_rules_limit *limit)
{
    struct remote_counts counts = {0};
    ops->counts(remote, &counts);
    limit->consistency = counts.mode;
    limit->stats.keys = counts.keys;
    limit->stats.allowed = counts.allowed;
    limit->stats.denied = counts.denied;
    limit->stats.never = counts.never;
    limit->stats.shadow_denied = counts.shadow_denied;
    limit->remembered = counts.remembered;
    limit->stats.full_allowed = counts.full_allowed;
    limit->stats.full_denied = counts.full_denied;
    memcpy(limit->degraded, counts.degraded, sizeof limit->degraded);
}

static int read_counts(const struct holder *holder, struct weir_rules_limit *limit)
{
    int e = 0;
    if (holder->remote != NULL) {
        live_read_counts(holder->ops, holder->remote, limit);
    } else {
        e = weir_stats_read(holder->limiter, &limit->stats);
    }
    return e != 0 ? e : read_ban(holder, limit);
}

/* A list in the making, and the limiter that has its turn. */
struct stats_listing {
    weir_rules_limit_fn limit_fn;
    weir_rules_block_fn block_fn;
    void *arg;
    uint64_t now_ns;
    struct holder *holder;
    char name[WEIR_RULES_NAME];
    char tier[WEIR_RULES_NAME];
};

static void put_names(struct stats_listing *l, const struct rule *rule,
                      const struct variant *variant)
{
    (void)snprintf(l->name, sizeof l->name, "%.*s", TEXT_ARGS(rule->config->name));
    (void)snprintf(l->tier, sizeof l->tier, "%.*s", (int)variant->tier.len,
                   variant->tier.at != NULL ? variant->tier.at : "");
}

static int list_limit(struct stats_listing *l, const struct rule *rule,
                      const struct variant *variant)
{
    char rate[QUANTITY_MAX];
    const struct setting *setting = variant->setting;
    put_names(l, rule, variant);
    struct weir_rules_limit limit = {.size = sizeof limit,
                                     .name = l->name,
                                     .tier = l->tier,
                                     .algorithm = rule->config->algorithm,
                                     .shadow = rule->config->shadow,
                                     .count = setting->rate.count,
                                     .period_ns = setting->rate.period_ns,
                                     .burst = setting->burst,
                                     .stats = {.size = sizeof limit.stats},
                                     .missing = load_relaxed(&variant->holder->missing),
                                     .uncovered = load_relaxed(&variant->holder->uncovered),
                                     .switched = rule->switched,
                                     .rate = rate_print(setting->rate, rate),
                                     .consistency = variant->holder->remote != NULL ? rule->mode
                                                                                    : REMOTE_LOCAL,
                                     .on_store_failure = rule->config->on_store_failure};
    int e = read_counts(variant->holder, &limit);
    return e != 0 ? e : l->limit_fn(l->arg, &limit);
}

/* Calls `list` for each limiter, in the order of the file, until it does not return 0. */
static int each_variant(struct weir_rules *rules, struct stats_listing *l,
                        int (*list)(struct stats_listing *l, const struct rule *rule,
                                    const struct variant *variant))
{
    int e = 0;
    (void)pthread_mutex_lock(&rules->reload);
    for (size_t i = 0; e == 0 && i < rules->set->rules_count; i++) {
        const struct rule *rule = &rules->set->rules[i];
        for (size_t j = 0; e == 0 && j < rule->variants_count; j++) {
            e = rule->variants[j].holder == NULL ? 0 : list(l, rule, &rule->variants[j]);
        }
    }
    (void)pthread_mutex_unlock(&rules->reload);
    return e;
}

int weir_rules_limits(struct weir_rules *rules, weir_rules_limit_fn fn, void *arg)
{
    struct stats_listing l = {.limit_fn = fn, .arg = arg};
    return rules == NULL || fn == NULL ? WEIR_EINVAL : each_variant(rules, &l, list_limit);
}

/* ---- blocks ---- */

/* Returns false if the limiter is local and the key is not blocked any more. */
static bool is_blocked(const struct stats_listing *l, const struct block_note *note)
{
    struct weir_answer said;
    struct weir_question peek = {
        .key = note->key, .key_len = note->key_len, .cost = 1, .mode = WEIR_PEEK};
    return l->holder->remote != NULL ||
           (weir_ask_at(l->holder->limiter, &peek, l->now_ns, &said) == 0 &&
            (said.flags & WEIR_FLAG_BLOCKED) != 0);
}

static int list_block(void *arg, const struct block_note *note)
{
    const struct stats_listing *l = arg;
    struct weir_rules_block block = {.size = sizeof block,
                                     .limit = l->name,
                                     .tier = l->tier,
                                     .key = note->key,
                                     .key_len = note->key_len,
                                     .since_ns = note->since_ns,
                                     .until_ns = note->until_ns,
                                     .banned = note->ban,
                                     .by = note->by,
                                     .why = note->why};
    return is_blocked(l, note) ? l->block_fn(l->arg, &block) : 0;
}

static int list_blocks(struct stats_listing *l, const struct rule *rule,
                       const struct variant *variant)
{
    put_names(l, rule, variant);
    l->holder = variant->holder;
    return block_notes_each(&variant->holder->notes, l->now_ns, list_block, l);
}

int weir_rules_blocks(struct weir_rules *rules, uint64_t now_ns, weir_rules_block_fn fn, void *arg)
{
    struct stats_listing l = {.block_fn = fn, .arg = arg, .now_ns = now_ns};
    return rules == NULL || fn == NULL ? WEIR_EINVAL : each_variant(rules, &l, list_blocks);
}

/* ---- all of them ---- */

static int add_bytes(void *arg, const struct weir_rules_limit *limit)
{
    *(uint64_t *)arg += limit->stats.bytes;
    return 0;
}

int weir_rules_stats_read(struct weir_rules *rules, struct weir_rules_stats *stats)
{
    if (rules == NULL || stats == NULL || stats->size != sizeof *stats) {
        return WEIR_EINVAL;
    }
    *stats = (struct weir_rules_stats){.size = sizeof *stats};
    for (unsigned i = 0; i < THREAD_SLOTS; i++) {
        const struct slot *slot = &rules->slots[i];
        stats->asked += load_relaxed(&slot->asked);
        stats->unmatched += load_relaxed(&slot->unmatched);
        stats->allow_listed += load_relaxed(&slot->allow_listed);
        stats->block_listed += load_relaxed(&slot->block_listed);
        stats->missing += load_relaxed(&slot->missing);
        stats->tier_unknown += load_relaxed(&slot->tier_unknown);
        stats->shadow_denied += load_relaxed(&slot->shadow_denied);
        stats->shadow_failed += load_relaxed(&slot->shadow_failed);
        stats->bad += load_relaxed(&slot->bad);
    }
    (void)pthread_mutex_lock(&rules->reload);
    stats->generation = rules->generation;
    stats->state_unusable = rules->state != NULL ? rules->state->unusable : 0;
    (void)pthread_mutex_unlock(&rules->reload);
    return weir_rules_limits(rules, add_bytes, &stats->bytes);
}
