#include "server/ask/answer.h"

#include <weir_fleet.h>

#include "server/admin/top_denied.h"
#include "server/net/deferred.h"
#include "server/net/worker.h"

#define MS WEIR_MILLISECOND

const char *const answer_flag_names[ANSWER_FLAGS] = {"degraded", "shadow", "full"};
const char *const answer_verdict_names[WEIR_NEVER + 1] = {
    [WEIR_ALLOW] = "allow", [WEIR_DENY] = "deny", [WEIR_NEVER] = "never"};

static uint64_t to_ms(uint64_t ns)
{
    return ns / MS + (ns % MS != 0);
}

/* Limits a number to INT64_MAX, because numbers on the wire are signed. */
static int64_t to_signed(uint64_t n)
{
    return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

/* Returns retry_after_ms. For a denial it is at least 1: with 0 the client
 * would retry in a loop. */
static int64_t retry_ms(const struct weir_answer *from)
{
    if (from->verdict == WEIR_ALLOW) {
        return 0;
    }
    if (from->verdict == WEIR_NEVER || from->retry_after_ns == WEIR_FOREVER) {
        return -1;
    }
    uint64_t ms = to_ms(from->retry_after_ns);
    return to_signed(ms > 0 ? ms : 1);
}

static void from_engine(const struct weir_answer *from, struct answer *to)
{
    to->verdict = from->verdict;
    to->quota = from->quota;
    to->remaining = to_signed(from->remaining);
    to->reset_after_ms = to_ms(from->reset_after_ns);
    to->delay_ms = to_ms(from->delay_ns);
    to->retry_after_ms = retry_ms(from);
    to->flags = (from->flags & WEIR_FLAG_FULL) != 0 ? ANSWER_FULL : 0;
    to->flags |= (from->flags & WEIR_FLAG_SHADOW) != 0 ? ANSWER_SHADOW : 0;
    to->flags |= (from->flags & WEIR_FLAG_DEGRADED) != 0 ? ANSWER_DEGRADED : 0;
    to->closed = from->verdict != WEIR_ALLOW && (from->flags & WEIR_FLAG_CLOSED) != 0;
}

static void from_rules(const struct weir_rules_answer *from, struct answer *to)
{
    from_engine(&from->answer, to);
    to->reason = from->reason;
    to->window_ns = from->window_ns;
    to->retry_jitter = from->retry_jitter;
    memcpy(to->limit, from->limit, sizeof to->limit);
    if (from->answer.verdict == WEIR_DENY && from->answer.retry_after_ns == WEIR_FOREVER) {
        to->verdict = WEIR_NEVER;
        to->reason = WEIR_RULES_BLOCKED;
    }
    if (from->reason == WEIR_RULES_NO_LIMIT || from->reason == WEIR_RULES_ALLOWED) {
        to->quota = 0;
        to->remaining = -1;
    }
}

/* ---- by the rules ---- */

static void on_rules(void *arg, int error, const struct weir_rules_answer *answer)
{
    struct deferred *d = arg;
    d->error = error;
    if (error == 0) {
        from_rules(answer, &d->answer);
    }
    deferred_answered(d);
}

/* Returns 1 if *answer is there, 0 if it comes later, or WEIR_E... */
static int ask_fleet(struct weir_rules *rules, const struct weir_rules_question *question,
                     uint64_t now_ns, struct later *later, struct weir_rules_answer *answer,
                     struct weir_error *error)
{
    struct deferred *d = deferred_spare(later->worker);
    if (d == NULL) {
        return WEIR_ENOMEM;
    }
    d->wire.mode = question->mode;
    later->kept = d;
    return weir_rules_ask_async(rules, later->worker->where, question, now_ns, answer, on_rules, d,
                                error);
}

int answer_ask(struct weir_rules *rules, const struct weir_rules_question *question,
               uint64_t now_ns, struct later *later, struct answer *answer,
               struct weir_error *error)
{
    struct weir_rules_answer a;
    bool fleet = later != NULL && later->worker->where != NULL;
    int e = fleet ? ask_fleet(rules, question, now_ns, later, &a, error)
                  : weir_rules_ask_at(rules, question, now_ns, &a, error);
    if (e < 0) {
        return e;
    }
    if (fleet && e == 0) {
        return ANSWER_LATER;
    }
    from_rules(&a, answer);
    return 0;
}

/* ---- one limit ---- */

void answer_from_limit(const struct weir_answer *from, struct weir_rules_value limit,
                       const struct weir_rules_found *found, struct answer *to)
{
    from_engine(from, to);
    to->window_ns = found->window_ns;
    to->retry_jitter = found->retry_jitter;
    to->reason = WEIR_RULES_LIMIT;
    memcpy(to->limit, limit.at, limit.len); /* the limit exists, so its name fits */
    to->limit[limit.len] = 0;
    if (from->verdict == WEIR_DENY && from->retry_after_ns == WEIR_FOREVER) {
        to->verdict = WEIR_NEVER;
        to->reason = WEIR_RULES_BLOCKED;
    }
    if (found->shadow && to->verdict != WEIR_ALLOW) {
        to->verdict = WEIR_ALLOW;
        to->reason = WEIR_RULES_LIMIT;
        to->retry_after_ms = 0;
        to->closed = false;
        to->flags |= ANSWER_SHADOW;
    }
}

void answer_note(const struct answer *told, const struct weir_answer *from, const void *key,
                 size_t key_len, const struct weir_rules_found *found)
{
    if (told->verdict != WEIR_ALLOW) {
        top_denied(NULL, told->limit, key, key_len);
    } else if (from->verdict != WEIR_ALLOW) {
        weir_rules_count_shadow(found);
    }
}

struct checking {
    const struct direct *direct;
    uint64_t now_ns;
    struct later *later;
    struct answer *answer;
};

static void on_checked(struct deferred *d, int error, const struct remote_answer *answer)
{
    const struct later_question *q = &d->later;
    d->error = error;
    if (error == 0) {
        struct text key = later_key(q);
        answer_from_limit(&answer->answer, (struct weir_rules_value){q->limit, strlen(q->limit)},
                          &q->found, &d->answer);
        if (d->wire.mode != WEIR_PEEK) {
            answer_note(&d->answer, &answer->answer, key.at, key.len, &q->found);
        }
    }
    deferred_answered(d);
}

/* Asks the fleet. Returns 0 if the answer is there at once, ANSWER_LATER, or WEIR_E... */
static int check_remote(const struct checking *c, const struct weir_question *q,
                        const struct weir_rules_found *found, struct weir_answer *a)
{
    struct remote_answer answer;
    struct later_call call = {.verb = q->mode == WEIR_PEEK ? REMOTE_PEEK : REMOTE_CHECK,
                              .cost = q->cost,
                              .time_ns = q->max_wait_ns,
                              .now_ns = c->now_ns};
    int e = later_ask(c->later, c->direct->key.limit, q->key, q->key_len, found, &call, on_checked,
                      &answer);
    if (e == 0) {
        *a = answer.answer;
    } else if (e == ANSWER_LATER) {
        c->later->kept->wire.mode = q->mode;
    }
    return e;
}

static int check_found(void *arg, struct weir *limiter, const void *key, size_t key_len,
                       const struct weir_rules_found *found)
{
    const struct checking *c = arg;
    uint64_t own = found->cost != 0 ? found->cost : 1;
    struct weir_question q = {.key = key,
                              .key_len = key_len,
                              .cost = c->direct->cost != 0 ? c->direct->cost : own,
                              .max_wait_ns = c->direct->max_wait_ns,
                              .mode = c->direct->mode};
    struct weir_answer a;
    int e = found->remote == NULL ? weir_ask_at(limiter, &q, c->now_ns, &a)
                                  : check_remote(c, &q, found, &a);
    if (e == 0) {
        answer_from_limit(&a, c->direct->key.limit, found, c->answer);
    }
    if (e == 0 && q.mode != WEIR_PEEK) {
        answer_note(c->answer, &a, key, key_len, found);
    }
    return e;
}

int answer_check(struct weir_rules *rules, const struct direct *direct, uint64_t now_ns,
                 struct later *later, struct answer *answer, struct weir_error *error)
{
    struct checking c = {direct, now_ns, later, answer};
    error->text[0] = 0;
    return weir_rules_use(rules, &direct->key, check_found, &c, error);
}
