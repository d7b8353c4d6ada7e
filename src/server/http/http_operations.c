/* Operations as JSON: POST /v1/check and its like, and batches of checks. */
#include <inttypes.h>
#include <stdio.h>

#include "server/ask/reservations.h"
#include "server/http/http_json.h"

#define BATCH_MAX 1000

/* ---- one operation ---- */

/* Puts the members that an operation's answer has at its end into `more`. */
static struct text extra_members(const struct operation_row *row, const struct answer *a,
                                 char more[64])
{
    more[0] = 0;
    if (row->extra == EXTRA_BLOCKED) {
        (void)snprintf(more, 64, ",\"blocked_ms\":%" PRId64, a->blocked_ms);
    } else if (row->extra == EXTRA_RESERVATION && a->reservation[0] != 0) {
        (void)snprintf(more, 64, ",\"reservation\":\"%s\"", a->reservation);
    } else if (row->extra == EXTRA_RESERVATION) {
        (void)snprintf(more, 64, ",\"reservation\":null");
    }
    return text_of(more);
}

/* Replies to an operation that has ended. An operator's reply has no header fields of a limit. */
static void reply(struct exchange *x, enum operation operation, int e, const struct answer *a,
                  const struct weir_error *error)
{
    const struct operation_row *row = &operation_rows[operation];
    char more[64];
    if (e != 0) {
        http_reply_failure(x, e, error);
        return;
    }
    x->more = extra_members(row, a, more);
    if (row->extra == EXTRA_BLOCKED) {
        http_put_answer(&x->body, a, x->more);
        http_reply(x, 200, "application/json", NULL);
    } else {
        http_reply_answer(x, row->decides ? http_status_of_answer(a) : 200, a);
    }
}

static void put_later(struct deferred *d)
{
    struct http_request request;
    struct exchange x = http_resume(d, &request);
    struct weir_error error = {0};
    reply(&x, d->wire.operation, d->error, &d->answer, &error);
    http_resumed(&x);
}

static int run_ask(struct exchange *x, enum operation operation, const struct ask *ask,
                   struct later *later, struct answer *a, struct weir_error *error)
{
    struct asker asker = {x->server, {&x->connection->peer, x->role}, x->now_ns, later};
    return operation_run(&asker, operation, ask, a, error);
}

/* Runs an operation whose members are those of a JSON object. */
static int run_object(struct exchange *x, enum operation operation, const json_t *object,
                      struct later *later, struct answer *a, struct weir_error *error)
{
    struct ask ask;
    int e = http_read_ask(object, &operation_rows[operation], &ask, error);
    return e != 0 ? e : run_ask(x, operation, &ask, later, a, error);
}

static void finish(struct exchange *x, enum operation operation, int e, const struct later *later,
                   const struct answer *a, const struct weir_error *error)
{
    if (e == ANSWER_LATER) {
        x->operation = operation;
        http_keep(x, later, put_later);
    } else {
        reply(x, operation, e, a, error);
    }
}

void http_run_ask(struct exchange *x, enum operation operation, const struct ask *ask)
{
    struct later later = {.worker = x->connection->worker};
    struct weir_error error;
    struct answer a;
    int e = run_ask(x, operation, ask, &later, &a, &error);
    finish(x, operation, e, &later, &a, &error);
}

void http_run_operation(struct exchange *x)
{
    struct text path = x->request->path;
    const char *slash = memrchr(path.at, '/', path.len);
    enum operation operation = operation_by_name(text_after(path, (size_t)(slash + 1 - path.at)));
    struct later later = {.worker = x->connection->worker};
    struct weir_error error;
    struct answer a;
    json_t *body = http_read_json(x);
    if (body != NULL) {
        int e = run_object(x, operation, body, &later, &a, &error);
        finish(x, operation, e, &later, &a, &error);
        json_decref(body);
    }
}

/* ---- batches ---- */

static void put_item(struct buffer *body, int e, const struct answer *a,
                     const struct weir_error *error)
{
    if (e == 0) {
        http_put_answer(body, a, (struct text){NULL, 0});
    } else {
        http_put_problem(body, http_status_of_error(e), http_words_of_error(e, error));
    }
}

/* Behind what the batch has by now. */
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

/* The answers that are not there yet, if any, are parts of `batch`. NULL: no fleet decides. */
static void answer_each(struct exchange *x, const json_t *questions, struct deferred *batch)
{
    struct later later = {.worker = x->connection->worker};
    buffer_put(&x->body, TEXT("{\"results\":["));
    for (size_t i = 0; i < json_array_size(questions); i++) {
        struct answer a;
        struct weir_error error;
        int e = run_object(x, OPERATION_CHECK, json_array_get(questions, i),
                           batch != NULL ? &later : NULL, &a, &error);
        buffer_put(&x->body, i > 0 ? TEXT(",") : TEXT(""));
        if (e == ANSWER_LATER) {
            deferred_keep_part(later.kept, batch, &x->body, put_part_later);
        } else {
            put_item(&x->body, e, &a, &error);
        }
    }
    buffer_put(&x->body, TEXT("]}"));
}

/* One after the other, each for itself: not all or nothing. */
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

const struct http_route http_operation_routes[] = {
    {"POST", "/v1/check", HTTP_AT, ROLE_CHECK, http_run_operation,
     "may this pass now? Takes units"},
    {"POST", "/v1/peek", HTTP_AT, ROLE_CHECK, http_run_operation,
     "what /v1/check would say; always 200"},
    {"POST", "/v1/check/batch", HTTP_AT, ROLE_CHECK, run_batch, "up to 1000 of them; always 200"},
    {"POST", "/v1/reserve", HTTP_AT, ROLE_CHECK, http_run_operation,
     "takes units that are settled later"},
    {"POST", "/v1/settle", HTTP_AT, ROLE_CHECK, http_run_operation,
     "replaces them by what was used"},
    {"POST", "/v1/cancel", HTTP_AT, ROLE_CHECK, http_run_operation, "gives them back"},
    {NULL, NULL, HTTP_AT, ROLE_NONE, NULL, NULL},
};
