/*
 * Rules in use: asked by any number of threads, switched by one.
 *
 * The gate. Who asks says so in a word of its own line (`inside`), then looks
 * whether the gate is closed; who switches closes the gate, then looks whether
 * somebody is inside. Both in one order (G1: of two that meet, at least one
 * sees the other). Who finds the gate closed steps back and waits until it is
 * open. When nobody is inside, nobody reads the rules or decides by them: numbers of shared
 * limiters are changed, the pointer is switched, the old rules are freed at
 * once (G2), and the gate opens. So every request sees one rule set with all of
 * its numbers (G3), and asking costs two uncontended atomic additions.
 *
 * Waiting is for decisions only, no I/O happens inside; preparing a reload,
 * which reads files and makes tables, happens before the gate closes.
 *
 * One lock, `reload`: one reload at a time; limits and statistics are read under
 * it. weir_rules_ask() takes none.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/thread.h"
#include "policy/ruleset.h"

/* What one thread writes: on lines of its own. */
struct slot {
    uint64_t inside;
    uint64_t asked;
    uint64_t unmatched;
    uint64_t allow_listed;
    uint64_t block_listed;
    uint64_t missing;
    uint64_t tier_unknown;
    uint64_t shadow_denied;
    uint64_t shadow_failed;
    uint64_t bad;
} __attribute__((aligned(128)));

struct weir_rules {
    struct slot slots[THREAD_SLOTS];
    uint64_t closed;     /* the gate */
    struct ruleset *set; /* changes only while the gate is closed and nobody is inside */
    pthread_mutex_t reload;
    struct weir_rules_options options;
    struct config started; /* its head: what a restart would change is told against it */
    char *path;            /* where the rules came from; NULL: a text */
    uint64_t anchor_unix_ns;
    uint64_t anchor_boot_ns;
    uint64_t generation;
    struct weir_rules *next; /* of all that are open, for fork() */
    struct weir_rules *previous;
};

/* ---- fork ---- */

/*
 * A child has only the thread that forked: nobody else is inside any more, and
 * no lock may be held by a thread that is not there. So a fork waits for
 * reloads to end, and the child clears `inside`.
 */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static struct weir_rules *all;

static void before_fork(void)
{
    (void)pthread_mutex_lock(&all_lock);
    for (struct weir_rules *r = all; r != NULL; r = r->next) {
        (void)pthread_mutex_lock(&r->reload);
    }
}

static void after_fork(void)
{
    for (struct weir_rules *r = all; r != NULL; r = r->next) {
        (void)pthread_mutex_unlock(&r->reload);
    }
    (void)pthread_mutex_unlock(&all_lock);
}

static void after_fork_in_child(void)
{
    for (struct weir_rules *r = all; r != NULL; r = r->next) {
        for (unsigned i = 0; i < THREAD_SLOTS; i++) {
            store_relaxed(&r->slots[i].inside, 0);
        }
    }
    thread_after_fork();
    after_fork();
}

/*
 * Before main(): handlers registered later run before ours, so a program's own,
 * which may wait for a lock of its own, is not made to wait while we hold ours.
 */
static __attribute__((constructor)) void watch_fork(void)
{
    (void)pthread_atfork(before_fork, after_fork, after_fork_in_child);
}

static void enlist(struct weir_rules *r)
{
    (void)pthread_mutex_lock(&all_lock);
    r->next = all;
    if (all != NULL) {
        all->previous = r;
    }
    all = r;
    (void)pthread_mutex_unlock(&all_lock);
}

static void delist(struct weir_rules *r)
{
    (void)pthread_mutex_lock(&all_lock);
    if (r->previous != NULL) {
        r->previous->next = r->next;
    } else {
        all = r->next;
    }
    if (r->next != NULL) {
        r->next->previous = r->previous;
    }
    (void)pthread_mutex_unlock(&all_lock);
}

/* ---- the gate ---- */

static struct slot *enter(struct weir_rules *r)
{
    struct slot *slot = &r->slots[thread_slot()];
    for (;;) {
        (void)fetch_add_ordered(&slot->inside, 1); /* G1, with switch_to() */
        if (__builtin_expect(load_ordered(&r->closed) == 0, 1)) {
            return slot;
        }
        (void)fetch_sub(&slot->inside, 1);
        for (unsigned attempt = 0; load_ordered(&r->closed) != 0; attempt++) {
            lock_pause(attempt);
        }
    }
}

static void leave(struct slot *slot)
{
    (void)fetch_sub(&slot->inside, 1); /* releases to switch_to() what was read and decided */
}

static void wait_until_empty(const struct weir_rules *r)
{
    for (unsigned i = 0; i < THREAD_SLOTS; i++) {
        for (unsigned attempt = 0; load_ordered(&r->slots[i].inside) != 0; attempt++) {
            lock_pause(attempt);
        }
    }
}

/* Under `reload`. Takes over the set. */
static void switch_to(struct weir_rules *r, struct ruleset *set)
{
    struct ruleset *old = r->set;
    store_ordered(&r->closed, 1); /* G1, with enter() */
    wait_until_empty(r);
    ruleset_change(set);
    r->set = set;
    store_ordered(&r->closed, 0);
    r->generation++;
    ruleset_destroy(old); /* G2 */
}

/* ---- opening ---- */

static int check_options(const struct weir_rules_options *options, struct weir_error *error)
{
    unsigned known = WEIR_EXPLICIT_TIME | WEIR_PREFAULT | WEIR_HUGE_PAGES;
    if (options->size != sizeof *options) {
        return fail(error, WEIR_EINVAL, "options.size is %zu, expected %zu", options->size,
                    sizeof *options);
    }
    if (options->reserved != 0) {
        return fail(error, WEIR_EINVAL, "options.reserved is %u, expected 0", options->reserved);
    }
    if ((options->flags & ~known) != 0) {
        return fail(error, WEIR_EINVAL, "options.flags is %#x, expected some of %#x",
                    options->flags, known);
    }
    if ((options->flags & WEIR_EXPLICIT_TIME) != 0 && options->clock != NULL) {
        return fail(error, WEIR_EINVAL,
                    "options have a clock and WEIR_EXPLICIT_TIME, expected one");
    }
    return 0;
}

/* So that report() can see whether anybody has said what is wrong. */
static struct weir_error *clear(struct weir_error *error)
{
    if (error != NULL) {
        *error = (struct weir_error){0};
    }
    return error;
}

static struct problems problems_of(const struct weir_rules_options *options)
{
    return (struct problems){.tell = options->message, .arg = options->message_arg};
}

/*
 * Tells what was collected, and what config_read() and its like returned. With no
 * lock held: whoever is told may call any function.
 */
static int report(int e, struct problems *problems, struct weir_error *error)
{
    problems_finish(problems);
    if (e == WEIR_ERULES) {
        return problems_fail(problems, error);
    }
    if (e != 0 && error != NULL && error->code != e) {
        (void)fail(error, e, "%s for the rules", weir_strerror(e));
    }
    return e;
}

/* Where rules come from: a path, or a text with a name. */
struct origin {
    const char *path;
    struct text text;
    bool is_text;
};

static int read_origin(const struct origin *from, struct config *config, struct problems *problems)
{
    return from->is_text ? config_read_text(config, from->path, from->text, problems)
                         : config_read(config, from->path, problems);
}

/* *error is set, if at all, by ruleset_create() only. */
static int load(const struct origin *from, const struct weir_rules_options *options,
                const struct ruleset *old, struct problems *problems, struct ruleset **set,
                struct weir_error *error)
{
    struct config config = {0};
    int e = read_origin(from, &config, problems);
    if (e != 0) {
        config_finish(&config);
        return e;
    }
    return ruleset_create(&config, options, old, problems, set, error);
}

static struct weir_rules *create(const struct weir_rules_options *options)
{
    struct weir_rules *r = aligned_alloc(128, (sizeof *r + 127) / 128 * 128);
    if (r == NULL) {
        return NULL;
    }
    memset(r, 0, sizeof *r);
    r->options = *options;
    r->anchor_unix_ns = clock_unix_ns();
    r->anchor_boot_ns = clock_boot_ns();
    r->generation = 1;
    (void)pthread_mutex_init(&r->reload, NULL);
    return r;
}

static void destroy(struct weir_rules *r)
{
    ruleset_destroy(r->set);
    config_finish(&r->started);
    (void)pthread_mutex_destroy(&r->reload);
    free(r->path);
    free(r);
}

static int open_from(struct weir_rules **rules, const struct origin *from,
                     const struct weir_rules_options *options, struct weir_error *error)
{
    static const struct weir_rules_options plain = WEIR_RULES_OPTIONS_INIT;
    if (rules != NULL) {
        *rules = NULL;
    }
    if (rules == NULL || from->path == NULL || (from->text.at == NULL && from->text.len > 0)) {
        return fail(error, WEIR_EINVAL, "the rules' place, path or text is NULL");
    }
    options = options != NULL ? options : &plain;
    int e = check_options(options, error);
    if (e != 0) {
        return e;
    }
    struct problems problems = problems_of(options);
    (void)clear(error);
    struct weir_rules *r = create(options);
    if (r == NULL || (!from->is_text && (r->path = strdup(from->path)) == NULL)) {
        e = WEIR_ENOMEM;
    } else {
        e = load(from, options, NULL, &problems, &r->set, error);
    }
    if (e == 0) {
        e = config_share_head(&r->set->config, &r->started);
    }
    e = report(e, &problems, error);
    if (e != 0) {
        if (r != NULL) {
            destroy(r);
        }
        return e;
    }
    enlist(r);
    *rules = r;
    return 0;
}

int weir_rules_open(struct weir_rules **rules, const char *path,
                    const struct weir_rules_options *options, struct weir_error *error)
{
    return open_from(rules, &(struct origin){.path = path}, options, error);
}

int weir_rules_open_text(struct weir_rules **rules, const char *name, const char *text,
                         size_t text_len, const struct weir_rules_options *options,
                         struct weir_error *error)
{
    struct origin from = {name, {text, text_len}, true};
    return open_from(rules, &from, options, error);
}

void weir_rules_close(struct weir_rules *rules)
{
    if (rules != NULL) {
        delist(rules);
        destroy(rules);
    }
}

/* ---- switching ---- */

/* Under `reload`. */
static int reload_from(struct weir_rules *rules, const struct origin *from,
                       struct problems *problems, struct weir_error *error)
{
    struct ruleset *set;
    char *path = from->is_text ? NULL : strdup(from->path);
    if (!from->is_text && path == NULL) {
        return WEIR_ENOMEM;
    }
    int e = load(from, &rules->options, rules->set, problems, &set, error);
    if (e == 0) {
        config_compare(&rules->started, &set->config, from->path, problems);
        switch_to(rules, set);
        char *old = rules->path;
        rules->path = path;
        path = old;
    }
    free(path);
    return e;
}

static int reload(struct weir_rules *rules, struct origin from, struct weir_error *error)
{
    struct problems problems = problems_of(&rules->options);
    int e = 0;
    (void)clear(error);
    (void)pthread_mutex_lock(&rules->reload);
    if (from.path == NULL) {
        from.path = rules->path;
    }
    if (from.path == NULL) {
        e = fail(error, WEIR_EINVAL, "the rules came from a text, expected a path");
    } else {
        e = reload_from(rules, &from, &problems, error);
    }
    (void)pthread_mutex_unlock(&rules->reload);
    return report(e, &problems, error);
}

int weir_rules_reload(struct weir_rules *rules, const char *path, struct weir_error *error)
{
    if (rules == NULL) {
        return fail(error, WEIR_EINVAL, "the rules are NULL");
    }
    return reload(rules, (struct origin){.path = path}, error);
}

int weir_rules_reload_text(struct weir_rules *rules, const char *name, const char *text,
                           size_t text_len, struct weir_error *error)
{
    if (rules == NULL || name == NULL || (text == NULL && text_len > 0)) {
        return fail(error, WEIR_EINVAL, "the rules, their name or their text is NULL");
    }
    return reload(rules, (struct origin){name, {text, text_len}, true}, error);
}

/* From a config that was made from the present one, or an error. Under `reload`. */
static int switch_config(struct weir_rules *rules, int e, struct config *next,
                         struct problems *problems, struct weir_error *error)
{
    struct ruleset *set;
    if (e != 0) {
        config_finish(next);
        return e;
    }
    e = ruleset_create(next, &rules->options, rules->set, problems, &set, error);
    if (e == 0) {
        switch_to(rules, set);
    }
    return e;
}

int weir_rules_put(struct weir_rules *rules, const char *yaml, size_t yaml_len,
                   struct weir_error *error)
{
    struct config next;
    if (rules == NULL || yaml == NULL) {
        return fail(error, WEIR_EINVAL, "the rules or the limit is NULL");
    }
    struct problems problems = problems_of(&rules->options);
    (void)clear(error);
    (void)pthread_mutex_lock(&rules->reload);
    int e = config_put(&rules->set->config, (struct text){yaml, yaml_len}, &next, &problems);
    e = switch_config(rules, e, &next, &problems, error);
    (void)pthread_mutex_unlock(&rules->reload);
    return report(e, &problems, error);
}

int weir_rules_remove(struct weir_rules *rules, const char *name, struct weir_error *error)
{
    struct config next;
    if (rules == NULL || name == NULL) {
        return fail(error, WEIR_EINVAL, "the rules or the name is NULL");
    }
    struct problems problems = problems_of(&rules->options);
    (void)clear(error);
    (void)pthread_mutex_lock(&rules->reload);
    int e = config_remove(&rules->set->config, text_of(name), &next);
    if (e == WEIR_ENOLIMIT) {
        (void)fail(error, e, "there is no limit named '%.63s'", name);
    }
    e = switch_config(rules, e, &next, &problems, error);
    (void)pthread_mutex_unlock(&rules->reload);
    return report(e, &problems, error);
}

/* ---- asking ---- */

/* The last slot is shared by the threads beyond the others. */
static void count(struct weir_rules *rules, struct slot *slot, uint64_t *counter, uint64_t n)
{
    if (n == 0) {
        return;
    }
    if (slot == &rules->slots[THREAD_OWN]) {
        (void)fetch_add(counter, n);
    } else {
        count_own(counter, n);
    }
}

static void count_answer(struct weir_rules *rules, struct slot *slot, const struct tally *tally,
                         int e)
{
    count(rules, slot, &slot->asked, 1);
    count(rules, slot, &slot->bad, e != 0);
    count(rules, slot, &slot->unmatched, tally->unmatched);
    count(rules, slot, &slot->allow_listed, tally->allow_listed);
    count(rules, slot, &slot->block_listed, tally->block_listed);
    count(rules, slot, &slot->missing, tally->missing);
    count(rules, slot, &slot->tier_unknown, tally->tier_unknown);
    count(rules, slot, &slot->shadow_denied, tally->shadow_denied);
    count(rules, slot, &slot->shadow_failed, tally->shadow_failed);
}

int weir_rules_ask_at(struct weir_rules *rules, const struct weir_rules_question *question,
                      uint64_t now_ns, struct weir_rules_answer *answer, struct weir_error *error)
{
    struct tally tally = {0};
    if (rules == NULL || question == NULL || answer == NULL) {
        return fail(error, WEIR_EINVAL, "the rules, the question or the answer is NULL");
    }
    struct slot *slot = enter(rules);
    int e = ruleset_ask(rules->set, question, now_ns, answer, &tally, error);
    count_answer(rules, slot, &tally, e);
    leave(slot);
    return e;
}

int weir_rules_key_parts(struct weir_rules *rules, const char *limit, size_t limit_len)
{
    if (rules == NULL || limit == NULL) {
        return WEIR_EINVAL;
    }
    struct slot *slot = enter(rules);
    const struct rule *rule = ruleset_find(rules->set, (struct text){limit, limit_len});
    int parts = rule != NULL ? (int)rule->config->key_parts : WEIR_ENOLIMIT;
    leave(slot);
    return parts;
}

int weir_rules_use(struct weir_rules *rules, const struct weir_rules_key *key, weir_rules_use_fn fn,
                   void *arg, struct weir_error *error)
{
    if (rules == NULL || key == NULL || fn == NULL ||
        (key->limit.at == NULL && key->limit.len > 0) ||
        (key->tier.at == NULL && key->tier.len > 0) ||
        (key->parts == NULL && key->parts_count > 0)) {
        return fail(error, WEIR_EINVAL, "the rules, the key or the function is NULL");
    }
    struct slot *slot = enter(rules);
    int e = ruleset_use(rules->set, key, fn, arg, error);
    leave(slot);
    return e;
}

static uint64_t now(const struct weir_rules *rules)
{
    return rules->options.clock != NULL
               ? rules->options.clock(rules->options.clock_arg)
               : rules->anchor_unix_ns + (clock_boot_ns() - rules->anchor_boot_ns);
}

int weir_rules_now(struct weir_rules *rules, uint64_t *now_ns)
{
    if (rules == NULL || now_ns == NULL || (rules->options.flags & WEIR_EXPLICIT_TIME) != 0) {
        return WEIR_EINVAL;
    }
    *now_ns = now(rules);
    return 0;
}

int weir_rules_ask(struct weir_rules *rules, const struct weir_rules_question *question,
                   struct weir_rules_answer *answer, struct weir_error *error)
{
    if (rules == NULL || (rules->options.flags & WEIR_EXPLICIT_TIME) != 0) {
        return fail(error, WEIR_EINVAL,
                    rules == NULL ? "the rules are NULL"
                                  : "the rules have WEIR_EXPLICIT_TIME: use weir_rules_ask_at()");
    }
    return weir_rules_ask_at(rules, question, now(rules), answer, error);
}

/* ---- looking at them ---- */

static int list_variant(const struct rule *rule, const struct variant *variant,
                        weir_rules_limit_fn fn, void *arg)
{
    char name[WEIR_RULES_NAME] = {0};
    char tier[WEIR_RULES_NAME] = {0};
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
                                     .stats = {.size = sizeof limit.stats}};
    int e = weir_stats_read(variant->holder->limiter, &limit.stats);
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
    (void)pthread_mutex_unlock(&rules->reload);
    return weir_rules_limits(rules, add_bytes, &stats->bytes);
}
