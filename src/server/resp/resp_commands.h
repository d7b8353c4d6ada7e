/* RESP: a session, and the commands as rows. */
#ifndef WEIR_SERVER_RESP_RESP_COMMANDS_H
#define WEIR_SERVER_RESP_RESP_COMMANDS_H

#include "server/ask/operations.h"
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
    const struct command_row *row;
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
    enum operation operation; /* of those in resp_operations.c */
};

/* ---- who asks (resp_access.c) ---- */

/* False after an error: no such user, or the secret is not valid for it. */
bool resp_authenticate(struct command *c, struct text user, struct text secret);
void resp_run_auth(struct command *c);

/* True after an error: the client has not the role that the command needs. */
bool resp_refuse(struct command *c, const struct command_row *row);

/* ---- answers that come later (resp_commands.c) ---- */

/* The command is answered by `put`, when the answer is there; which begins with resp_resume(). */
void resp_keep(struct command *c, const struct later *later, deferred_put_fn put);
struct command resp_resume(const struct deferred *d); /* without arguments */

/* NULL behind the last name. */
extern const struct command_row
    resp_connection_commands[];                        /* resp_connection.c: what clients need */
extern const struct command_row resp_limit_commands[]; /* resp_operations.c: what they come for */
extern const struct command_row resp_key_commands[];   /* resp_operations.c: what operators do */

void resp_run_throttle(struct command *c); /* resp_throttle.c */

/* All of them; NULL behind the last. */
extern const struct command_row *const resp_commands[];

/* The row of a name in any case; NULL: there is none. */
const struct command_row *resp_find_command(struct text name);

/*
 * For a command that will be run soon: begins to fetch the memory that it needs. True if it has
 * hashed a key for that, which is to be given to the command. (resp_throttle.c)
 */
bool resp_look_ahead(const struct server *server, const struct command_row *row, unsigned argc,
                     const struct text *argv, struct weir_key *key);

#endif
