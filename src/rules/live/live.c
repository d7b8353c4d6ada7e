/* Opens, reloads, changes and closes rules. */
#include <stdlib.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "rules/file/diff.h"
#include "rules/live/live.h"

/* ---- opening ---- */

/* Copies the members that the caller's version of the struct has; the others are 0, the default. */
static int read_options(const struct weir_rules_options *given, struct weir_rules_options *options,
                        struct weir_error *error)
{
    static const struct weir_rules_options plain = WEIR_RULES_OPTIONS_INIT;
    size_t least = offsetof(struct weir_rules_options, denied); /* size of the first version */
    *options = plain;
    if (given == NULL) {
        return 0;
    }
    if (given->size < least || given->size > sizeof *options) {
        return fail(error, WEIR_EINVAL, "options.size is %zu, expected %zu", given->size,
                    sizeof *options);
    }
    memcpy(options, given, given->size);
    options->size = sizeof *options;
    return 0;
}

static int check_options(const struct weir_rules_options *options, struct weir_error *error)
{
    unsigned known = WEIR_EXPLICIT_TIME | WEIR_PREFAULT | WEIR_HUGE_PAGES | WEIR_RULES_SERVER_STATE;
    if (options->reserved != 0) {
        return fail(error, WEIR_EINVAL, "options.reserved is %u, expected 0", options->reserved);
    }
    if ((options->flags & ~known) != 0) {
        return fail(error, WEIR_EINVAL, "options.flags is %#x, expected some of %#x",
                    options->flags, known);
    }
    if ((options->flags & WEIR_EXPLICIT_TIME) != 0 && options->clock != NULL) {
        return fail(error, WEIR_EINVAL,
                    "options have a clock and WEIR_EXPLICIT_TIME, expected one of them");
    }
    return 0;
}

/* Clears *error, so that report() can see whether a message has been set. */
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
 * Reports the collected problems, and sets *error from what config_read() and similar functions
 * returned. Called without a lock, because the message function may call any function.
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

/* The origin of rules: a path, or a text with a name. */
struct origin {
    const char *path;
    struct weir_text text;
    bool is_text;
    bool sandbox;
};

static int read_origin(const struct origin *from, struct config *config, struct problems *problems)
{
    return from->is_text ? config_read_text(config, from->path, from->text, problems)
                         : config_read(config, from->path, problems);
}

static uint64_t time_of_rules(void *arg)
{
    uint64_t now = 0;
    (void)weir_rules_now(arg, &now);
    return now;
}

/*
 * Returns the options for limiters that are made now. Later limiters use the rules' own time line,
 * even if the system's clock has been set since: a limiter that began in the rules' future could
 * not answer.
 */
static struct weir_rules_options options_now(struct weir_rules *r)
{
    struct weir_rules_options options = r->options;
    if (r->set != NULL && options.clock == NULL && (options.flags & WEIR_EXPLICIT_TIME) == 0) {
        options.clock = time_of_rules;
        options.clock_arg = r;
    }
    return options;
}

/*
 * Loads the first rules, or those that will replace the rules in force. *error is set, if at all,
 * by live_open_state() and ruleset_create() only.
 */
static int load(struct weir_rules *r, const struct origin *from, struct problems *problems,
                struct ruleset **set, struct weir_error *error)
{
    struct config config = {.fleet = r->options.fleet != NULL ? FLEET_GIVEN : FLEET_NONE,
                            .no_files = from->sandbox,
                            .sandbox = from->sandbox,
                            .gateways = r->set != NULL && r->set->config.gateways};
    int e = read_origin(from, &config, problems);
    if (e == 0 && r->set == NULL) {
        e = live_open_state(r, &config, error);
    }
    config_finish(&r->rejected);
    if (e != 0) {
        config_keep_files(&config);
        r->rejected = config;
        return e;
    }
    struct weir_rules_options options = options_now(r);
    return ruleset_create(&config, &options, r->state, r->set, problems, set, error);
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
    r->references = 1;
    (void)pthread_mutex_init(&r->reload, NULL);
    return r;
}

static void destroy(struct weir_rules *r)
{
    ruleset_destroy(r->set);
    state_close(r->state);
    config_finish(&r->started);
    config_finish(&r->rejected);
    (void)pthread_mutex_destroy(&r->reload);
    free(r->path);
    free(r);
}

static int open_from(struct weir_rules **rules, const struct origin *from,
                     const struct weir_rules_options *given, struct weir_error *error)
{
    struct weir_rules_options own;
    const struct weir_rules_options *options = &own;
    if (rules != NULL) {
        *rules = NULL;
    }
    if (rules == NULL || from->path == NULL || (from->text.at == NULL && from->text.len > 0)) {
        return fail(error, WEIR_EINVAL, "the pointer for the rules, the path or the text is NULL");
    }
    int e = read_options(given, &own, error);
    if (e == 0) {
        e = check_options(options, error);
    }
    if (e != 0) {
        return e;
    }
    struct problems problems = problems_of(options);
    (void)clear(error);
    struct weir_rules *r = create(options);
    if (r == NULL || (!from->is_text && (r->path = strdup(from->path)) == NULL)) {
        e = WEIR_ENOMEM;
    } else {
        e = load(r, from, &problems, &r->set, error);
    }
    if (e == 0) {
        e = config_read_head(&r->set->config, &r->started);
    }
    if (e == 0) {
        live_settle_state(r, r->set, &problems);
    }
    e = report(e, &problems, error);
    if (e != 0) {
        if (r != NULL) {
            destroy(r);
        }
        return e;
    }
    gate_enlist(r);
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
    struct origin from = {name, {text, text_len}, true, false};
    return open_from(rules, &from, options, error);
}

int rules_open_sandbox(struct weir_rules **rules, struct weir_text yaml,
                       weir_rules_message_fn message, void *arg, struct weir_error *error)
{
    struct weir_rules_options options = WEIR_RULES_OPTIONS_INIT;
    struct origin from = {RULES_TEXT, yaml, true, true};
    options.flags = WEIR_EXPLICIT_TIME;
    options.message = message;
    options.message_arg = arg;
    return open_from(rules, &from, &options, error);
}

void weir_rules_close(struct weir_rules *rules)
{
    if (rules != NULL) {
        gate_delist(rules);
        gate_close(rules);
        rules->ended = true;
        gate_open(rules);
        rules_release(rules);
    }
}

void rules_keep(struct weir_rules *r)
{
    (void)fetch_add(&r->references, 1);
}

/*
 * Closes the gate before it frees the rules: a thread that has just passed on another question may
 * still be leaving the gate.
 */
void rules_release(struct weir_rules *r)
{
    if (fetch_sub(&r->references, 1) == 1) {
        gate_close(r);
        destroy(r);
    }
}

/* ---- switching ---- */

struct changes {
    struct place place;
    struct problems *problems;
};

static void note_change(void *arg, const char *line)
{
    const struct changes *c = arg;
    change(c->problems, c->place, "%s", line);
}

/* Notes what will be different with *next. The caller holds `reload`. */
static void note_changes(const struct weir_rules *rules, const struct config *next,
                         const char *path, struct problems *problems)
{
    struct changes c = {{path != NULL ? path : "the rules", 0, 0}, problems};
    if (config_diff(&rules->set->config, next, note_change, &c) < 0) {
        note_change(&c, "out of memory: not all changes are told");
    }
}

/* Loads new rules and switches to them. The caller holds `reload`. */
static int reload_from(struct weir_rules *rules, const struct origin *from,
                       struct problems *problems, struct weir_error *error)
{
    struct ruleset *set;
    char *path = from->is_text ? NULL : strdup(from->path);
    if (!from->is_text && path == NULL) {
        return WEIR_ENOMEM;
    }
    int e = live_check_process(rules, error);
    e = e != 0 ? e : load(rules, from, problems, &set, error);
    if (e == 0) {
        live_settle_state(rules, set, problems);
        config_compare(&rules->started, &set->config, from->path, problems);
        note_changes(rules, &set->config, from->path, problems);
        mode_carry(rules, set);
        gate_switch(rules, set);
        char *old = rules->path;
        rules->path = path;
        path = old;
    }
    free(path);
    return e;
}

static int reload(struct weir_rules *rules, struct origin from, struct problems problems,
                  struct weir_error *error)
{
    int e = 0;
    (void)clear(error);
    (void)pthread_mutex_lock(&rules->reload);
    if (from.path == NULL) {
        from.path = rules->path;
    }
    if (from.path == NULL) {
        e = fail(error, WEIR_EINVAL, "the rules came from a text: there is no file to read again");
    } else {
        e = reload_from(rules, &from, &problems, error);
    }
    (void)pthread_mutex_unlock(&rules->reload);
    return report(e, &problems, error);
}

/* Returns where the messages of a change go. */
static struct problems problems_to(struct weir_rules *rules, weir_rules_message_fn message,
                                   void *arg)
{
    return message != NULL ? (struct problems){.tell = message, .arg = arg}
                           : problems_of(&rules->options);
}

int rules_reload(struct weir_rules *rules, const char *path, weir_rules_message_fn message,
                 void *arg, struct weir_error *error)
{
    return reload(rules, (struct origin){.path = path}, problems_to(rules, message, arg), error);
}

int weir_rules_reload(struct weir_rules *rules, const char *path, struct weir_error *error)
{
    return rules != NULL ? rules_reload(rules, path, NULL, NULL, error)
                         : fail(error, WEIR_EINVAL, "the rules are NULL");
}

int weir_rules_reload_text(struct weir_rules *rules, const char *name, const char *text,
                           size_t text_len, struct weir_error *error)
{
    if (rules == NULL || name == NULL || (text == NULL && text_len > 0)) {
        return fail(error, WEIR_EINVAL, "the rules, their name or their text is NULL");
    }
    return reload(rules, (struct origin){name, {text, text_len}, true, false},
                  problems_of(&rules->options), error);
}

/*
 * Switches to *next, which was made from the present config; e is the error of making it, or 0.
 * Takes over *next in any case. The caller holds `reload`.
 */
static int switch_config(struct weir_rules *rules, int e, struct config *next,
                         struct problems *problems, struct weir_error *error)
{
    struct ruleset *set;
    e = e != 0 ? e : live_check_process(rules, error);
    if (e != 0) {
        config_finish(next);
        return e;
    }
    struct weir_rules_options options = options_now(rules);
    e = ruleset_create(next, &options, rules->state, rules->set, problems, &set, error);
    if (e == 0) {
        live_settle_state(rules, set, problems);
        note_changes(rules, &set->config, rules->path, problems);
        mode_carry(rules, set);
        gate_switch(rules, set);
    }
    return e;
}

int rules_put(struct weir_rules *rules, struct weir_text yaml, weir_rules_message_fn message,
              void *arg, struct weir_error *error)
{
    struct config next;
    struct problems problems = problems_to(rules, message, arg);
    (void)clear(error);
    (void)pthread_mutex_lock(&rules->reload);
    int e = config_put(&rules->set->config, yaml, &next, &problems);
    e = switch_config(rules, e, &next, &problems, error);
    (void)pthread_mutex_unlock(&rules->reload);
    return report(e, &problems, error);
}

int weir_rules_put(struct weir_rules *rules, const char *yaml, size_t yaml_len,
                   struct weir_error *error)
{
    return rules != NULL && yaml != NULL
               ? rules_put(rules, (struct weir_text){yaml, yaml_len}, NULL, NULL, error)
               : fail(error, WEIR_EINVAL, "the rules or the limit is NULL");
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

void rules_serve_gateways(struct weir_rules *rules)
{
    struct problems problems = problems_of(&rules->options);
    (void)pthread_mutex_lock(&rules->reload);
    rules->set->config.gateways = true;
    config_warn_undeclared(&rules->set->config, NULL, &problems);
    (void)pthread_mutex_unlock(&rules->reload);
    problems_finish(&problems);
}

bool rules_need_ip(struct weir_rules *rules)
{
    struct slot *slot = gate_enter(rules);
    bool needs = ruleset_needs_ip(rules->set);
    gate_leave(slot);
    return needs;
}

bool rules_deny_bad_calls(struct weir_rules *rules)
{
    struct slot *slot = gate_enter(rules);
    bool deny = rules->set->config.envoy.on_bad_call == BAD_CALL_DENY;
    gate_leave(slot);
    return deny;
}
