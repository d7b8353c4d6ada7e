/* HTTP: one request being answered, and the routes as rows. */
#ifndef WEIR_SERVER_HTTP_HTTP_ROUTES_H
#define WEIR_SERVER_HTTP_HTTP_ROUTES_H

#include "server/ask/operations.h"
#include "server/net/connection.h"
#include "server/net/worker.h"
#include "wire/http_request.h"
#include "wire/ratelimit.h"

#define HTTP_LOOKS_MAX 256 /* at one request, in as many pieces */

struct http_session {
    size_t seen;    /* bytes of a beginning that has been looked at; 0: none */
    size_t needed;  /* fewer are not all of it; 0: not known */
    unsigned looks; /* how often that was */
    bool continued; /* 100 has been said */
};

/* One request, and its reply. */
struct exchange {
    struct connection *connection;
    struct server *server;
    const struct http_request *request;
    struct buffer *out;
    uint64_t now_ns;
    enum role role;    /* of who asks */
    bool close;        /* end the connection behind the reply */
    struct text allow; /* of a 405: the methods that would be right; len 0 otherwise */
    struct text more;  /* members behind those of an answer, ",\"reservation\":null"; may be none */
    struct buffer body; /* of the reply */
};

enum http_reach { HTTP_AT, HTTP_AT_OR_BELOW, HTTP_BELOW };

struct http_route {
    const char *method; /* NULL: any */
    const char *path;
    enum http_reach reach; /* the path itself, what is below it ("/v1/limits/api"), or both */
    enum role role;        /* that it needs */
    void (*run)(struct exchange *x);
    const char *summary;
};

/* True if who asks has this role, which is then x->role or less; else 401 or 403 has been said. */
bool http_may(struct exchange *x, enum role least); /* http_access.c */

/* NULL behind the last path. */
extern const struct http_route http_operation_routes[]; /* http_operations.c: as JSON */
extern const struct http_route http_auth_routes[];      /* http_auth.c: questions of gateways */

/* Runs the operation that the last part of the path names, with the body's members. */
void http_run_operation(struct exchange *x);

/* Runs an operation on a request that was read already. */
void http_run_ask(struct exchange *x, enum operation operation, const struct ask *ask);

/* ---- the client behind a proxy (http_client.c) ---- */

/* Fields that tell of it; options.client_field is one of them + 1. */
enum http_client_field {
    HTTP_CLIENT_X_FORWARDED_FOR,
    HTTP_CLIENT_FORWARDED, /* RFC 7239 */
    HTTP_CLIENT_X_REAL_IP,
    HTTP_CLIENT_FIELDS
};

const char *http_client_field_name(unsigned field); /* in lower case; NULL behind the last */

/* Who connected, or who is behind it, as far as that can be believed. */
void http_find_client(const struct exchange *x, struct address *client);

extern const struct http_route http_openapi_routes[]; /* http_openapi.c: what there is */

bool http_leads_to(const struct http_route *route, struct text path);

/* The tables of a listener, NULL behind the last. */
const struct http_route *const *http_routes(enum server_protocol listener);

/* ---- replies (http_reply.c) ---- */

/* What is in x->body, whole, of that type (NULL: there is nothing in it); `a`, if given, is what the header fields tell of. */
void http_reply(struct exchange *x, int status, const char *type, const struct answer *a);

/* 200: the answer; else a problem (RFC 9457) with its members. */
void http_reply_answer(struct exchange *x, int status, const struct answer *a);
void http_reply_problem(struct exchange *x, int status, const char *detail);

/* ---- answers that come later (http.c) ---- */

/* The request is answered by `put`, when the answer is there; which begins with http_resume(). */
void http_keep(struct exchange *x, const struct later *later, deferred_put_fn put);

/* What is left of a request by then. End with http_resumed(). */
struct exchange http_resume(const struct deferred *d, struct http_request *request);
void http_resumed(struct exchange *x);

/* The same for an error of the rules. */
void http_reply_failure(struct exchange *x, int e, const struct weir_error *error);

/* The status that says what the answer says. */
int http_status_of_answer(const struct answer *a);
int http_status_of_error(int e);
const char *http_words_of_error(int e, const struct weir_error *error);

/*
 * Put {"verdict":"allow",...}, with `more` members at its end (",\"name\":1"; may be none), and
 * {"title":...,"status":...,"detail":...}.
 */
void http_put_answer(struct buffer *body, const struct answer *a, struct text more);
void http_put_problem(struct buffer *body, int status, const char *detail);

#endif
