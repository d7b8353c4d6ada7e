/*
 * Protection from web pages. A page of another site can make a visitor's browser send requests to
 * this machine, where no secret may be needed: it could spend the visitor's quota. Three signs show
 * such a page:
 *
 *   Origin          browsers add it to requests of scripts and forms; it must be this server's own
 *   Sec-Fetch-Site  browsers add it to every request; it must be same-origin or none
 *   Host            a page can let its own host name point to 127.0.0.1, and is then of the same
 *                   origin; so on a loopback address where no secret is needed, only names that no
 *                   other site can own are accepted: IP addresses, localhost, the listener's own,
 *                   and server.hosts
 *
 * Programs send neither Origin nor Sec-Fetch-Site. A gateway passes on those of its client, and
 * some pass on its client's Host too. So a request to /v1/auth with a field of a gateway is exempt
 * from all three signs, with one condition:
 *
 *   a page of another site cannot add such a field without asking first (CORS), and that question,
 *   which has no such field, is refused;
 *
 *   a page whose own name points here does not have to ask: this server is of its origin. So
 *   where the name counts, the port in Host must not be the listener's. A page cannot choose that
 *   port: it is the one to which the browser connects. A gateway's client has that of the gateway.
 *   A gateway on the same port number sends a Host that is known: localhost, or one of
 *   server.hosts.
 */
#include <strings.h>

#include "rules/file/config.h"
#include "server/http/http_routes.h"

static bool is_same_name(struct weir_text a, struct weir_text b)
{
    return a.len == b.len && strncasecmp(a.at, b.at, a.len) == 0;
}

/* Returns whether no other site can own the host name of the request. It has none only in HTTP/1.0,
 * which no browser speaks. */
static bool is_own_name(const struct exchange *x)
{
    struct address address;
    struct weir_text own;
    struct weir_text name = x->request->host_name;
    const struct texts *hosts = x->server->options.hosts;
    const char *listen = x->server->options.listen[x->connection->protocol->kind];
    if (name.len == 0 || is_same_name(name, TEXT("localhost")) ||
        address_parse(name, &address, NULL) == 0 ||
        (http_read_host(text_of(listen), &own) && is_same_name(name, own))) {
        return true;
    }
    for (size_t i = 0; hosts != NULL && i < hosts->count; i++) {
        if (is_same_name(name, hosts->at[i])) {
            return true;
        }
    }
    return false;
}

/* Returns whether every program on this machine, a browser among them, may ask without a secret. A
 * listener that other machines can reach has names that the server does not know. */
static bool is_open(const struct exchange *x)
{
    const struct connection *c = x->connection;
    return c->worker->listeners[c->protocol->kind].loopback &&
           !access_has_secrets(x->server->options.access, ROLE_CHECK);
}

/* Returns whether the value of Origin, "http://weir.example:8080", is that of another site. */
static bool is_other_origin(struct weir_text origin, struct weir_text host)
{
    const char *scheme = memmem(origin.at, origin.len, "://", 3);
    return scheme == NULL ||
           !text_equal(text_after(origin, (size_t)(scheme - origin.at) + 3), host);
}

/* Returns whether a page of another origin made the request. */
static bool is_foreign(const struct http_request *r)
{
    bool foreign = false;
    for (unsigned i = 0; i < r->fields_count; i++) {
        struct weir_text name = r->fields[i].name;
        struct weir_text value = r->fields[i].value;
        if (name.len == strlen("origin") && http_same_name(name, "origin")) {
            foreign = foreign || is_other_origin(value, r->host);
        } else if (name.len == strlen("sec-fetch-site") && http_same_name(name, "sec-fetch-site")) {
            foreign = foreign ||
                      !(value.len == 0 || text_is(value, "same-origin") || text_is(value, "none"));
        }
    }
    return foreign;
}

/* Returns the port of "name:port", 0 if there is none. The syntax has been checked. */
static unsigned port_of(struct weir_text host)
{
    unsigned port = 0;
    size_t at = host.len;
    while (at > 0 && host.at[at - 1] >= '0' && host.at[at - 1] <= '9') {
        at--;
    }
    if (at == 0 || host.at[at - 1] != ':') {
        return 0;
    }
    for (; at < host.len && port <= UINT16_MAX; at++) {
        port = 10 * port + (unsigned)(host.at[at] - '0');
    }
    return port;
}

/* Returns whether a browser that is connected to this listener would send that port. It leaves out
 * 80 for http and 443 for https. */
static bool is_own_port(const struct exchange *x)
{
    const struct connection *c = x->connection;
    unsigned own = c->worker->listeners[c->protocol->kind].port;
    unsigned port = port_of(x->request->host);
    return port != 0 ? port == own : own == 80 || own == 443;
}

static bool is_of_gateway(const struct exchange *x)
{
    return x->connection->protocol->kind == PROTOCOL_HTTP &&
           http_leads_to(&http_auth_routes[0], x->request->path) && http_is_forwarded(x->request);
}

bool http_is_ours(struct exchange *x)
{
    bool foreign = is_foreign(x->request);
    bool known = is_own_name(x) || !is_open(x); /* no page can have that name and need no secret */
    if ((known && !foreign) || ((known || !is_own_port(x)) && is_of_gateway(x))) {
        return true;
    }
    return http_refuse(
        x, 403,
        foreign ? "found the Origin or Sec-Fetch-Site of another site, expected none or this "
                  "server's own"
                : "found an unknown name as Host, expected an IP address, localhost, the "
                  "host of the listener or one of server.hosts");
}

/* ---- forms of foreign web pages ---- */

static bool changes(const struct exchange *x)
{
    return !text_is(x->request->method, "GET") && !text_is(x->request->method, "HEAD");
}

/* Returns whether the body has a type that a form can send without a CORS preflight. */
static bool is_form(const struct exchange *x)
{
    static const char *const types[] = {"APPLICATION/X-WWW-FORM-URLENCODED", "MULTIPART/FORM-DATA",
                                        "TEXT/PLAIN"};
    struct weir_text type = text_trim(text_before(http_value(x->request, "content-type"), ';'));
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (text_is_word(type, types[i])) {
            return true;
        }
    }
    return false;
}

bool http_is_no_form(struct exchange *x)
{
    return !changes(x) || !is_form(x) ||
           http_refuse(
               x, 415,
               "found a Content-Type that an HTML form can send, expected application/json or "
               "application/yaml");
}
