#include "redis/url.h"

#include "base/error.h"
#include "wire/resp.h"

#define DB_MOST 65535
#define EXPECTED                                                                                   \
    "redis://host:port[,host:port...][/db], redis-sentinel://host:port,.../mastername or "         \
    "redis-cluster://host:port,... (TLS: rediss)"

static const struct {
    const char *scheme;
    enum store_kind kind;
    unsigned port;
    bool tls;
} rows[] = {
    {"redis://", STORE_ALONE, 6379, false},
    {"redis-sentinel://", STORE_SENTINEL, 26379, false},
    {"redis-cluster://", STORE_CLUSTER, 6379, false},
    {"rediss://", STORE_ALONE, 6379, true},
    {"rediss-sentinel://", STORE_SENTINEL, 26379, true},
    {"rediss-cluster://", STORE_CLUSTER, 6379, true},
};

/* ---- hosts ---- */

static int set_host(struct store_host *h, struct weir_text name, struct weir_error *error)
{
    if (name.len == 0 || name.len >= sizeof h->host) {
        return fail(error, WEIR_EINVAL, "a host has %zu bytes, expected 1 to %zu", name.len,
                    sizeof h->host - 1);
    }
    memcpy(h->host, name.at, name.len);
    h->host[name.len] = 0;
    return 0;
}

bool store_port_read(struct weir_text text, unsigned *port)
{
    uint64_t number;
    bool good = resp_to_u64(text, &number) && number > 0 && number <= 65535;
    *port = good ? (unsigned)number : 0;
    return good;
}

static int read_port(struct weir_text t, unsigned *port, struct weir_error *error)
{
    if (t.len == 0) {
        return 0;
    }
    if (t.at[0] != ':') {
        return fail(error, WEIR_EINVAL, "found '%.*s' after a host, expected ':' and a port",
                    TEXT_ARGS(t));
    }
    t = text_after(t, 1);
    return store_port_read(t, port)
               ? 0
               : fail(error, WEIR_EINVAL, "the port is '%.*s', expected 1 to 65535", TEXT_ARGS(t));
}

static int read_host(struct weir_text t, struct store_host *h, struct weir_error *error)
{
    struct weir_text name = text_before(t, ':');
    const char *others = ".-_";
    struct weir_text rest;
    if (t.len > 0 && t.at[0] == '[') {
        name = text_before(text_after(t, 1), ']');
        if (name.len + 2 > t.len) {
            return fail(error, WEIR_EINVAL,
                        "the host is '%.*s', expected ']' after an IPv6 address", TEXT_ARGS(t));
        }
        rest = text_after(t, name.len + 2);
        others = ".:%-_";
    } else {
        rest = text_after(t, name.len);
    }
    if (!text_is_made_of(name, others)) {
        return fail(error, WEIR_EINVAL,
                    "the host is '%.*s', expected a name, an IPv4 address or [an IPv6 address]",
                    TEXT_ARGS(name));
    }
    int e = set_host(h, name, error);
    return e != 0 ? e : read_port(rest, &h->port, error);
}

static int read_socket(struct weir_text t, const struct store_url *url, struct store_host *h,
                       struct weir_error *error)
{
    if (url->kind != STORE_ALONE || url->tls) {
        return fail(error, WEIR_EINVAL,
                    "found '%.*s', expected a host; only redis:// supports unix sockets",
                    TEXT_ARGS(t));
    }
    if (memchr(t.at, 0, t.len) != NULL) {
        return fail(error, WEIR_EINVAL, "found a zero byte in the path of a unix socket");
    }
    h->port = 0;
    return set_host(h, t, error);
}

/* Takes the hosts and the commas between them from the front. */
static int take_hosts(struct weir_text *rest, unsigned port, struct store_url *url,
                      struct weir_error *error)
{
    bool more = true;
    int e = 0;
    while (e == 0 && more) {
        if (url->count == STORE_HOSTS_MAX) {
            return fail(error, WEIR_EINVAL, "found more than %d hosts, which is the maximum",
                        STORE_HOSTS_MAX);
        }
        struct store_host *h = &url->hosts[url->count++];
        struct weir_text one = text_before(*rest, ',');
        bool path = one.len > 0 && one.at[0] == '/';
        one = path ? one : text_before(one, '/');
        *rest = text_after(*rest, one.len);
        more = rest->len > 0 && rest->at[0] == ',';
        *rest = text_after(*rest, more);
        h->port = port;
        e = path ? read_socket(one, url, h, error) : read_host(one, h, error);
    }
    return e;
}

/* ---- master name and database ---- */

static int read_tail(struct weir_text t, struct store_url *url, struct weir_error *error)
{
    uint64_t db = 0;
    if (url->kind == STORE_SENTINEL) {
        if (t.len >= sizeof url->master || !text_is_made_of(t, ".-_")) {
            return fail(error, WEIR_EINVAL,
                        "the master's name is '%.*s', expected 1 to %zu letters, digits, '.', '-' "
                        "and '_' after the hosts and '/'",
                        TEXT_ARGS(t), sizeof url->master - 1);
        }
        memcpy(url->master, t.at, t.len);
        return 0;
    }
    if (t.len > 0 && (!resp_to_u64(t, &db) || db > DB_MOST)) {
        return fail(error, WEIR_EINVAL, "the database is '%.*s', expected 0 to %d", TEXT_ARGS(t),
                    DB_MOST);
    }
    if (url->kind == STORE_CLUSTER && db != 0) {
        return fail(error, WEIR_EINVAL, "the database is %d, expected 0, the only one of a Cluster",
                    (int)db);
    }
    url->db = (unsigned)db;
    return 0;
}

int store_url_read(struct weir_text text, struct store_url *url, struct weir_error *error)
{
    *url = (struct store_url){0};
    /* This check comes first, because no message may show what stands before an '@' or in a
     * query. */
    if (text_before(text, '@').len < text.len || text_before(text, '?').len < text.len) {
        return fail(error, WEIR_EINVAL,
                    "the store's URL has an '@' or a '?'; set `user` and `password_file` instead, "
                    "and give the URL as " EXPECTED);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (text_starts(text, rows[i].scheme)) {
            struct weir_text rest = text_after(text, strlen(rows[i].scheme));
            url->kind = rows[i].kind;
            url->tls = rows[i].tls;
            int e = take_hosts(&rest, rows[i].port, url, error);
            return e != 0 ? e : read_tail(text_after(rest, rest.len > 0), url, error);
        }
    }
    return fail(error, WEIR_EINVAL, "the store's URL is '%.*s', expected " EXPECTED,
                TEXT_ARGS(text));
}
