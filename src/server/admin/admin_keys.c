/* Routes about keys: inspecting one, and changing it by the verbs that RESP has too. */
#include <inttypes.h>
#include <jansson.h>

#include "base/error.h"
#include "rules/file/config.h"
#include "server/admin/admin.h"
#include "server/ask/key_verbs.h"

/* ---- looking ---- */

/* The key that a query names, decoded into `room`. */
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

/* Replies with the answer and the member "blocked_ms". */
static void reply_inspected(struct exchange *x, const struct answer *a, int64_t blocked_ms)
{
    http_put_answer(&x->body, a);
    x->body.end--;
    buffer_put(&x->body, TEXT(",\"blocked_ms\":"));
    buffer_put_i64(&x->body, blocked_ms);
    buffer_put_char(&x->body, '}');
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

struct change {
    struct verb_call call;
    struct weir_rules_value parts[CONFIG_KEY_PARTS_MAX];
};

static int read_text(const json_t *value, const char *name, struct weir_rules_value *out,
                     struct weir_error *error)
{
    if (!json_is_string(value)) {
        return fail(error, WEIR_EINVAL, "%s: expected a string", name);
    }
    *out = (struct weir_rules_value){json_string_value(value), json_string_length(value)};
    return 0;
}

static int read_count(const json_t *value, const char *name, uint64_t *out,
                      struct weir_error *error)
{
    json_int_t n = json_is_integer(value) ? json_integer_value(value) : 0;
    if (n < 1) {
        return fail(error, WEIR_EINVAL, "%s: expected a whole number from 1 to %" PRId64, name,
                    INT64_MAX);
    }
    *out = (uint64_t)n;
    return 0;
}

static int read_limit(const json_t *value, struct change *c, struct weir_error *error)
{
    return read_text(value, "limit", &c->call.key.limit, error);
}

static int read_tier(const json_t *value, struct change *c, struct weir_error *error)
{
    return read_text(value, "tier", &c->call.key.tier, error);
}

static int read_key(const json_t *value, struct change *c, struct weir_error *error)
{
    size_t n = json_is_array(value) ? json_array_size(value) : 1;
    int e = 0;
    if (n > CONFIG_KEY_PARTS_MAX) {
        return fail(error, WEIR_EINVAL, "key: expected at most %d parts", CONFIG_KEY_PARTS_MAX);
    }
    for (size_t i = 0; e == 0 && i < n; i++) {
        const json_t *part = json_is_array(value) ? json_array_get(value, i) : value;
        e = read_text(part, "key", &c->parts[i], error);
    }
    c->call.key.parts_count = n;
    return e;
}

static int read_units(const json_t *value, struct change *c, struct weir_error *error)
{
    return verb_rows[c->call.verb].units
               ? read_count(value, "units", &c->call.units, error)
               : fail(error, WEIR_EINVAL, "found units, which belong to refund and penalize");
}

/* Reads for_ms; null means without end, which is the default. */
static int read_time(const json_t *value, struct change *c, struct weir_error *error)
{
    if (!verb_rows[c->call.verb].time) {
        return fail(error, WEIR_EINVAL, "found for_ms, which belongs to block");
    }
    return json_is_null(value) ? 0 : read_count(value, "for_ms", &c->call.for_ms, error);
}

static const struct {
    const char *name;
    int (*read)(const json_t *value, struct change *c, struct weir_error *error);
} members[] = {
    {"limit", read_limit}, {"key", read_key},     {"tier", read_tier},
    {"units", read_units}, {"for_ms", read_time},
};

static int read_member(const char *name, const json_t *value, struct change *c,
                       struct weir_error *error)
{
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (strcmp(members[i].name, name) == 0) {
            return members[i].read(value, c, error);
        }
    }
    return fail(error, WEIR_EINVAL, "found '%.64s', expected limit, key, tier, units or for_ms",
                name);
}

static int read_change(json_t *body, enum verb verb, struct change *c, struct weir_error *error)
{
    c->call = (struct verb_call){
        .verb = verb, .key = {.parts = c->parts}, .units = 1, .for_ms = VERB_FOREVER};
    if (!json_is_object(body)) {
        return fail(error, WEIR_EINVAL, "expected an object");
    }
    for (void *at = json_object_iter(body); at != NULL; at = json_object_iter_next(body, at)) {
        int e = read_member(json_object_iter_key(at), json_object_iter_value(at), c, error);
        if (e != 0) {
            return e;
        }
    }
    return c->call.key.limit.at != NULL ? 0 : fail(error, WEIR_EINVAL, "limit: expected its name");
}

static void change(struct exchange *x, enum verb verb, json_t *body)
{
    struct later later = {.worker = x->connection->worker};
    struct weir_error error = {0};
    struct actor by = {&x->connection->peer, x->role};
    struct change c;
    struct answer a;
    int e = read_change(body, verb, &c, &error);
    if (e == 0) {
        e = verb_run(x->server, &c.call, &by, x->now_ns, &later, &a, &error);
    }
    if (e == ANSWER_LATER) {
        http_keep(x, &later, put_inspected_later);
    } else if (e != 0) {
        http_reply_failure(x, e, &error);
    } else {
        inspect(x, &c.call.key);
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
