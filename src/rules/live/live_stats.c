/* Reads the statistics of rules in use. */
#include "base/atomic.h"
#include "rules/live/live.h"

_Static_assert(REMOTE_FAILURES == sizeof((struct weir_rules_limit *)0)->degraded / sizeof(uint64_t),
               "a count for each policy");

static int read_counts(const struct holder *holder, struct weir_rules_limit *limit)
{
    struct remote_counts counts = {0};
    if (holder->remote == NULL) {
        return weir_stats_read(holder->limiter, &limit->stats);
    }
    holder->ops->counts(holder->remote, &counts);
    limit->consistency = counts.mode;
    limit->stats.keys = counts.keys;
    limit->stats.allowed = counts.allowed;
    limit->stats.denied = counts.denied;
    limit->stats.never = counts.never;
    limit->stats.shadow_denied = counts.shadow_denied;
    limit->remembered = counts.remembered;
    memcpy(limit->degraded, counts.degraded, sizeof limit->degraded);
    return 0;
}

static int list_variant(const struct rule *rule, const struct variant *variant,
                        weir_rules_limit_fn fn, void *arg)
{
    char name[WEIR_RULES_NAME] = {0};
    char tier[WEIR_RULES_NAME] = {0};
    char rate[QUANTITY_MAX];
    const struct setting *setting = variant->setting;
    memcpy(name, rule->config->name.at, rule->config->name.len);
    memcpy(tier, variant->tier.at != NULL ? variant->tier.at : "", variant->tier.len);
    struct weir_rules_limit limit = {.size = sizeof limit,
                                     .name = name,
                                     .tier = tier,
                                     .algorithm = rule->config->algorithm,
                                     .shadow = rule->config->shadow,
                                     .count = setting->rate.count,
                                     .period_ns = setting->rate.period_ns,
                                     .burst = setting->burst,
                                     .stats = {.size = sizeof limit.stats},
                                     .missing = load_relaxed(&variant->holder->missing),
                                     .switched = rule->switched,
                                     .rate = rate_print(setting->rate, rate),
                                     .consistency = variant->holder->remote != NULL ? rule->mode
                                                                                    : REMOTE_LOCAL,
                                     .on_store_failure = rule->config->on_store_failure};
    int e = read_counts(variant->holder, &limit);
    return e != 0 ? e : fn(arg, &limit);
}

int weir_rules_limits(struct weir_rules *rules, weir_rules_limit_fn fn, void *arg)
{
    int e = 0;
    if (rules == NULL || fn == NULL) {
        return WEIR_EINVAL;
    }
    (void)pthread_mutex_lock(&rules->reload);
    for (size_t i = 0; e == 0 && i < rules->set->rules_count; i++) {
        const struct rule *rule = &rules->set->rules[i];
        for (size_t j = 0; e == 0 && j < rule->variants_count; j++) {
            e = rule->variants[j].holder == NULL ? 0
                                                 : list_variant(rule, &rule->variants[j], fn, arg);
        }
    }
    (void)pthread_mutex_unlock(&rules->reload);
    return e;
}

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
