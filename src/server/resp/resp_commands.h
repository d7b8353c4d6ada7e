/* RESP: a session, and the commands as rows. */
#ifndef WEIR_SERVER_RESP_RESP_COMMANDS_H
#define WEIR_SERVER_RESP_RESP_COMMANDS_H

#include "server/ask/answer.h"
#include "server/net/connection.h"
#include "server/net/worker.h"
#include "wire/resp.h"

struct resp_session {
    int proto; /* 2 or 3; 0: not yet chosen, which is 2 */
    uint64_t id;
    char name[64];
};

/* One command being answered. */
struct command {
    struct connection *connection;
    struct resp_session *session;
    struct server *server;
    struct buffer *out;
    uint64_t now_ns;
    int proto;
    unsigned argc;
    const struct text *argv;
    const struct weir_key *hashed; /* what resp_look_ahead() has made of argv; NULL: nothing */
    bool close;                    /* out: end the connection behind the reply */
};

struct command_row {
    const char *name;  /* upper case */
    unsigned args_min; /* with the name */
    unsigned args_max; /* 0: any */
    enum role role;    /* that it needs */
    void (*run)(struct command *c);
    const char *summary;
};

/* ---- who asks (resp_access.c) ---- */

/* False after an error: no such user, or the secret is not valid for it. */
bool resp_authenticate(struct command *c, struct text user, struct text secret);
void resp_run_auth(struct command *c);

/* True after an error: the client has not the role that the command needs. */
bool resp_refuse(struct command *c, const struct command_row *row);

/* ---- a limit, its key, options, the answer (resp_key.c) ---- */

enum resp_option {
    RESP_COST,
    RESP_MAXWAIT,
    RESP_TIER,
    RESP_UNITS,
    RESP_FOR,
    RESP_TTL,
    RESP_OPTIONS
};

struct resp_options {
    uint64_t number[RESP_OPTIONS]; /* 0 where not given; FOR forever: UINT64_MAX */
    struct text tier;
    unsigned given; /* 1 << option */
};

/* A limit's name, its key, and what stands behind it; points into itself and the request. */
struct resp_key {
    struct weir_rules_value parts[RESP_ARGS_MAX];
    struct weir_rules_key key;
    struct resp_options options;
};

/* From argv[i] on, in any order; `allowed` are bits as in `given`. False after an error. */
bool resp_read_options(struct command *c, unsigned i, unsigned allowed, struct resp_options *o);
/* All of it from argv[1] on. False after an error. */
bool resp_read_key(struct command *c, unsigned allowed, struct resp_key *k);

/*
 * RESP2: an array of the eight values; RESP3: a map with their names. `more` members follow, each
 * with resp_put_name() before its value.
 */
void resp_put_answer(struct command *c, const struct answer *a, unsigned more);
void resp_put_name(struct command *c, const char *name);
void resp_put_failure(struct command *c, int e, const struct weir_error *error);

/* What came of a question: e is 0, ANSWER_LATER or WEIR_E... */
void resp_put_result(struct command *c, int e, const struct answer *a, const struct later *later,
                     const struct weir_error *error);

/* ---- answers that come later (resp.c) ---- */

/* The command is answered by `put`, when the answer is there; which begins with resp_resume(). */
void resp_keep(struct command *c, const struct later *later, deferred_put_fn put);
struct command resp_resume(const struct deferred *d); /* without arguments */

/* NULL behind the last name. */
extern const struct command_row
    resp_connection_commands[];                          /* resp_connection.c: what clients need */
extern const struct command_row resp_limit_commands[];   /* resp_limit.c: what they come for */
extern const struct command_row resp_reserve_commands[]; /* resp_reserve.c: and settle later */
extern const struct command_row resp_verb_commands[];    /* resp_verbs.c: what operators do */

/* All of them; NULL behind the last. */
extern const struct command_row *const resp_commands[];

/* The row of a name in any case; NULL: there is none. */
const struct command_row *resp_find_command(struct text name);

/*
 * For a command that will be run soon: begins to fetch the memory that it needs. True if it has
 * hashed a key for that, which is to be given to the command. (resp_limit.c)
 */
bool resp_look_ahead(const struct server *server, const struct command_row *row, unsigned argc,
                     const struct text *argv, struct weir_key *key);

#endif
