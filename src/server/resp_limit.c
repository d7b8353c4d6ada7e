/* The commands that limit. */
#include "server/resp.h"

/* ---- one answer ---- */

static struct text flags_text(unsigned flags, char *text)
{
    size_t n = 0;
    for (unsigned i = 0; i < ANSWER_FLAGS; i++) {
        if ((flags >> i & 1) != 0) {
            size_t len = strlen(answer_flag_names[i]);
            if (n > 0) {
                text[n++] = ',';
            }
            memcpy(text + n, answer_flag_names[i], len);
            n += len;
        }
    }
    return (struct text){text, n};
}

static void put_name(struct command *c, const char *name)
{
    if (c->proto == 3) {
        resp_put_bulk(c->out, text_of(name));
    }
}

/* RESP2: an array of the eight values; RESP3: a map with their names. */
static void put_answer(struct command *c, const struct answer *a)
{
    char flags[32];
    if (c->proto == 3) {
        resp_put_map(c->out, 3, 8);
    } else {
        resp_put_array(c->out, 8);
    }
    put_name(c, "verdict");
    resp_put_bulk(c->out, text_of(answer_verdict_names[a->verdict]));
    put_name(c, "limit");
    if (a->limit[0] != 0) {
        resp_put_bulk(c->out, text_of(a->limit));
    } else {
        resp_put_null(c->out, c->proto);
    }
    put_name(c, "quota");
    resp_put_integer(c->out, a->quota > INT64_MAX ? INT64_MAX : (int64_t)a->quota);
    put_name(c, "remaining");
    resp_put_integer(c->out, a->remaining);
    put_name(c, "retry_after_ms");
    resp_put_integer(c->out, a->retry_after_ms);
    put_name(c, "reset_after_ms");
    resp_put_integer(c->out, (int64_t)a->reset_after_ms);
    put_name(c, "delay_ms");
    resp_put_integer(c->out, (int64_t)a->delay_ms);
    put_name(c, "flags");
    resp_put_bulk(c->out, flags_text(a->flags, flags));
}

static void put_failure(struct command *c, int e, const struct weir_error *error)
{
    const char *text = error->text[0] != 0 ? error->text : weir_strerror(e);
    switch (e) {
    case WEIR_ENOLIMIT:
        resp_put_errorf(c->out, "NOLIMIT %s", text);
        break;
    case WEIR_EKEY:
    case WEIR_EATTRIBUTE:
        resp_put_errorf(c->out, "BADKEY %s", text);
        break;
    default:
        resp_put_errorf(c->out, "ERR %s", text);
        break;
    }
}

/* ---- options behind the keys ---- */

struct options {
    uint64_t cost;
    uint64_t max_wait_ms;
    struct text tier;
};

/* COST n, MAXWAIT ms, and TIER t where it is allowed, from argv[i] on. False after an error. */
static bool read_options(struct command *c, unsigned i, bool tier, struct options *o)
{
    for (; i < c->argc; i += 2) {
        struct text name = c->argv[i];
        struct text value = i + 1 < c->argc ? c->argv[i + 1] : TEXT("");
        bool good = false;
        if (text_is_word(name, "COST")) {
            good = resp_to_u64(value, &o->cost) && o->cost > 0;
        } else if (text_is_word(name, "MAXWAIT")) {
            good = resp_to_u64(value, &o->max_wait_ms) && o->max_wait_ms < UINT64_MAX / 1000000;
        } else if (tier && text_is_word(name, "TIER")) {
            o->tier = value;
            good = i + 1 < c->argc;
        }
        if (!good) {
            resp_put_errorf(c->out, "ERR syntax error at '%.*s', expected COST n, MAXWAIT ms%s",
                            (int)(name.len > 64 ? 64 : name.len), name.at,
                            tier ? " or TIER t" : "");
            return false;
        }
    }
    return true;
}

/* ---- WEIR.CHECK and WEIR.PEEK ---- */

static void check(struct command *c, int mode)
{
    struct weir_rules_value parts[RESP_ARGS_MAX];
    struct options o = {0};
    struct weir_error error = {0};
    struct answer a;
    int n = weir_rules_key_parts(c->server->rules, c->argv[1].at, c->argv[1].len);
    if (n < 0) {
        resp_put_errorf(c->out, "NOLIMIT no limit named '%.*s'",
                        (int)(c->argv[1].len > 64 ? 64 : c->argv[1].len), c->argv[1].at);
        return;
    }
    if (c->argc < 2 + (unsigned)n) {
        resp_put_errorf(c->out, "BADKEY found %u parts of a key, expected %d", c->argc - 2, n);
        return;
    }
    for (unsigned i = 0; i < (unsigned)n; i++) {
        parts[i] = (struct weir_rules_value){c->argv[2 + i].at, c->argv[2 + i].len};
    }
    if (!read_options(c, 2 + (unsigned)n, true, &o)) {
        return;
    }
    struct direct d = {.key = {.limit = {c->argv[1].at, c->argv[1].len},
                               .parts = parts,
                               .parts_count = (size_t)n,
                               .tier = {o.tier.at, o.tier.len}},
                       .cost = o.cost,
                       .max_wait_ns = o.max_wait_ms * WEIR_MILLISECOND,
                       .mode = mode};
    int e = answer_check(c->server->rules, &d, c->now_ns, &a, &error);
    if (e != 0) {
        put_failure(c, e, &error);
    } else {
        put_answer(c, &a);
    }
}

static void run_check(struct command *c)
{
    check(c, WEIR_CHECK);
}

static void run_peek(struct command *c)
{
    check(c, WEIR_PEEK);
}

/* ---- WEIR.ASK ---- */

/* WEIR.ASK attribute value ... [COST n] [MAXWAIT ms]; attributes are lower case, options not. */
static void run_ask(struct command *c)
{
    struct weir_rules_attribute with[RESP_ARGS_MAX / 2];
    struct weir_rules_question q = {.attributes = with};
    struct options o = {0};
    struct weir_error error = {0};
    struct answer a;
    unsigned i = 1;
    for (; i + 1 < c->argc && !text_is(c->argv[i], "COST") && !text_is(c->argv[i], "MAXWAIT");
         i += 2) {
        with[q.attributes_count++] = (struct weir_rules_attribute){
            c->argv[i].at, c->argv[i].len, c->argv[i + 1].at, c->argv[i + 1].len};
    }
    if (!read_options(c, i, false, &o)) {
        return;
    }
    q.cost = o.cost;
    q.max_wait_ns = o.max_wait_ms * WEIR_MILLISECOND;
    int e = answer_ask(c->server->rules, &q, c->now_ns, &a, &error);
    if (e != 0) {
        put_failure(c, e, &error);
    } else {
        put_answer(c, &a);
    }
}

/* ---- CL.THROTTLE ---- */

/* As redis-cell rounds: up by milliseconds, what is below one dropped. */
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
                        (int)(c->argv[i].len > 64 ? 64 : c->argv[i].len), c->argv[i].at);
        return false;
    }
    return true;
}

static void put_cell(struct command *c, const struct weir_answer *a)
{
    bool limited = a->verdict != WEIR_ALLOW;
    int64_t retry = -1;
    if (a->verdict == WEIR_DENY) {
        retry = cell_seconds(a->retry_after_ns);
        retry = retry > 0 ? retry : 1; /* "not now, retry after 0" would be a loop */
    }
    int64_t reply[] = {limited, (int64_t)a->quota, (int64_t)a->remaining, retry,
                       cell_seconds(a->reset_after_ns)};
    resp_put_integers(c->out, reply, sizeof reply / sizeof reply[0]);
}

/* CL.THROTTLE key max_burst count period [quantity] */
static void run_throttle(struct command *c)
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
    unsigned __int128 interval =
        count > 0 ? (unsigned __int128)(uint64_t)period * WEIR_SECOND / (uint64_t)count : 0;
    if (interval == 0) {
        cell_error(c, "Zero rates are not supported");
        return;
    }
    struct weir_question q = {.key = c->argv[1].at,
                              .key_len = c->argv[1].len,
                              .cost = (uint64_t)quantity,
                              .mode = quantity == 0 ? WEIR_PEEK : WEIR_CHECK};
    int e = interval > UINT64_MAX ? WEIR_EQUOTA
                                  : weir_throttle_at(c->server->adhoc, (uint64_t)interval,
                                                     (uint64_t)burst + 1, &q, c->now_ns, &a);
    if (e == WEIR_EQUOTA) {
        cell_error(c, "the burst takes longer than a year to refill");
    } else if (e == WEIR_EKEY) {
        resp_put_errorf(c->out, "BADKEY %s", weir_strerror(e));
    } else if (e != 0) {
        cell_error(c, weir_strerror(e));
    } else {
        put_cell(c, &a);
    }
}

const struct command_row resp_limit_commands[] = {
    {"CL.THROTTLE", 5, 6, ROLE_CHECK, run_throttle,
     "key max_burst count period [quantity]: as redis-cell"},
    {"WEIR.CHECK", 2, 0, ROLE_CHECK, run_check,
     "limit key ... [COST n] [TIER t] [MAXWAIT ms]: takes units"},
    {"WEIR.PEEK", 2, 0, ROLE_CHECK, run_peek,
     "limit key ... [COST n] [TIER t]: what WEIR.CHECK would say"},
    {"WEIR.ASK", 1, 0, ROLE_CHECK, run_ask,
     "attribute value ... [COST n] [MAXWAIT ms]: rules are matched"},
    {NULL, 0, 0, ROLE_NONE, NULL, NULL},
};
