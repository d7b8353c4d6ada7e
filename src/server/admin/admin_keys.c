/* Keys: looked at, and changed by the verbs that RESP has too. */
#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "server/admin/admin.h"
#include "server/ask/key_verbs.h"
#include "server/http/http_question.h"

/* ---- looking ---- */

/* Of a query, decoded into `room`. */
struct asked {
    struct weir_rules_key key;
    struct weir_rules_value parts[CONFIG_KEY_PARTS_MAX];
    char room[HTTP_HEAD_MAX];
};

static struct weir_rules_value value_of(struct text text)
{
    return (struct weir_rules_value){text.at, text.len};
}

static int take_pair(struct asked *a, const struct http_pair *pair, struct weir_error *error)
{
    if (text_is(pair->name, "limit")) {
        a->key.limit = value_of(pair->value);
    } else if (text_is(pair->name, "tier")) {
        a->key.tier = value_of(pair->value);
    } else if (!text_is(pair->name, "key")) {
        return fail(error, WEIR_EINVAL, "found '%.*s', expected limit, key or tier",
                    (int)(pair->name.len > 64 ? 64 : pair->name.len), pair->name.at);
    } else if (a->key.parts_count == CONFIG_KEY_PARTS_MAX) {
        return fail(error, WEIR_EINVAL, "key: expected at most %d parts", CONFIG_KEY_PARTS_MAX);
    } else {
        a->parts[a->key.parts_count++] = value_of(pair->value);
    }
    return 0;
}

static int read_query(struct text query, struct asked *a, struct weir_error *error)
{
    struct http_pair pair;
    char *room = a->room;
    int e = 0;
    a->key = (struct weir_rules_key){.parts = a->parts};
    while (e == 0) {
        size_t before = query.len;
        if (!http_next_pair(&query, room, &pair)) {
            break;
        }
        room += before - query.len;
        e = take_pair(a, &pair, error);
    }
    if (e == 0 && a->key.limit.len == 0) {
        return fail(error, WEIR_EINVAL, "expected ?limit=NAME&key=KEY");
    }
    return e;
}

static void reply_inspected(struct exchange *x, const struct answer *a, int64_t blocked_ms)
{
    char more[40];
    (void)snprintf(more, sizeof more, ",\"blocked_ms\":%" PRId64, blocked_ms);
    http_put_answer(&x->body, a, text_of(more));
    http_reply(x, 200, "application/json", NULL);
}

static void put_inspected_later(struct deferred *d)
{
    struct http_request request;
    struct exchange x = http_resume(d, &request);
    struct weir_error error = {0};
    if (d->error != 0) {
        http_reply_failure(&x, d->error, &error);
    } else {
        reply_inspected(&x, &d->answer, verb_blocked_ms(d));
    }
    http_resumed(&x);
}

static void inspect(struct exchange *x, const struct weir_rules_key *key)
{
    struct later later = {.worker = x->connection->worker};
    struct weir_error error = {0};
    struct answer a;
    int64_t blocked_ms = 0;
    int e = verb_inspect(x->server, key, x->now_ns, &later, &a, &blocked_ms, &error);
    if (e == ANSWER_LATER) {
        http_keep(x, &later, put_inspected_later);
    } else if (e != 0) {
        http_reply_failure(x, e, &error);
    } else {
        reply_inspected(x, &a, blocked_ms);
    }
}

static void run_inspect(struct exchange *x)
{
    struct asked asked;
    struct weir_error error = {0};
    int e = read_query(x->request->query, &asked, &error);
    if (e != 0) {
        http_reply_failure(x, e, &error);
    } else {
        inspect(x, &asked.key);
    }
}

/* ---- changing ---- */

static int read_change(const json_t *body, enum verb verb, struct http_question *q,
                       struct verb_call *call, struct weir_error *error)
{
    const struct verb_row *row = &verb_rows[verb];
    unsigned members = 1u << HTTP_LIMIT | 1u << HTTP_KEY | 1u << HTTP_TIER |
                       (row->units ? 1u << HTTP_UNITS : 0) | (row->time ? 1u << HTTP_FOR : 0);
    int e = http_read_question(body, members, 1u << HTTP_LIMIT, q, error);
    if (e == 0) {
        *call = (struct verb_call){
            .verb = verb, .key = http_key_of(q), .units = q->units, .for_ms = q->for_ms};
    }
    return e;
}

static void change(struct exchange *x, enum verb verb, const json_t *body)
{
    struct later later = {.worker = x->connection->worker};
    struct weir_error error = {0};
    struct actor by = {&x->connection->peer, x->role};
    struct http_question q;
    struct verb_call call;
    struct answer a;
    int e = read_change(body, verb, &q, &call, &error);
    if (e == 0) {
        e = verb_run(x->server, &call, &by, x->now_ns, &later, &a, &error);
    }
    if (e == ANSWER_LATER) {
        http_keep(x, &later, put_inspected_later);
    } else if (e != 0) {
        http_reply_failure(x, e, &error);
    } else {
        inspect(x, &call.key);
    }
}

static void run_change(struct exchange *x)
{
    struct text name = text_after(x->request->path, strlen("/v1/keys/"));
    for (unsigned verb = 0; verb < VERBS; verb++) {
        if (text_is(name, verb_rows[verb].name)) {
            json_t *body = http_read_json(x);
            if (body != NULL) {
                change(x, (enum verb)verb, body);
                json_decref(body);
            }
            return;
        }
    }
    http_reply_problem(x, 404, "expected /v1/keys/reset, block, unblock, refund or penalize");
}

const struct http_route admin_keys_routes[] = {
    {"GET", "/v1/keys", HTTP_AT, ROLE_CHECK, run_inspect,
     "one key: ?limit=L&key=K[&key=K2][&tier=T]"},
    {"POST", "/v1/keys", HTTP_BELOW, ROLE_ADMIN, run_change,
     "/reset, /block, /unblock, /refund, /penalize: changes one key"},
    {NULL, NULL, HTTP_AT, ROLE_NONE, NULL, NULL},
};
