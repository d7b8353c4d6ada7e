#include "server/answer.h"

#include "server/top.h"

#define MS WEIR_MILLISECOND

const char *const answer_flag_names[ANSWER_FLAGS] = {"degraded", "shadow", "full"};
const char *const answer_verdict_names[3] = {"allow", "deny", "never"};

static uint64_t to_ms(uint64_t ns)
{
    return ns / MS + (ns % MS != 0);
}

/* Numbers on the wire have a sign. */
static int64_t to_signed(uint64_t n)
{
    return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

/* "Not now, try again at once" would be a loop. */
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
}

int answer_ask(struct weir_rules *rules, const struct weir_rules_question *question,
               uint64_t now_ns, struct answer *answer, struct weir_error *error)
{
    struct weir_rules_answer a;
    int e = weir_rules_ask_at(rules, question, now_ns, &a, error);
    if (e != 0) {
        return e;
    }
    from_engine(&a.answer, answer);
    answer->reason = a.reason;
    answer->window_ns = a.window_ns;
    answer->retry_jitter = a.retry_jitter;
    memcpy(answer->limit, a.limit, sizeof answer->limit);
    if (a.answer.verdict == WEIR_DENY && a.answer.retry_after_ns == WEIR_FOREVER) {
        answer->verdict = WEIR_NEVER;
        answer->reason = WEIR_RULES_BLOCKED;
    }
    if (a.reason == WEIR_RULES_NO_LIMIT || a.reason == WEIR_RULES_ALLOWED) {
        answer->quota = 0;
        answer->remaining = -1;
    }
    return 0;
}

void answer_from_limit(const struct weir_answer *from, struct weir_rules_value limit,
                       const struct weir_rules_found *found, struct answer *to)
{
    from_engine(from, to);
    to->window_ns = found->window_ns;
    to->retry_jitter = found->retry_jitter;
    to->reason = WEIR_RULES_LIMIT;
    memcpy(to->limit, limit.at, limit.len); /* it was found, so it is short enough */
    to->limit[limit.len] = 0;
    if (from->verdict == WEIR_DENY && from->retry_after_ns == WEIR_FOREVER) {
        to->verdict = WEIR_NEVER;
        to->reason = WEIR_RULES_BLOCKED;
    }
    if (found->shadow && to->verdict != WEIR_ALLOW) {
        to->verdict = WEIR_ALLOW;
        to->reason = WEIR_RULES_LIMIT;
        to->retry_after_ms = 0;
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
    struct answer *answer;
};

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
    int e = weir_ask_at(limiter, &q, c->now_ns, &a);
    if (e == 0) {
        answer_from_limit(&a, c->direct->key.limit, found, c->answer);
    }
    if (e == 0 && q.mode != WEIR_PEEK) {
        answer_note(c->answer, &a, key, key_len, found);
    }
    return e;
}

int answer_check(struct weir_rules *rules, const struct direct *direct, uint64_t now_ns,
                 struct answer *answer, struct weir_error *error)
{
    struct checking c = {direct, now_ns, answer};
    error->text[0] = 0;
    return weir_rules_use(rules, &direct->key, check_found, &c, error);
}
