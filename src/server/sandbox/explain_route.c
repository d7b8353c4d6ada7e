/* POST /v1/explain: which limits a request meets, and why it does not meet the others. */
#include "server/http/http_json.h"
#include "server/operations/awaited.h"
#include "server/sandbox/explain_json.h"

/* The members that the body may have, and must have. */
static const struct operation_row question = {
    .members = ASK_BIT(ASK_ATTRIBUTES) | ASK_BIT(ASK_COST), .needed = ASK_BIT(ASK_ATTRIBUTES)};

static void reply(struct exchange *x, int e, const struct answer *a, struct weir_text rest,
                  const struct weir_error *error)
{
    if (e != 0) {
        http_reply_failure(x, e, error);
        return;
    }
    explain_put(&x->body, a, rest);
    http_reply(x, 200, "application/json", NULL);
}

static void put_later(struct pending *p)
{
    struct http_request request;
    struct exchange x = http_resume(p, &request);
    struct weir_error error = {0};
    reply(&x, p->error, &awaited_of(p)->answer, buffer_text(&p->body), &error);
    buffer_finish(&x.body);
}

/* Peeks at the whole request, and replies; later, if a fleet's store must be asked. */
static void peek(struct exchange *x, const struct weir_rules_question *q, struct buffer *rest)
{
    struct asker asker = http_asker(x);
    struct weir_error error = {0};
    struct answer a;
    int e = answer_ask(&asker, q, &a, &error);
    if (e == ANSWER_LATER) {
        buffer_put(&asker.pending->body, buffer_text(rest));
        http_keep(x, asker.pending, put_later);
    } else {
        reply(x, e, &a, buffer_text(rest), &error);
    }
}

static void explain(struct exchange *x, const struct ask *ask)
{
    struct weir_rules_question q = {.attributes = ask->attributes,
                                    .attributes_count = ask->attributes_count,
                                    .cost = ask->number[ASK_COST],
                                    .mode = WEIR_PEEK};
    struct weir_error error = {0};
    struct buffer rest;
    buffer_init(&rest, SERVER_OUTPUT_BYTES / 2);
    int e = explain_put_rest(&rest, x->server->rules, &q, x->now_ns, &error);
    if (e != 0) {
        http_reply_failure(x, e, &error);
    } else if (rest.full) {
        http_reply_problem(x, 500, "out of memory");
    } else {
        peek(x, &q, &rest);
    }
    buffer_finish(&rest);
}

static void run_explain(struct exchange *x)
{
    struct arena arena = ARENA_INIT;
    struct weir_error error;
    struct weir_text body;
    struct ask ask;
    if (!http_check_json(x, HTTP_JSON_VALUES, &body)) {
        return;
    }
    int e = http_read_ask(body, &question, &ask, &arena, &error);
    if (e != 0) {
        http_reply_failure(x, e, &error);
    } else {
        explain(x, &ask);
    }
    arena_finish(&arena);
}

const struct http_route explain_routes[] = {
    {"POST", "/v1/explain", HTTP_AT, ROLE_ADMIN, run_explain,
     .summary = "which limits a request meets, and why the others do not apply"},
    {.path = NULL},
};
