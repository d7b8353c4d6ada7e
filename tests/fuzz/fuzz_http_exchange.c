/*
 * What arrives on an HTTP connection, answered: bodies of JSON, fields of gateways, routes. The
 * first byte chooses how the bytes are cut into pieces. Each reply is one whole HTTP answer, its
 * body is what its type says, no byte of a request has become a line of a head. How the bytes are
 * cut changes nothing about how many replies there are, except that what is cut may be refused
 * later, and that a request which is refused before its body has come is the last.
 *
 * fuzz_admin_exchange.c does the same on the operators' listener.
 */
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

#include "fuzz/fuzzed_server.h"
#include "server/http/http_routes.h"

#ifndef FUZZED_LISTENER
#define FUZZED_LISTENER PROTOCOL_HTTP
#endif

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char rules[] =
    "server: {memory: 10MB}\nadhoc: off\n"
    "attributes: {user: ['header:X-User', 'query:user'], domain: request, descriptor: request,\n"
    "             value_1: request}\n"
    "block: [{user: [mallory]}]\n"
    "limits:\n"
    "  - {name: api, when: {path: /api/**}, key: [user|ip], rate: 10/s, max_keys: 1k}\n"
    "  - {name: hosts, key: [host], rate: 10/s, max_keys: 1k}\n"
    "  - {name: queue, key: [user], algorithm: leaky_bucket, rate: 1/s, max_keys: 1k,\n"
    "     when: {path: /queue}}\n"
    "  - {name: k, when: {domain: d, descriptor: k}, key: [value_1], rate: 3/min, max_keys: 1k,\n"
    "     label: \"l\\\"l\"}\n";

/* What an operator has changed goes with the input that changed it. */
static void restore(void)
{
    struct weir_rules_stats stats = {.size = sizeof stats};
    struct weir_error error;
    require(weir_rules_stats_read(server.rules, &stats) == 0);
    if (stats.generation != 1) {
        weir_rules_close(server.rules);
        require(weir_rules_open_text(&server.rules, "fuzz", rules, sizeof rules - 1, NULL,
                                     &error) == 0);
    }
    require(weir_rules_shadow_set(server.rules, NULL, 0, NULL) == 0);
}

static void prepare(void)
{
    if (worker != NULL) {
        restore();
        return;
    }
    prepare_server(rules, SERVER_OUTPUT_BYTES);
    server.options.listen[PROTOCOL_HTTP] = "127.0.0.1:8080";
    server.options.listen[PROTOCOL_ADMIN] = "127.0.0.1:8082";
    worker->listeners[PROTOCOL_HTTP].loopback = true;
}

/* ---- replies ---- */

/* A line of the head: one of those that we write. */
static void require_known_line(struct weir_text line)
{
    static const char *const names[] = {"HTTP/1.1 ",
                                        "Date: ",
                                        "Content-Type: ",
                                        "Content-Length: ",
                                        "Cache-Control: ",
                                        "Allow: ",
                                        "Retry-After: ",
                                        "RateLimit-Policy: ",
                                        "RateLimit: ",
                                        "Connection: ",
                                        "X-Content-Type-Options: nosniff"};
    bool known = false;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        known = known || text_starts(line, names[i]);
    }
    require(known);
    for (size_t i = 0; i < line.len; i++) {
        require(isprint((unsigned char)line.at[i]));
    }
}

static struct weir_text take_line(struct weir_text *from)
{
    const char *end = memmem(from->at, from->len, "\r\n", 2);
    require(end != NULL);
    struct weir_text line = {from->at, (size_t)(end - from->at)};
    *from = text_after(*from, line.len + 2);
    return line;
}

static void require_json(struct weir_text body)
{
    json_t *json = json_loadb(body.at, body.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    require(json != NULL);
    json_decref(json);
}

/* One answer off the front. HEAD has no body, so a body may be missing. */
static void take_reply(struct weir_text *replies)
{
    size_t length = 0;
    bool json = false;
    for (struct weir_text line = take_line(replies); line.len > 0; line = take_line(replies)) {
        require_known_line(line);
        if (text_starts(line, "Content-Length: ")) {
            length = strtoul(line.at + 16, NULL, 10);
        }
        json = json || memmem(line.at, line.len, "json", 4) != NULL;
    }
    if (text_starts(*replies, "HTTP/1.1 ") || replies->len == 0) {
        return;
    }
    require(length <= replies->len);
    if (json) {
        require_json((struct weir_text){replies->at, length});
    }
    *replies = text_after(*replies, length);
}

static unsigned count_replies(void)
{
    struct weir_text replies = buffer_text(&worker->replies);
    unsigned n = 0;
    require(!worker->replies.full);
    for (; replies.len > 0; n++) {
        take_reply(&replies);
    }
    buffer_take(&worker->replies, buffer_len(&worker->replies));
    return n;
}

/* ---- requests ---- */

/* As a connection does: what is not used is given again, with more behind it. */
static unsigned feed(const struct protocol *protocol, struct weir_text input, size_t piece)
{
    struct connection *c = begin_connection(protocol);
    unsigned replies = 0;
    size_t arrived = 0;
    worker->now_ns = UINT64_C(1700000000) * WEIR_SECOND;
    for (int64_t used = 0; used != CONNECTION_CLOSE && arrived < input.len;) {
        arrived = input.len - arrived < piece ? input.len : arrived + piece;
        do { /* it stops early when there are many replies */
            used = protocol->consume(c, (struct weir_text){input.at, arrived});
            replies += count_replies();
            require(used == CONNECTION_CLOSE || (used >= 0 && (size_t)used <= arrived));
            input = text_after(input, used > 0 ? (size_t)used : 0);
            arrived -= used > 0 ? (size_t)used : 0;
        } while (used > 0);
    }
    end_connection(c);
    return replies;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    prepare();
    struct weir_text input = {(const char *)data + 1, size - 1};
    bool waits = memmem(input.at, input.len, "100-", 4) != NULL; /* then pieces matter */
    const struct protocol *protocol = protocol_of(FUZZED_LISTENER);
    unsigned whole = feed(protocol, input, input.len);
    unsigned pieces = feed(protocol, input, 1 + data[0]);
    require((pieces <= whole && (pieces > 0 || whole <= 1)) || waits);
    return 0;
}
