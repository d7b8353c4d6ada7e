/* CL.THROTTLE, as redis-cell has it: the numbers of the limit come with each call; and DEL, by
 * which its users reset a key. */
#include "rules/file/adhoc.h"
#include "server/operations/throttle_ask.h"
#include "server/operations/awaited.h"
#include "server/resp/resp_commands.h"

/* Rounds up to seconds as redis-cell does: what is left below a millisecond is dropped first. */
static int64_t cell_seconds(uint64_t ns)
{
    return (int64_t)(ns / WEIR_SECOND + (ns / WEIR_MILLISECOND % 1000 > 0));
}

static void cell_error(struct command *c, const char *text)
{
    resp_put_errorf(c->out, "Cell error: Store error: %s", text);
}

static bool cell_number(struct command *c, unsigned i, int64_t *number)
{
    if (!resp_to_i64(c->argv[i], number)) {
        resp_put_errorf(c->out, "Cell error: Store error: Couldn't parse as integer: %.*s",
                        TEXT_CUT(c->argv[i], 64));
        return false;
    }
    return true;
}

static inline void put_cell(struct command *c, const struct weir_answer *a, bool limited)
{
    int64_t retry = -1;
    if (limited && a->verdict == WEIR_DENY) {
        retry = cell_seconds(a->retry_after_ns);
        retry = retry > 0 ? retry : 1; /* with 0 the client would retry in a loop */
    }
    int64_t reply[] = {limited, (int64_t)a->quota, (int64_t)a->remaining, retry,
                       cell_seconds(a->reset_after_ns)};
    resp_put_integers(c->out, reply, sizeof reply / sizeof reply[0]);
}

/* Returns the nanoseconds of one unit; 0 if the rate is zero or too high for that. Divides in 64
 * bits where that is enough, which is nearly always. */
static unsigned __int128 cell_interval(uint64_t count, uint64_t period)
{
    if (count == 0) {
        return 0;
    }
    return period <= UINT64_MAX / WEIR_SECOND ? period * WEIR_SECOND / count
                                              : (unsigned __int128)period * WEIR_SECOND / count;
}

/* Replies to an error of weir_throttle_at(). */
static void put_failure(struct command *c, int e)
{
    switch (e) {
    case WEIR_ERATE:
        cell_error(c, "Zero rates are not supported");
        break;
    case WEIR_EQUOTA:
        resp_put_errorf(
            c->out, "Cell error: Store error: the burst takes longer than %d years to refill%s",
            ADHOC_YEARS, c->server->adhoc == NULL ? ", or is more than a store can count" : "");
        break;
    case WEIR_EKEY:
        resp_put_errorf(c->out, "BADKEY %s", weir_strerror(e));
        break;
    default:
        cell_error(c, weir_strerror(e));
        break;
    }
}

/* Replies when the question is answered or has failed: e is 0 or WEIR_E... */
static inline void put_answer(struct command *c, int e, const struct weir_answer *a, bool limited,
                              bool peeked)
{
    if (e != 0) {
        put_failure(c, e);
        return;
    }
    c->result = peeked ? REQUEST_OTHER : limited ? REQUEST_DENY : REQUEST_ALLOW;
    put_cell(c, a, limited);
}

static void count_reason(const struct command *c, int reason)
{
    worker_count_reason(c->connection->worker, PROTOCOL_RESP, c->result, reason, SERVER_ADHOC);
}

/* ---- by the fleet ---- */

static void put_said(struct command *c, int e, const struct answer *said, bool peeked)
{
    struct weir_answer a = {.verdict = said->verdict,
                            .quota = said->quota,
                            .remaining = (uint64_t)said->remaining,
                            .retry_after_ns = said->retry_after_ns,
                            .reset_after_ns = said->reset_after_ns};
    put_answer(c, e, &a, said->verdict != WEIR_ALLOW, peeked);
    count_reason(c, said->reason);
}

static void put_later(struct pending *p)
{
    struct command c = resp_resume(p);
    size_t before = buffer_len(c.out);
    put_said(&c, p->error, &awaited_of(p)->answer, awaited_of(p)->key.verb == REMOTE_PEEK);
    resp_count(&c, before);
}

static void ask_fleet(struct command *c, const struct throttle *t)
{
    struct asker asker = resp_asker(c);
    struct answer said;
    int e = throttle_ask_fleet(&asker, t, c->argv[1], &said);
    if (e == ANSWER_LATER) {
        resp_keep(c, asker.pending, put_later);
    } else {
        put_said(c, e, &said, t->mode == WEIR_PEEK);
    }
}

/* ---- CL.THROTTLE ---- */

static void ask_here(struct command *c, const struct throttle *t)
{
    struct weir_answer a;
    struct weir_question q = {.key = c->argv[1].at,
                              .key_len = c->argv[1].len,
                              .hashed = c->hashed,
                              .cost = t->cost,
                              .mode = t->mode,
                              .flags = throttle_flags(c->server)};
    int e =
        weir_throttle_at(c->server->adhoc, t->rate.interval_ns, t->rate.burst, &q, c->now_ns, &a);
    if (e != 0 || !c->checking) {
        int reason = e == 0 && a.verdict != WEIR_ALLOW ? throttle_denies(&q, &a) : 0;
        put_answer(c, e, &a, reason != 0, t->cost == 0);
        count_reason(c, reason);
    }
}

/* Reads the numbers of a call. Returns false after an error reply. */
static bool read_numbers(struct command *c, struct throttle *t)
{
    int64_t burst;
    int64_t count;
    int64_t period;
    int64_t quantity = 1;
    if (!cell_number(c, 2, &burst) || !cell_number(c, 3, &count) || !cell_number(c, 4, &period) ||
        (c->argc == 6 && !cell_number(c, 5, &quantity))) {
        return false;
    }
    if (burst < 0 || count < 0 || period < 0 || quantity < 0) {
        cell_error(c, "Negative numbers are not supported");
        return false;
    }
    unsigned __int128 interval = cell_interval((uint64_t)count, (uint64_t)period);
    if (interval == 0 || interval > UINT64_MAX) {
        put_failure(c, interval == 0 ? WEIR_ERATE : WEIR_EQUOTA);
        return false;
    }
    *t = (struct throttle){.rate = {(uint64_t)interval, (uint64_t)burst + 1},
                           .cost = (uint64_t)quantity,
                           .mode = quantity == 0 || c->checking ? WEIR_PEEK : WEIR_CHECK};
    return true;
}

/* CL.THROTTLE key max_burst count period [quantity] */
void resp_run_throttle(struct command *c)
{
    struct throttle t;
    if (!server_has_adhoc(c->server)) {
        resp_put_error(c->out, TEXT("NOLIMIT CL.THROTTLE is switched off (adhoc: off)"));
        return;
    }
    if (!read_numbers(c, &t)) {
        return;
    }
    if (c->server->adhoc != NULL) {
        ask_here(c, &t);
    } else if (!c->checking) {
        ask_fleet(c, &t);
    } else if (c->argv[1].len == 0 || c->argv[1].len > WEIR_KEY_MAX) {
        put_failure(c, WEIR_EKEY);
    }
}

/* ---- DEL ---- */

/* Returns false after an error reply. */
static bool check_keys(struct command *c)
{
    if (!server_has_adhoc(c->server)) {
        resp_put_error(c->out, TEXT("NOLIMIT DEL is for keys of CL.THROTTLE, which is switched off "
                                    "(adhoc: off)"));
        return false;
    }
    for (unsigned i = 1; i < c->argc; i++) {
        if (c->argv[i].len == 0 || c->argv[i].len > WEIR_KEY_MAX) {
            resp_put_errorf(c->out, "BADKEY key %u: %s", i, weir_strerror(WEIR_EKEY));
            return false;
        }
    }
    return true;
}

/* Replies with the number of keys that had a state, or with an error. */
static void put_removed(struct command *c, int e, int64_t removed)
{
    if (e != 0) {
        struct weir_error none = {0};
        resp_put_errorf(c->out, "%s %s", answer_error(e)->code, answer_words_of_error(e, &none));
    } else {
        resp_put_integer(c->out, removed);
    }
}

static void put_removed_later(struct pending *batch)
{
    struct command c = resp_resume(batch);
    size_t before = buffer_len(c.out);
    int64_t removed = 0;
    int error = batch->error;
    for (const struct pending *part = batch->parts; part != NULL; part = part->next) {
        error = error != 0 ? error : part->error;
        removed += part->error == 0 && awaited_of(part)->answer.removed;
    }
    put_removed(&c, error, removed);
    resp_count(&c, before);
}

/* Resets a key. Returns what operation_run() returns; *removed is set with 0. */
static int reset(struct asker *asker, struct weir_text key, bool *removed)
{
    struct ask ask;
    struct answer answer;
    struct weir_error error;
    ask_init(&ask);
    ask.text[ASK_LIMIT] = TEXT(SERVER_ADHOC);
    ask.parts[0] = key;
    ask.parts_count = 1;
    ask.given = ASK_BIT(ASK_LIMIT) | ASK_BIT(ASK_KEY);
    int e = operation_run(asker, OPERATION_RESET, &ask, &answer, &error);
    *removed = e == 0 && answer.removed;
    return e;
}

/* DEL key [key ...]: resets keys of the built-in limit. If the fleet shares it, each key is a part
 * of a batch (pending.h, D4), which may itself be a part of the reply of EXEC. */
void resp_run_delete(struct command *c)
{
    struct asker asker = resp_asker(c);
    int64_t removed = 0;
    int error = 0;
    if (!check_keys(c) || c->checking) {
        return;
    }
    struct pending *batch = c->server->adhoc == NULL ? pending_batch(asker.worker) : NULL;
    struct buffer none;
    buffer_init(&none, 0);
    if (c->server->adhoc == NULL && batch == NULL) {
        error = WEIR_ENOMEM;
    }
    for (unsigned i = 1; i < c->argc && error == 0; i++) {
        bool had = false;
        error = reset(&asker, c->argv[i], &had);
        removed += had;
        if (error == ANSWER_LATER) {
            pending_keep_part(asker.pending, batch, &none, NULL);
            error = 0;
        }
    }
    if (batch != NULL && batch->parts != NULL) {
        batch->error = error;
        resp_keep(c, batch, put_removed_later);
    } else {
        pending_destroy(batch);
        put_removed(c, error, removed);
    }
}

bool resp_look_ahead(const struct server *server, unsigned argc, const struct weir_text *argv,
                     struct weir_key *key)
{
    if (argc < 2 || server->adhoc == NULL ||
        weir_key_init(server->adhoc, argv[1].at, argv[1].len, key) != 0) {
        return false;
    }
    weir_key_prefetch(server->adhoc, key);
    return true;
}
