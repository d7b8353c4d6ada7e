/* Questions as JSON: /v1/check, /v1/peek, /v1/check/batch. */
#include <inttypes.h>
#include <jansson.h>

#include "base/error.h"
#include "policy/config.h"
#include "server/http.h"

#define BATCH_MAX 1000

/* A question, by a limit's name or by attributes. Texts belong to the JSON. */
struct question {
    struct text limit;
    struct weir_rules_value parts[CONFIG_KEY_PARTS_MAX];
    size_t parts_count;
    struct text tier;
    uint64_t cost;
    uint64_t max_wait_ms;
    struct weir_rules_attribute attributes[WEIR_RULES_ATTRIBUTES_MAX];
    size_t attributes_count;
    unsigned given; /* bits by row */
};

/* ---- members ---- */

static int bad(struct weir_error *error, const char *name, const char *expected)
{
    return fail(error, WEIR_EINVAL, "%.64s: expected %s", name, expected);
}

static int read_text(const json_t *value, const char *name, struct text *out,
                     struct weir_error *error)
{
    if (!json_is_string(value)) {
        return bad(error, name, "a string");
    }
    *out = (struct text){json_string_value(value), json_string_length(value)};
    return 0;
}

static int read_count(const json_t *value, const char *name, uint64_t least, uint64_t most,
                      uint64_t *out, struct weir_error *error)
{
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    if (number < 0 || (uint64_t)number < least || (uint64_t)number > most) {
        return fail(error, WEIR_EINVAL, "%s: expected a whole number from %" PRIu64 " to %" PRIu64,
                    name, least, most);
    }
    *out = (uint64_t)number;
    return 0;
}

static int read_limit(const json_t *value, struct question *q, struct weir_error *error)
{
    return read_text(value, "limit", &q->limit, error);
}

static int read_tier(const json_t *value, struct question *q, struct weir_error *error)
{
    return read_text(value, "tier", &q->tier, error);
}

static int read_cost(const json_t *value, struct question *q, struct weir_error *error)
{
    return read_count(value, "cost", 1, INT64_MAX, &q->cost, error);
}

static int read_max_wait(const json_t *value, struct question *q, struct weir_error *error)
{
    return read_count(value, "max_wait_ms", 0, INT64_MAX / WEIR_MILLISECOND, &q->max_wait_ms,
                      error);
}

static int read_part(const json_t *value, struct question *q, struct weir_error *error)
{
    struct text part = {NULL, 0};
    int e = read_text(value, "key", &part, error);
    if (e == 0) {
        q->parts[q->parts_count++] = (struct weir_rules_value){part.at, part.len};
    }
    return e;
}

static int read_key(const json_t *value, struct question *q, struct weir_error *error)
{
    if (!json_is_array(value)) {
        return read_part(value, q, error);
    }
    if (json_array_size(value) > CONFIG_KEY_PARTS_MAX) {
        return bad(error, "key", "at most 8 parts");
    }
    int e = 0;
    for (size_t i = 0; e == 0 && i < json_array_size(value); i++) {
        e = read_part(json_array_get(value, i), q, error);
    }
    return e;
}

static int read_attributes(const json_t *value, struct question *q, struct weir_error *error)
{
    json_t *all = (json_t *)(uintptr_t)value; /* the iterator only looks */
    if (!json_is_object(value) || json_object_size(value) > WEIR_RULES_ATTRIBUTES_MAX) {
        return bad(error, "attributes", "an object with at most 256 members");
    }
    for (void *at = json_object_iter(all); at != NULL; at = json_object_iter_next(all, at)) {
        struct text text = {NULL, 0};
        const char *name = json_object_iter_key(at);
        int e = read_text(json_object_iter_value(at), name, &text, error);
        if (e != 0) {
            return e;
        }
        q->attributes[q->attributes_count++] =
            (struct weir_rules_attribute){name, strlen(name), text.at, text.len};
    }
    return 0;
}

enum { LIMIT, KEY, TIER, COST, MAX_WAIT, ATTRIBUTES, MEMBERS };

static const struct {
    const char *name;
    int (*read)(const json_t *value, struct question *q, struct weir_error *error);
} members[MEMBERS] = {
    [LIMIT] = {"limit", read_limit},
    [KEY] = {"key", read_key},
    [TIER] = {"tier", read_tier},
    [COST] = {"cost", read_cost},
    [MAX_WAIT] = {"max_wait_ms", read_max_wait},
    [ATTRIBUTES] = {"attributes", read_attributes},
};

static int read_member(const char *name, const json_t *value, struct question *q,
                       struct weir_error *error)
{
    for (unsigned i = 0; i < MEMBERS; i++) {
        if (strcmp(members[i].name, name) == 0) {
            q->given |= 1u << i;
            return members[i].read(value, q, error);
        }
    }
    return fail(error, WEIR_EINVAL,
                "found '%.64s', expected limit, key, tier, cost, max_wait_ms or attributes", name);
}

/* Either a limit with its key and tier, or attributes. */
static int check_shape(const struct question *q, struct weir_error *error)
{
    bool by_name = (q->given & (1u << LIMIT)) != 0;
    bool by_attributes = (q->given & (1u << ATTRIBUTES)) != 0;
    if (by_name == by_attributes) {
        return fail(error, WEIR_EINVAL, "expected either limit or attributes");
    }
    if (by_attributes && (q->given & (1u << KEY | 1u << TIER)) != 0) {
        return fail(error, WEIR_EINVAL, "key and tier belong to limit, not to attributes");
    }
    return 0;
}

static int read_question(const json_t *object, struct question *q, struct weir_error *error)
{
    q->parts_count = 0;
    q->attributes_count = 0;
    q->cost = 0;
    q->max_wait_ms = 0;
    q->given = 0;
    q->tier = (struct text){"", 0};
    if (!json_is_object(object)) {
        return fail(error, WEIR_EINVAL, "expected an object");
    }
    json_t *all = (json_t *)(uintptr_t)object; /* the iterator only looks */
    for (void *at = json_object_iter(all); at != NULL; at = json_object_iter_next(all, at)) {
        int e = read_member(json_object_iter_key(at), json_object_iter_value(at), q, error);
        if (e != 0) {
            return e;
        }
    }
    return check_shape(q, error);
}

/* ---- asking ---- */

static int ask_limit(const struct exchange *x, const struct question *q, int mode,
                     struct answer *answer, struct weir_error *error)
{
    struct direct d = {.key = {.limit = {q->limit.at, q->limit.len},
                               .parts = q->parts,
                               .parts_count = q->parts_count,
                               .tier = {q->tier.at, q->tier.len}},
                       .cost = q->cost,
                       .max_wait_ns = q->max_wait_ms * WEIR_MILLISECOND,
                       .mode = mode};
    return answer_check(x->server->rules, &d, x->now_ns, answer, error);
}

static int ask_rules(const struct exchange *x, const struct question *q, int mode,
                     struct answer *answer, struct weir_error *error)
{
    struct weir_rules_question asked = {.attributes = q->attributes,
                                        .attributes_count = q->attributes_count,
                                        .cost = q->cost,
                                        .max_wait_ns = q->max_wait_ms * WEIR_MILLISECOND,
                                        .mode = mode};
    return answer_ask(x->server->rules, &asked, x->now_ns, answer, error);
}

static int ask(const struct exchange *x, const json_t *object, int mode, struct answer *answer,
               struct weir_error *error)
{
    struct question q;
    error->text[0] = 0;
    int e = read_question(object, &q, error);
    if (e != 0) {
        return e;
    }
    return (q.given & (1u << LIMIT)) != 0 ? ask_limit(x, &q, mode, answer, error)
                                          : ask_rules(x, &q, mode, answer, error);
}

/* ---- routes ---- */

/* Bytes of a key may be any, so "\u0000" is allowed. */
json_t *http_read_json(struct exchange *x)
{
    struct text body = x->request->body;
    json_error_t why;
    json_t *json = json_loadb(body.at, body.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &why);
    if (json == NULL) {
        struct weir_error error;
        (void)fail(&error, WEIR_EINVAL, "the body is not JSON: line %d, column %d: %s", why.line,
                   why.column, why.text);
        http_reply_failure(x, WEIR_EINVAL, &error);
    }
    return json;
}

static void run_one(struct exchange *x, int mode)
{
    struct answer a;
    struct weir_error error;
    json_t *body = http_read_json(x);
    if (body == NULL) {
        return;
    }
    int e = ask(x, body, mode, &a, &error);
    if (e != 0) {
        http_reply_failure(x, e, &error);
    } else {
        http_reply_answer(x, mode == WEIR_PEEK ? 200 : http_status_of_answer(&a), &a);
    }
    json_decref(body);
}

static void run_check(struct exchange *x)
{
    run_one(x, WEIR_CHECK);
}

static void run_peek(struct exchange *x)
{
    run_one(x, WEIR_PEEK);
}

/* One after the other, each for itself: not all or nothing. */
static void answer_each(struct exchange *x, const json_t *questions)
{
    buffer_put(&x->body, TEXT("{\"results\":["));
    for (size_t i = 0; i < json_array_size(questions); i++) {
        struct answer a;
        struct weir_error error;
        int e = ask(x, json_array_get(questions, i), WEIR_CHECK, &a, &error);
        buffer_put(&x->body, i > 0 ? TEXT(",") : TEXT(""));
        if (e == 0) {
            http_put_answer(&x->body, &a);
        } else {
            http_put_problem(&x->body, http_status_of_error(e),
                             error.text[0] != 0 ? error.text : weir_strerror(e));
        }
    }
    buffer_put(&x->body, TEXT("]}"));
    http_reply(x, 200, "application/json", NULL);
}

static void run_batch(struct exchange *x)
{
    json_t *body = http_read_json(x);
    if (body == NULL) {
        return;
    }
    const json_t *questions = json_object_get(body, "requests");
    if (!json_is_array(questions) || json_object_size(body) != 1) {
        http_reply_problem(x, 400, "expected {\"requests\":[...]} and nothing else");
    } else if (json_array_size(questions) > BATCH_MAX) {
        http_reply_problem(x, 400, "expected at most 1000 requests");
    } else {
        answer_each(x, questions);
    }
    json_decref(body);
}

const struct http_route http_check_routes[] = {
    {"POST", "/v1/check", false, ROLE_CHECK, run_check, "may this pass now? Takes units"},
    {"POST", "/v1/peek", false, ROLE_CHECK, run_peek, "what /v1/check would say; always 200"},
    {"POST", "/v1/check/batch", false, ROLE_CHECK, run_batch, "up to 1000 of them; always 200"},
    {NULL, NULL, false, ROLE_NONE, NULL, NULL},
};
