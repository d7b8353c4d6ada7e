/*
 * Questions from gateways: a proxy asks about a request that it holds back, and describes that
 * request in header fields. Each kind of proxy has its own fields, and many pass on what a client
 * has written into the fields of other proxies. If two fields describe different requests, one of
 * them is forged, and the question is refused. http_client_address.c does the same for the client's
 * address.
 */
#include <strings.h>

#include "base/error.h"
#include "server/http/http_routes.h"
#include "server/operations/awaited.h"

#define QUERY_MAX                                                                                  \
    128 /* parameters; with the fields and four more at most WEIR_RULES_ATTRIBUTES_MAX */

/* ---- the request that is asked about ---- */

enum request_part { METHOD, PATH, QUERY, HOST, PARTS };

struct auth_request {
    struct weir_rules_attribute attributes[4 + HTTP_FIELDS_MAX + QUERY_MAX];
    size_t count;
    char room[4 * HTTP_HEAD_MAX]; /* names of attributes, decoded queries */
    size_t used;
    char address[ADDRESS_MAX];
    struct {
        struct weir_text text;
        const char *from; /* name of the field it was found in; NULL: none */
    } parts[PARTS];
};

_Static_assert(4 + HTTP_FIELDS_MAX + QUERY_MAX <= WEIR_RULES_ATTRIBUTES_MAX, "too many");
/* `room` holds the names of fields, each with "header:"; the decoded query; and the names of its
 * parameters once more, each with "query:". */
_Static_assert(4 * HTTP_HEAD_MAX >= 3 * HTTP_HEAD_MAX + HTTP_FIELDS_MAX * 7 + QUERY_MAX * 6,
               "room");

static void put(struct auth_request *a, struct weir_text name, struct weir_text value)
{
    if (value.len > 0) {
        a->attributes[a->count++] =
            (struct weir_rules_attribute){name.at, name.len, value.at, value.len};
    }
}

static void put_with_prefix(struct auth_request *a, struct weir_text prefix, struct weir_text name,
                            struct weir_text value)
{
    char *at = a->room + a->used;
    memcpy(at, prefix.at, prefix.len);
    memcpy(at + prefix.len, name.at, name.len);
    a->used += prefix.len + name.len;
    put(a, (struct weir_text){at, prefix.len + name.len}, value);
}

/* Puts the parameters of the query. Too many are an error, because a limit's key may need one of
 * those that would be left out. */
static int put_query(struct auth_request *a, struct weir_error *error)
{
    struct weir_text rest = a->parts[QUERY].text;
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

/* ---- the fields that describe it ---- */

/* Compares names of hosts: in upper or lower case, with or without a port. */
static bool is_same_host(struct weir_text a, struct weir_text b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    struct weir_text rest = a.len > n ? text_after(a, n) : text_after(b, n);
    return strncasecmp(a.at, b.at, n) == 0 && (rest.len == 0 || rest.at[0] == ':');
}

/* Takes a part of the request from the field `from`. It is an error if another field had
 * a different value. */
static int take_part(struct auth_request *a, enum request_part part, struct weir_text text,
                     const char *from, struct weir_error *error)
{
    struct weir_text before = a->parts[part].text;
    if (a->parts[part].from == NULL) {
        a->parts[part].text = text;
        a->parts[part].from = from;
        return 0;
    }
    if (part == HOST ? is_same_host(before, text) : text_equal(before, text)) {
        return 0;
    }
    return fail(error, WEIR_EATTRIBUTE,
                "%s and %s describe different requests: found '%.*s' and '%.*s'",
                a->parts[part].from, from, TEXT_CUT(before, 64), TEXT_CUT(text, 64));
}

/* Removes "https://shop.example" from the beginning of *uri and takes the host. A gateway may have
 * put the client's own Host there, in which nginx lets a '?' pass: what follows is the path of the
 * request, and would be taken for a query. */
static int take_host(struct auth_request *a, struct weir_text *uri, const char *from,
                     struct weir_error *error)
{
    struct weir_text scheme = text_before(text_before(*uri, '/'), '?');
    struct weir_text rest = text_after(*uri, scheme.len);
    if (scheme.len == 0 || scheme.at[scheme.len - 1] != ':' || rest.len < 2 ||
        memcmp(rest.at, "//", 2) != 0) {
        return 0;
    }
    rest = text_after(rest, 2);
    struct weir_text host = text_before(rest, '/');
    if (memchr(host.at, '?', host.len) != NULL) {
        return fail(error, WEIR_EATTRIBUTE, "%s: found '%.*s', expected a path after the host",
                    from, TEXT_CUT(*uri, 64));
    }
    *uri = text_after(rest, host.len);
    return host.len > 0 ? take_part(a, HOST, host, from, error) : 0;
}

/* Takes path and query of "/search?q=cats", and also the host of
 * "https://shop.example/search?q=cats". */
static int take_uri(struct auth_request *a, struct weir_text uri, const char *from,
                    struct weir_error *error)
{
    int e = take_host(a, &uri, from, error);
    struct weir_text query = text_before(uri, '#');
    struct weir_text path = text_cut(&query, '?');
    e = e != 0 ? e : take_part(a, PATH, path.len > 0 ? path : TEXT("/"), from, error);
    return e != 0 ? e : take_part(a, QUERY, query, from, error);
}

static const struct auth_source {
    const char *name;
    enum request_part part; /* PATH: the field holds a URI */
} sources[] = {
    {"x-forwarded-method", METHOD}, /* Traefik, Caddy */
    {"x-original-method", METHOD},  /* nginx, ingress-nginx */
    {"x-forwarded-uri", PATH},      /* Traefik, Caddy */
    {"x-original-uri", PATH},       /* nginx */
    {"x-original-url", PATH},       /* ingress-nginx: with scheme and host */
    {"x-forwarded-host", HOST},
};

/* Returns the row of a field, or NULL, as for nearly all fields. */
static const struct auth_source *source_of(struct weir_text name)
{
    if (name.len < 14 || (name.at[0] | 0x20) != 'x') {
        return NULL;
    }
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        if (http_same_name(name, sources[i].name)) {
            return &sources[i];
        }
    }
    return NULL;
}

bool http_is_forwarded(const struct http_request *r)
{
    unsigned i = 0;
    while (i < r->fields_count && source_of(r->fields[i].name) == NULL &&
           !http_names_client(r->fields[i].name)) {
        i++;
    }
    return i < r->fields_count;
}

static int take_fields(struct auth_request *a, const struct http_request *r,
                       struct weir_error *error)
{
    int e = 0;
    for (unsigned i = 0; i < r->fields_count && e == 0; i++) {
        const struct auth_source *source = source_of(r->fields[i].name);
        struct weir_text value = r->fields[i].value;
        if (source != NULL && value.len > 0) {
            e = source->part == PATH ? take_uri(a, value, source->name, error)
                                     : take_part(a, source->part, value, source->name, error);
        }
    }
    return e;
}

/* Takes path and method from the request itself: Envoy asks with the client's method, and appends
 * the client's path to ours. */
static int take_target(struct auth_request *a, const struct http_request *r,
                       struct weir_error *error)
{
    struct weir_text below = text_after(r->target, strlen("/v1/auth"));
    if (below.len == 0 || below.at[0] != '/') {
        return 0;
    }
    int e = take_uri(a, below, "the path", error);
    return e != 0 ? e : take_part(a, METHOD, r->method, "the method", error);
}

static int read_request(const struct exchange *x, struct auth_request *a, struct weir_error *error)
{
    const struct http_request *r = x->request;
    struct address client;
    a->count = 0;
    a->used = 0;
    memset(a->parts, 0, sizeof a->parts); /* then the values if no field gives one */
    a->parts[METHOD].text = r->method;
    a->parts[PATH].text = TEXT("/");
    a->parts[HOST].text = r->host;
    int e = take_fields(a, r, error);
    e = e != 0 ? e : take_target(a, r, error);
    e = e != 0 ? e : http_find_client(x, &client, error);
    if (e != 0) {
        return e;
    }
    put(a, TEXT("method"), a->parts[METHOD].text);
    put(a, TEXT("path"), a->parts[PATH].text);
    put(a, TEXT("host"), a->parts[HOST].text);
    if (client.family != 0) {
        put(a, TEXT("ip"), text_of(address_print(&client, a->address)));
    }
    for (unsigned i = 0; i < r->fields_count; i++) {
        put_with_prefix(a, TEXT("header:"), r->fields[i].name, r->fields[i].value);
    }
    return put_query(a, error);
}

/* ---- the route ---- */

/*
 * A denial for now and one for ever differ, because the client may retry after the former: NEVER
 * (422) becomes 403. A denial is never a 5xx, not even by `on_store_failure: closed`: gateways that
 * let requests pass while weir fails take every 5xx for a failure.
 */
int http_auth_status(const struct http_style *style, const struct answer *a)
{
    int deny = (int)style->deny_status;
    int status = http_status_of_answer(a);
    if (status == 200) {
        return status;
    }
    status = status == 503 ? 429 : status;
    if (a->deny_status != 0) {
        return (int)a->deny_status;
    }
    if (status == 422) {
        return 403;
    }
    return status == 429 && deny > 0 ? deny : status;
}

/*
 * A 200 has no body: no proxy uses it, and nginx and Caddy do not even read
 * it. With a body they would close the connection, which could be used for the next question.
 * Proxies pass the body of a denial on to their client, which must not learn of hidden limits.
 */
void http_auth_reply(struct exchange *x, int e, const struct answer *a,
                     const struct weir_error *error)
{
    int status = e == 0 ? http_auth_status(&x->style, a) : 0;
    struct answer told;
    if (e == 0 && a->hidden) {
        answer_for_client(a, &told);
        a = &told;
    }
    if (e != 0) {
        http_reply_failure(x, e, error);
    } else if (status == 200) {
        http_reply(x, status, NULL, a);
    } else {
        x->detail = a->deny_message[0] != 0 ? a->deny_message : NULL;
        http_reply_answer(x, status, a);
    }
}

static void put_later(struct pending *p)
{
    struct http_request request;
    struct exchange x = http_resume(p, &request);
    struct weir_error error = {0};
    http_auth_reply(&x, p->error, &awaited_of(p)->answer, &error);
    buffer_finish(&x.body);
}

/* Keeps an answer that is known until its delay has passed, with the place that was taken for it.
 * Returns false without memory. */
static bool hold(struct exchange *x, const struct answer *a)
{
    struct pending *p = awaited_create(x->connection->worker);
    if (p == NULL) {
        return false;
    }
    p->held = true;
    p->decided = true;
    awaited_of(p)->answer = *a;
    if (!delay_add(p, a->delay_ms)) {
        p->held = false;
        pending_destroy(p);
        return false;
    }
    http_keep(x, p, put_later);
    return true;
}

/* Replies when the delay has passed, as nginx's limit_req does: a gateway lets the request pass as
 * soon as it has the reply. `place` says that one for a held reply was taken. */
static void reply_in_time(struct exchange *x, int e, const struct answer *a,
                          const struct weir_error *error, bool place)
{
    bool delayed = place && e == 0 && a->verdict == WEIR_ALLOW && a->delay_ms > 0;
    if (delayed && hold(x, a)) {
        return;
    }
    http_auth_reply(x, e, a, error);
    if (place) {
        delay_give_place(x->connection->worker);
    }
}

static void run_auth(struct exchange *x)
{
    struct asker asker = http_asker(x);
    struct auth_request about;
    struct answer a;
    struct weir_error error = {0};
    int e = read_request(x, &about, &error);
    bool place = e == 0 && delay_take_place(x->connection->worker);
    if (e == 0) {
        struct weir_rules_question q = {.attributes = about.attributes,
                                        .attributes_count = about.count,
                                        .mode = WEIR_CHECK,
                                        .flags = asker.flags |
                                                 (place ? WEIR_RULES_HOLD : WEIR_RULES_NO_DELAY)};
        e = answer_ask(&asker, &q, &a, &error);
        if (e == ANSWER_LATER) {
            asker.pending->held = place;
            http_keep(x, asker.pending, put_later);
            return;
        }
    }
    reply_in_time(x, e, &a, &error, place);
}

const struct http_route http_auth_routes[] = {
    {NULL, "/v1/auth", HTTP_AT_OR_BELOW, ROLE_CHECK, run_auth,
     .summary = "for gateways: 200 lets the request pass"},
    {.path = NULL},
};
