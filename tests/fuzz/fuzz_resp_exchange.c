/*
 * What arrives on a RESP connection, answered: MULTI and EXEC, EVAL, COMMAND and all other
 * commands. The first byte chooses whether inline commands are on and how the bytes are cut
 * into pieces. Each reply is one whole value of RESP, each request has one, and how the
 * bytes are cut changes nothing. A queue never takes more than its bound, and it is freed
 * when the connection ends.
 */
#include <stdlib.h>

#include "fuzz/fuzzed_server.h"
#include "rules/file/adhoc.h"
#include "server/resp/resp_commands.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char rules[] =
    "server: {memory: 10MB}\nadhoc: {max_keys: 100}\n"
    "block: [{user: [mallory]}]\n"
    "limits:\n"
    "  - {name: api, when: {path: /api/**}, key: [user], rate: 10/s, max_keys: 100}\n"
    "  - {name: pair, key: [user, ip], rate: 10/s, max_keys: 100, when: {path: /pair}}\n"
    "  - {name: all, key: [], rate: 10/s, when: {path: /all}}\n";

static void prepare(void)
{
    struct weir_options adhoc;
    struct weir_error error;
    if (worker == NULL) {
        prepare_server(rules, SERVER_REPLY_BYTES);
        adhoc_options(100, WEIR_EVICT, &adhoc);
        require(weir_open(&server.adhoc, &adhoc, &error) == 0);
    }
}

/* ---- replies ---- */

static struct weir_text take_line(struct weir_text *from)
{
    const char *end = memmem(from->at, from->len, "\r\n", 2);
    require(end != NULL && end > from->at);
    struct weir_text line = {from->at, (size_t)(end - from->at)};
    *from = text_after(*from, line.len + 2);
    return line;
}

static size_t take_count(struct weir_text line)
{
    int64_t n;
    require(resp_to_i64(text_after(line, 1), &n) && n >= 0);
    return (size_t)n;
}

/* Takes one value off the front. Text of a client may be in a line, but cannot end it early. */
static void take_value(struct weir_text *replies, unsigned depth)
{
    struct weir_text line = take_line(replies);
    int64_t number;
    require(depth < 10);
    switch (line.at[0]) {
    case '+':
    case '-':
        for (size_t i = 0; i < line.len; i++) {
            require((unsigned char)line.at[i] >= ' ' && line.at[i] != 127);
        }
        break;
    case ':':
        require(resp_to_i64(text_after(line, 1), &number));
        break;
    case '_':
        require(line.len == 1);
        break;
    case '$':
    case '=':
        if (!text_is(line, "$-1")) {
            size_t n = take_count(line);
            require(n + 2 <= replies->len && memcmp(replies->at + n, "\r\n", 2) == 0);
            *replies = text_after(*replies, n + 2);
        }
        break;
    default:
        require(strchr("*~%", line.at[0]) != NULL);
        for (size_t n = take_count(line) * (line.at[0] == '%' ? 2 : 1); n > 0; n--) {
            take_value(replies, depth + 1);
        }
        break;
    }
}

static unsigned count_replies(void)
{
    struct weir_text replies = buffer_text(&worker->replies);
    unsigned n = 0;
    require(!worker->replies.full);
    for (; replies.len > 0; n++) {
        take_value(&replies, 0);
    }
    buffer_take(&worker->replies, buffer_len(&worker->replies));
    return n;
}

/* ---- requests ---- */

/* As a connection does: what is not used is given again, with more after it. */
static unsigned feed(struct weir_text input, size_t piece)
{
    const struct protocol *protocol = &protocol_resp;
    struct connection *c = begin_connection(protocol);
    unsigned replies = 0;
    size_t arrived = 0;
    for (int64_t used = 0; used != CONNECTION_CLOSE && arrived < input.len;) {
        arrived = input.len - arrived < piece ? input.len : arrived + piece;
        do { /* it stops early when there are many replies */
            used = protocol->consume(c, (struct weir_text){input.at, arrived});
            replies += count_replies();
            require(used == CONNECTION_CLOSE || (used >= 0 && (size_t)used <= arrived));
            require(c->session_kept <= (1u << 20) + 128);
            input = text_after(input, used > 0 ? (size_t)used : 0);
            arrived -= used > 0 ? (size_t)used : 0;
        } while (used > 0);
    }
    protocol->finish(c);
    require(c->session_kept == 0);
    end_connection(c);
    return replies;
}

/* Returns the most replies there can be: one for each request, and one for what is none. */
static unsigned count_requests(struct weir_text input)
{
    static struct resp_request request;
    struct resp_limits limits = resp_limits;
    const char *complaint;
    unsigned n = 0;
    limits.inline_commands = server.options.inline_commands;
    int got;
    while ((got = resp_parse(input, &limits, &request, &complaint)) == RESP_REQUEST) {
        n += request.argc > 0;
        input = text_after(input, request.used);
    }
    return n + (got == RESP_BAD);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2) {
        return 0;
    }
    prepare();
    struct weir_text input = {(const char *)data + 1, size - 1};
    server.options.inline_commands = data[0] & 1;
    worker->now_ns = UINT64_C(1700000000) * WEIR_SECOND;
    unsigned whole = feed(input, input.len);
    require(whole <= count_requests(input));
    require(feed(input, 1 + data[0] / 2) == whole);
    return 0;
}
