#include "server/ask/key_verbs.h"

#include "base/atomic.h"
#include "base/error.h"
#include "base/maths.h"
#include "limit/limiter.h"
#include "server/ask/verbs_later.h"

const struct verb_row verb_rows[VERBS] = {
    [VERB_REFUND] = {"refund", .units = true}, [VERB_PENALIZE] = {"penalize", .units = true},
    [VERB_BLOCK] = {"block", .time = true},    [VERB_UNBLOCK] = {.name = "unblock"},
    [VERB_RESET] = {.name = "reset"},
};

/* ---- which limit ---- */

static bool is_adhoc(const struct server *server, struct text limit)
{
    return server->adhoc != NULL && text_is(limit, SERVER_ADHOC);
}

int verb_key_parts(struct server *server, struct text limit)
{
    return is_adhoc(server, limit) ? 1 : weir_rules_key_parts(server->rules, limit.at, limit.len);
}

static int use_adhoc(const struct server *server, const struct weir_rules_key *key,
                     weir_rules_use_fn fn, void *arg, struct weir_error *error)
{
    struct weir_rules_found found = {.shadow = load_relaxed(&server->adhoc_shadow) != 0};
    if (key->parts_count != 1) {
        return fail(error, WEIR_EKEY, "found %zu parts of a key, expected 1 for limit '%s'",
                    key->parts_count, SERVER_ADHOC);
    }
    return fn(arg, server->adhoc, key->parts[0].at, key->parts[0].len, &found);
}

static int use(struct server *server, const struct weir_rules_key *key, weir_rules_use_fn fn,
               void *arg, struct weir_error *error)
{
    error->text[0] = 0;
    return is_adhoc(server, (struct text){key->limit.at, key->limit.len})
               ? use_adhoc(server, key, fn, arg, error)
               : weir_rules_use(server->rules, key, fn, arg, error);
}

/* ---- doing it ---- */

struct doing {
    const struct verb_call *call;
    const struct actor *by;
    uint64_t now_ns;
    struct later *later;
    struct answer *answer;
};

static int block(struct weir *limiter, const void *key, size_t key_len, const struct doing *d)
{
    uint64_t until = add_sat(d->now_ns, verb_for_ns(d->call));
    return weir_block_at(limiter, key, key_len, until, d->now_ns);
}

static int change(struct weir *limiter, const void *key, size_t key_len, const struct doing *d)
{
    uint64_t units = d->call->units;
    uint64_t now = d->now_ns;
    switch (d->call->verb) {
    case VERB_REFUND:
        return weir_refund_at(limiter, key, key_len, units, now, now, NULL);
    case VERB_PENALIZE:
        return weir_penalize_at(limiter, key, key_len, units, now, NULL);
    case VERB_BLOCK:
        return block(limiter, key, key_len, d);
    case VERB_UNBLOCK:
        return weir_unblock(limiter, key, key_len);
    case VERB_RESET:
        return weir_reset(limiter, key, key_len);
    default:
        return WEIR_EINVAL;
    }
}

/* Removes the quota from an answer of the built-in limit: the numbers that its table was opened
 * with are not those of any caller. */
static void hide_numbers(const struct weir_answer *from, struct answer *answer)
{
    bool blocked = (from->flags & WEIR_FLAG_BLOCKED) != 0;
    answer->verdict = blocked ? answer->verdict : WEIR_ALLOW;
    answer->retry_after_ms = blocked ? answer->retry_after_ms : 0;
    answer->quota = 0;
    answer->remaining = -1;
}

static int peek(struct weir *limiter, const void *key, size_t key_len,
                const struct weir_rules_key *of, const struct weir_rules_found *found,
                uint64_t now_ns, struct answer *answer)
{
    struct weir_question q = {.key = key, .key_len = key_len, .cost = 1, .mode = WEIR_PEEK};
    struct weir_answer a;
    int e = weir_ask_at(limiter, &q, now_ns, &a);
    if (e == 0) {
        answer_from_limit(&a, of->limit, found, answer);
        if (found->limit == NULL) {
            hide_numbers(&a, answer);
        }
    }
    return e;
}

/*
 * Returns how long the key is still blocked. An answer has the longer of the block and the time
 * until there are units, so this asks for the block alone.
 */
static int64_t blocked_ms(struct weir *limiter, const void *key, size_t key_len, uint64_t now_ns)
{
    struct algo_params copy;
    struct asked q;
    if (asked_key(limiter, key, key_len, 1, now_ns, &copy, &q) != 0) {
        return 0;
    }
    uint64_t until = limiter_blocked_until(limiter, &q);
    uint64_t ns = until > q.now ? until - q.now : 0;
    return until == UINT64_MAX ? -1
                               : (int64_t)(ns / WEIR_MILLISECOND + (ns % WEIR_MILLISECOND != 0));
}

static int do_found(void *arg, struct weir *limiter, const void *key, size_t key_len,
                    const struct weir_rules_found *found)
{
    const struct doing *d = arg;
    if (found->remote != NULL) {
        return verb_begin(d->call, d->by, key, key_len, found, d->now_ns, d->later);
    }
    int e = change(limiter, key, key_len, d);
    d->answer->blocked_ms = blocked_ms(limiter, key, key_len, d->now_ns);
    return e < 0 ? e : peek(limiter, key, key_len, &d->call->key, found, d->now_ns, d->answer);
}

/* ---- public ---- */

static int check_call(const struct server *server, const struct verb_call *call,
                      struct weir_error *error)
{
    const struct verb_row *row = &verb_rows[call->verb];
    struct text limit = {call->key.limit.at, call->key.limit.len};
    if (row->units && is_adhoc(server, limit)) {
        return fail(error, WEIR_ENOTSUP, "%s: what a unit of '%s' is worth comes with each call",
                    row->name, SERVER_ADHOC);
    }
    if (row->units && call->units == 0) {
        return fail(error, WEIR_EINVAL, "%s: found 0 units, expected at least 1", row->name);
    }
    if (row->time && call->for_ms == 0) {
        return fail(error, WEIR_EINVAL, "%s: found 0 ms, expected at least 1", row->name);
    }
    return 0;
}

int verb_run(struct server *server, const struct verb_call *call, const struct actor *by,
             uint64_t now_ns, struct later *later, struct answer *answer, struct weir_error *error)
{
    struct doing d = {call, by, now_ns, later, answer};
    struct verb_audit audit;
    int e = check_call(server, call, error);
    e = e != 0 ? e : use(server, &call->key, do_found, &d, error);
    if (e == 0) {
        verb_audit_init(&audit, call, by);
        verb_audit_tell(&audit);
    }
    return e;
}

struct looking {
    const struct weir_rules_key *key;
    uint64_t now_ns;
    struct later *later;
    struct answer *answer;
    int64_t *blocked_ms;
};

static int look_found(void *arg, struct weir *limiter, const void *key, size_t key_len,
                      const struct weir_rules_found *found)
{
    const struct looking *l = arg;
    if (found->remote != NULL) {
        *l->blocked_ms = 0;
        return verb_look(l->key, key, key_len, found, l->now_ns, l->later, l->answer);
    }
    *l->blocked_ms = blocked_ms(limiter, key, key_len, l->now_ns);
    return peek(limiter, key, key_len, l->key, found, l->now_ns, l->answer);
}

int verb_inspect(struct server *server, const struct weir_rules_key *key, uint64_t now_ns,
                 struct later *later, struct answer *answer, int64_t *ms, struct weir_error *error)
{
    struct looking l = {key, now_ns, later, answer, ms};
    return use(server, key, look_found, &l, error);
}
