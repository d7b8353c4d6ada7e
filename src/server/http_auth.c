/*
 * Questions of gateways: a proxy asks about a request that it holds back, and tells of it in header
 * fields. Each proxy has its own; the first one present counts. Who the client is: http_client.c.
 */
#include "base/error.h"
#include "server/http.h"

#define QUERY_MAX                                                                                  \
    128 /* parameters; with the fields and four more below WEIR_RULES_ATTRIBUTES_MAX */

/* NULL behind the last. */
static const char *const method_fields[] = {"x-forwarded-method" /* Traefik, Caddy */,
                                            "x-original-method" /* nginx, ingress-nginx */, NULL};
static const char *const uri_fields[] = {
    "x-forwarded-uri" /* Traefik, Caddy */, "x-original-uri" /* nginx */,
    "x-original-url" /* ingress-nginx: with scheme and host */, NULL};
static const char *const host_fields[] = {"x-forwarded-host", NULL};

/* The value of the first field of the list that has one; len 0: none. */
static struct text first_of(const struct http_request *r, const char *const *names)
{
    for (; *names != NULL; names++) {
        const struct http_field *f = http_field(r, *names);
        if (f != NULL && f->value.len > 0) {
            return f->value;
        }
    }
    return (struct text){"", 0};
}

/* ---- the request that is asked about ---- */

struct asked {
    struct weir_rules_attribute attributes[4 + HTTP_FIELDS_MAX + QUERY_MAX];
    size_t count;
    char room[4 * HTTP_HEAD_MAX]; /* names of attributes, decoded queries */
    size_t used;
    char address[ADDRESS_MAX];
    struct text host; /* of an absolute URI */
    struct text path;
    struct text query;
};

_Static_assert(4 + HTTP_FIELDS_MAX + QUERY_MAX <= WEIR_RULES_ATTRIBUTES_MAX, "too many");
/* Fields: their bytes and "header:"; the query, decoded and again as names, and "query:". */
_Static_assert(4 * HTTP_HEAD_MAX >= 3 * HTTP_HEAD_MAX + HTTP_FIELDS_MAX * 7 + QUERY_MAX * 6,
               "room");

static void put(struct asked *a, struct text name, struct text value)
{
    if (value.len > 0) {
        a->attributes[a->count++] =
            (struct weir_rules_attribute){name.at, name.len, value.at, value.len};
    }
}

static void put_with_prefix(struct asked *a, struct text prefix, struct text name,
                            struct text value)
{
    char *at = a->room + a->used;
    memcpy(at, prefix.at, prefix.len);
    memcpy(at + prefix.len, name.at, name.len);
    a->used += prefix.len + name.len;
    put(a, (struct text){at, prefix.len + name.len}, value);
}

static void put_fields(struct asked *a, const struct http_request *r)
{
    for (unsigned i = 0; i < r->fields_count; i++) {
        put_with_prefix(a, TEXT("header:"), r->fields[i].name, r->fields[i].value);
    }
}

/* Too many is an error: the one that a limit counts by may be behind them. */
static int put_query(struct asked *a, struct weir_error *error)
{
    struct text rest = a->query;
    struct http_pair pair;
    for (unsigned n = 0; rest.len > 0; n++) {
        char *room = a->room + a->used;
        size_t before = rest.len;
        if (!http_next_pair(&rest, room, &pair)) {
            break;
        }
        if (n == QUERY_MAX) {
            return fail(error, WEIR_EATTRIBUTE, "query: found more than %d parameters", QUERY_MAX);
        }
        a->used += before - rest.len;
        put_with_prefix(a, TEXT("query:"), pair.name, pair.value);
    }
    return 0;
}

/* "/search?q=cats", or all of "https://shop.example/search?q=cats". */
static void split_uri(struct asked *a, struct text uri)
{
    const char *scheme = uri.len > 0 && uri.at[0] != '/' ? memmem(uri.at, uri.len, "://", 3) : NULL;
    if (scheme != NULL) {
        uri = text_after(uri, (size_t)(scheme - uri.at) + 3);
        const char *slash = memchr(uri.at, '/', uri.len);
        a->host = (struct text){uri.at, slash != NULL ? (size_t)(slash - uri.at) : uri.len};
        uri = text_after(uri, a->host.len);
    }
    const char *hash = uri.len > 0 ? memchr(uri.at, '#', uri.len) : NULL;
    uri.len = hash != NULL ? (size_t)(hash - uri.at) : uri.len;
    const char *mark = uri.len > 0 ? memchr(uri.at, '?', uri.len) : NULL;
    a->path = (struct text){uri.at, mark != NULL ? (size_t)(mark - uri.at) : uri.len};
    a->query = mark != NULL ? text_after(uri, a->path.len + 1) : (struct text){"", 0};
    if (a->path.len == 0) {
        a->path = TEXT("/");
    }
}

static struct text host_of(const struct asked *a, const struct http_request *r)
{
    struct text host = first_of(r, host_fields);
    const struct http_field *own = http_field(r, "host");
    if (host.len == 0) {
        host = a->host;
    }
    return host.len == 0 && own != NULL ? own->value : host;
}

static int read_asked(const struct exchange *x, struct asked *a, struct weir_error *error)
{
    const struct http_request *r = x->request;
    struct text method = first_of(r, method_fields);
    struct text uri = first_of(r, uri_fields);
    struct address client;
    a->count = 0;
    a->used = 0;
    a->host = (struct text){"", 0};
    split_uri(a, uri.len > 0 ? uri : text_after(r->target, strlen("/v1/auth"))); /* Envoy */
    http_find_client(x, &client);
    put(a, TEXT("method"), method.len > 0 ? method : r->method);
    put(a, TEXT("path"), a->path);
    put(a, TEXT("host"), host_of(a, r));
    if (client.family != 0) {
        put(a, TEXT("ip"), text_of(address_print(&client, a->address)));
    }
    put_fields(a, r);
    return put_query(a, error);
}

/* ---- the route ---- */

/* A proxy knows yes and no: what can never pass is a no too. */
static int status_for_proxy(const struct exchange *x, const struct answer *a)
{
    int status = http_status_of_answer(a);
    unsigned deny = x->server->options.auth_deny_status;
    return status == 200 || status == 403 ? status : deny != 0 ? (int)deny : 429;
}

static void run_auth(struct exchange *x)
{
    struct asked asked;
    struct answer a;
    struct weir_error error = {0};
    int e = read_asked(x, &asked, &error);
    if (e == 0) {
        struct weir_rules_question q = {
            .attributes = asked.attributes, .attributes_count = asked.count, .mode = WEIR_CHECK};
        e = answer_ask(x->server->rules, &q, x->now_ns, &a, &error);
    }
    if (e != 0) {
        http_reply_failure(x, e, &error);
    } else {
        http_reply_answer(x, status_for_proxy(x, &a), &a);
    }
}

const struct http_route http_auth_routes[] = {
    {NULL, "/v1/auth", true, ROLE_CHECK, run_auth, "for gateways: 200 lets the request pass"},
    {NULL, NULL, false, ROLE_NONE, NULL, NULL},
};
