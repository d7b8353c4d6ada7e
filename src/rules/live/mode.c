/*
 * The kill switch: enforced limits are decided as shadow limits until they are switched back. The
 * flag is written while no thread is inside the gate, so every request is decided by one mode or
 * the other (G3 of live.h), and asking reads nothing more than before.
 */
#include "base/error.h"
#include "rules/live/live.h"

static void switch_rule(struct rule *rule, bool on)
{
    rule->switched = on;
    rule->shadow = on || rule->config->shadow;
}

void mode_carry(const struct weir_rules *r, struct ruleset *next)
{
    for (size_t i = 0; i < next->rules_count; i++) {
        struct rule *rule = &next->rules[i];
        const struct rule *before = ruleset_find(r->set, rule->config->name);
        switch_rule(rule, before != NULL ? before->switched : r->shadow_all);
    }
}

/*
 * Switches one limit; NULL: all limits, and those that are added later. The caller holds `reload`.
 */
static int switch_limit(struct weir_rules *rules, const char *limit, bool on)
{
    struct ruleset *set = rules->set;
    int64_t one = limit != NULL ? text_map_find(set->limits, text_of(limit)) : 0;
    if (one < 0) {
        return WEIR_ENOLIMIT;
    }
    size_t first = (size_t)one;
    size_t end = limit != NULL ? first + 1 : set->rules_count;
    gate_close(rules);
    for (size_t i = first; i < end; i++) {
        switch_rule(&set->rules[i], on);
    }
    gate_open(rules);
    rules->shadow_all = limit != NULL ? rules->shadow_all : on;
    return 0;
}

int weir_rules_shadow_set(struct weir_rules *rules, const char *limit, int on,
                          struct weir_error *error)
{
    if (rules == NULL || (on != 0 && on != 1)) {
        return rules == NULL ? fail(error, WEIR_EINVAL, "the rules are NULL")
                             : fail(error, WEIR_EINVAL, "on is %d, expected 0 or 1", on);
    }
    (void)pthread_mutex_lock(&rules->reload);
    int e = switch_limit(rules, limit, on != 0);
    (void)pthread_mutex_unlock(&rules->reload);
    return e != 0 ? fail(error, e, "no limit named '%.63s'", limit) : 0;
}

int weir_rules_shadow_get(struct weir_rules *rules, const char *limit)
{
    if (rules == NULL) {
        return WEIR_EINVAL;
    }
    (void)pthread_mutex_lock(&rules->reload);
    const struct rule *rule = limit != NULL ? ruleset_find(rules->set, text_of(limit)) : NULL;
    int on = limit == NULL ? rules->shadow_all : rule != NULL ? rule->switched : WEIR_ENOLIMIT;
    (void)pthread_mutex_unlock(&rules->reload);
    return on;
}
