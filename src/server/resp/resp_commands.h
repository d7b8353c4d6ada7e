/* RESP: a session, a command being answered, and the table of commands. */
#ifndef WEIR_SERVER_RESP_RESP_COMMANDS_H
#define WEIR_SERVER_RESP_RESP_COMMANDS_H

#include "server/operations/operations.h"
#include "server/loop/connection.h"
#include "server/loop/worker.h"
#include "wire/resp.h"

struct resp_session {
    int proto;                /* 2 or 3; 0: not chosen yet, which means 2 */
    struct resp_queue *queue; /* commands between MULTI and EXEC (resp_multi.c); NULL: none */
    uint64_t id;
    char name[64];
};

static inline struct resp_session *resp_session_of(struct connection *c)
{
    return (struct resp_session *)(void *)c->session;
}

/* One command being answered. */
struct command {
    struct connection *connection;
    struct resp_session *session;
    struct server *server;
    struct buffer *out;
    uint64_t now_ns;
    int proto;
    unsigned argc;
    const struct weir_text *argv;
    const struct command_row *row;
    const struct weir_key *hashed; /* the key that resp_look_ahead() has hashed; NULL: none */
    struct pending *batch;         /* EXEC: gets answers that come later; NULL: no EXEC runs */
    bool checking; /* before it is queued: reply if there is an error, and change nothing */
    bool close;    /* out: end the connection after the reply */
    enum request_result result; /* out: how it counts; REQUEST_OTHER: an error, if it replied so */
};

#define COMMAND_NAME_BYTES 24 /* of the longest name, with its end */

/* Which arguments are keys. */
struct command_keys {
    unsigned first; /* position of the first one; 0: none */
    bool to_end;    /* all later arguments are keys too */
    bool counted;   /* argument `first` is the number of keys that follow it */
    bool written;   /* they are changed, not only read */
};

struct command_row {
    const char *name;  /* upper case */
    unsigned args_min; /* including the name */
    unsigned args_max; /* including the name; 0: any number */
    enum role role;    /* the role that it needs */
    void (*run)(struct command *c);
    const char *summary;
    enum operation operation; /* of those in resp_operations.c */
    struct command_keys keys;
    bool checks;  /* `run` obeys c->checking; of others only the number of arguments is checked */
    bool at_once; /* is not queued after MULTI */
};

/* ---- access (resp_access.c) ---- */

/* Returns false after an error reply: there is no such user, or the secret is not valid for it. */
bool resp_authenticate(struct command *c, struct weir_text user, struct weir_text secret);
void resp_run_auth(struct command *c);

/* Returns true after an error reply: the client does not have the role that the command needs. */
bool resp_refuse(struct command *c, const struct command_row *row);

/* Returns the client as the operations know it, with its role. */
static inline struct asker resp_asker(const struct command *c)
{
    return (struct asker){
        .server = c->server,
        .worker = c->connection->worker,
        .by = {&c->connection->peer, access_role(c->server->options.access, &c->connection->pass)},
        .now_ns = c->now_ns};
}

/* ---- running commands (resp_commands.c) ---- */

extern const struct resp_limits resp_limits; /* of requests; inline commands are off */

/* Returns a command without arguments, whose reply goes into the thread's replies. */
struct command resp_begin(struct connection *connection);

/* Checks the command, then runs it, or queues it after MULTI. `row` is NULL if it is unknown. */
void resp_run(struct command *c, const struct command_row *row);

/* Checks the command as far as that is possible without running it. Returns false after an error
 * reply. */
bool resp_check(struct command *c, const struct command_row *row);

/* ---- MULTI (resp_multi.c) ---- */

/* Answers a command after MULTI: checks and queues it, or runs it if it is not queued. `row` is
 * NULL if it is unknown. */
void resp_queue_command(struct command *c, const struct command_row *row);
void resp_drop_queue(struct connection *c); /* ends MULTI */

void resp_run_multi(struct command *c);
void resp_run_exec(struct command *c);
void resp_run_discard(struct command *c);
void resp_run_watch(struct command *c);

/* ---- answers that come later (resp_commands.c) ---- */

/* Counts a request whose reply begins at this byte of c->out. */
void resp_count(const struct command *c, size_t reply_at);

/* Lets `put` reply when the answer has come. `put` must begin with resp_resume(). Within EXEC the
 * answer is a part of the reply of EXEC. */
void resp_keep(struct command *c, struct pending *p, pending_put_fn put);
struct command resp_resume(const struct pending *p); /* without arguments */

/* Tables of commands; `name` is NULL after the last row. */
extern const struct command_row
    resp_connection_commands[]; /* resp_connection.c: general commands */
extern const struct protocol protocol_resp;

extern struct command_row resp_operation_commands[]; /* resp_operations.c: operations on limits */

void resp_make_commands(void); /* fills resp_operation_commands; called once */

void resp_run_throttle(struct command *c); /* resp_throttle.c */
void resp_run_delete(struct command *c);
void resp_run_eval(struct command *c); /* resp_eval.c */
void resp_run_evalsha(struct command *c);
void resp_run_command_list(struct command *c); /* resp_command_list.c: COMMAND */

/* Returns all these tables; NULL after the last. */
const struct command_row *const *resp_commands(void);

/* Writes the name of a command in lower case, as Redis tells names, and returns it. */
struct weir_text resp_lower_name(const struct command_row *row, char name[COMMAND_NAME_BYTES]);

/* Returns whether the command takes so many arguments, including its name. */
bool resp_takes(const struct command_row *row, unsigned argc);

/* Finds a command by its name, in upper or lower case; NULL if there is none. */
const struct command_row *resp_find_command(struct weir_text name);

/*
 * Begins to fetch the memory that a CL.THROTTLE, which is to be run soon, will need. Returns true
 * if it has hashed the key for that; the caller passes *key to the command. (resp_throttle.c)
 */
bool resp_look_ahead(const struct server *server, unsigned argc, const struct weir_text *argv,
                     struct weir_key *key);

#endif
