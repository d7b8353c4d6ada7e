#include "server/operations/throttle_ask.h"

#include "base/error.h"
#include "rules/file/adhoc.h"
#include "rules/live/live.h"
#include "server/operations/key_ask.h"
#include "server/record/limit_reasons.h"
#include "server/record/top_denied.h"

_Static_assert((int)REMOTE_CHECK == (int)WEIR_CHECK && (int)REMOTE_PEEK == (int)WEIR_PEEK,
               "the modes of these questions are verbs of a fleet");

static const struct weir_text name = {SERVER_ADHOC, sizeof SERVER_ADHOC - 1};

int throttle_denies(const struct weir_question *q, const struct weir_answer *said)
{
    if ((q->flags & WEIR_SHADOW) != 0) {
        return 0;
    }
    int reason = said->flags == 0 ? WEIR_REASON_LIMIT : rules_reason(said); /* a call less */
    if (q->mode != WEIR_PEEK) {
        top_denied(SERVER_ADHOC, q->key, q->key_len, reason);
        if (reason != WEIR_REASON_LIMIT) {
            limit_reasons_note(SERVER_ADHOC, reason);
        }
    }
    return reason;
}

/* Sets the answer to what the limit has said about the question. */
static void take(const struct weir_question *q, uint64_t window_ns, const struct weir_answer *said,
                 struct answer *answer)
{
    struct weir_rules_found found = {.window_ns = window_ns};
    found.shadow = said->verdict != WEIR_ALLOW && throttle_denies(q, said) == 0;
    answer_from_limit(said, name, &found, answer);
}

/* ---- by the fleet ---- */

static int on_said(struct key_ask *k, int error, const struct remote_answer *said)
{
    const struct throttle *t = k->data;
    struct weir_question q = {
        .key = k->key.at, .key_len = k->key.len, .mode = t->mode, .flags = key_flags(k)};
    if (error == 0) {
        take(&q, t->window_ns, &said->answer, k->answer);
    }
    return error;
}

static int begin(struct key_ask *k)
{
    const struct throttle *t = k->data;
    k->rate = t->rate;
    return key_ask(k, t->mode, t->cost, 0, on_said);
}

int throttle_ask_fleet(struct asker *asker, const struct throttle *t, struct weir_text key,
                       struct answer *answer)
{
    struct server *server = asker->server;
    struct key_memory of = {
        .limit = name,
        .found = {.remote = server->adhoc_remote, .told.shadow = throttle_flags(server) != 0},
        .key = key};
    return t->rate.interval_ns == 0 ? WEIR_ERATE
                                    : key_begin_again(asker, &of, begin, t, sizeof *t, answer);
}

/* ---- the operation ---- */

static int ask_here(struct asker *asker, const struct throttle *t, struct weir_text key,
                    struct answer *answer)
{
    struct weir_answer a;
    struct weir_question q = {.key = key.at,
                              .key_len = key.len,
                              .cost = t->cost,
                              .mode = t->mode,
                              .flags = throttle_flags(asker->server)};
    int e = weir_throttle_at(asker->server->adhoc, t->rate.interval_ns, t->rate.burst, &q,
                             asker->now_ns, &a);
    if (e == 0) {
        take(&q, t->window_ns, &a, answer);
    }
    return e;
}

int throttle_run(struct asker *asker, enum operation operation, const struct ask *ask,
                 struct answer *answer, struct weir_error *error)
{
    const uint64_t *number = ask->number;
    uint64_t window_ns = number[ASK_PERIOD] * WEIR_MILLISECOND;
    struct throttle t = {.rate = {window_ns / number[ASK_COUNT], number[ASK_BURST] + 1},
                         .cost = number[ASK_COST] != 0 ? number[ASK_COST] : 1,
                         .mode = WEIR_CHECK,
                         .window_ns = window_ns};
    (void)operation;
    if (!server_has_adhoc(asker->server)) {
        return fail(error, WEIR_ENOLIMIT, "the built-in limit is switched off (adhoc: off)");
    }
    if (ask->parts_count != 1) {
        return fail(error, WEIR_EKEY, "found %zu parts of a key, expected 1", ask->parts_count);
    }
    bool shared = asker->server->adhoc_remote != NULL;
    int e = (shared ? throttle_ask_fleet : ask_here)(asker, &t, ask->parts[0], answer);
    return e == WEIR_ERATE ? fail(error, WEIR_EINVAL,
                                  "count: found more than one unit per nanosecond of period_ms")
           : e == WEIR_EQUOTA
               ? fail(error, WEIR_EINVAL,
                      "found a burst that takes longer than %d years to refill%s", ADHOC_YEARS,
                      shared ? ", or that is more than a store can count" : "")
               : e;
}
