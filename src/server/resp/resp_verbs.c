/* The commands by which operators change one key: WEIR.REFUND, WEIR.BLOCK and others. */
#include "server/ask/key_verbs.h"
#include "server/resp/resp_commands.h"

/* Runs WEIR.VERB limit key [key ...], with the option that the verb needs, and [TIER t]. */
static void run_verb(struct command *c, enum verb verb)
{
    const struct verb_row *row = &verb_rows[verb];
    unsigned needed = row->units ? 1u << RESP_UNITS : row->time ? 1u << RESP_FOR : 0;
    struct actor by = {&c->connection->peer,
                       access_role(c->server->options.access, &c->connection->pass)};
    struct later later = {.worker = c->connection->worker};
    struct weir_error error = {0};
    struct answer a;
    struct resp_key k;
    if (!resp_read_key(c, needed | 1u << RESP_TIER, &k)) {
        return;
    }
    if ((k.options.given & needed) != needed) {
        resp_put_errorf(c->out, "ERR expected %s behind the key",
                        row->units ? "UNITS n" : "FOR ms|forever");
        return;
    }
    struct verb_call call = {.verb = verb,
                             .key = k.key,
                             .units = k.options.number[RESP_UNITS],
                             .for_ms = k.options.number[RESP_FOR]};
    int e = verb_run(c->server, &call, &by, c->now_ns, &later, &a, &error);
    resp_put_result(c, e, &a, &later, &error);
}

static void run_refund(struct command *c)
{
    run_verb(c, VERB_REFUND);
}

static void run_penalize(struct command *c)
{
    run_verb(c, VERB_PENALIZE);
}

static void run_block(struct command *c)
{
    run_verb(c, VERB_BLOCK);
}

static void run_unblock(struct command *c)
{
    run_verb(c, VERB_UNBLOCK);
}

static void run_reset(struct command *c)
{
    run_verb(c, VERB_RESET);
}

const struct command_row resp_verb_commands[] = {
    {"WEIR.REFUND", 2, 0, ROLE_ADMIN, run_refund,
     "limit key ... UNITS n [TIER t]: gives units back"},
    {"WEIR.PENALIZE", 2, 0, ROLE_ADMIN, run_penalize,
     "limit key ... UNITS n [TIER t]: takes units, into debt"},
    {"WEIR.BLOCK", 2, 0, ROLE_ADMIN, run_block,
     "limit key ... FOR ms|forever [TIER t]: denies the key"},
    {"WEIR.UNBLOCK", 2, 0, ROLE_ADMIN, run_unblock, "limit key ... [TIER t]: ends a block"},
    {"WEIR.RESET", 2, 0, ROLE_ADMIN, run_reset,
     "limit key ... [TIER t]: forgets what the key has used"},
    {NULL, 0, 0, ROLE_NONE, NULL, NULL},
};
