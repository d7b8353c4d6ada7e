/* Questions as JSON: /v1/check, /v1/peek, /v1/check/batch. */
#include "base/error.h"
#include "server/http/http_question.h"

#define BATCH_MAX 1000

#define MEMBERS                                                                                    \
    (1u << HTTP_LIMIT | 1u << HTTP_KEY | 1u << HTTP_TIER | 1u << HTTP_COST | 1u << HTTP_MAX_WAIT | \
     1u << HTTP_ATTRIBUTES)

/* Checks that the question has either a limit with its key and tier, or attributes. */
static int check_shape(const struct http_question *q, struct weir_error *error)
{
    bool by_name = (q->given & (1u << HTTP_LIMIT)) != 0;
    bool by_attributes = (q->given & (1u << HTTP_ATTRIBUTES)) != 0;
    if (by_name == by_attributes) {
        return fail(error, WEIR_EINVAL, "expected either limit or attributes");
    }
    if (by_attributes && (q->given & (1u << HTTP_KEY | 1u << HTTP_TIER)) != 0) {
        return fail(error, WEIR_EINVAL, "key and tier belong to limit, not to attributes");
    }
    return 0;
}

/* ---- asking ---- */

static int ask_limit(const struct exchange *x, const struct http_question *q, int mode,
                     struct later *later, struct answer *answer, struct weir_error *error)
{
    struct direct d = {.key = http_key_of(q),
                       .cost = q->cost,
                       .max_wait_ns = q->max_wait_ms * WEIR_MILLISECOND,
                       .mode = mode};
    return answer_check(x->server->rules, &d, x->now_ns, later, answer, error);
}

static int ask_rules(const struct exchange *x, const struct http_question *q, int mode,
                     struct later *later, struct answer *answer, struct weir_error *error)
{
    struct weir_rules_question asked = {.attributes = q->attributes,
                                        .attributes_count = q->attributes_count,
                                        .cost = q->cost,
                                        .max_wait_ns = q->max_wait_ms * WEIR_MILLISECOND,
                                        .mode = mode};
    return answer_ask(x->server->rules, &asked, x->now_ns, later, answer, error);
}

static int ask(const struct exchange *x, const json_t *object, int mode, struct later *later,
               struct answer *answer, struct weir_error *error)
{
    struct http_question q;
    error->text[0] = 0;
    int e = http_read_question(object, MEMBERS, 0, &q, error);
    e = e != 0 ? e : check_shape(&q, error);
    if (e != 0) {
        return e;
    }
    return (q.given & (1u << HTTP_LIMIT)) != 0 ? ask_limit(x, &q, mode, later, answer, error)
                                               : ask_rules(x, &q, mode, later, answer, error);
}

/* ---- routes ---- */

/* "\u0000" is allowed, because a key may contain any bytes. */
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

static void reply_one(struct exchange *x, int mode, int e, const struct answer *a,
                      const struct weir_error *error)
{
    if (e != 0) {
        http_reply_failure(x, e, error);
    } else {
        http_reply_answer(x, mode == WEIR_PEEK ? 200 : http_status_of_answer(a), a);
    }
}

static void put_one_later(struct deferred *d)
{
    struct http_request request;
    struct exchange x = http_resume(d, &request);
    struct weir_error error = {0};
    reply_one(&x, d->wire.mode, d->error, &d->answer, &error);
    http_resumed(&x);
}

static void run_one(struct exchange *x, int mode)
{
    struct later later = {.worker = x->connection->worker};
    struct answer a;
    struct weir_error error;
    json_t *body = http_read_json(x);
    if (body == NULL) {
        return;
    }
    int e = ask(x, body, mode, &later, &a, &error);
    if (e == ANSWER_LATER) {
        http_keep(x, &later, put_one_later);
    } else {
        reply_one(x, mode, e, &a, &error);
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

/* ---- batches ---- */

static void put_item(struct buffer *body, int e, const struct answer *a,
                     const struct weir_error *error)
{
    if (e == 0) {
        http_put_answer(body, a);
    } else {
        http_put_problem(body, http_status_of_error(e), http_words_of_error(e, error));
    }
}

/* Appends a part's answer, and the text after it, to the body of its batch. */
static void put_part_later(struct deferred *part)
{
    struct buffer *body = &part->batch->body;
    struct weir_error error = {0};
    put_item(body, part->error, &part->answer, &error);
    buffer_put(body, buffer_text(&part->body));
}

static void put_batch_later(struct deferred *batch)
{
    struct http_request request;
    struct exchange x = http_resume(batch, &request);
    for (struct deferred *part = batch->parts; part != NULL; part = part->next) {
        part->put(part);
    }
    buffer_put(&x.body, buffer_text(&batch->body));
    x.body.full = x.body.full || batch->body.full;
    http_reply(&x, 200, "application/json", NULL);
    http_resumed(&x);
}

/* Answers each question. Those whose answers come later become parts of `batch`, which is NULL if
 * there is no fleet. */
static void answer_each(struct exchange *x, const json_t *questions, struct deferred *batch)
{
    struct later later = {.worker = x->connection->worker};
    buffer_put(&x->body, TEXT("{\"results\":["));
    for (size_t i = 0; i < json_array_size(questions); i++) {
        struct answer a;
        struct weir_error error;
        int e = ask(x, json_array_get(questions, i), WEIR_CHECK, batch != NULL ? &later : NULL, &a,
                    &error);
        buffer_put(&x->body, i > 0 ? TEXT(",") : TEXT(""));
        if (e == ANSWER_LATER) {
            deferred_keep_part(later.kept, batch, &x->body, put_part_later);
        } else {
            put_item(&x->body, e, &a, &error);
        }
    }
    buffer_put(&x->body, TEXT("]}"));
}

/* Answers the questions of a batch one after the other. Each is decided on its own:
 * not all or nothing. */
static void answer_batch(struct exchange *x, const json_t *questions)
{
    struct later later = {.worker = x->connection->worker};
    if (later.worker->where != NULL) {
        later.kept = deferred_batch(later.worker);
        if (later.kept == NULL) {
            http_reply_problem(x, 500, "out of memory");
            return;
        }
    }
    answer_each(x, questions, later.kept);
    if (later.kept != NULL && later.kept->parts != NULL) {
        deferred_end_parts(later.kept, &x->body);
        http_keep(x, &later, put_batch_later);
        return;
    }
    if (later.kept != NULL) {
        deferred_destroy(later.kept);
    }
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
        answer_batch(x, questions);
    }
    json_decref(body);
}

const struct http_route http_check_routes[] = {
    {"POST", "/v1/check", HTTP_AT, ROLE_CHECK, run_check, "may this pass now? Takes units"},
    {"POST", "/v1/peek", HTTP_AT, ROLE_CHECK, run_peek, "what /v1/check would say; always 200"},
    {"POST", "/v1/check/batch", HTTP_AT, ROLE_CHECK, run_batch, "up to 1000 of them; always 200"},
    {NULL, NULL, HTTP_AT, ROLE_NONE, NULL, NULL},
};
