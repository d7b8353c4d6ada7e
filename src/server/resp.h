/* RESP: a session, and the commands as rows. */
#ifndef WEIR_SERVER_RESP_H
#define WEIR_SERVER_RESP_H

#include "server/answer.h"
#include "server/connection.h"
#include "server/worker.h"
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
    bool close; /* out: end the connection behind the reply */
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

/* NULL behind the last name. */
extern const struct command_row
    resp_connection_commands[];                        /* resp_connection.c: what clients need */
extern const struct command_row resp_limit_commands[]; /* resp_limit.c: what they come for */

#endif
