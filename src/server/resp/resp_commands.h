/* RESP: a session, a command being answered, and the table of commands. */
#ifndef WEIR_SERVER_RESP_RESP_COMMANDS_H
#define WEIR_SERVER_RESP_RESP_COMMANDS_H

#include "server/ask/operations.h"
#include "server/net/connection.h"
#include "server/net/worker.h"
#include "wire/resp.h"

struct resp_session {
    int proto; /* 2 or 3; 0: not chosen yet, which means 2 */
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
    const struct weir_key *hashed; /* the key that resp_look_ahead() has hashed; NULL: none */
    bool close;                    /* out: end the connection after the reply */
};

struct command_row {
    const char *name;  /* upper case */
    unsigned args_min; /* including the name */
    unsigned args_max; /* including the name; 0: any number */
    enum role role;    /* the role that it needs */
    void (*run)(struct command *c);
    const char *summary;
    enum operation operation; /* of those in resp_operations.c */
};

/* ---- access (resp_access.c) ---- */

/* Returns false after an error reply: there is no such user, or the secret is not valid for it. */
bool resp_authenticate(struct command *c, struct text user, struct text secret);
void resp_run_auth(struct command *c);

/* Returns true after an error reply: the client does not have the role that the command needs. */
bool resp_refuse(struct command *c, const struct command_row *row);

/* ---- answers that come later (resp_commands.c) ---- */

/* Lets `put` reply when the answer has come. `put` must begin with resp_resume(). */
void resp_keep(struct command *c, struct pending *p, pending_put_fn put);
struct command resp_resume(const struct pending *p); /* without arguments */

/* Tables of commands; `name` is NULL after the last row. */
extern const struct command_row
    resp_connection_commands[];                      /* resp_connection.c: general commands */
extern struct command_row resp_operation_commands[]; /* resp_operations.c: operations on limits */

void resp_make_commands(void); /* fills resp_operation_commands; called once */

void resp_run_throttle(struct command *c); /* resp_throttle.c */

/* Returns all these tables; NULL after the last. */
const struct command_row *const *resp_commands(void);

/* Finds a command by its name, in upper or lower case; NULL if there is none. */
const struct command_row *resp_find_command(struct text name);

/*
 * Begins to fetch the memory that a command will need, which is to be run soon. Returns true if
 * it has hashed the key for that; the caller passes *key to the command. (resp_throttle.c)
 */
bool resp_look_ahead(const struct server *server, const struct command_row *row, unsigned argc,
                     const struct text *argv, struct weir_key *key);

#endif
