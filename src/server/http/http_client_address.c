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
 * names it (options.client_field), or all fields that are present must give the same client. If
 * they do not, one of them is forged, and the peer counts as the client. All clients that forge
 * fields behind one proxy therefore share one key.
 */
#include "base/atomic.h"
#include "common/log.h"
#include "server/http/http_routes.h"
#include "wire/forwarded.h"

/* ---- one hop ---- */

const char *const http_client_field_names[HTTP_CLIENT_FIELDS] = {
    [HTTP_CLIENT_X_FORWARDED_FOR] = "x-forwarded-for",
    [HTTP_CLIENT_FORWARDED] = "forwarded",
    [HTTP_CLIENT_X_REAL_IP] = "x-real-ip",
};

/* Reads a hop, which may have the form of RFC 7239. */
static bool read_hop(bool forwarded, struct text hop, struct address *a)
{
    char room[FORWARDED_NODE_MAX];
    return (!forwarded || forwarded_node(hop, room, &hop)) && address_parse(hop, a, NULL) == 0;
}

/* Returns which of these a field is, or HTTP_CLIENT_FIELDS if it is another one, as most are, which
 * their first letter shows. */
static unsigned kind_of(struct text name)
{
    char first = name.len > 0 ? (char)(name.at[0] | 0x20) : 0;
    unsigned i = first == 'x' || first == 'f' ? 0 : HTTP_CLIENT_FIELDS;
    while (i < HTTP_CLIENT_FIELDS && !http_same_name(name, http_client_field_names[i])) {
        i++;
    }
    return i;
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
static void ignore(const struct exchange *x, uint64_t *told, const char *why)
{
    char text[ADDRESS_MAX];
    count_own(&x->connection->worker->counts.forwarded_ignored, 1);
    if (load_relaxed(told) == 0 && cas_u64(told, 0, 1)) {
        const struct address *peer = &x->connection->peer;
        LOG(LEVEL_WARNING, why,
            LOG_STRING("from", peer->family != 0 ? address_print(peer, text) : "a unix socket"));
    }
}

/* ---- from the last hop back to the client ---- */

/* What the fields of one kind say. */
struct told {
    bool given;
    bool final; /* the search ended, at a client or at a hop without an address */
    struct address client;
};

static void walk(const struct server *server, bool forwarded, struct text list, struct told *told)
{
    struct text hop;
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
    unsigned only = x->server->options.client_field;
    bool any = false;
    for (unsigned i = r->fields_count; i-- > 0;) {
        unsigned kind = kind_of(r->fields[i].name);
        if (kind == HTTP_CLIENT_FIELDS || (only != 0 && only != kind + 1)) {
            continue;
        }
        any = true;
        told[kind].given = true;
        walk(x->server, kind == HTTP_CLIENT_FORWARDED, r->fields[i].value, &told[kind]);
    }
    return any;
}

/* Chooses the client and returns true if the fields agree. A field that names only trusted
 * proxies does not contradict one that goes further. */
static bool agree(const struct told *told, struct address *client)
{
    const struct told *chosen = NULL;
    for (unsigned i = 0; i < HTTP_CLIENT_FIELDS; i++) {
        const struct told *t = &told[i];
        if (!t->given) {
            continue;
        }
        if (chosen == NULL || (t->final && !chosen->final)) {
            chosen = t;
        } else if (t->final && memcmp(&t->client, &chosen->client, sizeof t->client) != 0) {
            return false;
        }
    }
    *client = chosen->client;
    return true;
}

void http_find_client(const struct exchange *x, struct address *client)
{
    struct told told[HTTP_CLIENT_FIELDS];
    *client = x->connection->peer;
    for (unsigned i = 0; i < HTTP_CLIENT_FIELDS; i++) {
        told[i] = (struct told){.client = *client};
    }
    if (!read_fields(x, told)) {
        return;
    }
    if (!is_trusted(x->server, client)) {
        ignore(x, &x->server->told_untrusted,
               "a forwarded field was ignored because the peer is not a trusted proxy");
    } else if (!agree(told, client)) {
        ignore(x, &x->server->told_disagreeing,
               "forwarded fields that name different clients were ignored: see --client-field");
    }
}
