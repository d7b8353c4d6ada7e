#include "rules/compiled/holder.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/error.h"
#include "rules/file/fields.h"

void holder_release(struct holder *holder)
{
    if (holder != NULL && fetch_sub(&holder->references, 1) == 1) {
        weir_close(holder->limiter);
        if (holder->file.made) { /* by a load that failed; the folder is still open */
            state_discard(holder->state, &holder->file);
        }
        if (holder->remote != NULL) {
            holder->ops->release(holder->remote);
        }
        free(holder);
    }
}

void holder_keep(struct holder *holder)
{
    (void)fetch_add(&holder->references, 1);
}

static bool same_numbers(const struct setting *a, const struct setting *b)
{
    return a->rate.count == b->rate.count && a->burst == b->burst;
}

/*
 * True if the old table's size fits. Overrides with one key per row need room for their rows, but
 * not far too much; others need exactly what was asked for.
 */
static bool has_room(const struct setting *old, const struct setting *wanted)
{
    bool fits = old->max_keys >= wanted->rows && old->max_keys / 8 <= wanted->max_keys;
    return wanted->rows > 0 ? fits : old->max_keys == wanted->max_keys;
}

/*
 * Finds the variant of the old limit that this one was: a tier by its name, the limit's own by
 * having no name. A row of overrides is known only by its numbers: a key whose numbers change moves
 * to another limiter, and starts afresh.
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

/*
 * True if the same client has the same bytes as its key, in a table of the same shape, and a limit
 * of the fleet has the same policies, which it cannot change later.
 */
static bool same_keys(const struct rule *a, const struct rule *b)
{
    return a->mode == b->mode && fields_same(&section_limit, CHANGE_KEYS, a->config, b->config) &&
           (a->mode == REMOTE_LOCAL ||
            fields_same(&section_limit, CHANGE_SHARING, a->config, b->config));
}

/*
 * Makes the name that nodes share a limit by. Names of limits and tiers do not contain the
 * separators '/' and '='.
 */
static struct text remote_name(const struct rule *rule, const struct variant *variant,
                               char name[STATE_NAME_MAX])
{
    const struct setting *s = variant->setting;
    struct text limit = rule->config->name;
    int n = variant >= &rule->variants[rule->override_first]
                ? snprintf(name, STATE_NAME_MAX, "%.*s=%" PRIu64 "-%" PRIu64 "-%" PRIu64,
                           TEXT_ARGS(limit), s->rate.count, s->rate.period_ns, s->burst)
                : snprintf(name, STATE_NAME_MAX, "%.*s%s%.*s", TEXT_ARGS(limit),
                           variant->tier.len > 0 ? "/" : "", (int)variant->tier.len,
                           variant->tier.len > 0 ? variant->tier.at : "");
    return (struct text){name, (size_t)n};
}

static int open_at_fleet(struct weir_fleet *fleet, const struct rule *rule,
                         const struct variant *variant, void **limit, struct weir_error *error)
{
    char name[STATE_NAME_MAX];
    struct remote_spec spec = {.name = remote_name(rule, variant, name),
                               .mode = rule->mode,
                               .on_failure = rule->config->on_store_failure,
                               .deny_cache_ns = rule->config->deny_cache_ns,
                               .sync_ns = rule->config->sync_ns};
    config_options(rule->config, variant->setting, &spec.options);
    return remote_ops(fleet)->open(fleet, &spec, limit, error);
}

/*
 * A limit of the fleet keeps all numbers that it has had, 350 bytes each, because a thread may
 * still be deciding by them. So that reloads do not make it grow for ever (it takes some 90 KB at
 * most), it is made anew after this many changes: the state of its keys is in the store, and the
 * new one continues with it.
 */
#define CHANGES_MAX 256

/*
 * True if the limiter can change to the variant's numbers. A limit of the fleet can if it can be
 * opened with them.
 */
static bool can_change(const struct ruleset *set, const struct holder *holder,
                       const struct rule *rule, const struct variant *variant)
{
    void *probe;
    const struct setting *wanted = variant->setting;
    if (holder->remote == NULL) {
        return weir_change_check(holder->limiter, wanted->rate.count, wanted->burst, NULL) == 0;
    }
    if (holder->changes >= CHANGES_MAX) {
        return false;
    }
    if (open_at_fleet(set->fleet, rule, variant, &probe, NULL) != 0) {
        return false;
    }
    holder->ops->release(probe);
    return true;
}

/*
 * Takes over the old limiter for the variant, and lists a change if its numbers differ. Returns 1,
 * 0 if it cannot become what the variant needs, or WEIR_ENOMEM.
 */
static int take_over(struct ruleset *set, struct holder *holder, const struct rule *rule,
                     struct variant *variant)
{
    const struct setting *wanted = variant->setting;
    if (!same_numbers(&holder->setting, wanted)) {
        struct change change = {holder, *wanted, rule->config};
        if (!can_change(set, holder, rule, variant)) {
            return 0;
        }
        if (!arena_append(&set->arena, &set->changes, &set->changes_count, sizeof change,
                          &change)) {
            return WEIR_ENOMEM;
        }
    }
    holder_keep(holder);
    variant->holder = holder;
    return 1;
}

void holder_change(const struct change *change)
{
    struct holder *holder = change->holder;
    const struct setting *wanted = &change->setting;
    if (holder->remote != NULL) {
        struct weir_options o;
        config_options(change->limit, wanted, &o);
        if (holder->ops->change(holder->remote, &o, NULL) != 0) {
            return; /* out of memory: the old numbers stay; the next reload tries again */
        }
        holder->changes++;
    } else {
        /* Cannot fail: weir_change_check() has succeeded, and no other thread changes it. */
        (void)weir_change(holder->limiter, wanted->rate.count, wanted->burst, NULL);
    }
    holder->setting.rate = wanted->rate;
    holder->setting.burst = wanted->burst;
}

/* True if the rules in force use the file, with a limiter that is not taken over. */
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

/* Opens a local limiter: in a file if there is a folder for the state, otherwise in memory. */
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

/*
 * Reports a limit that the fleet refuses as a problem of the rule file, at the place that causes
 * it.
 */
static int tell_refused(const struct rule *rule, const struct variant *variant, int e,
                        const struct weir_error *why, struct problems *problems)
{
    const struct limit_config *limit = rule->config;
    bool numbers = e == WEIR_ERATE || e == WEIR_EQUOTA;
    bool tier = variant->tier.len > 0;
    problem(problems, numbers ? limit->rate_place : limit->consistency_place,
            "limit '%.*s'%s%.*s: %s", TEXT_ARGS(limit->name), tier ? ", tier " : "",
            (int)variant->tier.len, tier ? variant->tier.at : "", why->text);
    return WEIR_ERULES;
}

static int open_remote(const struct ruleset *set, const struct rule *rule,
                       const struct variant *variant, struct problems *problems,
                       struct holder *holder, struct weir_error *error)
{
    struct weir_error why = {0};
    holder->ops = remote_ops(set->fleet);
    int e = open_at_fleet(set->fleet, rule, variant, &holder->remote, &why);
    if (e == WEIR_ENOMEM || e == WEIR_EIO) {
        return fail(error, e, "limit '%.*s': %s", TEXT_ARGS(rule->config->name), why.text);
    }
    return e == 0 ? 0 : tell_refused(rule, variant, e, &why, problems);
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
    int e = rule->mode != REMOTE_LOCAL
                ? open_remote(set, rule, variant, problems, holder, error)
                : open_limiter(set, old, rule, variant, &o, problems, holder, error);
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
    if (before != NULL && same_keys(before, rule)) {
        struct holder *holder = find_holder(before, rule, variant);
        int taken = holder != NULL ? take_over(set, holder, rule, variant) : 0;
        if (taken != 0) {
            return taken > 0 ? 0 : fail(error, WEIR_ENOMEM, "out of memory for the rules");
        }
    }
    return open_new(set, options, before, rule, variant, problems, error);
}
