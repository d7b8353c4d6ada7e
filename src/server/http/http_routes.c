/* HTTP: parses requests, finds the route of each, and runs it. */
#include "server/http/http_routes.h"

#include <pthread.h>
#include <stdio.h>

#include "base/atomic.h"
#include "server/status/notices.h"

/* ---- health checks, for orchestrators ---- */

static void reply_text(struct exchange *x, int status)
{
    http_reply(x, status, "text/plain; charset=utf-8", NULL);
}

static void run_healthz(struct exchange *x)
{
    buffer_put(&x->body, TEXT("ok\n"));
    reply_text(x, 200);
}

/* Replies with a line, and one for each notice. These do not make a server unready: it answers
 * as its rules say for that case, and without it clients would be served by fewer nodes. */
static void run_readyz(struct exchange *x)
{
    bool ready = load_acquire(&x->server->state) == SERVER_READY;
    buffer_put(&x->body, ready ? TEXT("ready\n") : TEXT("not ready\n"));
    notices_put_open(x->server->notices, &x->body);
    reply_text(x, ready ? 200 : 503);
}

const struct http_route http_health_routes[] = {
    {"GET", "/healthz", HTTP_AT, ROLE_NONE, run_healthz, .summary = "says that the program runs",
     .health = true},
    {"GET", "/readyz", HTTP_AT, ROLE_NONE, run_readyz,
     .summary = "says that it takes requests, and what is wrong; 503 before, and while it ends",
     .health = true},
    {.path = NULL},
};

/* ---- routes ---- */

const struct http_route *const *http_routes(enum server_protocol listener)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, http_make_routes);
    static const struct http_route *const none[] = {NULL};
    const void *rows = protocol_of(listener)->rows;
    return rows != NULL ? rows : none;
}

bool http_leads_to(const struct http_route *route, struct weir_text path)
{
    size_t n = strlen(route->path);
    if (!text_starts(path, route->path)) {
        return false;
    }
    return path.len == n ? route->reach != HTTP_BELOW
                         : route->reach != HTTP_AT && path.at[n] == '/';
}

static bool takes(const struct http_route *route, struct weir_text method)
{
    return route->method == NULL || text_is(method, route->method) ||
           (text_is(method, "HEAD") && strcmp(route->method, "GET") == 0);
}

/* Returns the row for the request, or NULL; then `allow` has the methods that
 * the path does take. */
static const struct http_route *find(const struct exchange *x, struct buffer *allow)
{
    const struct http_route *const *tables = http_routes(x->connection->protocol->kind);
    for (; *tables != NULL; tables++) {
        for (const struct http_route *row = *tables; row->path != NULL; row++) {
            if (!http_leads_to(row, x->request->path)) {
                continue;
            }
            if (takes(row, x->request->method)) {
                return row;
            }
            buffer_put(allow, buffer_len(allow) > 0 ? TEXT(", ") : TEXT(""));
            buffer_put(allow, text_of(row->method));
            buffer_put(allow, strcmp(row->method, "GET") == 0 ? TEXT(", HEAD") : TEXT(""));
        }
    }
    return NULL;
}

/* Returns whether the body has no more bytes than the route takes; replies if not. */
static bool fits(struct exchange *x, const struct http_route *row)
{
    const struct http_request *r = x->request;
    size_t len = r->needed > 0 ? r->needed - r->body_at : r->body.len;
    if (row->body_most > 0 && len > row->body_most) {
        char detail[128];
        (void)snprintf(detail, sizeof detail, "found a body of more than %zu bytes, expected %s",
                       row->body_most, row->body_hint);
        http_reply_problem(x, 413, detail);
        return false;
    }
    return true;
}

/* Returns whether the request may run; replies if not. */
static bool admits(struct exchange *x, const struct http_route *row)
{
    bool operates = !connection_is_client(x->connection->protocol);
    if (!operates && x->connection->beyond && !row->health) {
        count_own(&x->connection->worker->counts.refused, 1);
        http_reply_problem(x, 503, "there are too many connections");
        return false;
    }
    /* Operators are never refused as stale. */
    if (!operates && worker_is_stale(x->connection->worker, x->request->method.at) &&
        !row->health) {
        x->result = REQUEST_OVERLOAD;
        http_reply_problem(x, 503, "the request waited longer than --max-age allows; retry later");
        return false;
    }
    if (row->role != ROLE_NONE && (!http_is_ours(x) || (operates && !http_is_no_form(x)))) {
        return false;
    }
    return http_may(x, row->role);
}

/* Returns the row that answers the request. NULL after a reply, if there is none or the client may
 * not use it. Needs no body. */
static const struct http_route *route(struct exchange *x)
{
    struct buffer allow;
    buffer_init(&allow, 256);
    const struct http_route *row = find(x, &allow);
    if (row != NULL) {
        row = admits(x, row) && fits(x, row) ? row : NULL;
    } else if (buffer_len(&allow) > 0) {
        x->allow = buffer_text(&allow);
        http_reply_problem(x, 405,
                           "found a method that this path does not have, expected one that the "
                           "field Allow names");
    } else {
        http_reply_problem(x, 404, "found an unknown path; /openapi.json lists the known ones");
    }
    buffer_finish(&allow);
    return row;
}

/* ---- requests ---- */

static struct exchange begin(struct connection *c, const struct http_request *request)
{
    const struct server_options *o = &c->worker->server->options;
    struct exchange x = {.connection = c,
                         .server = c->worker->server,
                         .request = request,
                         .style = {o->headers, o->auth_deny_status},
                         .out = &c->worker->replies,
                         .now_ns = c->worker->now_ns,
                         .close = !request->keep_alive || c->beyond};
    buffer_init(&x.body, SERVER_OUTPUT_BYTES);
    return x;
}

/* Answers a request. Returns true if the connection is to end after the reply. */
static bool answer(struct connection *c, const struct http_request *request)
{
    struct exchange x = begin(c, request);
    const struct http_route *row = route(&x);
    if (row != NULL) {
        row->run(&x);
    }
    buffer_finish(&x.body);
    return x.close;
}

/* Refuses a request at the end of its head if it leads nowhere or the client may not make it,
 * before memory and time are spent on its body. Returns true after the reply: the connection is to
 * end, because the body may follow. */
static bool refuse_head(struct connection *c, const struct http_request *request)
{
    struct exchange x = begin(c, request);
    x.close = true;
    bool refused = route(&x) == NULL;
    buffer_finish(&x.body);
    return refused;
}

void http_keep(struct exchange *x, struct pending *p, pending_put_fn put)
{
    struct pending_wire *wire = &p->wire;
    wire->operation = x->operation;
    wire->close = x->close;
    wire->old = x->request->old;
    wire->head = text_is(x->request->method, "HEAD");
    pending_keep(p, x->connection, put);
}

struct exchange http_resume(const struct pending *p, struct http_request *request)
{
    *request = (struct http_request){.keep_alive = !p->wire.close,
                                     .old = p->wire.old,
                                     .method = p->wire.head ? TEXT("HEAD") : TEXT("POST")};
    struct exchange x = begin(p->connection, request);
    x.operation = p->wire.operation;
    return x;
}

static void complain(struct connection *c, const struct http_request *request)
{
    struct exchange x = begin(c, request);
    x.close = true;
    http_reply_problem(&x, request->status, request->complaint);
    buffer_finish(&x.body);
}

/*
 * Returns whether to parse the input. An incomplete request is parsed from its beginning each
 * time, so a client that sends single bytes must not cause that for each of them. A head is parsed
 * when a blank line has come, or when there are more bytes than allowed; a body, when as many bytes
 * have come as the head has announced, or when its last chunk has come.
 */
static bool worth_reading(struct http_session *s, struct weir_text input)
{
    if (s->seen == 0 || input.len >= HTTP_REQUEST_MAX) {
        return true;
    }
    if (s->needed > 0) {
        return input.len >= s->needed;
    }
    if (s->chunk > 0) {
        return input.len >= HTTP_HEAD_MAX + HTTP_CHUNKED_MAX ||
               http_skip_chunks(input, &s->chunk) != HTTP_MORE;
    }
    if (s->seen < HTTP_HEAD_MAX && input.len >= HTTP_HEAD_MAX) {
        return true;
    }
    struct weir_text news = text_after(input, s->seen > 2 ? s->seen - 2 : 0);
    s->seen = input.len;
    return memmem(news.at, news.len, "\n\r\n", 3) != NULL ||
           memmem(news.at, news.len, "\n\n", 2) != NULL;
}

/* Notes that the request is incomplete. Returns false, with an error in *request, if it has been
 * parsed too often: it has what looks like an end and is none, such as empty lines before it
 * that come in pieces. */
static bool note_more(struct connection *c, struct http_session *s, struct weir_text input,
                      struct http_request *request)
{
    if (++s->looks > HTTP_LOOKS_MAX) {
        request->status = 400;
        request->complaint = "found a request whose end is not clear";
        return false;
    }
    s->seen = input.len;
    s->needed = request->needed;
    s->chunk = request->needed == 0 ? request->body_at : 0;
    if (request->wants_continue && !s->continued) {
        buffer_put(&c->worker->replies, TEXT("HTTP/1.1 100 Continue\r\n\r\n"));
        s->continued = true;
    }
    return true;
}

/* Returns how many bytes of empty lines the input begins with. They are no request, so that a
 * client which ends its requests with one may be silent afterwards. */
static size_t count_empty_lines(const struct http_session *s, struct weir_text input)
{
    size_t n = 0;
    while (s->seen == 0 && input.len - n >= 2 && memcmp(input.at + n, "\r\n", 2) == 0) {
        n += 2;
    }
    return n;
}

/* Parses a request at the beginning of the input. HTTP_BAD: it was answered, and the connection is
 * to end. */
static int read_one(struct connection *c, struct weir_text input, struct http_request *request)
{
    struct http_session *s = (struct http_session *)(void *)c->session;
    int got = http_parse(input, request);
    if (got == HTTP_MORE && request->body_at > 0 && !s->admitted) {
        s->admitted = !refuse_head(c, request);
        if (!s->admitted) {
            return HTTP_BAD;
        }
    }
    if (got == HTTP_MORE && note_more(c, s, input, request)) {
        return HTTP_MORE;
    }
    *s = (struct http_session){0};
    if (got != HTTP_READ) {
        complain(c, request);
        return HTTP_BAD;
    }
    return HTTP_READ;
}

int64_t http_consume(struct connection *c, struct weir_text input)
{
    struct http_session *s = (struct http_session *)(void *)c->session;
    struct http_request request;
    size_t empty = count_empty_lines(s, input);
    int64_t used = (int64_t)empty;
    input = text_after(input, empty);
    while (input.len > 0 && connection_takes(c) && worth_reading(s, input)) {
        int got = read_one(c, input, &request);
        if (got == HTTP_MORE) {
            break;
        }
        if (got == HTTP_BAD || answer(c, &request)) {
            return CONNECTION_CLOSE;
        }
        if (c->streaming) { /* nothing can be answered after a reply that does not end */
            return used + (int64_t)input.len;
        }
        used += (int64_t)request.used;
        input = text_after(input, request.used);
    }
    return used;
}

const char http_refusal[] =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
    "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n";

#define UNSEALED_BODY                                                                              \
    "{\"type\":\"about:blank\",\"title\":\"Bad Request\",\"status\":400,"                          \
    "\"detail\":\"this port speaks TLS; use https://\"}\n"

const char http_unsealed[] =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: application/problem+json\r\nContent-Length: 104\r\n"
    "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n" UNSEALED_BODY;

_Static_assert(sizeof UNSEALED_BODY - 1 == 104, "Content-Length");
