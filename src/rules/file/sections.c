#include "rules/file/sections.h"

#include "rules/file/tiers.h"

const char *const section_headers_names[] = {"ietf", "x-epoch", "x-delta", "off", NULL};

/* ---- server ---- */

#define ADDRESS_EXPECTED "ADDRESS:PORT, unix:PATH or off"

static bool port_is_good(struct text port)
{
    unsigned number = 0;
    for (size_t i = 0; i < port.len; i++) {
        if (port.at[i] < '0' || port.at[i] > '9' || number > 65535) {
            return false;
        }
        number = number * 10 + (unsigned)(port.at[i] - '0');
    }
    return port.len > 0 && number <= 65535;
}

static bool listener_is_good(struct text text)
{
    if (text_is(text, "off") || (text_starts(text, "unix:") && text.len > 5)) {
        return true;
    }
    size_t colon = text.len;
    while (colon > 0 && text.at[colon - 1] != ':') {
        colon--;
    }
    return colon > 1 && port_is_good(text_after(text, colon));
}

static void read_listener(struct reader *r, const struct field *f, const struct node *node,
                          void *target)
{
    if (node->kind != NODE_SCALAR || !listener_is_good(node->scalar)) {
        unexpected(r, node, f->expects);
        return;
    }
    field_text(r, f, node, target);
}

static void read_trusted(struct reader *r, const struct field *f, const struct node *node,
                         void *target)
{
    struct server_config *server = target;
    const struct node *const *items;
    struct weir_error error;
    size_t n =
        node->kind == NODE_LIST && node->count == 0 ? 0 : scalars_of(r, node, f->expects, &items);
    server->trusted_given = true;
    server->trusted = arena_array(&r->source->arena, n, sizeof *server->trusted);
    server->trusted_count = 0;
    for (size_t i = 0; i < n && server->trusted != NULL; i++) {
        if (cidr_parse(items[i]->scalar, &server->trusted[server->trusted_count], &error) != 0) {
            problem(r->problems, items[i]->place, "%s", error.text);
        } else {
            server->trusted_count++;
        }
    }
}

#define SERVER(member) offsetof(struct server_config, member)

static const struct field server_fields[] = {
    {"http", ADDRESS_EXPECTED, "127.0.0.1:8080", "the HTTP listener", read_listener, SERVER(http),
     NULL},
    {"resp", ADDRESS_EXPECTED, "127.0.0.1:6380", "the RESP listener", read_listener, SERVER(resp),
     NULL},
    {"admin", ADDRESS_EXPECTED, "127.0.0.1:8082", "the listener for operators", read_listener,
     SERVER(admin), NULL},
    {"state", "a folder", "none: in memory only", "where the state is kept over restarts",
     field_text, SERVER(state), NULL},
    {"check_secrets", "a file", "none: asking is open",
     "secrets for asking, one on each line; beside the rule file", field_text,
     SERVER(check_secrets), NULL},
    {"admin_secrets", "a file", "none", "secrets for changing things, likewise", field_text,
     SERVER(admin_secrets), NULL},
    {"memory", "a size such as 1GB", "1GB", "the most that all limits together may take",
     field_size, SERVER(memory), NULL},
    {"trusted_proxies", "networks such as 10.0.0.0/8", "[127.0.0.0/8, '::1/128']",
     "who may say for whom a request is forwarded", read_trusted, 0, NULL},
    {"headers", "ietf, x-epoch, x-delta or off", "ietf", "the rate-limit headers of HTTP answers",
     field_choice, SERVER(headers), section_headers_names},
};

const struct section section_server = {"server", "What `weir serve` listens on and may use",
                                       server_fields,
                                       sizeof server_fields / sizeof server_fields[0]};

/* ---- store ---- */

/* Reports a wrong URL without showing it if it may hold a password. */
static void refuse_url(struct reader *r, const struct field *f, const struct node *node,
                       struct text url)
{
    const char *found = url.len == 0                 ? "nothing"
                        : text_starts(url, "rediss") ? "TLS, which there is not to the store"
                        : memchr(url.at, '@', url.len) != NULL ? "something else with an '@'"
                                                               : NULL;
    if (found != NULL) {
        problem(r->problems, node->place, "found %s, expected %s", found, f->expects);
    } else {
        unexpected(r, node, f->expects);
    }
}

static void read_url(struct reader *r, const struct field *f, const struct node *node, void *target)
{
    struct text url = node->kind == NODE_SCALAR ? node->scalar : TEXT("");
    bool good = (text_starts(url, "redis://") && url.len > strlen("redis://")) ||
                (text_starts(url, "redis-sentinel://") && url.len > strlen("redis-sentinel://")) ||
                (text_starts(url, "redis-cluster://") && url.len > strlen("redis-cluster://"));
    if (!good) {
        refuse_url(r, f, node, url);
        return;
    }
    ((struct store_config *)target)->url_place = node->place;
    field_text(r, f, node, target);
}

/*
 * The same limits as in weir_fleet_open(): no network answers faster, and no client waits longer.
 */
#define DEADLINE_MIN (100 * WEIR_MICROSECOND)
#define DEADLINE_MAX (10 * WEIR_SECOND)
#define FLEET_SIZE_MAX 1000000

static void read_deadline(struct reader *r, const struct field *f, const struct node *node,
                          void *target)
{
    const struct store_config *store = target;
    field_duration(r, f, node, target);
    if (store->deadline_ns < DEADLINE_MIN || store->deadline_ns > DEADLINE_MAX) {
        unexpected(r, node, f->expects);
    }
}

static void read_fleet_size(struct reader *r, const struct field *f, const struct node *node,
                            void *target)
{
    struct store_config *store = target;
    bool scalar = node->kind == NODE_SCALAR;
    if (scalar && text_is(node->scalar, "auto")) {
        store->fleet_size = 0;
    } else if (!scalar || count_parse(node->scalar, &store->fleet_size, NULL) != 0 ||
               store->fleet_size == 0 || store->fleet_size > FLEET_SIZE_MAX) {
        unexpected(r, node, f->expects);
    }
}

#define STORE(member) offsetof(struct store_config, member)

static const struct field store_fields[] = {
    {"url", "redis://, redis-sentinel:// or redis-cluster:// and hosts", "",
     "where it is; store: URL alone works too", read_url, STORE(url), NULL},
    {"password_file", "a path", "none", "a file that holds the password", field_text,
     STORE(password_file), NULL},
    {"user", "a name", "none", "who weir is to the store", field_text, STORE(user), NULL},
    {"sentinel_password_file", "a path", "none",
     "a file that holds the Sentinels' password, if they have one of their own", field_text,
     STORE(sentinel_password_file), NULL},
    {"sentinel_user", "a name", "none", "who weir is to the Sentinels", field_text,
     STORE(sentinel_user), NULL},
    {"prefix", NAME_EXPECTED, "weir", "what every key in the store begins with", field_name,
     STORE(prefix), NULL},
    {"deadline", "a duration from 100us to 10s, such as 5ms", "5ms",
     "how long a decision may wait for the store", read_deadline, STORE(deadline_ns), NULL},
    {"fleet_size", "auto or a count from 1 to 1M", "auto",
     "nodes that share a limit while the store is away", read_fleet_size, STORE(fleet_size), NULL},
};

const struct section section_store = {"store", "The Redis or Valkey that a fleet shares",
                                      store_fields, sizeof store_fields / sizeof store_fields[0]};

void store_read(struct reader *r, const struct node *node)
{
    if (node->kind == NODE_SCALAR) {
        read_url(r, &store_fields[0], node, &r->config->store);
        return;
    }
    if (fields_read(r, &section_store, node, &r->config->store) && node_find(node, "url") == NULL) {
        problem(r->problems, node->place, "found a store without 'url', expected one");
    }
}

/* ---- attributes ---- */

#define SOURCE_EXPECTED "header:NAME, query:NAME or 'file:PATH by ATTRIBUTE'"

/* Returns the text in lower case: names of headers are the same in any case. */
static struct text lower(struct reader *r, struct text text)
{
    char *to = arena_take(&r->source->arena, text.len + 1);
    for (size_t i = 0; to != NULL && i < text.len; i++) {
        char c = text.at[i];
        to[i] = c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
    }
    return (struct text){to, to != NULL ? text.len : 0};
}

/* Splits "file:PATH by ATTRIBUTE" into name and by; false if the text has another form. */
static bool split_lookup(struct text text, struct attribute_source *out)
{
    struct text rest = text_after(text, strlen("file:"));
    for (size_t i = rest.len; i >= 5; i--) {
        if (memcmp(rest.at + i - 4, " by ", 4) == 0) {
            out->name = text_trim((struct text){rest.at, i - 4});
            out->by = text_trim(text_after(rest, i));
            return out->name.len > 0 && name_is_good(out->by);
        }
    }
    return false;
}

/* Reads one source of an attribute; false after a problem. */
static bool read_source(struct reader *r, const struct node *node, struct text attribute,
                        struct attribute_source *out)
{
    struct text text = node->scalar;
    *out = (struct attribute_source){.written = text};
    if (text_starts(text, "header:") && text.len > strlen("header:")) {
        out->kind = FROM_HEADER;
        out->name = lower(r, text);
        return out->name.at != NULL;
    }
    if (text_starts(text, "query:") && text.len > strlen("query:")) {
        out->kind = FROM_QUERY;
        out->name = text;
        return true;
    }
    if (text_starts(text, "file:") && split_lookup(text, out)) {
        out->kind = FROM_FILE;
        lookup_read(r, node, attribute, out);
        return out->values != NULL;
    }
    unexpected(r, node, SOURCE_EXPECTED);
    return false;
}

static void read_attribute(struct reader *r, const struct node *key, const struct node *node,
                           struct attribute_config *out)
{
    const struct node *const *items;
    out->name = key->scalar;
    out->place = key->place;
    if (!name_is_good(key->scalar)) {
        unexpected(r, key, NAME_EXPECTED);
        return;
    }
    size_t n = scalars_of(r, node, SOURCE_EXPECTED, &items);
    if (n > CONFIG_SOURCES_MAX) {
        problem(r->problems, node->place, "found %zu sources, expected at most %d", n,
                CONFIG_SOURCES_MAX);
        return;
    }
    out->sources = arena_array(&r->source->arena, n, sizeof *out->sources);
    for (size_t i = 0; i < n && out->sources != NULL; i++) {
        if (read_source(r, items[i], out->name, &out->sources[out->count])) {
            out->count++;
        }
    }
}

/*
 * True if no attribute from `done` on is needed to look this one up. The attributes before `done`
 * are known, and requests give the others.
 */
static bool is_ready(const struct config *config, size_t done, const struct attribute_config *a)
{
    for (size_t i = 0; i < a->count; i++) {
        for (size_t j = done; a->sources[i].kind == FROM_FILE && j < config->attributes_count;
             j++) {
            if (text_equal(a->sources[i].by, config->attributes[j].name)) {
                return false;
            }
        }
    }
    return true;
}

/* Sorts the attributes so that each is looked up only by those before it. */
static void sort_attributes(struct reader *r)
{
    struct config *config = r->config;
    for (size_t done = 0; done < config->attributes_count; done++) {
        size_t next = done;
        while (next < config->attributes_count &&
               !is_ready(config, done, &config->attributes[next])) {
            next++;
        }
        if (next == config->attributes_count) {
            problem(r->problems, config->attributes[done].place,
                    "found '%.*s' looked up by itself, expected another attribute behind 'by'",
                    TEXT_ARGS(config->attributes[done].name));
            return;
        }
        struct attribute_config ready = config->attributes[next];
        config->attributes[next] = config->attributes[done];
        config->attributes[done] = ready;
    }
}

void attributes_read(struct reader *r, const struct node *node)
{
    struct config *config = r->config;
    if (node->kind != NODE_MAP) {
        unexpected(r, node, "a map of attributes and their sources");
        return;
    }
    if (node->count > CONFIG_ATTRIBUTES_MAX) {
        problem(r->problems, node->place, "found %zu attributes, expected at most %d", node->count,
                CONFIG_ATTRIBUTES_MAX);
        return;
    }
    config->attributes = arena_array(&r->source->arena, node->count, sizeof *config->attributes);
    if (config->attributes == NULL) {
        return;
    }
    for (size_t i = 0; i < node->count; i++) {
        read_attribute(r, node->keys[i], node->items[i], &config->attributes[i]);
        config->attributes_count++;
    }
    sort_attributes(r);
}
