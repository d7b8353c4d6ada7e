#include "support/server/line_protocol.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/operations/operations.h"
#include "server/loop/worker.h"
#include "server/operations/awaited.h"

#define LINE_MAX_BYTES 4096

/* ---- replies ---- */

static void put_line(struct connection *c, enum operation operation, int e, const struct answer *a,
                     const struct weir_error *error)
{
    char line[512];
    worker_count_requests(c->worker, c->protocol->kind, operation_result(operation, e, a), 1);
    int n = e != 0 ? snprintf(line, sizeof line, "error %.400s\n",
                              error->text[0] != 0 ? error->text : weir_strerror(e))
                   : snprintf(line, sizeof line, "%s %s %" PRId64 " %" PRId64 "%s%s\n",
                              answer_verdict_names[a->verdict], a->limit[0] != 0 ? a->limit : "-",
                              a->remaining, a->retry_after_ms, a->reservation[0] != 0 ? " " : "",
                              a->reservation);
    buffer_put(&c->worker->replies, (struct weir_text){line, (size_t)n});
}

static void put_later(struct pending *p)
{
    struct weir_error error = {0};
    put_line(p->connection, p->wire.operation, p->error, &awaited_of(p)->answer, &error);
}

/* ---- requests ---- */

static struct weir_text next_word(struct weir_text *rest)
{
    const char *space = memchr(rest->at, ' ', rest->len);
    size_t len = space != NULL ? (size_t)(space - rest->at) : rest->len;
    struct weir_text word = {rest->at, len};
    *rest = text_after(*rest, len + (space != NULL));
    return word;
}

static void put_number(struct weir_text value, uint64_t *number)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%.*s", (int)(value.len < 23 ? value.len : 23), value.at);
    *number = strtoull(digits, NULL, 10);
}

/* Returns false if the member is not known, or there are too many. */
static bool read_member(const struct operation_row *row, struct weir_text name,
                        struct weir_text value, struct ask *ask)
{
    unsigned i = 0;
    while (i < ASK_MEMBERS &&
           ((row->members & ASK_BIT(i)) == 0 || ask_members[i].kind == ASK_PAIRS ||
            !text_is(name, ask_members[i].name))) {
        i++;
    }
    if (i == ASK_MEMBERS && (row->members & ASK_BIT(ASK_ATTRIBUTES)) != 0 &&
        ask->attributes_count < WEIR_RULES_ATTRIBUTES_MAX) {
        ask->attributes[ask->attributes_count++] =
            (struct weir_rules_attribute){name.at, name.len, value.at, value.len};
        ask->given |= ASK_BIT(ASK_ATTRIBUTES);
        return true;
    }
    if (i == ASK_MEMBERS || (i == ASK_KEY && ask->parts_count == CONFIG_KEY_PARTS_MAX)) {
        return false;
    }
    ask->given |= ASK_BIT(i);
    if (i == ASK_KEY) {
        ask->parts[ask->parts_count++] = value;
    } else if (ask_members[i].kind == ASK_TEXT) {
        ask->text[i] = value;
    } else {
        put_number(value, &ask->number[i]);
        return ask->number[i] >= ask_members[i].least && ask->number[i] <= ask_members[i].most;
    }
    return true;
}

static int read_line(struct weir_text line, enum operation *operation, struct ask *ask,
                     struct weir_error *error)
{
    *operation = operation_by_name(next_word(&line));
    (void)snprintf(error->text, sizeof error->text, "found no operation, or a member it has not");
    ask_init(ask);
    bool good = *operation < OPERATIONS;
    while (good && line.len > 0) {
        struct weir_text word = next_word(&line);
        const char *is = memchr(word.at, '=', word.len);
        struct weir_text name = {word.at, is != NULL ? (size_t)(is - word.at) : word.len};
        good = is != NULL &&
               read_member(&operation_rows[*operation], name, text_after(word, name.len + 1), ask);
    }
    good = good && (operation_rows[*operation].needed & ~ask->given) == 0;
    return good ? 0 : WEIR_EINVAL;
}

static void answer_line(struct connection *c, struct weir_text line)
{
    struct worker *w = c->worker;
    struct asker asker = {.server = w->server,
                          .worker = w,
                          .by = {&c->peer, access_role(w->server->options.access, &c->pass)},
                          .now_ns = w->now_ns};
    enum operation operation;
    struct weir_error error = {0};
    struct answer a = {0};
    struct ask ask;
    int e = read_line(line, &operation, &ask, &error);
    e = e != 0 ? e : operation_run(&asker, operation, &ask, &a, &error);
    if (e == ANSWER_LATER) {
        asker.pending->wire.operation = operation;
        pending_keep(asker.pending, c, put_later);
    } else {
        put_line(c, operation, e, &a, &error);
    }
}

static int64_t consume(struct connection *c, struct weir_text input)
{
    int64_t used = 0;
    while (connection_takes(c)) {
        const char *end = memchr(input.at, '\n', input.len);
        if (end == NULL) {
            return input.len > LINE_MAX_BYTES ? CONNECTION_CLOSE : used;
        }
        size_t len = (size_t)(end - input.at);
        answer_line(c, (struct weir_text){input.at, len});
        used += (int64_t)len + 1;
        input = text_after(input, len + 1);
    }
    return used;
}

const struct protocol protocol_line = {.name = "line", .kind = PROTOCOL_RESP, .consume = consume};
