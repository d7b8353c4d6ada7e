#include "server/operations/answer.h"

#include <weir_fleet.h>

#include "server/operations/reservations.h"
#include "server/operations/awaited.h"
#include "server/loop/worker.h"
#include "wire/ratelimit.h"

#define MS WEIR_MILLISECOND
#define FIELD_BYTES 256 /* at least the value of a header field */

const char *const answer_flag_names[ANSWER_FLAGS] = {"degraded", "shadow", "full", "missing"};
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

unsigned answer_flags(unsigned flags)
{
    return ((flags & WEIR_FLAG_FULL) != 0 ? ANSWER_FULL : 0) |
           ((flags & WEIR_FLAG_SHADOW) != 0 ? ANSWER_SHADOW : 0) |
           ((flags & WEIR_FLAG_DEGRADED) != 0 ? ANSWER_DEGRADED : 0) |
           ((flags & WEIR_FLAG_MISSING) != 0 ? ANSWER_MISSING : 0);
}

/* A key that is blocked without end gets the verdict NEVER. */
static void from_engine(const struct weir_answer *from, int reason, struct answer *to)
{
    bool endless = from->verdict == WEIR_DENY && from->retry_after_ns == WEIR_FOREVER;
    to->verdict = endless ? WEIR_NEVER : from->verdict;
    to->reason = reason;
    to->quota = from->quota;
    to->remaining = to_signed(from->remaining);
    to->reset_after_ms = to_ms(from->reset_after_ns);
    to->delay_ms = to_ms(from->delay_ns);
    to->retry_after_ms = retry_ms(from);
    to->retry_after_ns = from->retry_after_ns;
    to->reset_after_ns = from->reset_after_ns;
    to->flags = from->flags != 0 ? answer_flags(from->flags) : 0;
    to->reservation[0] = 0;
    if (from->quota == WEIR_UNLIMITED) { /* no limit has decided, or one whose rate is unlimited */
        to->quota = 0;
        to->remaining = -1;
    }
    to->hidden = false;
    to->deny_status = 0;
    to->deny_message[0] = 0;
}

void answer_from_rules(const struct weir_rules_answer *from, struct answer *to)
{
    from_engine(&from->answer, from->reason, to);
    to->window_ns = from->window_ns;
    to->retry_jitter = from->retry_jitter;
    memcpy(to->limit, from->limit, sizeof to->limit);
    to->hidden = from->hidden != 0;
    to->shown.limit[0] = 0;
    if (to->hidden) {
        to->shown = from->shown;
    }
    if (from->deny_status != 0 || from->deny_message[0] != 0) {
        to->deny_status = from->deny_status;
        memcpy(to->deny_message, from->deny_message, strlen(from->deny_message) + 1);
    }
}

void answer_for_client(const struct answer *from, struct answer *to)
{
    const struct weir_rules_shown *shown = &from->shown;
    bool any = shown->limit[0] != 0;
    *to = *from;
    to->hidden = false;
    memcpy(to->limit, shown->limit, sizeof to->limit);
    to->quota = any ? shown->quota : 0;
    to->remaining = any ? to_signed(shown->remaining) : -1;
    to->reset_after_ms = any ? to_ms(shown->reset_after_ns) : 0;
    to->window_ns = any ? shown->window_ns : 0;
}

/* Returns a random number from one state per thread: cheap, and good enough to spread clients. */
static uint64_t random_number(uint64_t now_ns)
{
    static __thread uint64_t state;
    if (state == 0) {
        state = now_ns ^ (uint64_t)(uintptr_t)&state;
    }
    return splitmix_next(&state);
}

/* Returns whether the request may be made again later. */
static bool is_later(const struct answer *a)
{
    return a->verdict == WEIR_DENY && a->retry_after_ms > 0;
}

/* Puts the value of Retry-After. With jitter it may be later than the exact time, which other
 * members have. */
static void put_retry_after(struct buffer *out, const struct answer *a, uint64_t now_ns)
{
    uint64_t ms = (uint64_t)a->retry_after_ms;
    if (a->retry_jitter > 0) {
        ms = ratelimit_jitter(ms, a->retry_jitter, random_number(now_ns));
    }
    ratelimit_put_retry_after(out, ms);
}

/* Returns whether clients are told of a limit, and sets *r to what they are told. */
static bool told_of(const struct answer *a, uint64_t now_ns, struct ratelimit *r)
{
    bool any = a->limit[0] != 0 && a->remaining >= 0;
    if (any) {
        *r = (struct ratelimit){.policy = text_of(a->limit),
                                .quota = a->quota,
                                .remaining = (uint64_t)a->remaining,
                                .retry_after_ms = is_later(a) ? (uint64_t)a->retry_after_ms : 0,
                                .reset_after_ms = a->reset_after_ms,
                                .now_s = now_ns / WEIR_SECOND,
                                .window_ns = a->window_ns};
    }
    return any;
}

void answer_put_fields(struct buffer *out, const struct answer *a, bool denied, int format,
                       uint64_t now_ns)
{
    struct ratelimit r;
    struct answer told;
    if (denied && is_later(a)) {
        buffer_put(out, TEXT("Retry-After: "));
        put_retry_after(out, a, now_ns);
        buffer_put(out, TEXT("\r\n"));
    }
    if (a->hidden) {
        answer_for_client(a, &told);
        a = &told;
    }
    if (told_of(a, now_ns, &r)) {
        ratelimit_put(out, (enum ratelimit_format)format, &r);
    }
}

size_t answer_each_field(const struct answer *a, bool denied, int format, uint64_t now_ns,
                         answer_field_fn fn, struct buffer *to)
{
    char room[FIELD_BYTES];
    struct buffer value = {
        .at = room, .size = sizeof room, .most = sizeof room}; /* does not grow */
    struct ratelimit r;
    struct answer told;
    size_t n = 0;
    if (denied && is_later(a)) {
        put_retry_after(&value, a, now_ns);
        fn(to, n++, TEXT("Retry-After"), buffer_text(&value));
    }
    if (a->hidden) {
        answer_for_client(a, &told);
        a = &told;
    }
    const struct ratelimit_field *field = ratelimit_fields((enum ratelimit_format)format);
    for (bool any = told_of(a, now_ns, &r); any && field->line != NULL; field++) {
        value.end = value.begin;
        field->put(&value, &r);
        fn(to, n++, (struct weir_text){field->line, field->name_len}, buffer_text(&value));
    }
    return n;
}

const struct answer_error *answer_error(int e)
{
    static const struct answer_error rows[] = {
        {WEIR_ENOLIMIT, 404, "NOLIMIT", 0},
        {WEIR_EINVAL, 400, "ERR", 0},
        {WEIR_EKEY, 400, "BADKEY", 0},
        {WEIR_EATTRIBUTE, 400, "BADKEY", 0},
        {WEIR_ENOTSUP, 400, "ERR", 0},
        {WEIR_EFULL, 503, "ERR", WEIR_REASON_OVERLOAD},    /* slots become free with time, */
        {WEIR_EIO, 503, "UNAVAILABLE", WEIR_REASON_STORE}, /* and the store comes back */
        {RESERVATION_NONE, 404, "NORESERVATION", 0},
        {RESERVATION_FULL, 503, "OVERLOAD", WEIR_REASON_OVERLOAD},
        {0, 500, "ERR", 0}, /* every other error */
    };
    const struct answer_error *row = rows;
    while (row->error != e && row->error != 0) {
        row++;
    }
    return row;
}

const char *answer_words_of_error(int e, const struct weir_error *error)
{
    if (error->text[0] != 0) {
        return error->text;
    }
    if (e == WEIR_EIO) {
        return "the store does not answer, and only the store can do this";
    }
    return e == WEIR_ENOTSUP ? "this limit does not support it: only a token_bucket or "
                               "leaky_bucket can wait (MAXWAIT, max_wait_ms)"
                             : weir_strerror(e);
}

/* ---- by the rules ---- */

static void on_rules(void *arg, int error, const struct weir_rules_answer *answer)
{
    struct pending *p = arg;
    struct awaited *a = awaited_of(p);
    p->error = error;
    if (error == 0) {
        answer_from_rules(answer, &a->answer);
    }
    if (p->held) {
        bool allowed = error == 0 && a->answer.verdict == WEIR_ALLOW;
        delay_answered(p, allowed ? a->answer.delay_ms : 0);
    } else {
        pending_answered(p);
    }
}

/* Returns 1 if *answer is there, 0 if it comes later, or WEIR_E... */
static int ask_rules(struct asker *asker, const struct weir_rules_question *question,
                     struct weir_rules_answer *answer, struct weir_error *error)
{
    struct worker *w = asker->worker;
    struct weir_rules *rules = asker->server->rules;
    if (w == NULL || w->where == NULL) {
        int e = weir_rules_ask_at(rules, question, asker->now_ns, answer, error);
        return e == 0 ? 1 : e;
    }
    struct pending *p = awaited_spare(w);
    asker->pending = p;
    return p == NULL ? WEIR_ENOMEM
                     : rules_ask_in(rules, w->where, &p->memory, question, asker->now_ns, answer,
                                    on_rules, p, error);
}

int answer_ask(struct asker *asker, const struct weir_rules_question *question,
               struct answer *answer, struct weir_error *error)
{
    struct weir_rules_answer a;
    int e = ask_rules(asker, question, &a, error);
    if (e <= 0) {
        return e == 0 ? ANSWER_LATER : e;
    }
    answer_from_rules(&a, answer);
    return 0;
}

/* ---- one limit ---- */

void answer_from_limit(const struct weir_answer *from, struct weir_text limit,
                       const struct weir_rules_found *found, struct answer *to)
{
    from_engine(from, rules_reason(from), to);
    to->window_ns = found->window_ns;
    to->retry_jitter = found->retry_jitter;
    to->hidden = found->hidden != 0;
    to->shown.limit[0] = 0;
    memcpy(to->limit, limit.at, limit.len); /* the limit exists, so its name fits */
    to->limit[limit.len] = 0;
    if (found->shadow && to->verdict != WEIR_ALLOW) {
        to->verdict = WEIR_ALLOW;
        to->reason = WEIR_REASON_SHADOW;
        to->retry_after_ms = 0;
        to->flags |= ANSWER_SHADOW;
    }
}
