/* HTTP: one request being answered, the table of routes, and the replies. */
#ifndef WEIR_SERVER_HTTP_HTTP_ROUTES_H
#define WEIR_SERVER_HTTP_HTTP_ROUTES_H

#include "server/operations/operations.h"
#include "server/loop/connection.h"
#include "server/loop/worker.h"
#include "wire/http_request.h"
#include "wire/ratelimit.h"

#define HTTP_LOOKS_MAX 8 /* most times that one request is parsed while it arrives in pieces */

struct http_session {
    size_t seen;    /* bytes of an incomplete request that have been looked at; 0: none */
    size_t needed;  /* the request has at least so many bytes; 0: not known */
    size_t chunk;   /* where its next chunk begins; 0: it has none, or its head is incomplete */
    unsigned looks; /* how often it has been parsed */
    bool admitted;  /* its head is complete, and the client may make the request */
    bool continued; /* 100 Continue has been sent */
    enum role role; /* of a stream of events (server/admin/events.h) */
};

/* What replies to gateways, and the header fields of all replies, look like. */
struct http_style {
    int headers;          /* enum ratelimit_format */
    unsigned deny_status; /* of a denial at /v1/auth; 0: 429 */
};

/* One request, and its reply. */
struct exchange {
    struct connection *connection; /* NULL: a reply that is shown, not sent, and not counted */
    struct server *server;         /* NULL if `connection` is */
    const struct http_request *request;
    struct http_style style;
    struct buffer *out;
    uint64_t now_ns;
    enum role role;             /* the client's */
    struct access_pass pass;    /* the secret and the certificate that the request shows */
    bool endless;               /* the body follows the reply's head until the connection ends */
    bool close;                 /* end the connection after the reply */
    enum operation operation;   /* whose answer this is */
    enum request_result result; /* how the request counts; REQUEST_OTHER: as the reply says */
    const char *detail;         /* of a denial: words for the client; NULL: none */
    struct weir_text allow;     /* for a 405: the methods that the path takes; len 0 otherwise */
    const char *fields;         /* lines for the reply's head, instead of Cache-Control: no-store;
                                 * NULL: none */
    struct buffer body;         /* body of the reply */
};

enum http_reach { HTTP_AT, HTTP_AT_OR_BELOW, HTTP_BELOW };

struct http_route {
    const char *method; /* NULL: any */
    const char *path;
    enum http_reach reach; /* the path itself, paths below it ("/v1/limits/api"), or both */
    enum role role;        /* the role that it needs */
    void (*run)(struct exchange *x);
    const char *summary;
    bool health;           /* answered under overload and beyond the bound on connections */
    size_t body_most;      /* bytes of its body; 0: as many as a request may have */
    const char *body_hint; /* what is expected instead of a longer one */
};

/* Sets x->role to the client's role. Returns whether that is `least` or more; if not, a 401 or
 * 403 has been sent. */
bool http_may(struct exchange *x, enum role least); /* http_access.c */

/* Counts and sends a refusal for lack of access. Returns false. */
bool http_refuse(struct exchange *x, int status, const char *detail);

/*
 * Returns false, after a 403, if a web page of another site may have sent the request: it would act
 * with the access of the person whose browser shows it.
 */
bool http_is_ours(struct exchange *x); /* http_origin.c */

/* Returns false, after a 415, if the request would change something and an HTML form of another
 * site can have sent it. */
bool http_is_no_form(struct exchange *x); /* http_origin.c */

/* Returns whether the request has a field in which gateways describe their client's request. */
bool http_is_forwarded(const struct http_request *r); /* http_auth.c */

/* Tables of routes; `path` is NULL after the last row. */
extern struct http_route http_operation_routes[];  /* http_operations.c: as JSON, for clients */
extern struct http_route http_key_routes[];        /* the same for operators */
void http_make_routes(void);                       /* fills these two; called once */
extern const struct http_route http_auth_routes[]; /* http_auth.c: questions from gateways */
extern const struct http_route http_rls_routes[];  /* http_rls.c: Envoy's calls as JSON */

/* Runs the operation that the last part of the path names, with the body's members. Such a body has
 * at most HTTP_QUESTION_MAX bytes. */
void http_run_operation(struct exchange *x);
#define HTTP_QUESTION_MAX 65536

/* Runs an operation on a request that was read already. */
void http_run_ask(struct exchange *x, enum operation operation, const struct ask *ask);

/* Returns the status for a proxy: that of the limit that denied, or the server's. */
int http_auth_status(const struct http_style *style, const struct answer *a); /* http_auth.c */

/* Replies to a proxy: `e` is WEIR_E... with *error, or 0 with the answer. */
void http_auth_reply(struct exchange *x, int e, const struct answer *a,
                     const struct weir_error *error);

/* ---- the client behind a proxy (http_client_address.c) ---- */

/* Returns whether the field is one in which proxies name the client. */
bool http_names_client(struct weir_text name);

/*
 * Finds the client's address: the peer's, or the one that trusted proxies have passed on. Its
 * family is 0 if it is unknown and the rules do not use it. Returns 0; or WEIR_EATTRIBUTE, counted
 * and logged, if the fields name different clients or if the rules use an unknown address.
 */
int http_find_client(const struct exchange *x, struct address *client, struct weir_error *error);

/*
 * Returns whether no request of a gateway could be answered: the HTTP listener is a unix socket,
 * whose peers have no address, the rules use the address, and no field is named for it.
 */
bool http_lacks_client(const struct server_options *options, struct weir_rules *rules);

/* The OpenAPI document (http_openapi.c). http_openapi() returns its text, as json_dumps() with
 * these flags makes it, for a server with this longest time of reservations; the caller frees it.
 * NULL without memory. */
extern const struct http_route http_openapi_routes[];
char *http_openapi(size_t json_flags, uint64_t ttl_longest_ms);

bool http_leads_to(const struct http_route *route, struct weir_text path);

/* Returns the tables of a listener, the `rows` of its protocol; NULL after the last. Listeners
 * that do not speak HTTP have none. */
const struct http_route *const *http_routes(enum server_protocol listener);

/* ---- for protocols whose bytes are HTTP (server/app/protocols.c) ---- */

extern const struct http_route http_health_routes[]; /* http_routes.c */
extern const char http_refusal[];                    /* sent to connections beyond the bound */
extern const char http_unsealed[]; /* sent to clients that do not speak TLS where it is spoken */
int64_t http_consume(struct connection *c, struct weir_text input);

/* ---- replies (http_reply.c) ---- */

/* Writes a reply with x->body, which has that type (NULL: the body is empty). `a`, if not NULL,
 * is the answer that the rate-limit header fields describe. */
void http_reply(struct exchange *x, int status, const char *type, const struct answer *a);

/* Replies with an answer: for status 200 as JSON, otherwise as a problem (RFC
 * 9457) with its members. */
void http_reply_answer(struct exchange *x, int status, const struct answer *a);
void http_reply_problem(struct exchange *x, int status, const char *detail);

/* ---- answers that come later (http_routes.c) ---- */

/* Returns who asks, for operation_run(). */
static inline struct asker http_asker(const struct exchange *x)
{
    return (struct asker){.server = x->server,
                          .worker = x->connection->worker,
                          .by = {&x->connection->peer, x->role},
                          .now_ns = x->now_ns,
                          .flags = WEIR_RULES_SHOW};
}

/* Lets `put` reply when the answer has come. `put` must begin with http_resume(). */
void http_keep(struct exchange *x, struct pending *p, pending_put_fn put);

/* Returns an exchange with what was kept of the request. `put` frees x.body. */
struct exchange http_resume(const struct pending *p, struct http_request *request);

/* Replies with the problem for an error WEIR_E... */
void http_reply_failure(struct exchange *x, int e, const struct weir_error *error);

/* Returns the status for an answer. */
int http_status_of_answer(const struct answer *a);

/* Put {"verdict":"allow",...}, with the members of this operation, and
 * {"title":...,"status":...,"detail":...,"reason":...}; without a reason if that is 0. */
void http_put_answer(struct buffer *body, const struct answer *a, enum operation operation);
void http_put_problem(struct buffer *body, int status, const char *detail, int reason);

#endif
