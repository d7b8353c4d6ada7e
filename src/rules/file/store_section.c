/* The section `store` of the rule file. */
#include "rules/file/sections.h"

/* Reports a wrong URL without showing it if it may hold a password. */
static void refuse_url(struct reader *r, const struct field *f, const struct node *node,
                       struct weir_text url)
{
    const char *found = url.len == 0 ? "nothing"
                        : memchr(url.at, '@', url.len) != NULL
                            ? "a text with '@' (not shown, because it may hold a password)"
                            : NULL;
    if (found != NULL) {
        problem(r->problems, node->place, "found %s, expected %s", found, f->expects);
    } else {
        unexpected(r, node, f->expects);
    }
}

/* True for redis:// and rediss://, redis-sentinel://, ..., with something after it. */
static bool url_is_good(struct weir_text url)
{
    static const char *const kinds[] = {"://", "-sentinel://", "-cluster://"};
    if (!text_starts(url, "redis")) {
        return false;
    }
    struct weir_text rest = text_after(url, strlen("redis"));
    rest = text_after(rest, text_starts(rest, "s"));
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (text_starts(rest, kinds[i])) {
            return rest.len > strlen(kinds[i]);
        }
    }
    return false;
}

static void read_url(struct reader *r, const struct field *f, const struct node *node, void *value)
{
    struct store_config *store = value;
    struct weir_text url = node->kind == NODE_SCALAR ? node->scalar : TEXT("");
    if (!url_is_good(url)) {
        refuse_url(r, f, node, url);
        return;
    }
    store->url_place = node->place;
    store->url = url;
}

/*
 * Writes the URL without its query, and with three stars for its user and password:
 * "redis://user:secret@host/0?password=secret" loses both secrets.
 */
static void show_url(const struct show *s, const void *value)
{
    struct weir_text url = ((const struct store_config *)value)->url;
    struct arena arena = ARENA_INIT;
    size_t scheme = (size_t)((const char *)memchr(url.at, '/', url.len) - url.at) + 2;
    struct weir_text hosts = text_after(url, scheme);
    const char *at = memrchr(hosts.at, '@', hosts.len);
    hosts = text_after(hosts, at != NULL ? (size_t)(at + 1 - hosts.at) : 0);
    const char *query = memchr(hosts.at, '?', hosts.len);
    hosts.len = query != NULL ? (size_t)(query - hosts.at) : hosts.len;
    const char *shown = arena_format(&arena, "%.*s%s%.*s", (int)scheme, url.at,
                                     at != NULL ? "***@" : "", TEXT_ARGS(hosts));
    struct weir_text text = text_of(shown != NULL ? shown : "");
    field_show_text(s, &text);
    arena_finish(&arena);
}

static bool same_url(const void *a, const void *b)
{
    return text_equal(((const struct store_config *)a)->url, ((const struct store_config *)b)->url);
}

static const struct field_type type_url = {.read = read_url, .show = show_url, .same = same_url};

/*
 * The same limits as in weir_fleet_open(): no network answers faster, and no client waits longer.
 */
#define DEADLINE_MIN (100 * WEIR_MICROSECOND)
#define DEADLINE_MAX (10 * WEIR_SECOND)
#define FLEET_SIZE_MAX 1000000

#define TLS(member) offsetof(struct store_tls_config, member)

static const struct field store_tls_fields[] = {
    {"ca", "a path", "a file with the CA of the store's certificates, or a folder of such files",
     &type_text, TLS(ca), .unset = "those that the system trusts"},
    {"cert", "a path", "a file with this node's certificate, for a store that asks for one",
     &type_text, TLS(cert), .unset = "none"},
    {"key", "a path", "a file with the key of `cert`", &type_text, TLS(key), .unset = "none"},
    {"server_name", "a host name or an address",
     "the name that all certificates of the store must have", &type_text, TLS(server_name),
     .unset = "the host of the URL, or the one that a Sentinel or the Cluster announces"},
};

const struct section section_store_tls = SECTION("store.tls", NULL, store_tls_fields);

static void read_store_tls(struct reader *r, const struct field *f, const struct node *node,
                           void *value)
{
    struct store_tls_config *tls = value;
    tls->place = node->place;
    field_read_inline(r, f, node, value);
    if ((tls->cert.len > 0) != (tls->key.len > 0)) {
        problem(r->problems, node->place, "found '%s' without '%s', expected both or none",
                tls->cert.len > 0 ? "cert" : "key", tls->cert.len > 0 ? "key" : "cert");
    }
}

static bool same_store_tls(const void *a, const void *b)
{
    return fields_same(&section_store_tls, CHANGE_BY_SECTION, a, b);
}

static const struct field_type type_store_tls = {.size = sizeof(struct store_tls_config),
                                                 .read = read_store_tls,
                                                 .show = field_show_inline,
                                                 .same = same_store_tls};

#define STORE(member) offsetof(struct store_config, member)

static const struct field store_fields[] = {
    {"url",
     "redis://, redis-sentinel:// or redis-cluster:// followed by hosts, for TLS with rediss "
     "instead "
     "of redis",
     "where the store is; store: URL is a short form", &type_url, 0, .required = true},
    {"password_file", "a path", "a file that holds the password", &type_text, STORE(password_file),
     .unset = "none"},
    {"user", "a name", "the user name for the store", &type_text, STORE(user), .unset = "none"},
    {"sentinel_password_file", "a path",
     "a file that holds the Sentinels' password, if they have one of their own", &type_text,
     STORE(sentinel_password_file), .unset = "none"},
    {"sentinel_user", "a name", "the user name for the Sentinels", &type_text, STORE(sentinel_user),
     .unset = "none"},
    {"prefix", NAME_EXPECTED, "the beginning of every key in the store", &type_name, STORE(prefix),
     .initial = "weir"},
    {"deadline", "a duration from 100us to 10s, such as 5ms",
     "how long a decision may wait for the store", &type_duration, STORE(deadline_ns),
     .initial = "5ms", .least = DEADLINE_MIN, .most = DEADLINE_MAX},
    {"fleet_size", "auto or a count from 1 to 1M",
     "the number of nodes that share a limit while the store does not answer", &type_count,
     STORE(fleet_size), .initial = "auto", .zero = "auto", .least = 1, .most = FLEET_SIZE_MAX},
    {"memory_high", "off or a percentage from 1 to 100",
     "the percentage of the store's maxmemory from which this node decides keys that are not in "
     "the store, as on_full of their limit says; off: the store is not asked for its memory",
     &type_count, STORE(memory_high), .initial = "90", .zero = "off", .least = 1, .most = 100},
    {"connections", "thread or a count from 1 to 64",
     "the most connections of this process to each primary of the store; thread: each thread has "
     "one "
     "of its own",
     &type_count, STORE(connections), .initial = "thread", .zero = "thread", .least = 1,
     .most = 64},
    {"networks", "networks such as 10.0.0.0/8",
     "where the store may be: a master that Sentinels name, or a node that a Cluster names, is "
     "used "
     "only if its address is in one of these networks or in the URL",
     &type_networks, STORE(networks), .unset = "none: they may name any address"},
    {"tls", "a map with ca, cert, key and server_name", "TLS to the store, for a URL with rediss",
     &type_store_tls, STORE(tls), .section = &section_store_tls,
     .unset = "none: certificates that the system trusts, for the hosts of the URL"},
};

const struct section section_store = SECTION("store", "a store", store_fields);

static void read_store(struct reader *r, const struct field *f, const struct node *node,
                       void *value)
{
    r->config->store_place = node->place;
    if (node->kind == NODE_SCALAR) {
        read_url(r, &store_fields[0], node, value);
    } else {
        field_read_map(r, f, node, value);
    }
}

/* The size is that of the URL, the first member: a store without URL is not set. */
const struct field_type type_store = {.size = sizeof(struct weir_text),
                                      .read = read_store,
                                      .show = field_show_map,
                                      .shape = SHAPE_SCALAR_OR_MAP};
