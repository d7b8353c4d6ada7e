#include "rules/live/out.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/error.h"
#include "rules/compiled/holder.h"
#include "rules/live/live.h"

/* Enough for the names and keys of most questions. */
#define BYTES_FEW 256

/* A range of the question's bytes, by offset: the bytes may move while the question is made. */
struct piece {
    uint32_t at;
    uint32_t len;
};

/* One limit as it was when it was asked; the rules may have been replaced since. */
struct out_part {
    struct out *of;
    struct holder *holder;
    struct piece name;
    struct piece tier;
    struct piece key;
    struct piece shard;
    uint64_t cost;
    uint64_t window_ns;
    unsigned retry_jitter;
    bool tier_unknown;
    bool queue;  /* remote_part.queue */
    int error;   /* shadow: the error, 0 if it was asked */
    int verdict; /* shadow: enum weir_verdict */
};

struct out {
    struct waiter waiter;
    struct weir_fleet *fleet;
    uint64_t now_ns;
    uint64_t max_wait_ns;
    int verb;
    int error;
    uint64_t left; /* O1 */
    bool kept;     /* O2 */
    bool failed;   /* out of memory for bytes */
    unsigned shadow_dropped;
    size_t enforced; /* parts that are asked of the fleet together */
    size_t shadow;   /* parts after them */
    struct weir_rules_answer answer;
    char *bytes;
    size_t bytes_len;
    size_t bytes_room;
    char few[BYTES_FEW];
    struct out_part parts[];
};

/* ---- making ---- */

static struct out *create(const struct asking *a, size_t enforced, const struct matches *matches)
{
    size_t n = enforced + matches->shadow_count;
    struct out *o = malloc(sizeof *o + n * sizeof o->parts[0]);
    if (o != NULL) {
        *o = (struct out){.waiter = *a->waiter,
                          .fleet = a->set->fleet,
                          .now_ns = a->now_ns,
                          .max_wait_ns = a->question->max_wait_ns,
                          .verb = a->question->mode == WEIR_PEEK ? REMOTE_PEEK : REMOTE_CHECK,
                          .shadow_dropped = matches->shadow_dropped,
                          .enforced = enforced,
                          .shadow = matches->shadow_count,
                          .bytes_room = BYTES_FEW};
        o->bytes = o->few;
    }
    return o;
}

static void destroy(struct out *o)
{
    if (o->bytes != o->few) {
        free(o->bytes);
    }
    free(o);
}

static bool make_room(struct out *o, size_t len)
{
    if (len <= o->bytes_room - o->bytes_len) {
        return true;
    }
    size_t room = 2 * (o->bytes_len + len);
    char *grown = malloc(room);
    if (grown == NULL) {
        o->failed = true;
        return false;
    }
    memcpy(grown, o->bytes, o->bytes_len);
    if (o->bytes != o->few) {
        free(o->bytes);
    }
    o->bytes = grown;
    o->bytes_room = room;
    return true;
}

static struct piece put(struct out *o, const char *at, size_t len)
{
    if (len == 0 || !make_room(o, len)) {
        return (struct piece){0, 0};
    }
    struct piece piece = {(uint32_t)o->bytes_len, (uint32_t)len};
    memcpy(o->bytes + o->bytes_len, at, len);
    o->bytes_len += len;
    return piece;
}

static struct text get(const struct out *o, struct piece piece)
{
    return (struct text){piece.len > 0 ? o->bytes + piece.at : NULL, piece.len};
}

static int make_part(const struct asking *a, const struct rule *rule, struct out *o,
                     struct out_part *part)
{
    char bytes[WEIR_KEY_MAX];
    size_t len;
    *part = (struct out_part){.of = o,
                              .retry_jitter = rule->config->retry_jitter,
                              .queue = rule->config->algorithm == WEIR_LEAKY_BUCKET};
    const struct variant *variant = rule_variant(rule, a->request, &part->tier_unknown);
    part->holder = variant->holder;
    part->window_ns = variant->window_ns;
    int e = key_compose(a->set, rule, a->request, bytes, &len, a->error);
    if (e == 0) {
        e = asking_cost(a, rule, &part->cost);
    }
    if (e != 0) {
        return e;
    }
    part->name = put(o, rule->config->name.at, rule->config->name.len);
    part->tier = put(o, variant->tier.at, variant->tier.len);
    part->key = put(o, bytes, len);
    if (rule->mode != REMOTE_LOCAL) {
        len = shard_compose(rule, a->request, bytes);
        part->shard = put(o, bytes, len);
    }
    return 0;
}

static int make_parts(const struct asking *a, const struct matches *matches, struct out *o)
{
    struct asking quiet = *a;
    quiet.error = NULL;
    for (size_t i = 0; i < o->enforced; i++) {
        int e = make_part(a, matches->enforced[i], o, &o->parts[i]);
        a->tally->tier_unknown += o->parts[i].tier_unknown;
        if (e != 0) {
            return e;
        }
    }
    for (size_t i = 0; i < o->shadow; i++) {
        struct out_part *part = &o->parts[o->enforced + i];
        part->error = make_part(&quiet, matches->shadow[i], o, part);
    }
    if (o->failed) {
        return fail(a->error, WEIR_ENOMEM, "out of memory for a question");
    }
    if (o->enforced > 1 && o->max_wait_ns != 0) {
        return fail(a->error, WEIR_ENOTSUP, "%zu limits apply: max_wait needs a single one",
                    o->enforced);
    }
    return 0;
}

/* ---- keeping ---- */

/* Takes the references of O2. The caller is inside the gate and is counted in `left`. */
static void keep(struct out *o)
{
    if (o->kept) {
        return;
    }
    for (size_t i = 0; i < o->enforced + o->shadow; i++) {
        holder_keep(o->parts[i].holder);
    }
    rules_keep(o->waiter.rules);
    o->kept = true;
}

static void let_go(struct out *o)
{
    if (!o->kept) {
        return;
    }
    for (size_t i = 0; i < o->enforced + o->shadow; i++) {
        holder_release(o->parts[i].holder);
    }
    rules_release(o->waiter.rules);
}

/*
 * Subtracts n from `left`. True if nothing is left: then o belongs to the caller (O1). Otherwise
 * the caller must not use o any more.
 */
static bool count_down(struct out *o, uint64_t n)
{
    return fetch_sub(&o->left, n) == n;
}

/* ---- asking ---- */

static int ask_fleet(struct out *o, const struct out_part *from, size_t n, uint64_t time_ns,
                     struct remote_answer *said, remote_done_fn done, void *arg)
{
    struct remote_part parts[MATCHES_MAX];
    for (size_t i = 0; i < n; i++) {
        parts[i] = (struct remote_part){.limit = from[i].holder->remote,
                                        .local = from[i].holder->limiter,
                                        .queue = from[i].queue,
                                        .shard = get(o, from[i].shard),
                                        .key = get(o, from[i].key),
                                        .cost = from[i].cost};
    }
    struct remote_question question = {
        .verb = o->verb, .parts = parts, .n = n, .time_ns = time_ns, .now_ns = o->now_ns};
    return remote_ops(o->fleet)->ask(o->fleet, o->waiter.where, &question, said, done, arg);
}

static int ask_here(const struct out *o, const struct out_part *part, struct weir_answer *said)
{
    struct text key = get(o, part->key);
    struct weir_question question = {.key = key.at,
                                     .key_len = key.len,
                                     .cost = part->cost,
                                     .mode = o->verb == REMOTE_PEEK ? WEIR_PEEK : WEIR_CHECK};
    return weir_ask_at(part->holder->limiter, &question, o->now_ns, said);
}

/* ---- the second stage: shadow limits ---- */

/* Adds the answers of the shadow limits, all of which have answered. */
static int end_shadow(struct out *o, struct tally *tally)
{
    for (size_t i = 0; i < o->shadow; i++) {
        const struct out_part *part = &o->parts[o->enforced + i];
        tally->tier_unknown += part->tier_unknown;
        if (part->error != 0) {
            tally->shadow_failed++;
        } else if (part->verdict != WEIR_ALLOW) {
            o->answer.answer.flags |= WEIR_FLAG_SHADOW;
            count_shared(&part->holder->shadow_denied, o->verb == REMOTE_CHECK);
            if (o->answer.shadow_denied++ == 0) {
                answer_put_name(o->answer.shadow, get(o, part->name));
            }
        }
    }
    tally->shadow_failed += o->shadow_dropped;
    tally->shadow_denied += o->answer.shadow_denied > 0;
    return 0;
}

static void resume(struct out *o, int (*go_on)(struct out *o, struct tally *tally));

static void take_shadow(struct out_part *part, int error, const struct remote_answer *said)
{
    part->error = error;
    part->verdict = error == 0 ? said->answer.verdict : WEIR_ALLOW;
}

static void shadow_done(void *arg, int error, const struct remote_answer *said)
{
    struct out_part *part = arg;
    take_shadow(part, error, said);
    if (count_down(part->of, 1)) {
        resume(part->of, end_shadow);
    }
}

/* Asks one shadow limit. Returns true if it has been answered. */
static bool ask_shadow(struct out *o, struct out_part *part)
{
    struct remote_answer said;
    if (part->error != 0) {
        return true;
    }
    if (part->holder->remote == NULL) {
        int e = ask_here(o, part, &said.answer);
        take_shadow(part, e, &said);
        return true;
    }
    int e = ask_fleet(o, part, 1, 0, &said, shadow_done, part);
    if (e == REMOTE_PENDING) {
        return false;
    }
    take_shadow(part, e == REMOTE_ANSWERED ? 0 : e, &said);
    return true;
}

static int begin_shadow(struct out *o, struct tally *tally)
{
    uint64_t answered = 0;
    if (o->answer.answer.verdict != WEIR_ALLOW) {
        return 0;
    }
    o->left = 1 + o->shadow;
    for (size_t i = 0; i < o->shadow; i++) {
        answered += ask_shadow(o, &o->parts[o->enforced + i]);
    }
    if (answered < o->shadow) {
        keep(o);
    }
    return count_down(o, 1 + answered) ? end_shadow(o, tally) : RULESET_OUT;
}

/* ---- the first stage: enforced limits ---- */

static void tell_denied(const struct out *o, const struct out_part *bound)
{
    const struct weir_rules *rules = o->waiter.rules;
    struct text key = get(o, bound->key);
    if (rules->options.denied != NULL && !rules->ended && o->verb == REMOTE_CHECK) {
        rules->options.denied(rules->options.denied_arg, o->answer.limit, key.at, key.len);
    }
}

/*
 * Continues after the enforced limits have answered: names the limit that bound, then asks the
 * shadow limits.
 */
static int end_enforced(struct out *o, struct tally *tally)
{
    if (o->error != 0) {
        return 0;
    }
    struct weir_rules_answer *answer = &o->answer;
    uint32_t number = answer->answer.limit;
    const struct out_part *bound = &o->parts[number < o->enforced ? number : 0];
    answer->answer.limit = 0;
    answer->reason = WEIR_RULES_LIMIT;
    answer_put_name(answer->limit, get(o, bound->name));
    answer_put_name(answer->tier, get(o, bound->tier));
    answer->window_ns = bound->window_ns;
    answer->retry_jitter = bound->retry_jitter;
    if (answer->answer.verdict != WEIR_ALLOW) {
        tell_denied(o, bound);
    }
    return begin_shadow(o, tally);
}

static void take_enforced(struct out *o, int error, const struct remote_answer *said)
{
    o->error = error;
    if (error == 0) {
        o->answer.answer = said->answer;
    }
}

static void enforced_done(void *arg, int error, const struct remote_answer *said)
{
    struct out *o = arg;
    take_enforced(o, error, said);
    if (count_down(o, 1)) {
        resume(o, end_enforced);
    }
}

static int begin_enforced(struct out *o, struct tally *tally)
{
    struct remote_answer said;
    o->left = 2;
    int e = ask_fleet(o, o->parts, o->enforced, o->max_wait_ns, &said, enforced_done, o);
    if (e == REMOTE_PENDING) {
        keep(o);
        return count_down(o, 1) ? end_enforced(o, tally) : RULESET_OUT;
    }
    take_enforced(o, e == REMOTE_ANSWERED ? 0 : e, &said);
    return end_enforced(o, tally);
}

/* ---- the whole ---- */

/* Continues a question on the thread of its last outstanding answer. */
static void resume(struct out *o, int (*go_on)(struct out *o, struct tally *tally))
{
    struct weir_rules *rules = o->waiter.rules;
    struct tally tally = {0};
    struct slot *slot = gate_enter(rules);
    int e = go_on(o, &tally);
    rules_count(rules, slot, &tally, e != RULESET_OUT && o->error != 0);
    gate_leave(slot);
    if (e != RULESET_OUT) {
        let_go(o); /* O3 */
        o->waiter.done(o->waiter.arg, o->error, o->error == 0 ? &o->answer : NULL);
        destroy(o);
    }
}

static bool is_shared(const struct rule *const *rules, size_t n)
{
    size_t i = 0;
    while (i < n && rules[i]->mode == REMOTE_LOCAL) {
        i++;
    }
    return i < n;
}

static int begin(const struct asking *a, const struct matches *matches, struct out *o)
{
    int e = make_parts(a, matches, o);
    if (e != 0) {
        return e;
    }
    if (o->enforced > 0) {
        return begin_enforced(o, a->tally);
    }
    if (matches->enforced_count > 0) { /* all of them are decided here */
        e = asking_enforced(a, matches, &o->answer);
        o->answer.answer.limit = 0;
    } else {
        o->answer.answer.verdict = WEIR_ALLOW;
    }
    return e != 0 ? e : begin_shadow(o, a->tally);
}

int out_ask(const struct asking *a, const struct matches *matches, struct weir_rules_answer *answer)
{
    bool shared = is_shared(matches->enforced, matches->enforced_count);
    bool many = load_relaxed(&a->waiter->rules->references) > WEIR_RULES_OUT_MAX;
    struct out *o = many ? NULL : create(a, shared ? matches->enforced_count : 0, matches);
    if (o == NULL) {
        return fail(a->error, WEIR_ENOMEM,
                    many ? "found %d questions out, expected fewer"
                         : "out of memory for a question",
                    WEIR_RULES_OUT_MAX);
    }
    o->answer = *answer;
    int e = begin(a, matches, o);
    if (e == RULESET_OUT) {
        return e;
    }
    if (e == 0 && o->error != 0) {
        e = fail(a->error, o->error, "%s", weir_strerror(o->error));
    }
    *answer = o->answer;
    let_go(o);
    destroy(o);
    return e;
}
