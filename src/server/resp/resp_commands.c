/* RESP: parses requests, finds the command of each, and runs it. */
#include "server/resp/resp_commands.h"

#include <pthread.h>

#include "base/atomic.h"

#define ARGUMENT_BYTES 16384
#define COMMAND_BYTES 81920

const struct resp_limits resp_limits = {
    .args_max = RESP_ARGS_MAX, .bulk_max = ARGUMENT_BYTES, .request_max = COMMAND_BYTES};

static const struct command_row *find_in(const struct command_row *rows, struct weir_text name)
{
    for (; rows->name != NULL; rows++) {
        if (text_is_word(name, rows->name)) {
            return rows;
        }
    }
    return NULL;
}

const struct command_row *const *resp_commands(void)
{
    static const struct command_row *const tables[] = {resp_operation_commands,
                                                       resp_connection_commands, NULL};
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, resp_make_commands);
    return tables;
}

const struct command_row *resp_find_command(struct weir_text name)
{
    const struct command_row *row = NULL;
    for (const struct command_row *const *t = resp_commands(); row == NULL && *t != NULL; t++) {
        row = find_in(*t, name);
    }
    return row;
}

static void tell_unknown(struct command *c)
{
    bool more = c->argc > 1;
    struct weir_text first = more ? c->argv[1] : TEXT("");
    resp_put_errorf(c->out, "ERR unknown command '%.*s', with args beginning with: %s%.*s%s",
                    TEXT_CUT(c->argv[0], 128), more ? "'" : "", TEXT_CUT(first, 64),
                    more ? "' " : "");
}

struct weir_text resp_lower_name(const struct command_row *row, char name[COMMAND_NAME_BYTES])
{
    size_t n = 0;
    for (; row->name[n] != 0 && n + 1 < COMMAND_NAME_BYTES; n++) {
        char u = row->name[n];
        name[n] = u >= 'A' && u <= 'Z' ? (char)(u - 'A' + 'a') : u;
    }
    name[n] = 0;
    return (struct weir_text){name, n};
}

static void tell_arguments(struct command *c, const struct command_row *row)
{
    char name[COMMAND_NAME_BYTES];
    (void)resp_lower_name(row, name);
    resp_put_errorf(c->out, "ERR wrong number of arguments for '%s' command", name);
}

bool resp_takes(const struct command_row *row, unsigned argc)
{
    return argc >= row->args_min && (row->args_max == 0 || argc <= row->args_max);
}

/* Returns false after an error reply. */
static inline bool may_run(struct command *c, const struct command_row *row)
{
    if (row == NULL) {
        tell_unknown(c);
        return false;
    }
    if (!resp_takes(row, c->argc)) {
        tell_arguments(c, row);
        return false;
    }
    return access_allows(c->server->options.access, &c->connection->pass, row->role) ||
           !resp_refuse(c, row);
}

bool resp_check(struct command *c, const struct command_row *row)
{
    size_t before = buffer_len(c->out);
    if (may_run(c, row) && row->checks) {
        c->row = row;
        c->checking = true;
        row->run(c);
        c->checking = false;
    }
    return buffer_len(c->out) == before;
}

static inline void run(struct command *c, const struct command_row *row)
{
    if (__builtin_expect(c->session->queue != NULL, 0)) {
        resp_queue_command(c, row);
    } else if (may_run(c, row)) {
        c->row = row;
        row->run(c);
    }
}

void resp_run(struct command *c, const struct command_row *row)
{
    run(c, row);
}

/* ---- pipelines ---- */

#define AHEAD 16     /* requests that are read before the first of them is decided */
#define AHEAD_ARGS 6 /* a request with more arguments is read alone */

/* A request that has been read, and whose memory is being fetched. */
struct planned {
    const struct command_row *row;
    size_t used;
    unsigned argc;
    bool hashed;
    struct weir_text argv[AHEAD_ARGS];
    struct weir_key key;
};

static inline struct command begin(struct connection *connection)
{
    struct worker *w = connection->worker;
    struct resp_session *session = resp_session_of(connection);
    return (struct command){.connection = connection,
                            .session = session,
                            .server = w->server,
                            .out = &w->replies,
                            .now_ns = w->now_ns,
                            .proto = session->proto == 3 ? 3 : 2};
}

struct command resp_begin(struct connection *connection)
{
    return begin(connection);
}

void resp_keep(struct command *c, struct pending *p, pending_put_fn put)
{
    p->wire.proto = c->proto;
    p->wire.operation = c->row->operation;
    c->result = REQUEST_UNTOLD;
    if (c->batch != NULL) {
        pending_keep_part(p, c->batch, c->out, put);
    } else {
        pending_keep(p, c->connection, put);
    }
}

/* Uses the protocol version of the time of the request: HELLO may have changed it since. */
struct command resp_resume(const struct pending *p)
{
    struct command c = resp_begin(p->batch != NULL ? p->batch->connection : p->connection);
    c.proto = p->wire.proto;
    return c;
}

static inline void count(const struct command *c, size_t reply_at)
{
    struct weir_text replies = buffer_text(c->out);
    bool failed =
        c->result == REQUEST_OTHER && replies.len > reply_at && replies.at[reply_at] == '-';
    worker_count_requests(c->connection->worker, PROTOCOL_RESP, failed ? REQUEST_ERROR : c->result,
                          1);
}

void resp_count(const struct command *c, size_t reply_at)
{
    count(c, reply_at);
}

/* Answers a request. Returns true if the connection is to end after the reply. */
static bool answer(struct connection *connection, const struct command_row *row, unsigned argc,
                   const struct weir_text *argv, const struct weir_key *hashed)
{
    struct command c = begin(connection);
    c.argc = argc;
    c.argv = argv;
    c.hashed = hashed;
    if (argc > 0) {
        size_t before = buffer_len(c.out);
        run(&c, row);
        count(&c, before);
    }
    return c.close;
}

/* ---- overload ---- */

/*
 * Returns whether a stale command is refused: those of clients that ask limits are. Others, such as
 * HELLO and PING, are answered however late. After MULTI it is EXEC that asks.
 */
static bool may_refuse(struct connection *c, struct weir_text name)
{
    if (resp_session_of(c)->queue != NULL) {
        return text_is_word(name, "EXEC");
    }
    const struct command_row *row = find_in(resp_commands()[0], name);
    return row != NULL && row->role == ROLE_CHECK;
}

/* Refuses requests that have waited for too long, with as little work as possible.
 * Returns the bytes used. */
static int64_t refuse_stale(struct connection *c, struct weir_text input)
{
    struct worker *w = c->worker;
    struct resp_request request;
    const char *complaint;
    int64_t used = 0;
    uint64_t n = 0;
    while (worker_is_stale(w, input.at) && connection_takes(c) &&
           resp_parse(input, &resp_limits, &request, &complaint) == RESP_REQUEST &&
           request.argc > 0 && may_refuse(c, request.argv[0])) {
        resp_drop_queue(c);
        resp_put_error(
            &w->replies,
            TEXT("OVERLOAD the request waited longer than --max-age allows; retry later"));
        used += (int64_t)request.used;
        input = text_after(input, request.used);
        n++;
    }
    worker_count_requests(w, PROTOCOL_RESP, REQUEST_OVERLOAD, n);
    return used;
}

/* Fills in *p. `before` is the request before it, or NULL: a pipeline often repeats a command,
 * which then need not be looked up. */
static void plan(const struct server *server, const struct resp_request *request,
                 const struct planned *before, struct planned *p)
{
    p->argc = request->argc;
    p->used = request->used;
    p->hashed = false;
    p->row = NULL;
    if (request->argc > 0) {
        memcpy(p->argv, request->argv, request->argc * sizeof p->argv[0]);
        bool again = before != NULL && before->argc > 0 && text_equal(before->argv[0], p->argv[0]);
        p->row = again ? before->row : resp_find_command(p->argv[0]);
        p->hashed = p->row != NULL && p->row->run == resp_run_throttle &&
                    resp_look_ahead(server, p->argc, p->argv, &p->key);
    }
}

/*
 * Reads up to AHEAD requests from the front of the input and returns how many. It stops at a
 * request that has to be read alone: one that is incomplete, bad, has many arguments, or was
 * typed as a line (its arguments are in *request, where the next request would overwrite them).
 * If that is the first one, *got is the parser's result for it.
 */
static unsigned read_ahead(const struct worker *w, struct weir_text input,
                           struct resp_request *request, struct planned *plans, int *got,
                           const char **complaint)
{
    struct resp_limits bounds = resp_limits;
    unsigned n = 0;
    bounds.inline_commands = w->server->options.inline_commands;
    for (; n < AHEAD && input.len > 0; n++) {
        if (n > 0 &&
            worker_is_stale(w, input.at)) { /* leave it to refuse_stale() in the next turn */
            break;
        }
        *got = resp_parse(input, &bounds, request, complaint);
        if (*got != RESP_REQUEST || request->argc > AHEAD_ARGS || input.at[0] != '*') {
            break;
        }
        plan(w->server, request, n > 0 ? &plans[n - 1] : NULL, &plans[n]);
        input = text_after(input, request->used);
    }
    return n;
}

/* Answers requests that were read ahead, as far as there is room. Returns the bytes used,
 * or CONNECTION_CLOSE. */
static int64_t answer_planned(struct connection *c, const struct planned *plans, unsigned n)
{
    int64_t used = 0;
    for (unsigned i = 0; i < n && connection_takes(c); i++) {
        const struct planned *p = &plans[i];
        if (answer(c, p->row, p->argc, p->argv, p->hashed ? &p->key : NULL)) {
            return CONNECTION_CLOSE;
        }
        used += (int64_t)p->used;
    }
    return used;
}

/* Answers one request that was not read ahead. Returns the bytes used, 0 if it is incomplete,
 * or CONNECTION_CLOSE. */
static int64_t answer_alone(struct connection *c, const struct resp_request *request, int got,
                            const char *complaint)
{
    if (got == RESP_MORE) {
        return 0;
    }
    if (got == RESP_BAD) {
        worker_count_requests(c->worker, PROTOCOL_RESP, REQUEST_ERROR, 1);
        resp_put_errorf(&c->worker->replies, "ERR %s", complaint);
        return CONNECTION_CLOSE;
    }
    const struct command_row *row = request->argc > 0 ? resp_find_command(request->argv[0]) : NULL;
    return answer(c, row, request->argc, request->argv, NULL) ? CONNECTION_CLOSE
                                                              : (int64_t)request->used;
}

static int64_t consume(struct connection *c, struct weir_text input)
{
    struct resp_request request;
    struct planned plans[AHEAD];
    const char *complaint = NULL;
    int64_t used = 0;
    while (input.len > 0 && connection_takes(c)) {
        int64_t refused = worker_is_stale(c->worker, input.at) ? refuse_stale(c, input) : 0;
        if (refused > 0) {
            used += refused;
            input = text_after(input, (size_t)refused);
            continue;
        }
        int got = RESP_MORE;
        unsigned n = read_ahead(c->worker, input, &request, plans, &got, &complaint);
        int64_t more =
            n > 0 ? answer_planned(c, plans, n) : answer_alone(c, &request, got, complaint);
        if (more <= 0) {
            return more == CONNECTION_CLOSE ? CONNECTION_CLOSE : used;
        }
        used += more;
        input = text_after(input, (size_t)more);
    }
    return used;
}

const struct protocol protocol_resp = {
    .name = "resp",
    .address = "127.0.0.1:6380",
    .roles = {[ROLE_CHECK] = true},
    .kind = PROTOCOL_RESP,
    .refusal = "-ERR max number of clients reached\r\n",
    .unsealed = "-ERR this port speaks TLS\r\n",
    .session_bytes = sizeof(struct resp_session),
    .consume = consume,
    .finish = resp_drop_queue,
};
