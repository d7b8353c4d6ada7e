#include "rules/live/ask_shared.h"

#include "base/atomic.h"
#include "base/error.h"
#include "common/arena.h"
#include "rules/compiled/holder.h"

#define OWN_BYTES 2048 /* enough for most questions to be one allocation */

/* One limit as it was when it was asked; the rules may have been replaced since. */
struct shared_part {
    struct shared_ask *of;
    struct kept_limit limit;
    bool tier_unknown;
    int error;                       /* shadow: the error, 0 if it was asked */
    int verdict;                     /* shadow: enum weir_verdict */
    struct remote_question question; /* of this part alone, or the first part's: of all enforced */
};

struct shared_ask {
    struct rules_waiter waiter; /* .memory is never NULL here */
    struct arena own; /* the memory of a question that was given none, this struct included */
    struct weir_fleet *fleet;
    uint64_t now_ns;
    uint64_t max_wait_ns;
    int verb;
    int error;
    unsigned flags;           /* of the answer, besides those of limits */
    uint64_t left;            /* O1 */
    bool kept;                /* O2 */
    bool show;                /* WEIR_RULES_SHOW, and only some of the enforced parts are hidden */
    struct weir_answer shown; /* what the fleet says of those that are not */
    unsigned shadow_dropped;
    size_t enforced; /* parts that are asked of the fleet together */
    size_t shadow;   /* parts after them */
    struct weir_rules_answer answer;
    struct remote_part *remote; /* for each part what the fleet is asked about it */
    struct shared_part parts[];
};

/* ---- making ---- */

static struct shared_ask *create(const struct rules_ask *a, size_t enforced,
                                 const struct matches *matches)
{
    size_t n = enforced + matches->shadow_count;
    struct arena own = {.block_bytes = OWN_BYTES};
    struct arena *memory = a->waiter->memory != NULL ? a->waiter->memory : &own;
    struct shared_ask *s = arena_take(memory, sizeof *s + n * sizeof s->parts[0]);
    struct remote_part *remote = arena_array(memory, n, sizeof *remote);
    if (remote == NULL || s == NULL) {
        arena_finish(&own);
        return NULL;
    }
    s->waiter = *a->waiter;
    s->own = own;
    s->waiter.memory = memory != &own ? memory : &s->own;
    s->fleet = a->set->fleet;
    s->now_ns = a->now_ns;
    s->max_wait_ns = a->question->max_wait_ns;
    s->verb = a->question->mode == WEIR_PEEK ? REMOTE_PEEK : REMOTE_CHECK;
    s->shadow_dropped = matches->shadow_dropped;
    s->flags = asking_flags(matches);
    s->enforced = enforced;
    s->shadow = matches->shadow_count;
    s->remote = remote;
    return s;
}

static int make_part(const struct rules_ask *a, const struct rule *rule, struct shared_ask *s,
                     size_t i)
{
    s->parts[i].of = s;
    return asking_limit(a, rule, s->waiter.memory, &s->parts[i].limit, &s->remote[i]);
}

static int make_parts(const struct rules_ask *a, const struct matches *matches,
                      struct shared_ask *s)
{
    size_t hidden = 0;
    for (size_t i = 0; i < s->enforced; i++) {
        int e = make_part(a, matches->enforced[i], s, i);
        if (e != 0) {
            return e;
        }
        hidden += s->remote[i].hidden;
    }
    s->show = (a->question->flags & WEIR_RULES_SHOW) != 0 && hidden > 0 && hidden < s->enforced;
    for (size_t i = 0; i < s->shadow; i++) {
        struct shared_part *part = &s->parts[s->enforced + i];
        struct ask_counts counts = {0}; /* its counts are used if the limit is asked */
        struct rules_ask quiet = *a;
        quiet.error = NULL;
        quiet.counts = &counts;
        part->error = make_part(&quiet, matches->shadow[i], s, s->enforced + i);
        part->tier_unknown = counts.tier_unknown > 0;
    }
    if (s->waiter.memory->failed) {
        return fail(a->error, WEIR_ENOMEM, "out of memory for a question");
    }
    return s->enforced > 0 && s->max_wait_ns != 0 ? asking_waits(a, matches) : 0;
}

/* ---- keeping ---- */

/* Takes the references of O2. The caller is inside the gate and is counted in `left`. */
static void keep(struct shared_ask *s)
{
    if (s->kept) {
        return;
    }
    for (size_t i = 0; i < s->enforced + s->shadow; i++) {
        holder_keep(s->parts[i].limit.holder);
    }
    rules_keep(s->waiter.rules);
    s->kept = true;
}

static void let_go(struct shared_ask *s)
{
    if (!s->kept) {
        return;
    }
    for (size_t i = 0; i < s->enforced + s->shadow; i++) {
        holder_release(s->parts[i].limit.holder);
    }
    rules_release(s->waiter.rules);
}

/*
 * Subtracts n from `left`. True if nothing is left: then s belongs to the caller (O1). Otherwise
 * the caller must not use s any more.
 */
static bool count_down(struct shared_ask *s, uint64_t n)
{
    return fetch_sub(&s->left, n) == n;
}

/* ---- asking ---- */

/* Asks the fleet about n parts, from `from` on. Returns REMOTE_ANSWERED, REMOTE_PENDING or
 * WEIR_E... */
static int ask_fleet(struct shared_part *from, size_t n, uint64_t time_ns,
                     struct remote_answer *said, remote_done_fn done, void *arg)
{
    struct shared_ask *s = from->of;
    const struct remote_ops *ops = remote_ops(s->fleet);
    size_t first = (size_t)(from - s->parts);
    struct weir_answer *shown = s->show && first < s->enforced ? &s->shown : NULL;
    from->question = (struct remote_question){.verb = s->verb,
                                              .shadow = first >= s->enforced,
                                              .parts = &s->remote[first],
                                              .n = n,
                                              .time_ns = time_ns,
                                              .now_ns = s->now_ns,
                                              .shown = shown,
                                              .done = done,
                                              .arg = arg};
    from->question.memory = arena_room(s->waiter.memory, ops->bytes(n));
    return from->question.memory != NULL
               ? ops->ask(s->fleet, s->waiter.where, &from->question, said)
               : WEIR_ENOMEM;
}

/* Asks a shadow limit that is decided here. */
static int ask_here(const struct shared_part *part, struct weir_answer *said)
{
    const struct shared_ask *s = part->of;
    const struct remote_part *remote = &s->remote[part - s->parts];
    struct weir_question question = {.key = remote->key.at,
                                     .key_len = remote->key.len,
                                     .cost = remote->cost,
                                     .mode = s->verb == REMOTE_PEEK ? WEIR_PEEK : WEIR_CHECK,
                                     .flags = WEIR_SHADOW};
    return weir_ask_at(part->limit.holder->limiter, &question, s->now_ns, said);
}

/* ---- the second stage: shadow limits ---- */

/* Adds the answers of the shadow limits, all of which have answered. */
static int end_shadow(struct shared_ask *s, struct ask_counts *counts)
{
    for (size_t i = 0; i < s->shadow; i++) {
        const struct shared_part *part = &s->parts[s->enforced + i];
        counts->tier_unknown += part->tier_unknown;
        if (part->error != 0) {
            counts->shadow_failed++;
        } else if (part->verdict != WEIR_ALLOW) {
            answer_put_shadow(&s->answer, part->limit.bound.limit);
        }
    }
    counts->shadow_failed += s->shadow_dropped;
    counts->shadow_denied += s->answer.shadow_denied > 0;
    return 0;
}

static void resume(struct shared_ask *s,
                   int (*go_on)(struct shared_ask *s, struct ask_counts *counts));

static void take_shadow(struct shared_part *part, int error, const struct remote_answer *said)
{
    part->error = error;
    part->verdict = error == 0 ? said->answer.verdict : WEIR_ALLOW;
}

static void shadow_done(void *arg, int error, const struct remote_answer *said)
{
    struct shared_part *part = arg;
    take_shadow(part, error, said);
    if (count_down(part->of, 1)) {
        resume(part->of, end_shadow);
    }
}

/* Asks one shadow limit. Returns true if it has been answered. */
static bool ask_shadow(struct shared_part *part)
{
    struct remote_answer said;
    if (part->error != 0) {
        return true;
    }
    int e = part->limit.holder->remote == NULL ? ask_here(part, &said.answer)
                                               : ask_fleet(part, 1, 0, &said, shadow_done, part);
    if (part->limit.holder->remote != NULL && e == REMOTE_PENDING) {
        return false;
    }
    take_shadow(part, e == REMOTE_ANSWERED ? 0 : e, &said);
    return true;
}

static int begin_shadow(struct shared_ask *s, struct ask_counts *counts)
{
    uint64_t answered = 0;
    if (s->answer.answer.verdict != WEIR_ALLOW) {
        return 0;
    }
    s->left = 1 + s->shadow;
    for (size_t i = 0; i < s->shadow; i++) {
        answered += ask_shadow(&s->parts[s->enforced + i]);
    }
    if (answered < s->shadow) {
        keep(s);
    }
    return count_down(s, 1 + answered) ? end_shadow(s, counts) : RULES_PENDING;
}

/* ---- the first stage: enforced limits ---- */

/* Counts a denial by the limit that bound, for its ban, and reports it. */
static void after_denial(struct shared_ask *s, const struct shared_part *part)
{
    struct weir_rules *rules = s->waiter.rules;
    const struct remote_part *remote = &s->remote[part - s->parts];
    struct denial denial = {rules,       s->waiter.where, part->limit.holder,
                            remote->key, remote->shard,   s->now_ns};
    if (rules->ended || s->verb != REMOTE_CHECK) {
        return;
    }
    answer_note_denial(&s->answer, &denial, part->limit.bound.log, rules->options.denied,
                       rules->options.denied_arg);
}

/* Finds the limit that clients may be told instead of the hidden one that bound. Limits that are
 * decided here are peeked at; of the others the fleet has said which it would be. */
static void put_shown(struct shared_ask *s)
{
    struct weir_answer most = ANSWER_SHOWN_INIT;
    for (size_t i = 0; i < s->enforced; i++) {
        const struct remote_part *remote = &s->remote[i];
        struct weir_question question = {.key = remote->key.at,
                                         .key_len = remote->key.len,
                                         .cost = remote->cost,
                                         .max_wait_ns = remote->wait_ns};
        if (remote->limit == NULL) {
            answer_peek(&s->answer, &most, &s->parts[i].limit.bound, remote->local, question,
                        s->now_ns);
        } else if (s->shown.verdict != 0 && s->shown.limit == i) {
            answer_show(&s->answer, &most, &s->parts[i].limit.bound, &s->shown);
        }
    }
}

/*
 * Continues after the enforced limits have answered: names the limit that bound, then asks the
 * shadow limits.
 */
static int end_enforced(struct shared_ask *s, struct ask_counts *counts)
{
    if (s->error != 0) {
        return 0;
    }
    struct weir_rules_answer *answer = &s->answer;
    uint32_t bound = answer->answer.limit < s->enforced ? answer->answer.limit : 0;
    const struct shared_part *part = &s->parts[bound];
    answer->answer.limit = 0;
    answer_put_bound(answer, &part->limit.bound);
    if (answer->hidden && s->show) {
        put_shown(s);
    }
    if (answer->answer.verdict != WEIR_ALLOW) {
        after_denial(s, part);
    }
    return begin_shadow(s, counts);
}

static void take_enforced(struct shared_ask *s, int error, const struct remote_answer *said)
{
    s->error = error;
    if (error == 0) {
        s->answer.answer = said->answer;
    }
}

static void enforced_done(void *arg, int error, const struct remote_answer *said)
{
    struct shared_ask *s = arg;
    take_enforced(s, error, said);
    if (count_down(s, 1)) {
        resume(s, end_enforced);
    }
}

static int begin_enforced(struct shared_ask *s, struct ask_counts *counts)
{
    struct remote_answer said;
    s->left = 2;
    int e = ask_fleet(&s->parts[0], s->enforced, s->max_wait_ns, &said, enforced_done, s);
    if (e == REMOTE_PENDING) {
        keep(s);
        return count_down(s, 1) ? end_enforced(s, counts) : RULES_PENDING;
    }
    take_enforced(s, e == REMOTE_ANSWERED ? 0 : e, &said);
    return end_enforced(s, counts);
}

/* ---- the whole ---- */

/* Continues a question on the thread of its last pending answer. */
static void resume(struct shared_ask *s,
                   int (*go_on)(struct shared_ask *s, struct ask_counts *counts))
{
    struct weir_rules *rules = s->waiter.rules;
    struct ask_counts counts = {0};
    struct slot *slot = gate_enter(rules);
    int e = go_on(s, &counts);
    rules_count(rules, slot, &counts, e != RULES_PENDING && s->error != 0);
    gate_leave(slot);
    if (e != RULES_PENDING) {
        struct arena own = s->own; /* `done` may end the asker's memory */
        let_go(s);                 /* O3 */
        s->answer.answer.flags |= s->flags;
        s->waiter.done(s->waiter.arg, s->error, s->error == 0 ? &s->answer : NULL);
        arena_finish(&own);
    }
}

static int begin(const struct rules_ask *a, const struct matches *matches, struct shared_ask *s)
{
    int e = make_parts(a, matches, s);
    if (e != 0) {
        return e;
    }
    if (s->enforced > 0) {
        return begin_enforced(s, a->counts);
    }
    if (matches->enforced_count > 0) { /* all of them are decided here */
        e = asking_enforced(a, matches, &s->answer);
        s->answer.answer.limit = 0;
    } else {
        s->answer.answer.verdict = WEIR_ALLOW;
    }
    return e != 0 ? e : begin_shadow(s, a->counts);
}

int ask_shared(const struct rules_ask *a, const struct matches *matches,
               struct weir_rules_answer *answer)
{
    bool shared = asking_shared(a, matches->enforced, matches->enforced_count) != NULL;
    bool many = load_relaxed(&a->waiter->rules->references) > WEIR_RULES_PENDING_MAX;
    struct shared_ask *s = many ? NULL : create(a, shared ? matches->enforced_count : 0, matches);
    if (s == NULL) {
        return fail(a->error, WEIR_ENOMEM,
                    many ? "found %d pending questions, expected fewer"
                         : "out of memory for a question",
                    WEIR_RULES_PENDING_MAX);
    }
    s->answer = *answer;
    int e = begin(a, matches, s);
    if (e == RULES_PENDING) {
        return e;
    }
    if (e == 0 && s->error != 0) {
        e = fail(a->error, s->error, "%s", weir_strerror(s->error));
    }
    *answer = s->answer;
    answer->answer.flags |= s->flags;
    let_go(s);
    struct arena own = s->own;
    arena_finish(&own);
    return e;
}
