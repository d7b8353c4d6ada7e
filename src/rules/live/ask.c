/* Answers a question: block and allow lists, then the limits, then the shadow limits. */
#include "rules/live/ask.h"

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "rules/live/ask_shared.h"
#include "rules/value/quote.h"

/* Reads the cost, a whole number of at least 1, from the attribute that the limit names. */
static int read_cost(const struct rules_ask *a, const struct rule *rule, uint64_t *cost)
{
    struct weir_text name = rule->config->cost_attribute;
    if (!request_has(a->request, rule->cost_attribute)) {
        return fail(a->error, WEIR_EATTRIBUTE, "%.*s: missing, but limit '%.*s' needs it as a cost",
                    TEXT_ARGS(name), TEXT_ARGS(rule->config->name));
    }
    struct weir_text text = a->request->value[rule->cost_attribute];
    if (text.len >= 20 || !text_to_u64(text, cost) || *cost == 0) {
        char found[QUOTE_MAX];
        return fail(a->error, WEIR_EATTRIBUTE,
                    "%.*s: found %s, expected a whole number from 1 to 9999999999999999999, the "
                    "cost for limit '%.*s'",
                    TEXT_ARGS(name), quote(text, found), TEXT_ARGS(rule->config->name));
    }
    return 0;
}

/* Reads the cost of an opaque request: 1 if it cannot be read. */
static void read_opaque_cost(const struct rules_ask *a, const struct rule *rule, uint64_t *cost)
{
    struct rules_ask quiet = *a;
    quiet.error = NULL;
    if (read_cost(&quiet, rule, cost) != 0) {
        *cost = 1;
        a->counts->cost_unread++;
    }
}

/* Sets *cost to the units that the request takes from one variant of a limit. Returns 0 or, if its
 * attribute cannot be read, WEIR_EATTRIBUTE; an opaque request takes 1 then. */
static int read_cost_of(const struct rules_ask *a, const struct rule *rule,
                        const struct variant *variant, uint64_t *cost)
{
    int e = 0;
    if (rule->cost_attribute != NO_ATTRIBUTE && a->request->opaque) {
        read_opaque_cost(a, rule, cost);
    } else if (rule->cost_attribute != NO_ATTRIBUTE) {
        e = read_cost(a, rule, cost);
    } else {
        *cost = rule->config->cost != 0 ? rule->config->cost : a->question->cost;
        *cost = *cost != 0 ? *cost : 1;
    }
    if (e == 0) {
        *cost = rate_cost(variant->kind, *cost);
    }
    return e;
}

/* Finds the variant of the limit that the request is about, composes its key and reads the cost. */
static inline int compose(const struct rules_ask *a, const struct rule *rule,
                          char bytes[WEIR_KEY_MAX], size_t *len, uint64_t *cost,
                          const struct variant **variant)
{
    bool unknown = false;
    *variant = rule_variant(rule, a->request, &unknown);
    a->counts->tier_unknown += unknown;
    int e = key_compose(a->set, rule, a->request, bytes, len, a->error);
    return e != 0 ? e : read_cost_of(a, rule, *variant, cost);
}

int asking_part(const struct rules_ask *a, const struct rule *rule, struct weir_part *part,
                struct weir_key *key, const struct variant **variant)
{
    char bytes[WEIR_KEY_MAX];
    size_t len;
    part->ask = (struct weir_question){.hashed = key, .mode = a->question->mode};
    int e = compose(a, rule, bytes, &len, &part->ask.cost, variant);
    part->limiter = (*variant)->holder->limiter;
    part->ask.max_wait_ns = asking_wait(a->question, *variant);
    return e != 0 ? e : weir_key_init(part->limiter, bytes, len, key);
}

/* Copies what an answer that comes later may tell of the limit. */
static void keep_bound(const struct rules_ask *a, const struct rule *rule,
                       const struct variant *variant, struct arena *memory,
                       struct kept_limit *limit)
{
    limit->bound = bound_of(a->question, rule, variant);
    limit->bound.limit = arena_text(memory, limit->bound.limit);
    limit->bound.tier = arena_text(memory, limit->bound.tier);
    limit->deny = *limit->bound.deny;
    limit->bound.deny = &limit->deny;
    if (limit->deny.message.len > 0) {
        limit->deny.message = arena_text(memory, limit->deny.message);
    }
}

int asking_limit(const struct rules_ask *a, const struct rule *rule, struct arena *memory,
                 struct kept_limit *limit, struct remote_part *ask)
{
    char bytes[WEIR_KEY_MAX];
    size_t len;
    const struct variant *variant;
    int e = compose(a, rule, bytes, &len, &ask->cost, &variant);
    limit->variant = variant;
    limit->holder = variant->holder;
    if (e != 0) {
        return e;
    }
    keep_bound(a, rule, variant, memory, limit);
    ask->limit = variant->holder->remote;
    ask->local = variant->holder->limiter;
    ask->queue = algorithm_has(rule->config->algorithm, HAS_QUEUE) && variant->kind == RATE_COUNTS;
    ask->wait_ns = asking_wait(a->question, variant);
    ask->hidden = !limit->bound.expose;
    ask->key = arena_text(memory, (struct weir_text){bytes, len});
    if (ask->limit != NULL) {
        len = shard_compose(rule, a->request, bytes);
        ask->shard = len > 0 ? arena_text(memory, (struct weir_text){bytes, len}) : ask->shard;
    }
    return 0;
}

static int fail_engine(const struct rules_ask *a, int code)
{
    return fail(a->error, code, "%s", weir_strerror(code));
}

/*
 * Counts a denial by the limit that bound, for its ban, and reports it. The key is composed again,
 * so that requests that pass need not keep theirs.
 */
static __attribute__((noinline)) void after_denial(const struct rules_ask *a,
                                                   const struct rule *rule, struct holder *holder,
                                                   struct weir_rules_answer *answer)
{
    char bytes[WEIR_KEY_MAX];
    size_t len;
    if ((holder->denials == NULL && a->set->denied == NULL) ||
        key_compose(a->set, rule, a->request, bytes, &len, NULL) != 0) {
        return;
    }
    struct denial denial = {.holder = holder, .key = {bytes, len}, .now_ns = a->now_ns};
    answer_note_denial(answer, &denial, rule->config->log.denied, a->set->denied,
                       a->set->denied_arg);
}

static void put_bound(const struct rules_ask *a, const struct rule *rule,
                      const struct variant *variant, struct weir_rules_answer *answer)
{
    struct bound bound = bound_of(a->question, rule, variant);
    answer_put_bound(answer, &bound);
    if (answer->answer.verdict != WEIR_ALLOW && a->question->mode == WEIR_CHECK) {
        after_denial(a, rule, variant->holder, answer);
    }
}

int asking_waits(const struct rules_ask *a, const struct matches *matches)
{
    bool any = false;
    for (size_t i = 0; i < matches->enforced_count; i++) {
        any = any || limit_can_wait(matches->enforced[i]->config);
    }
    if (any) {
        return 0;
    }
    return fail(a->error, WEIR_ENOTSUP,
                "found max_wait, but no limit that applies is a token_bucket or leaky_bucket: "
                "others cannot wait");
}

/* Finds the limit that clients may be told instead of the hidden one that bound. */
static __attribute__((noinline)) void put_shown(const struct rules_ask *a,
                                                const struct matches *matches,
                                                const struct weir_part *parts,
                                                const struct variant *const *variants,
                                                struct weir_rules_answer *answer)
{
    struct weir_answer most = ANSWER_SHOWN_INIT;
    for (size_t i = 0; i < matches->enforced_count; i++) {
        struct bound bound = bound_of(a->question, matches->enforced[i], variants[i]);
        answer_peek(answer, &most, &bound, parts[i].limiter, parts[i].ask, a->now_ns);
    }
}

int asking_enforced(const struct rules_ask *a, const struct matches *matches,
                    struct weir_rules_answer *answer)
{
    struct weir_part parts[MATCHES_MAX];
    struct weir_key keys[MATCHES_MAX];
    const struct variant *variants[MATCHES_MAX];
    size_t n = matches->enforced_count;
    uint64_t wait_ns = a->question->max_wait_ns;
    int e = wait_ns != 0 ? asking_waits(a, matches) : 0;
    for (size_t i = 0; e == 0 && i < n; i++) {
        e = asking_part(a, matches->enforced[i], &parts[i], &keys[i], &variants[i]);
        if (wait_ns != 0 && limit_can_wait(matches->enforced[i]->config) &&
            variants[i]->kind == RATE_COUNTS) {
            parts[i].ask.max_wait_ns = wait_ns;
        }
    }
    if (e != 0) {
        return e;
    }
    if (n == 1) {
        e = weir_ask_at(parts[0].limiter, &parts[0].ask, a->now_ns, &answer->answer);
        answer->answer.limit = 0;
    } else {
        e = weir_check_several_at(parts, n, a->now_ns, &answer->answer);
    }
    if (e != 0) {
        return fail_engine(a, e);
    }
    uint32_t bound = answer->answer.limit;
    put_bound(a, matches->enforced[bound], variants[bound], answer);
    if (answer->hidden && n > 1 && (a->question->flags & WEIR_RULES_SHOW) != 0) {
        put_shown(a, matches, parts, variants, answer);
    }
    return 0;
}

/* Asks each shadow limit by itself. The request passes whatever they answer. */
static void decide_shadow(const struct rules_ask *a, const struct matches *matches,
                          struct weir_rules_answer *answer)
{
    struct rules_ask quiet = *a;
    quiet.error = NULL;
    for (size_t i = 0; i < matches->shadow_count; i++) {
        struct weir_part part;
        struct weir_key key;
        struct weir_answer said;
        const struct variant *variant;
        int e = asking_part(&quiet, matches->shadow[i], &part, &key, &variant);
        if (e == 0) {
            part.ask.flags = WEIR_SHADOW;
            e = weir_ask_at(part.limiter, &part.ask, a->now_ns, &said);
        }
        if (e != 0) {
            a->counts->shadow_failed++;
            continue; /* an error that only a shadow limit has does not fail the request */
        }
        if (said.verdict != WEIR_ALLOW) {
            answer_put_shadow(answer, matches->shadow[i]->config->name);
        }
    }
    a->counts->shadow_failed += matches->shadow_dropped;
    a->counts->shadow_denied += answer->shadow_denied > 0;
}

const struct rule *asking_shared(const struct rules_ask *a, const struct rule *const *rules,
                                 size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (rule_is_shared(rules[i], a->request)) {
            return rules[i];
        }
    }
    return NULL;
}

static const struct rule *shared_of(const struct rules_ask *a, const struct matches *matches)
{
    const struct rule *enforced = asking_shared(a, matches->enforced, matches->enforced_count);
    return enforced != NULL ? enforced : asking_shared(a, matches->shadow, matches->shadow_count);
}

static __attribute__((noinline)) int decide_shared(const struct rules_ask *a,
                                                   const struct matches *matches,
                                                   struct weir_rules_answer *answer)
{
    if (a->waiter == NULL) {
        return fail(a->error, WEIR_ENOTSUP,
                    "limit '%.*s' is decided by a fleet, which answers later: expected "
                    "weir_rules_ask_async()",
                    TEXT_ARGS(shared_of(a, matches)->config->name));
    }
    return ask_shared(a, matches, answer);
}

static int decide(const struct rules_ask *a, struct weir_rules_answer *answer)
{
    struct matches matches;
    int e = asking_match(a, &matches);
    if (e != 0) {
        return e;
    }
    answer->applied = (unsigned)matches.enforced_count;
    answer->missing = matches.missing;
    if (matches.refused != NULL) {
        answer_refuse(answer, WEIR_REASON_MISSING, matches.refused->config);
        return 0;
    }
    if (matches.remote && shared_of(a, &matches) != NULL) {
        return decide_shared(a, &matches, answer);
    }
    if (matches.enforced_count > 0) {
        e = asking_enforced(a, &matches, answer);
    } else {
        answer->answer.verdict = WEIR_ALLOW;
    }
    if (e == 0 && matches.shadow_count > 0 && answer->answer.verdict == WEIR_ALLOW) {
        decide_shadow(a, &matches, answer);
    }
    answer->answer.limit = 0;
    answer->answer.flags |= asking_flags(&matches);
    return e;
}

static int check_question(const struct weir_rules_question *question, struct weir_error *error)
{
    if (question->mode != WEIR_CHECK && question->mode != WEIR_PEEK) {
        return fail(error, WEIR_EINVAL, "mode is %d, expected WEIR_CHECK or WEIR_PEEK",
                    question->mode);
    }
    const unsigned known = WEIR_RULES_SHOW | WEIR_RULES_HOLD | WEIR_RULES_NO_DELAY;
    if ((question->flags & ~known) != 0) {
        return fail(error, WEIR_EINVAL, "flags: found 0x%x, expected only bits of 0x%x",
                    question->flags, known);
    }
    if (question->attributes == NULL && question->attributes_count > 0) {
        return fail(error, WEIR_EINVAL, "attributes is NULL, but attributes_count is not 0");
    }
    return 0;
}

static void tell_listed(const struct rules_ask *a, size_t entry)
{
    struct place place = a->set->config.block.entries[entry].place;
    if (a->set->listed != NULL && a->question->mode == WEIR_CHECK) {
        a->set->listed(a->set->listed_arg, place.file, place.line);
    }
}

enum asking_listed asking_lists(const struct rules_ask *a)
{
    const struct ruleset *set = a->set;
    size_t listed = list_find(set->block, set->block_count, a->request);
    if (listed < set->block_count) {
        a->counts->block_listed++;
        tell_listed(a, listed);
        return LISTED_BLOCK;
    }
    if (list_find(set->allow, set->allow_count, a->request) < set->allow_count) {
        a->counts->allow_listed++;
        return LISTED_ALLOW;
    }
    return LISTED_NOWHERE;
}

int asking_match(const struct rules_ask *a, struct matches *matches)
{
    int e = ruleset_match(a->set, a->request, matches, a->error);
    if (e == 0) {
        a->counts->missing += matches->missing;
        a->counts->unmatched += matches->refused == NULL && matches->enforced_count == 0;
    }
    return e;
}

/* Returns 0, WEIR_E... or RULES_PENDING. Without a waiter (NULL), limits of a fleet are
 * WEIR_ENOTSUP. */
static int ask_set(const struct ruleset *set, const struct weir_rules_question *question,
                   uint64_t now_ns, const struct rules_waiter *waiter,
                   struct weir_rules_answer *answer, struct ask_counts *counts,
                   struct weir_error *error)
{
    struct request request;
    struct rules_ask a = {set, question, &request, now_ns, waiter, counts, error};
    answer_init(answer);
    int e = check_question(question, error);
    if (e == 0) {
        e = request_read(set, question, &request, error);
    }
    if (e != 0) {
        return e;
    }
    switch (asking_lists(&a)) {
    case LISTED_BLOCK:
        answer_refuse(answer, WEIR_REASON_BLOCK_LIST, NULL);
        return 0;
    case LISTED_ALLOW:
        answer->answer.verdict = WEIR_ALLOW;
        answer->reason = WEIR_REASON_ALLOW_LIST;
        return 0;
    case LISTED_NOWHERE:
        break;
    }
    return decide(&a, answer);
}

/* ---- rules in use: inside the gate, and counted ---- */

/*
 * Adds to a counter of the slot. The last slot is shared by all threads that have no slot of their
 * own.
 */
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

void rules_count(struct weir_rules *rules, struct slot *slot, const struct ask_counts *counts,
                 bool bad)
{
    count(rules, slot, &slot->asked, counts->asked);
    count(rules, slot, &slot->bad, bad);
    count(rules, slot, &slot->unmatched, counts->unmatched);
    count(rules, slot, &slot->allow_listed, counts->allow_listed);
    count(rules, slot, &slot->block_listed, counts->block_listed);
    count(rules, slot, &slot->missing, counts->missing);
    count(rules, slot, &slot->tier_unknown, counts->tier_unknown);
    count(rules, slot, &slot->shadow_denied, counts->shadow_denied);
    count(rules, slot, &slot->shadow_failed, counts->shadow_failed);
}

static int ask(struct weir_rules *rules, const struct weir_rules_question *question,
               uint64_t now_ns, const struct rules_waiter *waiter, struct weir_rules_answer *answer,
               struct weir_error *error)
{
    struct ask_counts counts = {.asked = 1};
    if (rules == NULL || question == NULL || answer == NULL) {
        return fail(error, WEIR_EINVAL, "the rules, the question or the answer is NULL");
    }
    struct slot *slot = gate_enter(rules);
    int e = ask_set(rules->set, question, now_ns, waiter, answer, &counts, error);
    rules_count(rules, slot, &counts, e < 0);
    gate_leave(slot);
    return e;
}

int weir_rules_ask_at(struct weir_rules *rules, const struct weir_rules_question *question,
                      uint64_t now_ns, struct weir_rules_answer *answer, struct weir_error *error)
{
    return ask(rules, question, now_ns, NULL, answer, error);
}

int rules_ask_in(struct weir_rules *rules, void *where, struct arena *memory,
                 const struct weir_rules_question *question, uint64_t now_ns,
                 struct weir_rules_answer *answer, weir_rules_done_fn done, void *arg,
                 struct weir_error *error)
{
    struct rules_waiter waiter = {rules, where, memory, done, arg};
    int e = ask(rules, question, now_ns, &waiter, answer, error);
    return e == 0 ? 1 : e == RULES_PENDING ? 0 : e;
}

int weir_rules_ask_async(struct weir_rules *rules, void *where,
                         const struct weir_rules_question *question, uint64_t now_ns,
                         struct weir_rules_answer *answer, weir_rules_done_fn done, void *arg,
                         struct weir_error *error)
{
    return done == NULL
               ? fail(error, WEIR_EINVAL, "there is no function to call with the answer")
               : rules_ask_in(rules, where, NULL, question, now_ns, answer, done, arg, error);
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

struct weir_fleet *weir_rules_fleet(struct weir_rules *rules)
{
    return rules != NULL ? rules->options.fleet : NULL;
}
