/* Operations as commands: their arguments, and one answer. */
#include <inttypes.h>
#include <stdio.h>

#include "server/operations/key_ask.h"
#include "server/operations/awaited.h"
#include "server/resp/resp_commands.h"

/* ---- one answer ---- */

static struct weir_text flags_text(unsigned flags, char *text)
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
    return (struct weir_text){text, n};
}

static void put_member(struct command *c, const char *name)
{
    if (c->proto == 3) {
        resp_put_bulk(c->out, text_of(name));
    }
}

static void put_name(struct command *c, const char *member, const char *name)
{
    put_member(c, member);
    resp_put_string(c->out, c->proto, name);
}

/* RESP2: an array of the nine values, and that of a reservation; RESP3: a map with their names. */
static void put_answer(struct command *c, const struct answer *a, bool reserved)
{
    char flags[16 * ANSWER_FLAGS]; /* a name and its comma take at most 16 bytes */
    if (c->proto == 3) {
        resp_put_map(c->out, 3, 9 + reserved);
    } else {
        resp_put_array(c->out, 9 + reserved);
    }
    put_member(c, "verdict");
    resp_put_bulk(c->out, text_of(answer_verdict_names[a->verdict]));
    put_name(c, "limit", a->limit);
    put_member(c, "quota");
    resp_put_integer(c->out, a->quota > INT64_MAX ? INT64_MAX : (int64_t)a->quota);
    put_member(c, "remaining");
    resp_put_integer(c->out, a->remaining);
    put_member(c, "retry_after_ms");
    resp_put_integer(c->out, a->retry_after_ms);
    put_member(c, "reset_after_ms");
    resp_put_integer(c->out, (int64_t)a->reset_after_ms);
    put_member(c, "delay_ms");
    resp_put_integer(c->out, (int64_t)a->delay_ms);
    put_member(c, "flags");
    resp_put_bulk(c->out, flags_text(a->flags, flags));
    if (reserved) {
        put_name(c, "reservation", a->reservation);
    }
    put_name(c, "reason", weir_rules_reason_name(a->reason));
}

static void put_result(struct command *c, enum operation operation, int e, const struct answer *a,
                       const struct weir_error *error)
{
    c->result = operation_result(operation, e, a);
    if (e != 0) {
        resp_put_errorf(c->out, "%s %s", answer_error(e)->code, answer_words_of_error(e, error));
    } else {
        worker_count_reason(c->connection->worker, PROTOCOL_RESP, c->result, a->reason, a->limit);
        put_answer(c, a, operation_rows[operation].extra == EXTRA_RESERVATION);
    }
}

static void put_later(struct pending *p)
{
    struct command c = resp_resume(p);
    struct weir_error error = {0};
    size_t before = buffer_len(c.out);
    put_result(&c, p->wire.operation, p->error, &awaited_of(p)->answer, &error);
    resp_count(&c, before);
}

/* ---- options after the key ---- */

/* In the order in which errors list them. */
static const struct option {
    enum ask_member member;
    const char *name;
    const char *value; /* as errors call it */
} options[] = {
    {ASK_COST, "COST", "n"},     {ASK_MAX_WAIT, "MAXWAIT", "ms"}, {ASK_TIER, "TIER", "t"},
    {ASK_BY, "BY", "attribute"}, {ASK_UNITS, "UNITS", "n"},       {ASK_FOR, "FOR", "ms|forever"},
    {ASK_TTL, "TTL", "ms"},      {ASK_WHY, "WHY", "text"},
};
#define OPTIONS (sizeof options / sizeof options[0])

/* Members that have no default as options: a command without them is likely a mistake. */
#define NEEDED (ASK_BIT(ASK_UNITS) | ASK_BIT(ASK_FOR))

static bool has(unsigned members, const struct option *o)
{
    return (members & ASK_BIT(o->member)) != 0;
}

static bool read_value(enum ask_member member, struct weir_text value, struct ask *ask)
{
    const struct ask_member_row *row = &ask_members[member];
    uint64_t *number = &ask->number[member];
    ask->given |= ASK_BIT(member);
    if (row->kind == ASK_TEXT) {
        ask->text[member] = value;
        return true;
    }
    if (row->endless && text_is_word(value, "FOREVER")) {
        *number = ASK_FOREVER;
        return true;
    }
    return resp_to_u64(value, number) && *number >= row->least && *number <= row->most;
}

/* Writes "COST n, MAXWAIT ms or TIER t". */
static void put_expected(unsigned allowed, char *text, size_t size)
{
    size_t n = 0;
    unsigned left = 0;
    text[0] = 0;
    for (size_t i = 0; i < OPTIONS; i++) {
        left += has(allowed, &options[i]);
    }
    for (size_t i = 0; i < OPTIONS && n < size; i++) {
        if (has(allowed, &options[i])) {
            const char *before = n == 0 ? "" : left == 1 ? " or " : ", ";
            n += (size_t)snprintf(text + n, size - n, "%s%s %s", before, options[i].name,
                                  options[i].value);
            left--;
        }
    }
}

static bool complain(struct command *c, struct weir_text found, unsigned allowed)
{
    char expected[96];
    put_expected(allowed, expected, sizeof expected);
    resp_put_errorf(c->out, "ERR syntax error at '%.*s', expected %s", TEXT_CUT(found, 64),
                    expected);
    return false;
}

/* Complains of a wrong value of a known option. */
static bool complain_value(struct command *c, const struct option *o, struct weir_text found)
{
    const struct ask_member_row *row = &ask_members[o->member];
    resp_put_errorf(
        c->out, "ERR %s: found '%.*s', expected a whole number from %" PRIu64 " to %" PRIu64 "%s",
        o->name, TEXT_CUT(found, 64), row->least, row->most, row->endless ? ", or FOREVER" : "");
    return false;
}

/* Reads options from argv[i] on, in any order. False after an error. */
static bool read_options(struct command *c, unsigned i, unsigned allowed, struct ask *ask)
{
    for (; i < c->argc; i += 2) {
        const struct option *o = options;
        while (o < options + OPTIONS && !(has(allowed, o) && text_is_word(c->argv[i], o->name))) {
            o++;
        }
        if (o == options + OPTIONS || i + 1 >= c->argc) {
            return complain(c, c->argv[i], allowed);
        }
        if (!read_value(o->member, c->argv[i + 1], ask)) {
            return complain_value(c, o, c->argv[i + 1]);
        }
    }
    return true;
}

/* ---- arguments ---- */

/* Reads "limit key [key ...]" and options. False after an error. */
static bool read_key(struct command *c, const struct operation_row *row, struct ask *ask)
{
    struct weir_text limit = c->argv[1];
    int n = key_parts(c->server, limit);
    if (n < 0) {
        resp_put_errorf(c->out, "NOLIMIT no limit named '%.*s'", TEXT_CUT(limit, 64));
        return false;
    }
    if (c->argc < 2 + (unsigned)n) {
        resp_put_errorf(c->out, "BADKEY found %u parts of a key, expected %d", c->argc - 2, n);
        return false;
    }
    ask->text[ASK_LIMIT] = limit;
    ask->given |= ASK_BIT(ASK_LIMIT) | ASK_BIT(ASK_KEY);
    for (; ask->parts_count < (size_t)n; ask->parts_count++) {
        struct weir_text part = c->argv[2 + ask->parts_count];
        ask->parts[ask->parts_count] = part;
    }
    if (!read_options(c, 2 + (unsigned)n, row->members, ask)) {
        return false;
    }
    unsigned missing = row->members & ~ask->given & NEEDED;
    for (const struct option *o = options; missing != 0; o++) {
        if (has(missing, o)) {
            resp_put_errorf(c->out, "ERR expected %s %s after the key", o->name, o->value);
            return false;
        }
    }
    return true;
}

/* Reads "attribute value ..." and options; attributes are lower case, options are not. */
static bool read_attributes(struct command *c, const struct operation_row *row, struct ask *ask)
{
    unsigned i = 1;
    for (; i + 1 < c->argc && !text_is(c->argv[i], "COST") && !text_is(c->argv[i], "MAXWAIT");
         i += 2) {
        ask->attributes[ask->attributes_count++] = (struct weir_rules_attribute){
            c->argv[i].at, c->argv[i].len, c->argv[i + 1].at, c->argv[i + 1].len};
    }
    ask->given |= ASK_BIT(ASK_ATTRIBUTES);
    if (i + 1 == c->argc && !text_is(c->argv[i], "COST") && !text_is(c->argv[i], "MAXWAIT")) {
        resp_put_errorf(c->out, "ERR attribute '%.*s': found no value, expected attribute value",
                        TEXT_CUT(c->argv[i], 64));
        return false;
    }
    return read_options(c, i, row->members, ask);
}

/* Reads "reservation" and, to settle, "actual". */
static bool read_reservation(struct command *c, struct ask *ask)
{
    ask->text[ASK_RESERVATION] = c->argv[1];
    ask->given |= ASK_BIT(ASK_RESERVATION);
    if (c->argc > 2 && !read_value(ASK_ACTUAL, c->argv[2], ask)) {
        resp_put_errorf(c->out, "ERR found '%.*s', expected how many units were used",
                        TEXT_CUT(c->argv[2], 64));
        return false;
    }
    return true;
}

/* ---- commands ---- */

static void run_ask(struct command *c, const struct ask *ask)
{
    struct asker asker = resp_asker(c);
    enum operation operation = c->row->operation;
    struct weir_error error;
    struct answer a;
    int e = operation_run(&asker, operation, ask, &a, &error);
    if (e == ANSWER_LATER) {
        resp_keep(c, asker.pending, put_later);
    } else {
        put_result(c, operation, e, &a, &error);
    }
}

static void run_operation(struct command *c)
{
    const struct operation_row *row = &operation_rows[c->row->operation];
    struct ask ask;
    ask_init(&ask);
    bool good = (row->members & ASK_BIT(ASK_RESERVATION)) != 0 ? read_reservation(c, &ask)
                : (row->members & ASK_BIT(ASK_LIMIT)) != 0     ? read_key(c, row, &ask)
                                                               : read_attributes(c, row, &ask);
    if (good && !c->checking) {
        run_ask(c, &ask);
    }
}

/* ---- commands, as the rows of operations say ---- */

#define SUMMARY_BYTES 192

/* The commands that users of redis-cell know. */
static const struct command_row cell_commands[] = {
    {"CL.THROTTLE", 5, 6, ROLE_CHECK, resp_run_throttle,
     "key max_burst count period [quantity]: as redis-cell", OPERATION_THROTTLE,
     .keys = {.first = 1, .written = true}, .checks = true},
    {"EVAL", 3, 0, ROLE_CHECK, resp_run_eval,
     "script numkeys [key ...] [arg ...]: understands one script, return "
     "redis.call('CL.THROTTLE', ...) with literals, KEYS[n] or ARGV[n]",
     OPERATION_THROTTLE, .keys = {.first = 2, .counted = true, .written = true}, .checks = true},
    {"EVALSHA", 3, 0, ROLE_CHECK, resp_run_evalsha,
     "sha numkeys [key ...] [arg ...]: answers NOSCRIPT, after which clients send EVAL",
     OPERATION_THROTTLE, .keys = {.first = 2, .counted = true, .written = true}},
    {"DEL", 2, 0, ROLE_ADMIN, resp_run_delete,
     "key [key ...]: forgets what keys of CL.THROTTLE have used, and tells how many there were",
     OPERATION_RESET, .keys = {.first = 1, .to_end = true, .written = true}, .checks = true},
};
#define CELL_COMMANDS (sizeof cell_commands / sizeof cell_commands[0])

struct command_row resp_operation_commands[OPERATIONS + CELL_COMMANDS + 1];

/* Returns the operands of the command, for its summary. */
static const char *operands_of(unsigned members)
{
    if ((members & ASK_BIT(ASK_ACTUAL)) != 0) {
        return "reservation actual";
    }
    if ((members & ASK_BIT(ASK_RESERVATION)) != 0) {
        return "reservation";
    }
    return (members & ASK_BIT(ASK_LIMIT)) != 0 ? "limit key ..." : "attribute value ...";
}

/* Writes "limit key ... UNITS n [TIER t]: gives units back". */
static void make_summary(const struct operation_row *row, char text[SUMMARY_BYTES])
{
    unsigned m = row->members;
    int n = snprintf(text, SUMMARY_BYTES, "%s", operands_of(m));
    for (const struct option *o = options; o < options + OPTIONS; o++) {
        if (has(m, o)) {
            n += snprintf(text + n, SUMMARY_BYTES - (size_t)n,
                          has(NEEDED, o) ? " %s %s" : " [%s %s]", o->name, o->value);
        }
    }
    (void)snprintf(text + n, SUMMARY_BYTES - (size_t)n, ": %s", row->summary);
}

static void make_name(const struct operation_row *row, char text[COMMAND_NAME_BYTES])
{
    (void)snprintf(text, COMMAND_NAME_BYTES, "WEIR.%s", row->name);
    for (char *at = text; *at != 0; at++) {
        *at = *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at;
    }
}

/* Returns how many arguments the command has at least, with its name. */
static unsigned least_arguments(unsigned members)
{
    unsigned operands = ASK_BIT(ASK_LIMIT) | ASK_BIT(ASK_RESERVATION) | ASK_BIT(ASK_ACTUAL);
    return 1 + (unsigned)__builtin_popcount(members & operands);
}

/* An operation on a limit has its name before the key. */
static struct command_keys keys_of(const struct operation_row *row)
{
    return (struct command_keys){.first = (row->members & ASK_BIT(ASK_LIMIT)) != 0 ? 2 : 0,
                                 .written = row->verb != REMOTE_PEEK};
}

void resp_make_commands(void)
{
    static char names[OPERATIONS][COMMAND_NAME_BYTES];
    static char summaries[OPERATIONS][SUMMARY_BYTES];
    struct command_row *to = resp_operation_commands;
    *to++ = cell_commands[0]; /* the most frequent ones are found first */
    for (unsigned i = 0; i < OPERATIONS; i++) {
        const struct operation_row *row = &operation_rows[i];
        if ((row->reach & BY_COMMAND) == 0) {
            continue;
        }
        unsigned least = least_arguments(row->members);
        bool exact = (row->members & ASK_BIT(ASK_RESERVATION)) != 0;
        make_name(row, names[i]);
        make_summary(row, summaries[i]);
        *to++ = (struct command_row){.name = names[i],
                                     .args_min = least,
                                     .args_max = exact ? least : 0,
                                     .role = row->role,
                                     .run = run_operation,
                                     .summary = summaries[i],
                                     .operation = (enum operation)i,
                                     .keys = keys_of(row),
                                     .checks = true};
    }
    memcpy(to, cell_commands + 1, sizeof cell_commands - sizeof cell_commands[0]);
}
