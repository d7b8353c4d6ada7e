#include "server/operations/key_ask.h"

#include "base/atomic.h"
#include "base/error.h"
#include "base/maths.h"
#include "limit/limiter.h"
#include "server/record/denied_log.h"
#include "server/loop/worker.h"
#include "server/operations/awaited.h"

/* ---- which limit ---- */

int key_parts(struct server *server, struct weir_text limit)
{
    return server_is_adhoc(server, limit)
               ? 1
               : weir_rules_key_parts(server->rules, limit.at, limit.len);
}

/* ---- asking here ---- */

/*
 * Answers a peek of 0 units: how long the key is still blocked. An answer to more units has the
 * longer of the block and the time until there are units.
 */
static int peek_block(const struct key_ask *k, struct weir_answer *a)
{
    struct algo_params copy;
    struct asked q;
    int e = asked_key(k->limiter, k->key.at, k->key.len, 1, k->now_ns, &copy, &q);
    if (e != 0) {
        return e;
    }
    uint64_t until = limiter_blocked_until(k->limiter, &q);
    *a = (struct weir_answer){.verdict = until > q.now ? WEIR_DENY : WEIR_ALLOW,
                              .flags = until > q.now ? WEIR_FLAG_BLOCKED : 0,
                              .retry_after_ns =
                                  until == UINT64_MAX ? WEIR_FOREVER : sub_floor0(until, q.now)};
    return 0;
}

/* Returns 0, 1 if UNBLOCK or RESET has removed something, or WEIR_E... */
static int ask_here(const struct key_ask *k, uint64_t cost, uint64_t time_ns, struct weir_answer *a)
{
    struct weir *limiter = k->limiter;
    const char *key = k->key.at;
    size_t len = k->key.len;
    uint64_t now = k->now_ns;
    switch (k->verb) {
    case REMOTE_REFUND:
        return weir_refund_at(limiter, key, len, cost, now, now, NULL);
    case REMOTE_PENALIZE:
        return weir_penalize_at(limiter, key, len, cost, now, NULL);
    case REMOTE_BLOCK:
        return weir_block_at(limiter, key, len, add_sat(now, time_ns), now);
    case REMOTE_UNBLOCK:
        return weir_unblock(limiter, key, len);
    case REMOTE_RESET:
        return weir_reset(limiter, key, len);
    default:
        break;
    }
    if (k->verb == REMOTE_PEEK && cost == 0) {
        return peek_block(k, a);
    }
    struct weir_question q = {.key = key,
                              .key_len = len,
                              .cost = cost,
                              .max_wait_ns = time_ns,
                              .mode = k->verb == REMOTE_PEEK ? WEIR_PEEK : WEIR_CHECK,
                              .flags = key_flags(k)};
    return weir_ask_at(limiter, &q, now, a);
}

/* ---- asking the fleet ---- */

static void on_answer(void *arg, int error, const struct remote_answer *said)
{
    struct pending *p = arg;
    struct key_ask *k = &awaited_of(p)->key;
    int e = k->step(k, error, said);
    if (e != ANSWER_LATER) {
        p->error = e;
        pending_answered(p);
    }
}

static int ask_fleet(struct key_ask *k, uint64_t cost, uint64_t time_ns, struct remote_answer *said)
{
    const struct worker *w = k->pending->worker;
    struct weir_fleet *fleet = w->server->fleet.fleet;
    void *memory = k->question.memory;
    if (memory == NULL) {
        memory = arena_room(&k->pending->memory, remote_ops(fleet)->bytes(1));
    }
    k->part = (struct remote_part){.limit = k->found.remote,
                                   .shard = k->found.shard,
                                   .key = k->key,
                                   .cost = cost,
                                   .rate = k->rate};
    k->question = (struct remote_question){.verb = k->verb,
                                           .shadow = k->found.told.shadow,
                                           .parts = &k->part,
                                           .n = 1,
                                           .time_ns = time_ns,
                                           .now_ns = k->now_ns,
                                           .done = on_answer,
                                           .arg = k->pending,
                                           .memory = memory};
    return memory != NULL ? remote_ops(fleet)->ask(fleet, w->where, &k->question, said)
                          : WEIR_ENOMEM;
}

int key_cost(const struct key_ask *k, uint64_t given, uint64_t *cost, struct weir_error *error)
{
    struct weir_text limit = {k->limit.at, k->limit.len};
    struct weir_text attribute = k->found.told.cost_attribute;
    uint64_t own = k->found.told.cost != 0 ? k->found.told.cost : 1;
    *cost = given != 0 ? given : own;
    return given != 0 || attribute.len == 0
               ? 0
               : fail(error, WEIR_EINVAL,
                      "limit '%.*s' takes its cost from the attribute '%.*s': give a cost with the "
                      "key, or ask with attributes",
                      TEXT_ARGS(limit), TEXT_ARGS(attribute));
}

int key_ask(struct key_ask *k, int verb, uint64_t cost, uint64_t time_ns, key_step_fn step)
{
    struct remote_answer said;
    bool takes = verb == REMOTE_CHECK || (verb == REMOTE_PEEK && cost > 0);
    k->verb = verb;
    k->step = step;
    if (takes && k->found.kind != RATE_COUNTS) {
        cost = rate_cost(k->found.kind, cost);
        time_ns = 0; /* there is nothing to wait for */
    }
    if (k->pending == NULL) {
        int e = ask_here(k, cost, time_ns, &said.answer);
        said.found = e > 0;
        return step(k, e < 0 ? e : 0, &said);
    }
    int e = ask_fleet(k, cost, time_ns, &said);
    if (e == REMOTE_PENDING) {
        k->waited = true;
        return ANSWER_LATER;
    }
    return step(k, e == REMOTE_ANSWERED ? 0 : e, &said);
}

/* ---- beginning ---- */

/* Copies what must outlive the request into the thread's spare object. Returns NULL if there is no
 * memory. */
static struct key_ask *keep(struct worker *w, const struct key_memory *of, const void *data,
                            size_t data_bytes)
{
    struct pending *p = awaited_spare(w);
    if (p == NULL) {
        return NULL;
    }
    struct weir_text limit = {of->limit.at, of->limit.len};
    limit = arena_text(&p->memory, limit);
    struct key_ask *k = &awaited_of(p)->key;
    k->limit = limit;
    k->found = of->found;
    k->found.told.tier = (struct weir_text){NULL, 0};
    k->limiter = NULL;
    k->removed = false;
    k->rate = (struct remote_rate){0, 0};
    k->key = arena_text(&p->memory, of->key);
    k->pending = p;
    k->waited = false;
    k->data = NULL;
    k->question.memory = NULL;
    if (of->found.shard.at != NULL) {
        k->found.shard = arena_text(&p->memory, of->found.shard);
    }
    if (data_bytes > 0) {
        void *copy = arena_room(&p->memory, data_bytes);
        if (copy != NULL) {
            memcpy(copy, data, data_bytes);
        }
        k->data = copy;
    }
    return p->memory.failed ? NULL : k;
}

/* Lets go of the limit that was held while its answer was awaited. */
static void let_go(struct pending *p)
{
    weir_rules_limit_let_go(awaited_of(p)->key.found.told.limit);
}

int key_begin_again(struct asker *asker, const struct key_memory *of, key_begin_fn begin,
                    const void *data, size_t data_bytes, struct answer *answer)
{
    if (asker->worker == NULL || asker->worker->where == NULL) {
        return WEIR_ENOTSUP;
    }
    struct key_ask *k = keep(asker->worker, of, data, data_bytes);
    if (k == NULL) {
        return WEIR_ENOMEM;
    }
    k->now_ns = asker->now_ns;
    k->answer = answer;
    int e = begin(k);
    if (e == ANSWER_LATER) { /* nothing has been answered yet */
        k->answer = &awaited_of(k->pending)->answer;
        k->found.told.cost_attribute = (struct weir_text){NULL, 0}; /* of these rules */
        if (of->found.told.limit != NULL) { /* the server keeps the built-in one */
            weir_rules_limit_keep(of->found.told.limit);
            k->pending->let_go = let_go;
        }
        asker->pending = k->pending;
    }
    return e;
}

struct beginning {
    struct asker *asker;
    struct weir_text limit;
    key_begin_fn begin;
    const void *data;
    size_t data_bytes;
    struct answer *answer;
};

/* rules_use_fn */
static int begin_found(void *arg, struct weir *limiter, struct weir_text key,
                       const struct rules_found *found)
{
    const struct beginning *b = arg;
    if (found->remote != NULL) {
        struct key_memory of = {b->limit, *found, key};
        return key_begin_again(b->asker, &of, b->begin, b->data, b->data_bytes, b->answer);
    }
    struct key_ask k;
    k.limit = b->limit;
    k.found = *found;
    k.limiter = limiter;
    k.key = key;
    k.removed = false;
    k.now_ns = b->asker->now_ns;
    k.pending = NULL;
    k.waited = false;
    k.data = b->data;
    k.answer = b->answer;
    return b->begin(&k);
}

int key_begin(struct asker *asker, const struct weir_rules_key *key, key_begin_fn begin,
              const void *data, size_t data_bytes, struct answer *answer, struct weir_error *error)
{
    struct beginning b = {asker, key->limit, begin, data, data_bytes, answer};
    error->text[0] = 0;
    return rules_use(asker->server->rules, key, begin_found, &b, error);
}

int key_begin_any(struct asker *asker, const struct weir_rules_key *key, key_begin_fn begin,
                  const void *data, size_t data_bytes, struct answer *answer,
                  struct weir_error *error)
{
    struct server *server = asker->server;
    if (!server_is_adhoc(server, key->limit)) {
        return key_begin(asker, key, begin, data, data_bytes, answer, error);
    }
    struct rules_found found = {.told.shadow = load_relaxed(&server->adhoc_shadow) != 0,
                                .remote = server->adhoc_remote};
    struct beginning b = {asker, key->limit, begin, data, data_bytes, answer};
    error->text[0] = 0;
    if (key->by.len > 0) {
        return fail(error, WEIR_EKEY,
                    "by: found '%.*s', but the key of limit '%s' has no alternatives",
                    TEXT_CUT(key->by, 64), SERVER_ADHOC);
    }
    return key->parts_count != 1
               ? fail(error, WEIR_EKEY, "found %zu parts of a key, expected 1 for limit '%s'",
                      key->parts_count, SERVER_ADHOC)
               : begin_found(&b, server->adhoc, key->parts[0], &found);
}

/* ---- answers ---- */

void key_answer(const struct key_ask *k, const struct weir_answer *said)
{
    struct weir_answer by_rate = *said;
    rate_answer(k->found.kind, &by_rate);
    answer_from_limit(&by_rate, k->limit, &k->found.told, k->answer);
}

/* Enters the gate of the rules, unless the thread is inside: an answer that came later is taken
 * outside of it. leave_gate() takes what this returned. */
static struct slot *enter_gate(const struct key_ask *k, struct weir_rules *rules)
{
    return k->waited ? gate_enter(rules) : NULL;
}

static void leave_gate(struct slot *slot)
{
    if (slot != NULL) {
        gate_leave(slot);
    }
}

void key_forget_denials(const struct key_ask *k, struct weir_rules *rules)
{
    struct slot *slot = enter_gate(k, rules);
    rules_forget_denials(&k->found, k->key);
    leave_gate(slot);
}

/* Counts a denial for the limit's ban, and tells the client of a ban that it makes. */
static void count_denial(const struct key_ask *k, const struct weir_answer *said)
{
    const struct worker *w = k->pending != NULL ? k->pending->worker : NULL;
    struct weir_rules *rules = w != NULL ? w->server->rules : NULL;
    struct weir_answer banned = *said;
    struct slot *slot = enter_gate(k, rules);
    rules_denied(rules, w != NULL ? w->where : NULL, &k->found, k->key, k->now_ns, &banned);
    leave_gate(slot);
    if (banned.flags != said->flags) {
        key_answer(k, &banned);
    }
}

void key_note(const struct key_ask *k, const struct weir_answer *said)
{
    if (said->verdict == WEIR_DENY && k->answer->verdict != WEIR_ALLOW) {
        count_denial(k, said);
    }
    if (k->answer->verdict != WEIR_ALLOW) {
        denied_note(NULL,
                    &(struct weir_rules_denial){.size = sizeof(struct weir_rules_denial),
                                                .limit = k->answer->limit,
                                                .key = k->key.at,
                                                .key_len = k->key.len,
                                                .verdict = k->answer->verdict,
                                                .reason = k->answer->reason,
                                                .retry_after_ns = said->retry_after_ns,
                                                .now_ns = k->now_ns,
                                                .log_count = k->found.told.log_count,
                                                .log_period_ns = k->found.told.log_period_ns});
    }
}
