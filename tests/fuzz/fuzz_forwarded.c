/*
 * Fields that tell of the client, as a client could write them: each line of the input is a field,
 * its first byte says which. A trusted proxy adds the hop that it knows of, to one of the fields or
 * as another one. Whatever was written, the client is that hop, where the proxy's field is named;
 * where none is, it is that hop, or the request is refused, never what somebody wrote. And from
 * somebody who is not trusted nothing counts.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/log.h"
#include "server/http/http_routes.h"
#include "wire/forwarded.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static struct server server;
static struct worker *worker;
static struct connection *connection;
static struct http_request request;
static char room[2 * HTTP_HEAD_MAX];

static const struct address proxy = {.bytes = {127, 0, 0, 1}, .family = 4};
static const struct address stranger = {.bytes = {198, 51, 100, 1}, .family = 4};

static void prepare(void)
{
    if (worker == NULL) {
        worker = calloc(1, sizeof *worker);
        connection = calloc(1, sizeof *connection);
        require(worker != NULL && connection != NULL);
        worker->server = &server;
        connection->worker = worker;
        log_set_level(LEVEL_ERROR);
    }
}

/* ---- the parser alone ---- */

/* Hops stand in the list, from its end to its beginning; nodes fit. */
static void check_hops(struct weir_text list, bool quotes)
{
    char node_room[FORWARDED_NODE_MAX];
    struct weir_text hop;
    struct weir_text node;
    for (size_t before = list.len; forwarded_last(&list, quotes, &hop); before = list.len) {
        require(list.len < before);
        require(hop.at >= list.at + list.len && hop.at + hop.len <= list.at + before);
        if (forwarded_node(hop, node_room, &node)) {
            require(node.len > 0 && node.len <= FORWARDED_NODE_MAX);
        }
    }
    require(list.len == 0);
}

/* ---- a proxy's hop behind it ---- */

static const struct {
    const char *hop; /* NULL: the field holds nothing else */
    struct address client;
} hops[CLIENT_FIELDS] = {
    [CLIENT_FIELD_X_FORWARDED_FOR] = {"203.0.113.7:80", {{203, 0, 113, 7}, 4}},
    [CLIENT_FIELD_FORWARDED] = {"host=\"a, \\\"b\\\"\";for=\"[2001:db8::7]:99\"",
                                {{0x20, 0x01, 0x0d, 0xb8, [15] = 7}, 6}},
    [CLIENT_FIELD_X_REAL_IP] = {NULL, {{203, 0, 113, 9}, 4}},
};

static void add_field(unsigned kind, struct weir_text value)
{
    request.fields[request.fields_count++] =
        (struct http_field){text_of(client_field_names[kind]), value};
}

/* What the client wrote. Lines beyond what a head may have are not there. */
static void read_lines(struct weir_text input)
{
    request.fields_count = 0;
    while (input.len > 0 && request.fields_count < HTTP_FIELDS_MAX - 1) {
        const char *end = memchr(input.at, '\n', input.len);
        struct weir_text line = {input.at, end != NULL ? (size_t)(end - input.at) : input.len};
        input = text_after(input, line.len + (end != NULL));
        if (line.len > 0) {
            add_field(1 + (unsigned char)line.at[0] % (CLIENT_FIELDS - 1),
                      text_trim(text_after(line, 1)));
        }
    }
}

/* A proxy that writes one field only leaves no other one of that name. */
static void replace_all(unsigned kind, struct weir_text value)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < request.fields_count; i++) {
        if (!http_same_name(request.fields[i].name, client_field_names[kind])) {
            request.fields[kept++] = request.fields[i];
        }
    }
    request.fields_count = kept;
    add_field(kind, value);
}

static void add_to_last(unsigned kind, struct weir_text hop)
{
    for (unsigned i = request.fields_count; i-- > 0;) {
        struct http_field *f = &request.fields[i];
        if (http_same_name(f->name, client_field_names[kind])) {
            int n = snprintf(room, sizeof room, "%.*s, %.*s", TEXT_ARGS(f->value), TEXT_ARGS(hop));
            f->value = (struct weir_text){room, (size_t)n};
            return;
        }
    }
    add_field(kind, hop);
}

static bool is_same(const struct address *a, const struct address *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

static void check_client(const struct address *expected)
{
    struct exchange x = {.connection = connection, .server = &server, .request = &request};
    struct address client;
    server.options.client_field = CLIENT_FIELD_ANY;
    connection->peer = stranger;
    require(http_find_client(&x, &client, NULL) == 0 && is_same(&client, &stranger));
    connection->peer = proxy;
    struct weir_error error;
    require(http_find_client(&x, &client, &error) != 0 || is_same(&client, expected));
}

static void check_named(unsigned kind)
{
    struct exchange x = {.connection = connection, .server = &server, .request = &request};
    struct address client;
    server.options.client_field = (int)kind;
    require(http_find_client(&x, &client, NULL) == 0 && is_same(&client, &hops[kind].client));
}

static void check_behind_proxy(struct weir_text input, unsigned kind, bool same_line)
{
    read_lines(input);
    if (hops[kind].hop == NULL) {
        replace_all(kind, TEXT("203.0.113.9"));
    } else if (same_line) {
        add_to_last(kind, text_of(hops[kind].hop));
    } else {
        add_field(kind, text_of(hops[kind].hop));
    }
    check_client(&hops[kind].client);
    check_named(kind);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct weir_text input = {(const char *)data, size};
    if (size > HTTP_HEAD_MAX || memchr(data, 0, size) != NULL || memchr(data, '\r', size) != NULL) {
        return 0; /* no head has these */
    }
    prepare();
    check_hops(input, false);
    check_hops(input, true);
    for (unsigned kind = 1; kind < CLIENT_FIELDS; kind++) {
        check_behind_proxy(input, kind, true);
        check_behind_proxy(input, kind, false);
    }
    return 0;
}
