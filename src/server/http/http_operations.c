/* Operations as JSON: POST /v1/check and its like, and batches of checks. */
#include <stdio.h>

#include "server/http/http_json.h"
#include "server/operations/awaited.h"
#include "wire/jsontext.h"

#define BATCH_MAX 1000
#define BATCH_VALUES 32 /* values and names of a question, on average */

/* ---- one operation ---- */

/* Replies to an operation that has ended. An operator's reply has no header fields of a limit. */
static void reply(struct exchange *x, int e, const struct answer *a, const struct weir_error *error)
{
    const struct operation_row *row = &operation_rows[x->operation];
    if (e != 0) {
        http_reply_failure(x, e, error);
    } else if (row->extra == EXTRA_BLOCKED) {
        http_put_answer(&x->body, a, x->operation);
        http_reply(x, 200, "application/json", NULL);
    } else {
        http_reply_answer(x, row->decides ? http_status_of_answer(a) : 200, a);
    }
}

static void put_later(struct pending *p)
{
    struct http_request request;
    struct exchange x = http_resume(p, &request);
    struct weir_error error = {0};
    reply(&x, p->error, &awaited_of(p)->answer, &error);
    buffer_finish(&x.body);
}

void http_run_ask(struct exchange *x, enum operation operation, const struct ask *ask)
{
    struct asker asker = http_asker(x);
    struct weir_error error;
    struct answer a;
    int e = operation_run(&asker, operation, ask, &a, &error);
    x->operation = operation;
    if (e == ANSWER_LATER) {
        http_keep(x, asker.pending, put_later);
    } else {
        reply(x, e, &a, &error);
    }
}

void http_run_operation(struct exchange *x)
{
    struct weir_text path = x->request->path;
    const char *slash = memrchr(path.at, '/', path.len);
    enum operation operation = operation_by_name(text_after(path, (size_t)(slash + 1 - path.at)));
    struct arena arena = ARENA_INIT;
    struct weir_error error;
    struct weir_text body;
    struct ask ask;
    if (!http_check_json(x, HTTP_JSON_VALUES, &body)) {
        return;
    }
    int e = http_read_ask(body, &operation_rows[operation], &ask, &arena, &error);
    if (e != 0) {
        http_reply_failure(x, e, &error);
    } else {
        http_run_ask(x, operation, &ask);
    }
    arena_finish(&arena);
}

/* ---- batches ---- */

/* Puts the answer to one question, and counts it. */
static void put_item(struct worker *w, struct buffer *body, int e, const struct answer *a,
                     const struct weir_error *error)
{
    enum request_result result = operation_result(OPERATION_CHECK, e, a);
    worker_count_requests(w, PROTOCOL_HTTP, result, 1);
    if (e == 0) {
        worker_count_reason(w, PROTOCOL_HTTP, result, a->reason, a->limit);
        http_put_answer(body, a, OPERATION_CHECK);
    } else {
        const struct answer_error *row = answer_error(e);
        http_put_problem(body, row->status, answer_words_of_error(e, error), row->reason);
    }
}

/* Puts the answer after what the batch has by now. */
static void put_part_later(struct pending *part)
{
    struct buffer *body = &part->batch->body;
    struct weir_error error = {0};
    put_item(part->worker, body, part->error, &awaited_of(part)->answer, &error);
    buffer_put(body, buffer_text(&part->body));
}

static void put_batch_later(struct pending *batch)
{
    struct http_request request;
    struct exchange x = http_resume(batch, &request);
    for (struct pending *part = batch->parts; part != NULL; part = part->next) {
        part->put(part);
    }
    buffer_put(&x.body, buffer_text(&batch->body));
    x.body.full = x.body.full || batch->body.full;
    x.result = REQUEST_UNTOLD;
    http_reply(&x, 200, "application/json", NULL);
    buffer_finish(&x.body);
}

/* Answers each question. The answers that come later are parts of `batch`; NULL: no fleet
 * decides. */
static void answer_each(struct exchange *x, struct weir_text questions, struct pending *batch)
{
    struct asker asker = http_asker(x);
    struct weir_text question;
    asker.worker = batch != NULL ? asker.worker : NULL;
    buffer_put(&x->body, TEXT("{\"results\":["));
    for (size_t i = 0; jsontext_next_item(&questions, &question); i++) {
        struct arena arena = ARENA_INIT;
        struct ask ask;
        struct answer a;
        struct weir_error error;
        int e = http_read_ask(question, &operation_rows[OPERATION_CHECK], &ask, &arena, &error);
        e = e != 0 ? e : operation_run(&asker, OPERATION_CHECK, &ask, &a, &error);
        arena_finish(&arena);
        buffer_put(&x->body, i > 0 ? TEXT(",") : TEXT(""));
        if (e == ANSWER_LATER) {
            pending_keep_part(asker.pending, batch, &x->body, put_part_later);
        } else {
            put_item(x->connection->worker, &x->body, e, &a, &error);
        }
    }
    buffer_put(&x->body, TEXT("]}"));
}

/* Answers the questions one after the other, each by itself: not all or nothing. */
static void answer_batch(struct exchange *x, struct weir_text questions)
{
    struct worker *w = x->connection->worker;
    struct pending *batch = w->where != NULL ? pending_batch(w) : NULL;
    if (batch == NULL && w->where != NULL) {
        http_reply_problem(x, 500, "out of memory");
        return;
    }
    answer_each(x, questions, batch);
    if (batch != NULL && batch->parts != NULL) {
        pending_end_parts(batch, &x->body);
        http_keep(x, batch, put_batch_later);
        return;
    }
    pending_destroy(batch);
    x->result = REQUEST_UNTOLD;
    http_reply(x, 200, "application/json", NULL);
}

/* Finds the list in {"requests":[...]}; false if there is anything else. */
static bool find_questions(struct weir_text body, struct weir_text *questions)
{
    struct weir_text name;
    struct weir_text more;
    return jsontext_is(body, '{') && jsontext_next_member(&body, &name, questions) &&
           text_is(name, "\"requests\"") && jsontext_is(*questions, '[') &&
           !jsontext_next_member(&body, &name, &more);
}

/* Returns how many items a list has, or BATCH_MAX + 1 if it has more than that. */
static size_t count_questions(struct weir_text questions)
{
    struct weir_text question;
    size_t n = 0;
    while (n <= BATCH_MAX && jsontext_next_item(&questions, &question)) {
        n++;
    }
    return n;
}

static void run_batch(struct exchange *x)
{
    struct weir_text body;
    struct weir_text questions;
    if (!http_check_json(x, BATCH_MAX * BATCH_VALUES, &body)) {
        return;
    }
    if (!find_questions(body, &questions)) {
        http_reply_problem(x, 400,
                           "found another body, expected {\"requests\":[...]} and nothing else");
    } else if (count_questions(questions) > BATCH_MAX) {
        http_reply_problem(x, 400, "found more than 1000 requests, expected at most 1000");
    } else {
        answer_batch(x, questions);
    }
}

/* ---- routes, as the rows of operations say ---- */

#define PATH_BYTES 32

struct http_route http_operation_routes[OPERATIONS + 2];
struct http_route http_key_routes[OPERATIONS + 1];

/* Adds the routes of the operations that are reached in this way. Returns where the next goes. */
static struct http_route *add_routes(unsigned reach, const char *folder, char (*paths)[PATH_BYTES],
                                     struct http_route *to)
{
    for (unsigned i = 0; i < OPERATIONS; i++) {
        const struct operation_row *row = &operation_rows[i];
        if ((row->reach & reach) != 0) {
            (void)snprintf(paths[i], PATH_BYTES, "%s%s", folder, row->name);
            *to++ = (struct http_route){.method = "POST",
                                        .path = paths[i],
                                        .role = row->role,
                                        .run = http_run_operation,
                                        .summary = row->summary,
                                        .body_most = HTTP_QUESTION_MAX,
                                        .body_hint = "one question"};
        }
    }
    return to;
}

void http_make_routes(void)
{
    static char paths[OPERATIONS][PATH_BYTES];
    struct http_route *to = add_routes(BY_CLIENTS, "/v1/", paths, http_operation_routes);
    *to = (struct http_route){.method = "POST",
                              .path = "/v1/check/batch",
                              .role = ROLE_CHECK,
                              .run = run_batch,
                              .summary = "asks up to 1000 checks; always 200"};
    (void)add_routes(BY_OPERATORS, "/v1/keys/", paths, http_key_routes);
}
