#include "rules/live/explain.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "rules/live/ask.h"
#include "rules/value/quote.h"

/* ---- sentences ---- */

#define WHY_MAX 640
#define VALUES_TOLD 3 /* expected values that are named */

struct words {
    char text[WHY_MAX];
    size_t len;
};

static __attribute__((format(printf, 2, 3))) void add(struct words *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(w->text + w->len, sizeof w->text - w->len, format, args);
    va_end(args);
    w->len += n > 0 ? (size_t)n : 0;
    w->len = w->len < sizeof w->text ? w->len : sizeof w->text - 1;
}

/* Returns a value as text for people, cut if it is long. */
static const char *show_value(const struct request *request, unsigned number, char *room)
{
    if (number == NUMBER_IP) {
        return address_print(&request->ip, room);
    }
    (void)quote(request->value[number], room);
    char *end = strrchr(room, '\'');
    memmove(end, end + 1, strlen(end)); /* leave out the quotes; a "..." after a long value stays */
    return room + 1;
}

_Static_assert(QUOTE_MAX >= ADDRESS_MAX, "room for both");

/* Adds "path is /login", or "path is missing". */
static void add_found(struct words *w, const struct ruleset *set, const struct request *request,
                      const struct condition *condition)
{
    char room[QUOTE_MAX];
    int64_t number = text_map_find(set->names, condition->attribute);
    bool there = number >= 0 && request_has(request, (unsigned)number);
    add(w, "%.*s is %s", TEXT_CUT(condition->attribute, 64),
        there ? show_value(request, (unsigned)number, room) : "missing");
}

static void add_expected(struct words *w, const struct texts *values)
{
    for (size_t i = 0; i < values->count && i < VALUES_TOLD; i++) {
        add(w, "%s%.*s", i == 0 ? ", expected " : " or ", TEXT_CUT(values->at[i], 64));
    }
    if (values->count > VALUES_TOLD) {
        add(w, " or %zu others", values->count - VALUES_TOLD);
    }
}

static void add_unless(struct words *w, const struct ruleset *set, const struct request *request,
                       const struct conditions *unless)
{
    add(w, "unless holds: ");
    for (size_t i = 0; i < unless->count; i++) {
        add(w, "%s", i > 0 ? " and " : "");
        add_found(w, set, request, &unless->at[i]);
    }
}

/* Adds a name of the question that is probably one of `names`, misspelt. */
static void add_misspelt(struct words *w, const struct rules_ask *ask, const struct texts *names)
{
    char meant[MISSPELT_NAME];
    char room[QUOTE_MAX];
    for (size_t i = 0; i < ask->question->attributes_count; i++) {
        const struct weir_rules_attribute *a = &ask->question->attributes[i];
        struct weir_text name = {a->name, a->name_len};
        bool found = text_map_find(ask->set->names, name) < 0 &&
                     misspelt_find(ask->set, ask->question, name, meant);
        for (size_t j = 0; found && j < names->count; j++) {
            if (text_is(names->at[j], meant)) {
                add(w, "; the request has %s, which no rule uses: did you mean '%s'?",
                    quote(name, room), meant);
                return;
            }
        }
    }
}

/* Adds the first part of the key that has no value: "its key needs user|ip". */
static void add_missing(struct words *w, const struct rules_ask *ask, const struct rule *rule)
{
    const struct request *request = ask->request;
    size_t part = 0;
    while ((rule->key_bits[part] & request->present) != 0) {
        part++;
    }
    const struct texts *names = &rule->config->key[part].alternatives;
    add(w, "its key needs ");
    for (size_t i = 0; i < names->count; i++) {
        add(w, "%s%.*s", i > 0 ? "|" : "", TEXT_CUT(names->at[i], 64));
    }
    add(w, ", which is missing (on_missing: %s)", rule->deny_missing ? "deny" : "skip");
    add_misspelt(w, ask, names);
}

/* ---- one limit ---- */

struct explaining {
    struct rules_ask ask;
    struct matches matches;
    const struct rule_fit *fits;
    const char *list; /* that decides; NULL: none */
    unsigned list_line;
    const struct explain_told *tell;
    void *arg;
};

/* Writes why the limit does not apply. Returns false if it does. */
static bool explain_why(const struct explaining *e, const struct rule *rule,
                        const struct rule_fit *fit, struct words *w)
{
    const struct ruleset *set = e->ask.set;
    const struct request *request = e->ask.request;
    const struct limit_config *config = rule->config;
    switch (fit->fit) {
    case FIT_WHEN:
        add_found(w, set, request, &config->when.at[fit->condition]);
        add_expected(w, &config->when.at[fit->condition].written);
        return true;
    case FIT_UNLESS:
        add_unless(w, set, request,
                   &config->unless.entries[list_find(rule->unless, rule->unless_count, request)]);
        return true;
    case FIT_GROUP:
        add(w, "limit '%.*s' of the same group came first", TEXT_ARGS(fit->other->config->name));
        return true;
    case FIT_REPLACED:
        add(w, "limit '%.*s' replaces it", TEXT_ARGS(fit->other->config->name));
        return true;
    case FIT_MISSING:
        add_missing(w, &e->ask, rule);
        return true;
    case FIT_DROPPED:
        add(w, "%d shadow limits before it apply, which is the most", MATCHES_MAX);
        return true;
    default:
        break;
    }
    if (e->list != NULL) {
        add(w, "the %s list decides before the limits: its entry in line %u matches", e->list,
            e->list_line);
    } else if (e->matches.refused != NULL) {
        add(w, "limit '%.*s' denies the request, because its key is missing (on_missing: deny)",
            TEXT_ARGS(e->matches.refused->config->name));
    }
    return w->len > 0;
}

/* Peeks at the limit. A peek of 0 units asks for the block alone. */
static void explain_numbers(const struct explaining *e, const struct rule *rule,
                            struct explained_limit *to)
{
    struct weir_part part;
    struct weir_key key;
    struct weir_answer blocked;
    const struct variant *variant;
    if (rule_is_shared(rule, e->ask.request) ||
        asking_part(&e->ask, rule, &part, &key, &variant) != 0 ||
        weir_ask_at(part.limiter, &part.ask, e->ask.now_ns, &to->answer) != 0) {
        return;
    }
    to->known = true;
    rate_answer(variant->kind, &to->answer);
    part.ask.cost = 0;
    part.ask.max_wait_ns = 0;
    if ((to->answer.flags & WEIR_FLAG_BLOCKED) != 0 &&
        weir_ask_at(part.limiter, &part.ask, e->ask.now_ns, &blocked) == 0) {
        to->blocked_ns = blocked.retry_after_ns;
    }
}

#define KEY_TEXT_MAX 512

static void explain_limit(const struct explaining *e, size_t i)
{
    const struct rule *rule = &e->ask.set->rules[i];
    const struct limit_config *config = rule->config;
    struct words why = {.len = 0};
    struct explained_limit to = {.name = config->name,
                                 .line = config->source->root != NULL ? config->place.line : 0};
    char rate[QUANTITY_MAX];
    char key[KEY_TEXT_MAX];
    char bytes[WEIR_KEY_MAX];
    size_t len = 0;
    bool unknown = false;
    why.text[0] = 0;
    if (explain_why(e, rule, &e->fits[i], &why)) {
        to.why = why.text;
        e->tell->limit(e->arg, &to);
        return;
    }
    const struct variant *variant = rule_variant(rule, e->ask.request, &unknown);
    to.shadow = rule->shadow;
    to.tier = variant->tier;
    to.algorithm = config->algorithm;
    to.rate = rate_print(variant->setting->rate, rate);
    to.consistency = variant->holder->remote != NULL ? rule->mode : REMOTE_LOCAL;
    if (key_compose(e->ask.set, rule, e->ask.request, bytes, &len, NULL) == 0) {
        explain_numbers(e, rule, &to);
    }
    (void)weir_rules_key_text(bytes, len, key, sizeof key);
    to.key = key;
    e->tell->limit(e->arg, &to);
}

/* ---- the request ---- */

static void tell_attributes(const struct explaining *e)
{
    const struct ruleset *set = e->ask.set;
    for (uint64_t left = e->ask.request->present; left != 0; left &= left - 1) {
        unsigned number = (unsigned)__builtin_ctzll(left);
        char address[ADDRESS_MAX];
        struct weir_text value = number == NUMBER_IP
                                     ? text_of(address_print(&e->ask.request->ip, address))
                                     : e->ask.request->value[number];
        e->tell->attribute(e->arg, set->attributes[number], value);
    }
}

static bool find_list(struct explaining *e, const char *name, const struct tests *entries,
                      const struct list_config *config)
{
    size_t entry = list_find(entries, config->count, e->ask.request);
    if (entry < config->count) {
        e->list = name;
        e->list_line = config->entries[entry].place.line;
        e->tell->list(e->arg, e->list, e->list_line);
    }
    return entry < config->count;
}

/* The caller holds `reload`. `fits` has room for each limit. */
static int explain(struct explaining *e, struct request *request, struct rule_fit *fits)
{
    const struct ruleset *set = e->ask.set;
    int error = request_read(set, e->ask.question, request, e->ask.error);
    error = error != 0 ? error : ruleset_explain(set, request, &e->matches, fits, e->ask.error);
    if (error != 0) {
        return error;
    }
    e->fits = fits;
    tell_attributes(e);
    if (!find_list(e, "block", set->block, &set->config.block)) {
        (void)find_list(e, "allow", set->allow, &set->config.allow);
    }
    for (size_t i = 0; i < set->rules_count; i++) {
        explain_limit(e, i);
    }
    return 0;
}

int rules_explain(struct weir_rules *rules, const struct weir_rules_question *question,
                  uint64_t now_ns, const struct explain_told *tell, void *arg,
                  struct weir_error *error)
{
    struct weir_rules_question peek = *question;
    struct request request;
    struct ask_counts uncounted = {0};
    struct explaining e = {.tell = tell, .arg = arg};
    peek.mode = WEIR_PEEK;
    (void)pthread_mutex_lock(&rules->reload);
    e.ask = (struct rules_ask){rules->set, &peek, &request, now_ns, NULL, &uncounted, error};
    struct rule_fit *fits = malloc((rules->set->rules_count + 1) * sizeof *fits);
    int result = fits != NULL ? explain(&e, &request, fits)
                              : fail(error, WEIR_ENOMEM, "out of memory for an explanation");
    (void)pthread_mutex_unlock(&rules->reload);
    free(fits);
    return result;
}
