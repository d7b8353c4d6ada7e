#include "rules/compiled/holder.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/error.h"
#include "rules/file/ban.h"

void holder_release(struct holder *holder)
{
    if (holder != NULL && fetch_sub(&holder->references, 1) == 1) {
        state_limiter_close(holder->limiter);
        if (holder->file.made) { /* by a load that failed; the folder is still open */
            state_discard(holder->state, &holder->file);
        }
        if (holder->remote != NULL) {
            holder->ops->release(holder->remote);
        }
        weir_close(holder->denials);
        block_notes_finish(&holder->notes);
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
        bool same = v->holder != NULL && v->kind == variant->kind &&
                    override == (i >= old->override_first) && text_equal(v->tier, variant->tier) &&
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

/* The variant that a limiter is wanted for, and all that opening one needs. */
struct holder_opening {
    struct ruleset *set;
    const struct weir_rules_options *options;
    const struct rule *old; /* of the rules before; NULL: none of this name */
    const struct rule *rule;
    struct variant *variant;
    struct problems *problems;
    struct weir_error *error;
};

/* Opens the limit at the fleet, by a name that is the same on all nodes. */
static int open_at_fleet(const struct holder_opening *o, void **limit, struct weir_error *error)
{
    char name[STATE_NAME_MAX];
    const struct limit_config *config = o->rule->config;
    struct weir_fleet *fleet = o->set->fleet;
    struct remote_spec spec = {.name = {name, variant_name(o->rule, o->variant, '/', name)},
                               .mode = o->rule->mode,
                               .on_failure = config->on_store_failure,
                               .deny_cache_ns = config->deny_cache_ns,
                               .sync_ns = config->sync_ns};
    config_options(config, o->variant->setting, &spec.options);
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
static bool can_change(const struct holder_opening *o, const struct holder *holder)
{
    void *probe;
    const struct setting *wanted = o->variant->setting;
    if (holder->remote == NULL) {
        return weir_change_check(holder->limiter, wanted->rate.count, wanted->burst, NULL) == 0;
    }
    if (holder->changes >= CHANGES_MAX || open_at_fleet(o, &probe, NULL) != 0) {
        return false;
    }
    holder->ops->release(probe);
    return true;
}

/* Sets *options to what all limiters of the rules have in common. */
static void put_clock(const struct weir_rules_options *from, struct weir_options *options)
{
    options->flags = from->flags & ~WEIR_RULES_SERVER_STATE;
    options->clock = from->clock;
    options->clock_arg = from->clock_arg;
}

/* Opens the limiter that counts denials, in memory: a restart forgets them, but no ban. NULL in
 * *denials if the limit has no ban. */
static int open_denials(const struct holder_opening *o, struct weir **denials)
{
    struct weir_options options;
    *denials = NULL;
    if (o->rule->config->ban.denials == 0) {
        return 0;
    }
    ban_options(o->rule->config, o->variant->setting, &options);
    put_clock(o->options, &options);
    return weir_open(denials, &options, o->error);
}

/* Lists a change of the numbers or of the ban. Returns 0, or an error of weir_open(). */
static int list_change(const struct holder_opening *o, struct holder *holder)
{
    struct ruleset *set = o->set;
    struct change change = {holder, *o->variant->setting, o->rule->config, NULL};
    int e =
        ban_counts_same(&holder->ban, &o->rule->config->ban) ? 0 : open_denials(o, &change.denials);
    if (e == 0 &&
        !arena_append(&set->arena, &set->changes, &set->changes_count, sizeof change, &change)) {
        weir_close(change.denials);
        e = fail(o->error, WEIR_ENOMEM, "out of memory for the rules");
    }
    return e;
}

/*
 * Takes over the old limiter for the variant, and lists a change if its numbers or its ban differ.
 * Returns 1, 0 if it cannot become what the variant needs, or an error of weir_open().
 */
static int take_over(const struct holder_opening *o, struct holder *holder)
{
    const struct ban_config *ban = &o->rule->config->ban;
    bool numbers = !same_numbers(&holder->setting, o->variant->setting);
    if (numbers && !can_change(o, holder)) {
        return 0;
    }
    if (numbers || memcmp(&holder->ban, ban, sizeof *ban) != 0) {
        int e = list_change(o, holder);
        if (e != 0) {
            return e;
        }
    }
    holder_keep(holder);
    o->variant->holder = holder;
    return 1;
}

static void change_ban(struct change *change)
{
    struct holder *holder = change->holder;
    const struct ban_config *wanted = &change->limit->ban;
    if (!ban_counts_same(&holder->ban, wanted)) {
        struct weir *before = holder->denials;
        holder->denials = change->denials;
        change->denials = before;
    }
    holder->ban = *wanted;
}

void holder_change(struct change *change)
{
    struct holder *holder = change->holder;
    const struct setting *wanted = &change->setting;
    change_ban(change);
    if (same_numbers(&holder->setting, wanted)) {
        return;
    }
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
static int open_local(const struct holder_opening *o, struct holder *holder)
{
    struct state *state = o->set->state;
    struct weir_options options;
    config_options(o->rule->config, o->variant->setting, &options);
    put_clock(o->options, &options);
    if (state == NULL) {
        return weir_open(&holder->limiter, &options, o->error);
    }
    holder->state = state;
    state_name(o->rule, o->variant, holder->file.name);
    if (o->variant->setting->rows > 0) {
        options.flags |= WEIR_MORE_KEYS; /* as has_room() */
    }
    return state_limiter(state, &options, is_busy(o->old, holder->file.name), o->problems,
                         &holder->file, &holder->limiter, o->error);
}

/*
 * Opens a limit of the fleet. One that the fleet refuses is a problem of the rule file, which is
 * reported at the place that causes it.
 */
static int open_remote(const struct holder_opening *o, struct holder *holder)
{
    const struct limit_config *limit = o->rule->config;
    struct weir_text tier = o->variant->tier.len > 0 ? o->variant->tier : TEXT("");
    struct weir_error why = {0};
    holder->ops = remote_ops(o->set->fleet);
    int e = open_at_fleet(o, &holder->remote, &why);
    if (e == 0) {
        return 0;
    }
    if (e == WEIR_ENOMEM || e == WEIR_EIO) {
        return fail(o->error, e, "limit '%.*s': %s", TEXT_ARGS(limit->name), why.text);
    }
    bool numbers = e == WEIR_ERATE || e == WEIR_EQUOTA;
    problem(o->problems, numbers ? limit->rate_place : limit->consistency_place,
            "limit '%.*s'%s%.*s: %s", TEXT_ARGS(limit->name), tier.len > 0 ? ", tier " : "",
            TEXT_ARGS(tier), why.text);
    return WEIR_ERULES;
}

static int open_new(const struct holder_opening *o)
{
    struct holder *holder = calloc(1, sizeof *holder);
    if (holder == NULL) {
        return fail(o->error, WEIR_ENOMEM, "out of memory for limit '%.*s'",
                    TEXT_ARGS(o->rule->config->name));
    }
    bool remote = o->rule->mode != REMOTE_LOCAL && o->variant->kind == RATE_COUNTS;
    int e = open_denials(o, &holder->denials);
    if (e == 0) {
        e = remote ? open_remote(o, holder) : open_local(o, holder);
    }
    if (e != 0) {
        weir_close(holder->denials);
        free(holder);
        return e;
    }
    holder->ban = o->rule->config->ban;
    holder->setting = *o->variant->setting;
    holder->references = 1;
    o->variant->holder = holder;
    return 0;
}

int holder_find(struct ruleset *set, const struct weir_rules_options *options,
                const struct ruleset *old, const struct rule *rule, struct variant *variant,
                struct problems *problems, struct weir_error *error)
{
    const struct rule *before = old != NULL ? ruleset_find(old, rule->config->name) : NULL;
    struct holder_opening o = {set, options, before, rule, variant, problems, error};
    struct holder *holder =
        before != NULL && same_keys(before, rule) ? find_holder(before, rule, variant) : NULL;
    int taken = holder != NULL ? take_over(&o, holder) : 0;
    if (taken != 0) {
        return taken > 0 ? 0 : taken;
    }
    return open_new(&o);
}
