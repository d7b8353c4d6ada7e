#include "rules/file/sections.h"

#include "rules/file/tiers.h"
#include "rules/file/yaml_write.h"
#include "rules/value/normalize.h"

/* ---- server ---- */

#define ADDRESS_EXPECTED "ADDRESS:PORT, unix:PATH or off"

static bool listener_is_good(struct text text)
{
    if (text_is(text, "off") || (text_starts(text, "unix:") && text.len > 5)) {
        return true;
    }
    const char *colon = memrchr(text.at, ':', text.len);
    return colon != NULL && colon > text.at &&
           port_is_good(text_after(text, (size_t)(colon + 1 - text.at)));
}

bool mode_parse(struct text text, unsigned *mode)
{
    unsigned number = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '7' || number > 0777) {
            return false;
        }
        number = number * 8 + (unsigned)(text.at[i] - '0');
    }
    *mode = number;
    return number > 0 && number <= 0777;
}

static void read_mode(struct reader *r, const struct field *f, const struct node *node, void *value)
{
    unsigned mode;
    if (node->kind != NODE_SCALAR || !mode_parse(node->scalar, &mode)) {
        unexpected(r, node, f->expects);
        return;
    }
    *(unsigned *)value = mode;
}

static void show_mode(const struct show *s, const void *value)
{
    (void)fprintf(s->out, " %04o", *(const unsigned *)value);
}

static void read_trusted(struct reader *r, const struct field *f, const struct node *node,
                         void *value)
{
    struct server_config *server = value;
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

static void show_trusted(const struct show *s, const void *value)
{
    const struct server_config *server = value;
    char text[CIDR_MAX];
    if (!server->trusted_given) {
        (void)fprintf(s->out, " %s", s->field->unset);
        return;
    }
    (void)fputs(" [", s->out);
    for (size_t i = 0; i < server->trusted_count; i++) {
        (void)fputs(i > 0 ? ", " : "", s->out);
        yaml_put(s->out, text_of(cidr_print(&server->trusted[i], text)));
    }
    (void)fputc(']', s->out);
}

static bool same_trusted(const void *left, const void *right)
{
    const struct server_config *a = left;
    const struct server_config *b = right;
    size_t i = 0;
    while (i < a->trusted_count && i < b->trusted_count &&
           memcmp(&a->trusted[i], &b->trusted[i], sizeof a->trusted[i]) == 0) {
        i++;
    }
    return a->trusted_given == b->trusted_given && i == a->trusted_count && i == b->trusted_count;
}

static const struct field_type type_listener = FIELD_TYPE_TEXT(listener_is_good);
static const struct field_type type_mode = {
    .size = sizeof(unsigned), .read = read_mode, .show = show_mode};
static const struct field_type type_trusted = {
    .read = read_trusted, .show = show_trusted, .same = same_trusted};

static const char *const headers_names[] = {"ietf", "x-epoch", "x-delta", "off", NULL};

#define SERVER(member) offsetof(struct server_config, member)

static const struct field server_fields[] = {
    {"http", ADDRESS_EXPECTED, "the HTTP listener", &type_listener, SERVER(http),
     .initial = "127.0.0.1:8080"},
    {"resp", ADDRESS_EXPECTED, "the RESP listener", &type_listener, SERVER(resp),
     .initial = "127.0.0.1:6380"},
    {"admin", ADDRESS_EXPECTED, "the listener for operators", &type_listener, SERVER(admin),
     .initial = "127.0.0.1:8082"},
    {"state", "a folder", "the folder that keeps the state over restarts", &type_text,
     SERVER(state), .unset = "none: the state is in memory only"},
    {"check_secrets", "a file",
     "a file with the secrets of clients, one on each line; a relative path begins at the rule "
     "file",
     &type_text, SERVER(check_secrets), .unset = "none: clients need no secret"},
    {"admin_secrets", "a file", "a file with the secrets of operators, in the same form",
     &type_text, SERVER(admin_secrets), .unset = "none: one is made at the start"},
    {"socket_mode", MODE_EXPECTED, "the mode of unix sockets, in octal", &type_mode,
     SERVER(socket_mode), .initial = "0660"},
    {"socket_group", "the name or number of a group", "the group of unix sockets", &type_text,
     SERVER(socket_group), .unset = "that of the process"},
    {"memory", "a size such as 1GB",
     "the most memory that all limits together may take, with the files that the rules name",
     &type_size, SERVER(memory), .initial = "1GB", .change = CHANGE_APPLIED},
    {"trusted_proxies", "networks such as 10.0.0.0/8",
     "the proxies whose forwarding headers are believed", &type_trusted, 0,
     .unset = "[127.0.0.0/8, '::1/128']"},
    {"headers", "ietf, x-epoch, x-delta or off", "the rate-limit headers of HTTP answers",
     &type_choice, SERVER(headers), .initial = "ietf", .choices = headers_names},
};

const struct section section_server = SECTION("server", NULL, server_fields);

/* ---- store ---- */

/* Reports a wrong URL without showing it if it may hold a password. */
static void refuse_url(struct reader *r, const struct field *f, const struct node *node,
                       struct text url)
{
    const char *found = url.len == 0 ? "nothing"
                        : text_starts(url, "rediss")
                            ? "rediss:// (TLS to the store is not supported)"
                        : memchr(url.at, '@', url.len) != NULL
                            ? "a text with '@' (not shown, because it may hold a password)"
                            : NULL;
    if (found != NULL) {
        problem(r->problems, node->place, "found %s, expected %s", found, f->expects);
    } else {
        unexpected(r, node, f->expects);
    }
}

static void read_url(struct reader *r, const struct field *f, const struct node *node, void *value)
{
    struct store_config *store = value;
    struct text url = node->kind == NODE_SCALAR ? node->scalar : TEXT("");
    bool good = (text_starts(url, "redis://") && url.len > strlen("redis://")) ||
                (text_starts(url, "redis-sentinel://") && url.len > strlen("redis-sentinel://")) ||
                (text_starts(url, "redis-cluster://") && url.len > strlen("redis-cluster://"));
    if (!good) {
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
    struct text url = ((const struct store_config *)value)->url;
    struct arena arena = ARENA_INIT;
    size_t scheme = (size_t)((const char *)memchr(url.at, '/', url.len) - url.at) + 2;
    struct text hosts = text_after(url, scheme);
    const char *at = memrchr(hosts.at, '@', hosts.len);
    hosts = text_after(hosts, at != NULL ? (size_t)(at + 1 - hosts.at) : 0);
    const char *query = memchr(hosts.at, '?', hosts.len);
    hosts.len = query != NULL ? (size_t)(query - hosts.at) : hosts.len;
    const char *shown = arena_format(&arena, "%.*s%s%.*s", (int)scheme, url.at,
                                     at != NULL ? "***@" : "", TEXT_ARGS(hosts));
    struct text text = text_of(shown != NULL ? shown : "");
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

#define STORE(member) offsetof(struct store_config, member)

static const struct field store_fields[] = {
    {"url", "redis://, redis-sentinel:// or redis-cluster:// followed by hosts",
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
const struct field_type type_store = {
    .size = sizeof(struct text), .read = read_store, .show = field_show_map};

/* ---- attributes ---- */

#define SOURCE_EXPECTED "header:NAME, query:NAME or 'file:PATH by ATTRIBUTE'"

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
    *out = (struct attribute_source){0};
    if (text_starts(text, "header:") && text.len > strlen("header:")) {
        char *lower = arena_take(&r->source->arena, text.len);
        if (lower != NULL) {
            normalize_lower(text, lower);
        }
        out->kind = FROM_HEADER;
        out->name = (struct text){lower, text.len};
        return lower != NULL;
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
    out->written = texts_of(r, items, n);
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
            problem(
                r->problems, config->attributes[done].place,
                "found '%.*s', which is looked up by itself, expected another attribute after 'by'",
                TEXT_ARGS(config->attributes[done].name));
            return;
        }
        struct attribute_config ready = config->attributes[next];
        config->attributes[next] = config->attributes[done];
        config->attributes[done] = ready;
    }
}

static void read_attributes(struct reader *r, const struct field *f, const struct node *node,
                            void *value)
{
    struct config *config = r->config;
    (void)f;
    (void)value;
    if (node->kind != NODE_MAP) {
        unexpected(r, node, "a map of attributes and their sources");
        return;
    }
    if (node->count > CONFIG_ATTRIBUTES_MAX) {
        problem(r->problems, node->place, "found %zu attributes, expected at most %d", node->count,
                CONFIG_ATTRIBUTES_MAX);
        return;
    }
    for (size_t i = 0; i < node->count; i++) {
        struct attribute_config attribute = {.name = node->keys[i]->scalar,
                                             .place = node->keys[i]->place};
        read_attribute(r, node->keys[i], node->items[i], &attribute);
        (void)arena_append(&r->source->arena, &config->attributes, &config->attributes_count,
                           sizeof attribute, &attribute);
    }
    sort_attributes(r);
}

static void show_attributes(const struct show *s, const void *value)
{
    const struct attribute_config *const *attributes = value;
    for (size_t i = 0; i < s->config->attributes_count; i++) {
        const struct attribute_config *a = &(*attributes)[i];
        (void)fprintf(s->out, "\n  %.*s:", TEXT_ARGS(a->name));
        field_show_texts(s, &a->written);
    }
}

const struct field_type type_attributes = {
    .size = sizeof(struct attribute_config *), .read = read_attributes, .show = show_attributes};
