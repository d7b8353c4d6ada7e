#include "policy/holder.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/error.h"

void holder_release(struct holder *holder)
{
    if (holder != NULL && fetch_sub(&holder->references, 1) == 1) {
        weir_close(holder->limiter);
        if (holder->state != NULL) {
            state_discard(holder->state, &holder->file);
        }
        free(holder);
    }
}

static bool same_texts(const struct texts *a, const struct texts *b)
{
    if (a->count != b->count) {
        return false;
    }
    for (size_t i = 0; i < a->count; i++) {
        if (!text_equal(a->at[i], b->at[i])) {
            return false;
        }
    }
    return true;
}

/* The same bytes for the same client, in a table of the same shape. */
static bool same_keys(const struct limit_config *a, const struct limit_config *b)
{
    if (a->algorithm != b->algorithm || a->on_full != b->on_full || a->align != b->align ||
        a->key_parts != b->key_parts || a->ipv4_prefix != b->ipv4_prefix ||
        a->ipv6_prefix != b->ipv6_prefix) {
        return false;
    }
    for (size_t i = 0; i < a->key_parts; i++) {
        if (!same_texts(&a->key[i].alternatives, &b->key[i].alternatives)) {
            return false;
        }
    }
    return true;
}

static bool same_numbers(const struct setting *a, const struct setting *b)
{
    return a->rate.count == b->rate.count && a->burst == b->burst;
}

/* Overrides by the row need room for their rows, not far too much; others what was asked for. */
static bool has_room(const struct setting *old, const struct setting *wanted)
{
    bool fits = old->max_keys >= wanted->rows && old->max_keys / 8 <= wanted->max_keys;
    return wanted->rows > 0 ? fits : old->max_keys == wanted->max_keys;
}

/*
 * Which variant of the old limit this one was: a tier by its name, the limit's
 * own by having none. A row of overrides has no name but its numbers: a key whose
 * numbers change moves to other ones, and starts afresh.
 */
static struct holder *find_holder(const struct rule *old, const struct rule *rule,
                                  const struct variant *variant)
{
    bool override = variant >= &rule->variants[rule->override_first];
    for (size_t i = 0; i < old->variants_count; i++) {
        const struct variant *v = &old->variants[i];
        bool same = v->holder != NULL && override == (i >= old->override_first) &&
                    text_equal(v->tier, variant->tier) &&
                    v->setting->rate.period_ns == variant->setting->rate.period_ns &&
                    has_room(&v->holder->setting, variant->setting);
        if (same && (!override || same_numbers(v->setting, variant->setting))) {
            return v->holder;
        }
    }
    return NULL;
}

/* 1: the old limiter becomes what the variant wants; 0: it cannot; WEIR_ENOMEM. */
static int take_over(struct ruleset *set, struct holder *holder, struct variant *variant)
{
    const struct setting *wanted = variant->setting;
    if (!same_numbers(&holder->setting, wanted)) {
        struct change change = {holder, *wanted};
        if (weir_change_check(holder->limiter, wanted->rate.count, wanted->burst, NULL) != 0) {
            return 0;
        }
        struct change *grown =
            arena_append(&set->arena, set->changes, set->changes_count, sizeof change, &change);
        if (grown == NULL) {
            return WEIR_ENOMEM;
        }
        set->changes = grown;
        set->changes_count++;
    }
    (void)fetch_add(&holder->references, 1);
    variant->holder = holder;
    return 1;
}

/* The rules in force have the file, and their limiter is not to be taken over. */
static bool is_busy(const struct rule *old, const char *name)
{
    for (size_t i = 0; old != NULL && i < old->variants_count; i++) {
        const struct holder *holder = old->variants[i].holder;
        if (holder != NULL && strcmp(holder->file.name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Where there is a folder for the state, a limiter lives there. */
static int open_limiter(struct ruleset *set, const struct rule *old, const struct rule *rule,
                        const struct variant *variant, struct weir_options *o,
                        struct problems *problems, struct holder *holder, struct weir_error *error)
{
    if (set->state == NULL) {
        return weir_open(&holder->limiter, o, error);
    }
    holder->state = set->state;
    state_name(rule, variant, holder->file.name);
    if (variant->setting->rows > 0) {
        o->flags |= WEIR_MORE_KEYS; /* as has_room() */
    }
    return state_limiter(set->state, o, is_busy(old, holder->file.name), problems, &holder->file,
                         &holder->limiter, error);
}

static int open_new(struct ruleset *set, const struct weir_rules_options *options,
                    const struct rule *old, const struct rule *rule, struct variant *variant,
                    struct problems *problems, struct weir_error *error)
{
    struct weir_options o;
    struct holder *holder = calloc(1, sizeof *holder);
    if (holder == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory for limit '%.*s'",
                    TEXT_ARGS(rule->config->name));
    }
    config_options(rule->config, variant->setting, &o);
    o.flags = options->flags & ~WEIR_RULES_SERVER_STATE;
    o.clock = options->clock;
    o.clock_arg = options->clock_arg;
    int e = open_limiter(set, old, rule, variant, &o, problems, holder, error);
    if (e != 0) {
        free(holder);
        return e;
    }
    holder->setting = *variant->setting;
    holder->references = 1;
    variant->holder = holder;
    return 0;
}

int holder_find(struct ruleset *set, const struct weir_rules_options *options,
                const struct ruleset *old, const struct rule *rule, struct variant *variant,
                struct problems *problems, struct weir_error *error)
{
    const struct rule *before = old != NULL ? ruleset_find(old, rule->config->name) : NULL;
    if (before != NULL && same_keys(before->config, rule->config)) {
        struct holder *holder = find_holder(before, rule, variant);
        int taken = holder != NULL ? take_over(set, holder, variant) : 0;
        if (taken != 0) {
            return taken > 0 ? 0 : fail(error, WEIR_ENOMEM, "out of memory for the rules");
        }
    }
    return open_new(set, options, before, rule, variant, problems, error);
}
