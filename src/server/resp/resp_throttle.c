/* CL.THROTTLE, as redis-cell has it: the numbers of the limit come with each call; and DEL, by which
 * its users reset a key. */
#include "rules/file/adhoc.h"
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

static void put_cell(struct command *c, const struct weir_answer *a, bool limited)
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
        resp_put_errorf(c->out,
                        "Cell error: Store error: the burst takes longer than %d years to refill",
                        ADHOC_YEARS);
        break;
    case WEIR_EKEY:
        resp_put_errorf(c->out, "BADKEY %s", weir_strerror(e));
        break;
    default:
        cell_error(c, weir_strerror(e));
        break;
    }
}

/* CL.THROTTLE key max_burst count period [quantity] */
void resp_run_throttle(struct command *c)
{
    int64_t burst;
    int64_t count;
    int64_t period;
    int64_t quantity = 1;
    struct weir_answer a;
    if (c->server->adhoc == NULL) {
        resp_put_error(c->out, TEXT("NOLIMIT CL.THROTTLE is switched off (adhoc: off)"));
        return;
    }
    if (!cell_number(c, 2, &burst) || !cell_number(c, 3, &count) || !cell_number(c, 4, &period) ||
        (c->argc == 6 && !cell_number(c, 5, &quantity))) {
        return;
    }
    if (burst < 0 || count < 0 || period < 0 || quantity < 0) {
        cell_error(c, "Negative numbers are not supported");
        return;
    }
    unsigned __int128 interval = cell_interval((uint64_t)count, (uint64_t)period);
    struct weir_question q = {.key = c->argv[1].at,
                              .key_len = c->argv[1].len,
                              .hashed = c->hashed,
                              .cost = (uint64_t)quantity,
                              .mode = quantity == 0 || c->checking ? WEIR_PEEK : WEIR_CHECK,
                              .flags = throttle_flags(c->server)};
    int e = interval == 0           ? WEIR_ERATE
            : interval > UINT64_MAX ? WEIR_EQUOTA
                                    : weir_throttle_at(c->server->adhoc, (uint64_t)interval,
                                                       (uint64_t)burst + 1, &q, c->now_ns, &a);
    if (e != 0) {
        put_failure(c, e);
    } else if (!c->checking) {
        bool limited = a.verdict != WEIR_ALLOW && throttle_denies(&q);
        c->result = quantity == 0 ? REQUEST_OTHER : limited ? REQUEST_DENY : REQUEST_ALLOW;
        put_cell(c, &a, limited);
    }
}

/* ---- DEL ---- */

/* Returns false after an error reply. */
static bool check_keys(struct command *c)
{
    struct weir_key key;
    if (c->server->adhoc == NULL) {
        resp_put_error(c->out, TEXT("NOLIMIT DEL is for keys of CL.THROTTLE, which is switched off "
                                    "(adhoc: off)"));
        return false;
    }
    for (unsigned i = 1; i < c->argc; i++) {
        int e = weir_key_init(c->server->adhoc, c->argv[i].at, c->argv[i].len, &key);
        if (e != 0) {
            resp_put_errorf(c->out, "BADKEY key %u: %s", i, weir_strerror(e));
            return false;
        }
    }
    return true;
}

/* DEL key [key ...]: resets keys of the built-in limit. It is decided here even if a fleet shares
 * other limits, so the answers come at once. */
void resp_run_delete(struct command *c)
{
    int64_t removed = 0;
    struct asker asker = resp_asker(c);
    if (!check_keys(c) || c->checking) {
        return;
    }
    for (unsigned i = 1; i < c->argc; i++) {
        struct ask ask;
        struct answer answer;
        struct weir_error error;
        ask_init(&ask);
        ask.text[ASK_LIMIT] = TEXT(SERVER_ADHOC);
        ask.parts[0] = (struct weir_rules_value){c->argv[i].at, c->argv[i].len};
        ask.parts_count = 1;
        ask.given = ASK_BIT(ASK_LIMIT) | ASK_BIT(ASK_KEY);
        removed +=
            operation_run(&asker, OPERATION_RESET, &ask, &answer, &error) == 0 && answer.removed;
    }
    resp_put_integer(c->out, removed);
}

bool resp_look_ahead(const struct server *server, unsigned argc, const struct text *argv,
                     struct weir_key *key)
{
    if (argc < 2 || server->adhoc == NULL ||
        weir_key_init(server->adhoc, argv[1].at, argv[1].len, key) != 0) {
        return false;
    }
    weir_key_prefetch(server->adhoc, key);
    return true;
}
