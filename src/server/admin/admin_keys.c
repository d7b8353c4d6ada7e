/* Looks at one key. What changes keys are the routes of operations (http_operations.c). */
#include "base/error.h"
#include "server/admin/admin.h"

/* A query, whose values are decoded into `room`. */
struct query {
    struct ask ask;
    char room[HTTP_HEAD_MAX];
};

static int take_pair(struct ask *ask, const struct http_pair *pair, struct weir_error *error)
{
    if (text_is(pair->name, "limit")) {
        ask->text[ASK_LIMIT] = pair->value;
    } else if (text_is(pair->name, "tier")) {
        ask->text[ASK_TIER] = pair->value;
    } else if (text_is(pair->name, "by")) {
        ask->text[ASK_BY] = pair->value;
    } else if (!text_is(pair->name, "key")) {
        return fail(error, WEIR_EINVAL, "found '%.*s', expected limit, key, tier or by",
                    TEXT_CUT(pair->name, 64));
    } else if (ask->parts_count == CONFIG_KEY_PARTS_MAX) {
        return fail(error, WEIR_EINVAL, "key: expected at most %d parts", CONFIG_KEY_PARTS_MAX);
    } else {
        ask->parts[ask->parts_count++] = pair->value;
    }
    return 0;
}

static int read_query(struct weir_text text, struct query *q, struct weir_error *error)
{
    struct http_pair pair;
    char *room = q->room;
    int e = 0;
    ask_init(&q->ask);
    while (e == 0) {
        size_t before = text.len;
        if (!http_next_pair(&text, room, &pair)) {
            break;
        }
        room += before - text.len;
        e = take_pair(&q->ask, &pair, error);
    }
    if (e == 0 && q->ask.text[ASK_LIMIT].len == 0) {
        return fail(error, WEIR_EINVAL, "found another query, expected ?limit=NAME&key=KEY");
    }
    return e;
}

static void run_inspect(struct exchange *x)
{
    struct query query;
    struct weir_error error = {0};
    int e = read_query(x->request->query, &query, &error);
    if (e != 0) {
        http_reply_failure(x, e, &error);
    } else {
        http_run_ask(x, OPERATION_INSPECT, &query.ask);
    }
}

const struct http_route admin_keys_routes[] = {
    {"GET", "/v1/keys", HTTP_AT, ROLE_ADMIN, run_inspect,
     .summary = "one key: ?limit=L&key=K[&key=K2][&tier=T][&by=A]"},
    {.path = NULL},
};
