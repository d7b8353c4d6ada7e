/*
 * Finds the client's address when a proxy asks on the client's behalf.
 *
 * A field is believed only if the peer of the connection is a trusted proxy. Its list is then
 * read from the right, because every proxy appends an address to the list that it got: the first
 * address that is not a trusted proxy's is the client's. Anybody can write what is left of it. A
 * hop without an address ("unknown", or hidden) ends the search: the proxy that added it counts
 * as the client.
 *
 * Three fields are in use, and a proxy that writes one of them passes on what a client has
 * written into the others. The server cannot see which one is the proxy's. So either the operator
 * names it (options.client_field) and the others are not read, or all fields that are present must
 * name the same client. If they do not, one of them is forged, and the request is refused: with any
 * other address a client could choose the limits and lists that apply to it.
 *
 * The peer of a unix socket has no address. If the rules use the client's address, a request there
 * without a field that has one is refused too: limits and lists would be skipped.
 */
#include "base/atomic.h"
#include "base/error.h"
#include "common/log.h"
#include "rules/live/live.h"
#include "server/http/http_routes.h"
#include "wire/forwarded.h"

/* ---- one hop ---- */

/* Reads a hop, which may have the form of RFC 7239. */
static bool read_hop(bool forwarded, struct weir_text hop, struct address *a)
{
    char room[FORWARDED_NODE_MAX];
    return (!forwarded || forwarded_node(hop, room, &hop)) && address_parse(hop, a, NULL) == 0;
}

/* Returns which of these a field is, or CLIENT_FIELDS if it is another one, as most are, which
 * their first letter shows. */
static unsigned kind_of(struct weir_text name)
{
    char first = name.len > 0 ? (char)(name.at[0] | 0x20) : 0;
    unsigned i = first == 'x' || first == 'f' ? CLIENT_FIELD_ANY + 1 : CLIENT_FIELDS;
    while (i < CLIENT_FIELDS && !http_same_name(name, client_field_names[i])) {
        i++;
    }
    return i;
}

bool http_names_client(struct weir_text name)
{
    return kind_of(name) != CLIENT_FIELDS;
}

/* ---- trust ---- */

static bool is_loopback(const struct address *a)
{
    static const uint8_t one[16] = {[15] = 1};
    return a->family == 4 ? a->bytes[0] == 127 : memcmp(a->bytes, one, sizeof one) == 0;
}

/* Returns whether a peer or hop is a trusted proxy. The peer of a unix socket is trusted: it is
 * on this machine, and the mode of the socket's file decides who can connect. */
static bool is_trusted(const struct server *server, const struct address *a)
{
    if (a->family == 0) {
        return true;
    }
    return server->options.trusted != NULL ? cidr_set_has(server->options.trusted, a)
                                           : is_loopback(a);
}

/* Counts fields that are not believed, and logs that only once: a client that floods the server
 * must not flood the log. */
static void ignore(const struct exchange *x)
{
    char text[ADDRESS_MAX];
    count_own(&x->connection->worker->counts.forwarded_ignored, 1);
    if (log_once(&x->server->told_untrusted)) {
        LOG(LEVEL_WARNING, "a forwarded field was ignored because the peer is not a trusted proxy",
            LOG_STRING("from", address_print(&x->connection->peer, text)));
    }
}

/* Counts and logs a request whose client is unclear; *error says why. */
static int refuse(const struct exchange *x, const struct weir_error *error)
{
    static struct log_limit limit;
    char text[ADDRESS_MAX];
    count_own(&x->connection->worker->counts.forwarded_refused, 1);
    LOG_LIMITED(&limit, LEVEL_WARNING,
                "request refused because its client is unclear: name the field that your gateway "
                "writes with --client-field or server.client_field",
                LOG_STRING("why", error->text),
                LOG_STRING("from", peer_print(&x->connection->peer, text)));
    return WEIR_EATTRIBUTE;
}

/* ---- from the last hop back to the client ---- */

/* What the fields of one kind say. */
struct told {
    bool given;
    bool final; /* the search ended, at a client or at a hop without an address */
    struct address client;
};

static void walk(const struct server *server, bool forwarded, struct weir_text list,
                 struct told *told)
{
    struct weir_text hop;
    while (!told->final && forwarded_last(&list, forwarded, &hop)) {
        struct address a;
        if (hop.len == 0) {
            continue;
        }
        if (!read_hop(forwarded, hop, &a)) {
            told->final = true;
        } else {
            told->client = a;
            told->final = !is_trusted(server, &a);
        }
    }
}

/* Reads the fields; several with one name are one long list. Returns true if there is any
 * field that may count. */
static bool read_fields(const struct exchange *x, struct told *told)
{
    const struct http_request *r = x->request;
    unsigned only = (unsigned)x->server->options.client_field;
    bool any = false;
    for (unsigned i = r->fields_count; i-- > 0;) {
        unsigned kind = kind_of(r->fields[i].name);
        if (kind == CLIENT_FIELDS || (only != CLIENT_FIELD_ANY && only != kind)) {
            continue;
        }
        any = true;
        told[kind].given = true;
        walk(x->server, kind == CLIENT_FIELD_FORWARDED, r->fields[i].value, &told[kind]);
    }
    return any;
}

/* Chooses the client, or fails if the fields do not agree. A field that names only trusted proxies
 * does not contradict one that goes further. */
static int choose(const struct told *told, struct address *client, struct weir_error *error)
{
    unsigned chosen = CLIENT_FIELD_ANY;
    for (unsigned i = CLIENT_FIELD_ANY + 1; i < CLIENT_FIELDS; i++) {
        const struct told *t = &told[i];
        if (!t->given) {
            continue;
        }
        if (chosen == CLIENT_FIELD_ANY || (t->final && !told[chosen].final)) {
            chosen = i;
        } else if (t->final && memcmp(&t->client, &told[chosen].client, sizeof t->client) != 0) {
            return fail(error, WEIR_EATTRIBUTE,
                        "%s and %s name different clients, expected the same or only one of them",
                        client_field_names[chosen], client_field_names[i]);
        }
    }
    *client = told[chosen].client;
    return 0;
}

/* Fails if the rules use an address that is unknown. */
static int require_address(const struct exchange *x, const struct address *client,
                           struct weir_error *error)
{
    int only = x->server->options.client_field;
    return client->family != 0 || !rules_need_ip(x->server->rules)
               ? 0
               : fail(error, WEIR_EATTRIBUTE,
                      "found no address of the client, which the rules use as 'ip', expected it in "
                      "%s",
                      only != CLIENT_FIELD_ANY ? client_field_names[only]
                                               : "x-forwarded-for, forwarded or x-real-ip");
}

int http_find_client(const struct exchange *x, struct address *client, struct weir_error *error)
{
    struct told told[CLIENT_FIELDS];
    int e = 0;
    *client = x->connection->peer;
    for (unsigned i = 0; i < CLIENT_FIELDS; i++) {
        told[i] = (struct told){.client = *client};
    }
    if (read_fields(x, told)) {
        if (is_trusted(x->server, client)) {
            e = choose(told, client, error);
        } else {
            ignore(x);
        }
    }
    e = e != 0 ? e : require_address(x, client, error);
    return e != 0 ? refuse(x, error) : 0;
}

bool http_lacks_client(const struct server_options *options, struct weir_rules *rules)
{
    return options->client_field == CLIENT_FIELD_ANY &&
           listener_is_unix(options->listen[PROTOCOL_HTTP]) && rules_need_ip(rules);
}
