/* RESP: from requests to rows of commands. */
#include "server/resp.h"

#include "base/atomic.h"

static const struct resp_limits limits = {
    .args_max = RESP_ARGS_MAX, .bulk_max = 16384, .request_max = SERVER_REQUEST_BYTES};

static const struct command_row *find_in(const struct command_row *rows, struct text name)
{
    for (; rows->name != NULL; rows++) {
        if (text_is_word(name, rows->name)) {
            return rows;
        }
    }
    return NULL;
}

const struct command_row *const resp_commands[] = {
    resp_limit_commands, resp_reserve_commands, resp_connection_commands, resp_verb_commands, NULL};

static const struct command_row *find(struct text name)
{
    const struct command_row *row = NULL;
    for (size_t i = 0; row == NULL && resp_commands[i] != NULL; i++) {
        row = find_in(resp_commands[i], name);
    }
    return row;
}

static void tell_unknown(struct command *c)
{
    struct text name = c->argv[0];
    resp_put_errorf(c->out, "ERR unknown command '%.*s', with args beginning with: %s%.*s%s",
                    (int)(name.len > 128 ? 128 : name.len), name.at, c->argc > 1 ? "'" : "",
                    c->argc > 1 ? (int)(c->argv[1].len > 64 ? 64 : c->argv[1].len) : 0,
                    c->argc > 1 ? c->argv[1].at : "", c->argc > 1 ? "' " : "");
}

/* Commands that limit, if they have waited for too long. Who only shakes hands is answered. */
static bool is_refused(const struct command *c)
{
    return worker_is_stale(c->connection->worker, c->argv[0].at) &&
           find_in(resp_limit_commands, c->argv[0]) != NULL;
}

static void run(struct command *c)
{
    const struct command_row *row = find(c->argv[0]);
    if (is_refused(c)) {
        count_own(&c->connection->worker->counts.overloaded[PROTOCOL_RESP], 1);
        resp_put_error(c->out, TEXT("OVERLOAD the request has waited for too long"));
    } else if (row == NULL) {
        count_own(&c->connection->worker->counts.bad_requests[PROTOCOL_RESP], 1);
        tell_unknown(c);
    } else if (c->argc < row->args_min || (row->args_max != 0 && c->argc > row->args_max)) {
        char name[32];
        size_t n = 0;
        for (; row->name[n] != 0 && n + 1 < sizeof name; n++) {
            char u = row->name[n];
            name[n] = u >= 'A' && u <= 'Z' ? (char)(u - 'A' + 'a') : u;
        }
        name[n] = 0;
        count_own(&c->connection->worker->counts.bad_requests[PROTOCOL_RESP], 1);
        resp_put_errorf(c->out, "ERR wrong number of arguments for '%s' command", name);
    } else if (c->server->options.access == NULL || !resp_refuse(c, row)) {
        row->run(c);
    }
}

/* True if the connection is to end behind the reply. */
static bool answer(struct connection *connection, const struct resp_request *request)
{
    struct worker *w = connection->worker;
    struct resp_session *session = (struct resp_session *)(void *)connection->session;
    struct command c = {.connection = connection,
                        .session = session,
                        .server = w->server,
                        .out = &w->replies,
                        .now_ns = w->now_ns,
                        .proto = session->proto == 3 ? 3 : 2,
                        .argc = request->argc,
                        .argv = request->argv};
    if (request->argc > 0) {
        count_own(&w->counts.requests[PROTOCOL_RESP], 1);
        run(&c);
    }
    return c.close;
}

static int64_t consume(struct connection *c, struct text input)
{
    struct resp_limits bounds = limits;
    struct resp_request request;
    const char *complaint;
    int64_t used = 0;
    bounds.inline_commands = c->worker->server->options.inline_commands;
    while (input.len > 0 && buffer_len(&c->worker->replies) < SERVER_FLUSH_BYTES) {
        int got = resp_parse(input, &bounds, &request, &complaint);
        if (got == RESP_MORE) {
            break;
        }
        if (got == RESP_BAD) {
            count_own(&c->worker->counts.bad_requests[PROTOCOL_RESP], 1);
            resp_put_errorf(&c->worker->replies, "ERR %s", complaint);
            return CONNECTION_CLOSE;
        }
        if (answer(c, &request)) {
            return CONNECTION_CLOSE;
        }
        used += (int64_t)request.used;
        input = text_after(input, request.used);
    }
    return used;
}

const struct protocol protocol_resp = {
    .name = "resp",
    .kind = PROTOCOL_RESP,
    .refusal = "-ERR max number of clients reached\r\n",
    .session_bytes = sizeof(struct resp_session),
    .consume = consume,
};
