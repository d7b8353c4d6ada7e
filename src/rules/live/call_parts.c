/* Which limits a call is about, and what it is told about them in the end. */
#include "base/error.h"
#include "base/maths.h"
#include "limit/binding.h"
#include "rules/compiled/holder.h"
#include "rules/file/fields.h"
#include "rules/live/call_ask.h"

/* ---- gathering ---- */

struct gathering {
    struct rules_ask ask;
    struct call *call;
    size_t question; /* its number */
};

static enum part_role role_of(const struct call_question *q, const struct rule *rule)
{
    if (q->back) {
        return PART_BACK;
    }
    if (rule->shadow) {
        return PART_SHADOW;
    }
    if (rule->config->quota_mode) {
        return PART_QUOTA;
    }
    return q->hits == 0 ? PART_LOOK : PART_ENFORCED;
}

/* Returns whether the call may give units back to a limit. */
static bool may_give(const struct gathering *g, const struct limit_config *limit)
{
    bool of_envoy_file = limit->source->domain.len > 0;
    return g->call->may_give || (g->ask.set->config.envoy.negative_hits && of_envoy_file);
}

/* Makes a part. The call has it when it is complete (put_part()). */
static int new_part(const struct gathering *g, struct call_part **part)
{
    struct call *call = g->call;
    if (call->parts_count == CALL_MAX) {
        return fail(g->ask.error, WEIR_EINVAL,
                    "too many limits apply to this call, expected at most %d", CALL_MAX);
    }
    *part = arena_take(call->memory, sizeof **part);
    if (*part == NULL) {
        return fail(g->ask.error, WEIR_ENOMEM, "out of memory for a call");
    }
    (*part)->call = call;
    (*part)->question = g->question;
    return 0;
}

static bool has_windows(const struct limit_config *limit, const struct setting *setting)
{
    uint64_t period_ns = setting->rate.period_ns;
    return algorithm_has(limit->algorithm, IS_FIXED_WINDOW) && limit->align != WEIR_ALIGN_KEY &&
           period_ns != 0 && period_ns != WEIR_MONTH &&
           (period_ns % (7 * WEIR_DAY) != 0 || limit->align == LIMIT_ALIGN_EPOCH);
}

/* Returns whether two parts ask for the same units: those of one limit, at one rate and key. */
static bool is_same(const struct call_part *a, const struct call_part *b)
{
    bool joined = a->role == PART_ENFORCED || a->role == PART_OVERRIDE;
    return joined && a->role == b->role && a->same == NULL && a->limit.holder == b->limit.holder &&
           a->remote.rate.interval_ns == b->remote.rate.interval_ns &&
           a->remote.rate.burst == b->remote.rate.burst && text_equal(a->remote.key, b->remote.key);
}

/* Adds a part to the call. If an earlier one is the same, that one charges for both, unless each is
 * charged by itself. */
static void put_part(struct call_part *part)
{
    struct call *call = part->call;
    size_t i = call->charge == CHARGE_TOGETHER ? 0 : call->parts_count;
    while (i < call->parts_count && !is_same(call->parts[i], part)) {
        i++;
    }
    if (i < call->parts_count) {
        struct call_part *same = call->parts[i];
        same->remote.cost = part->limit.bound.kind == RATE_COUNTS
                                ? add_sat(same->remote.cost, part->remote.cost)
                                : same->remote.cost;
        part->same = same;
    }
    call->parts[call->parts_count++] = part;
}

static int add_rule(const struct gathering *g, const struct rule *rule)
{
    struct arena *memory = g->call->memory;
    const struct call_question *q = &g->call->questions[g->question];
    struct call_part *part = NULL;
    int e = new_part(g, &part);
    if (e != 0 || part == NULL) {
        return e;
    }
    e = asking_limit(&g->ask, rule, memory, &part->limit, &part->remote);
    if (e != 0) {
        return e;
    }
    part->role = role_of(q, rule);
    part->looks = q->hits == 0;
    part->withheld = part->role == PART_BACK && !may_give(g, rule->config);
    part->config = rule->config;
    part->label = arena_text(memory, rule->config->label);
    part->rate = part->limit.variant->setting->rate;
    part->windows = has_windows(rule->config, part->limit.variant->setting);
    put_part(part);
    return 0;
}

/* Denies the call without asking a limit. */
static void refuse(const struct gathering *g, int reason, const struct limit_config *by)
{
    struct call *call = g->call;
    call->statuses[g->question].verdict = WEIR_NEVER;
    call->denied = true;
    if (!call->refused) {
        answer_refuse(&call->answer, reason, by);
        call->refused = true;
    }
}

/* Adds an override, which the built-in limit decides. */
static int add_override(const struct gathering *g, const struct call_question *q)
{
    struct call *call = g->call;
    if (q->named.count == 0) {
        if (!call->adhoc_shadow && !q->back) {
            refuse(g, WEIR_REASON_LIMIT, NULL);
        }
        call->statuses[g->question].limited = true;
        call->statuses[g->question].rate = q->named;
        call->statuses[g->question].windows = true;
        return 0;
    }
    if (call->adhoc == NULL && call->adhoc_remote == NULL) {
        return fail(g->ask.error, WEIR_ENOTSUP,
                    "found a descriptor with a limit, but the built-in limit is switched off "
                    "(adhoc: off)");
    }
    struct call_part *part = NULL;
    int e = new_part(g, &part);
    if (e != 0 || part == NULL) {
        return e;
    }
    static const struct deny_config none = {0};
    part->role = q->back ? PART_BACK : q->hits == 0 ? PART_LOOK : PART_OVERRIDE;
    part->withheld = q->back; /* a unit has no fixed size: each call brings its own rate */
    part->limit.bound = (struct bound){.kind = RATE_COUNTS,
                                       .limit = TEXT(CALL_OVERRIDE),
                                       .tier = TEXT(""),
                                       .window_ns = q->named.period_ns,
                                       .expose = true,
                                       .deny = &none};
    part->label = TEXT("");
    part->rate = q->named;
    part->remote = (struct remote_part){.limit = call->adhoc_remote,
                                        .local = call->adhoc,
                                        .key = arena_text(call->memory, q->key),
                                        .cost = q->hits,
                                        .rate = q->rate};
    put_part(part);
    return 0;
}

static int add_matches(const struct gathering *g)
{
    struct matches matches;
    int e = asking_match(&g->ask, &matches);
    if (e != 0) {
        return e;
    }
    if (matches.refused != NULL) {
        refuse(g, WEIR_REASON_MISSING, matches.refused->config);
        return 0;
    }
    g->call->flags |= asking_flags(&matches);
    for (size_t i = 0; e == 0 && i < matches.enforced_count; i++) {
        e = add_rule(g, matches.enforced[i]);
    }
    struct gathering quiet = *g;
    quiet.ask.error = NULL;
    for (size_t i = 0; e == 0 && i < matches.shadow_count; i++) {
        /* an error that only a shadow limit has does not fail the call */
        g->ask.counts->shadow_failed += add_rule(&quiet, matches.shadow[i]) != 0;
    }
    g->ask.counts->shadow_failed += matches.shadow_dropped;
    return e;
}

static int add_question(const struct gathering *all)
{
    struct request request;
    struct gathering own = *all; /* until this function returns */
    struct gathering *g = &own;
    const struct call_question *q = &g->call->questions[g->question];
    struct weir_rules_question question = {.attributes = q->attributes,
                                           .attributes_count = q->attributes_count,
                                           .cost = q->hits,
                                           .mode = WEIR_CHECK,
                                           .flags = WEIR_RULES_NO_DELAY};
    const struct ruleset *set = g->ask.set;
    g->call->statuses[g->question] = (struct call_status){.verdict = WEIR_ALLOW};
    if (q->rate.burst != 0 || q->named.period_ns != 0) {
        return add_override(g, q);
    }
    int e = request_read_opaque(set, &question, &request, g->ask.error);
    if (e != 0) {
        return e;
    }
    g->call->oddities |= request.unread != 0 ? CALL_UNREAD_VALUE : 0;
    g->ask.question = &question;
    g->ask.request = &request;
    switch (asking_lists(&g->ask)) {
    case LISTED_BLOCK:
        refuse(g, WEIR_REASON_BLOCK_LIST, NULL);
        return 0;
    case LISTED_ALLOW:
        return 0;
    case LISTED_NOWHERE:
        break;
    }
    return add_matches(g);
}

/* Drops the limits that other limits of the call replace. An unlimited one stays: there is nothing
 * to replace, and its status says so. */
static void drop_replaced(struct call *call)
{
    for (size_t i = 0; i < call->parts_count; i++) {
        const struct limit_config *by = call->parts[i]->config;
        for (size_t j = 0; by != NULL && by->replaces.count > 0 && j < call->parts_count; j++) {
            const struct limit_config *other = call->parts[j]->config;
            bool counts = call->parts[j]->limit.bound.kind != RATE_UNLIMITED;
            call->parts[j]->dropped |= counts && other != NULL && limit_replaces(by, other);
        }
    }
}

int call_gather(struct call *call, const struct ruleset *set, struct ask_counts *counts,
                struct weir_error *error)
{
    struct gathering g = {
        .ask = {.set = set, .now_ns = call->now_ns, .counts = counts, .error = error},
        .call = call};
    call->charge = set->config.envoy.charge;
    call->statuses = arena_room(call->memory, call->count * sizeof call->statuses[0]);
    answer_init(&call->answer);
    if (call->statuses == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory for a call");
    }
    for (g.question = 0; g.question < call->count; g.question++) {
        int e = add_question(&g);
        if (e != 0) {
            return e;
        }
    }
    call->oddities |= counts->cost_unread > 0 ? CALL_UNREAD_COST : 0;
    drop_replaced(call);
    return call->memory->failed ? fail(error, WEIR_ENOMEM, "out of memory for a call") : 0;
}

/* ---- concluding ---- */

static void put_status(struct call_status *s, const struct call_part *part)
{
    const struct weir_answer *a = &part->answer;
    bool denies = part_denies(part);
    bool retry = denies && a->retry_after_ns > 0 && a->retry_after_ns != WEIR_FOREVER;
    s->verdict = part_is_shadow(part) ? WEIR_ALLOW : a->verdict;
    s->limited = part->limit.bound.expose;
    s->unlimited = part->limit.bound.kind == RATE_UNLIMITED;
    s->label = part->label;
    s->rate = part->rate;
    s->windows = part->windows;
    s->remaining = denies ? 0 : a->remaining;
    s->reset_after_ns = retry ? a->retry_after_ns : a->reset_after_ns;
}

/* Returns whether the part can be the one that the answer to the call tells of. A denial by some of
 * the limits in quota_mode did not deny the call. */
static bool can_bind_all(const struct call_part *p)
{
    return !part_is_shadow(p) && (p->role != PART_QUOTA || p->call->over || !part_denies(p));
}

/* Returns the part of a question, or of all (SIZE_MAX), that clients are told; NULL: none. Shadow
 * limits are told only if nothing else applies. */
static const struct call_part *binding(const struct call *call, size_t question)
{
    const struct call_part *most = NULL;
    bool shadow = false;
    for (size_t i = 0; i < call->parts_count; i++) {
        const struct call_part *p = call->parts[i];
        bool is_shadow = part_is_shadow(p);
        if (p->dropped || (question == SIZE_MAX ? !can_bind_all(p) : p->question != question)) {
            continue;
        }
        if (most == NULL || (shadow && !is_shadow) ||
            (shadow == is_shadow && answer_binds(&p->answer, &most->answer))) {
            most = p;
            shadow = is_shadow;
        }
    }
    return most;
}

static void count_shadow(struct call *call)
{
    for (size_t i = 0; i < call->parts_count; i++) {
        const struct call_part *p = call->parts[i];
        if (p->role == PART_SHADOW && !p->dropped && part_denies(p)) {
            answer_put_shadow(&call->answer, p->limit.bound.limit);
        }
    }
}

void call_conclude(struct call *call)
{
    for (size_t i = 0; i < call->count; i++) {
        const struct call_part *part = binding(call, i);
        if (part != NULL) {
            put_status(&call->statuses[i], part);
        }
    }
    const struct call_part *part = binding(call, SIZE_MAX);
    if (part != NULL && !call->refused) {
        struct bound bound = part->limit.bound;
        if (name_is_good(part->label)) { /* header fields tell the name, which clients know */
            bound.limit = part->label;
        }
        call->answer.answer = part->answer;
        answer_put_bound(&call->answer, &bound);
    }
    call->answer.answer.verdict = !call->denied                               ? WEIR_ALLOW
                                  : call->answer.answer.verdict == WEIR_NEVER ? WEIR_NEVER
                                                                              : WEIR_DENY;
    call->answer.answer.limit = 0;
    call->answer.answer.flags |= call->flags;
    if (!call->denied) {
        count_shadow(call);
    }
}
