/* Fills in an answer: the reason, the limit that decided, and its numbers. */
#include "limit/binding.h"
#include "rules/live/ask.h"

/* ---- the reason ---- */

static const char *const names[] = {
    [WEIR_REASON_UNMATCHED] = "unmatched",
    [WEIR_REASON_LIMIT] = "limit",
    [WEIR_REASON_ALLOW_LIST] = "allow_list",
    [WEIR_REASON_BLOCK_LIST] = "block_list",
    [WEIR_REASON_MISSING] = "missing",
    [WEIR_REASON_BLOCKED] = "blocked",
    [WEIR_REASON_BAN] = "ban",
    [WEIR_REASON_OVERLOAD] = "overload",
    [WEIR_REASON_STORE] = "store",
    [WEIR_REASON_SHADOW] = "shadow",
    [WEIR_REASON_DEGRADED] = "degraded",
};

const char *weir_rules_reason_name(int reason)
{
    bool known = reason >= 0 && (size_t)reason < sizeof names / sizeof names[0];
    return known ? names[reason] : "unknown";
}

/* Flags that give an allowance or a denial another reason than the units of its limit; the first
 * one that is set counts. */
static const struct reason_row {
    unsigned flag;
    int reason;
} allowed[] = {{WEIR_FLAG_SHADOW, WEIR_REASON_SHADOW}, {REMOTE_DEGRADED, WEIR_REASON_DEGRADED}},
  denied[] = {{WEIR_FLAG_BANNED, WEIR_REASON_BAN},
              {WEIR_FLAG_BLOCKED, WEIR_REASON_BLOCKED},
              {REMOTE_CLOSED, WEIR_REASON_STORE},
              {WEIR_FLAG_FULL, WEIR_REASON_OVERLOAD}};

int rules_reason(const struct weir_answer *answer)
{
    if (answer->flags == 0) {
        return WEIR_REASON_LIMIT;
    }
    bool allows = answer->verdict == WEIR_ALLOW;
    const struct reason_row *row = allows ? allowed : denied;
    size_t n = allows ? sizeof allowed / sizeof *row : sizeof denied / sizeof *row;
    for (size_t i = 0; i < n; i++) {
        if ((answer->flags & row[i].flag) != 0) {
            return row[i].reason;
        }
    }
    return WEIR_REASON_LIMIT;
}

/* ---- the rest ---- */

void answer_init(struct weir_rules_answer *answer)
{
    memset(&answer->answer, 0, sizeof answer->answer);
    answer->answer.quota = WEIR_UNLIMITED;
    answer->answer.remaining = WEIR_UNLIMITED;
    answer->reason = WEIR_REASON_UNMATCHED;
    answer->applied = 0;
    answer->missing = 0;
    answer->shadow_denied = 0;
    answer->limit[0] = 0;
    answer->tier[0] = 0;
    answer->shadow[0] = 0;
    answer->window_ns = 0;
    answer->retry_jitter = 0;
    answer->hidden = 0;
    answer->shown.limit[0] = 0;
    answer->deny_status = 0;
    answer->deny_message[0] = 0;
}

void answer_put_name(char *to, struct weir_text name)
{
    if (name.len > 0) {
        memcpy(to, name.at, name.len); /* at most WEIR_RULES_NAME - 1: name_is_good() */
    }
    to[name.len] = 0;
}

/* Puts what gateways tell the client that a limit has denied. */
static void put_denial(struct weir_rules_answer *answer, const struct deny_config *deny)
{
    answer->deny_status = deny->status;
    if (deny->message.len > 0) {
        memcpy(answer->deny_message, deny->message.at, deny->message.len); /* it fits: limits.c */
    }
    answer->deny_message[deny->message.len] = 0;
}

void answer_refuse(struct weir_rules_answer *answer, int reason, const struct limit_config *by)
{
    answer->reason = reason;
    answer->answer.verdict = WEIR_NEVER;
    answer->answer.quota = 0;
    answer->answer.remaining = 0;
    answer->answer.retry_after_ns = WEIR_FOREVER;
    if (by != NULL) {
        answer_put_name(answer->limit, by->name);
        answer->hidden = !by->expose;
        put_denial(answer, &by->deny);
    }
}

void answer_put_bound(struct weir_rules_answer *answer, const struct bound *bound)
{
    rate_answer(bound->kind, &answer->answer);
    answer->reason = rules_reason(&answer->answer);
    answer_put_name(answer->limit, bound->limit);
    answer_put_name(answer->tier, bound->tier);
    answer->window_ns = bound->window_ns;
    answer->retry_jitter = bound->retry_jitter;
    answer->hidden = !bound->expose;
    if (answer->answer.verdict != WEIR_ALLOW) {
        put_denial(answer, bound->deny);
        bool held = answer->answer.retry_after_ns < bound->held_ns;
        answer->reason =
            held && answer->reason == WEIR_REASON_LIMIT ? WEIR_REASON_OVERLOAD : answer->reason;
    }
}

void answer_note_denial(struct weir_rules_answer *answer, const struct denial *denial,
                        struct rate log, weir_rules_denied_fn fn, void *arg)
{
    if (answer->reason != WEIR_REASON_OVERLOAD) {
        ban_after(denial, &answer->answer);
        answer->reason = rules_reason(&answer->answer);
    }
    if (fn != NULL) {
        struct weir_rules_denial told = {.size = sizeof told,
                                         .limit = answer->limit,
                                         .key = denial->key.at,
                                         .key_len = denial->key.len,
                                         .verdict = answer->answer.verdict,
                                         .reason = answer->reason,
                                         .retry_after_ns = answer->answer.retry_after_ns,
                                         .now_ns = denial->now_ns,
                                         .log_count = log.count,
                                         .log_period_ns = log.period_ns};
        fn(arg, &told);
    }
}

void answer_show(struct weir_rules_answer *answer, struct weir_answer *most,
                 const struct bound *bound, const struct weir_answer *said)
{
    struct weir_answer told = *said;
    rate_answer(bound->kind, &told);
    if (answer->answer.verdict == WEIR_ALLOW) {
        told.verdict = WEIR_ALLOW; /* a peek may find that this request took the last units */
    } else if (told.verdict == WEIR_ALLOW) {
        return;
    }
    if (bound->expose && answer_binds(&told, most)) {
        *most = told;
        answer_put_name(answer->shown.limit, bound->limit);
        answer->shown.quota = told.quota;
        answer->shown.remaining = told.remaining;
        answer->shown.reset_after_ns = told.reset_after_ns;
        answer->shown.window_ns = bound->window_ns;
    }
}

void answer_peek(struct weir_rules_answer *answer, struct weir_answer *most,
                 const struct bound *bound, struct weir *limiter, struct weir_question question,
                 uint64_t now_ns)
{
    struct weir_answer said;
    question.mode = WEIR_PEEK;
    if (bound->expose && weir_ask_at(limiter, &question, now_ns, &said) == 0) {
        answer_show(answer, most, bound, &said);
    }
}

void answer_put_shadow(struct weir_rules_answer *answer, struct weir_text limit)
{
    answer->answer.flags |= WEIR_FLAG_SHADOW;
    answer->reason = WEIR_REASON_SHADOW;
    if (answer->shadow_denied++ == 0) {
        answer_put_name(answer->shadow, limit);
    }
}
