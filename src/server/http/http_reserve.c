/* Reservations, units taken in advance: /v1/reserve, /v1/settle, /v1/cancel. */
#include <stdio.h>

#include "server/ask/reservations.h"
#include "server/http/http_question.h"

static void fail_with(struct exchange *x, int e, const struct weir_error *error)
{
    if (e == RESERVATION_NONE || e == RESERVATION_FULL) {
        http_reply_problem(x, e == RESERVATION_NONE ? 404 : 503, error->text);
    } else {
        http_reply_failure(x, e, error);
    }
}

static int reserve(struct exchange *x, const json_t *body, struct later *later, struct answer *a,
                   char *id, struct weir_error *error)
{
    struct http_question q;
    error->text[0] = 0;
    int e = http_read_question(body,
                               1u << HTTP_LIMIT | 1u << HTTP_KEY | 1u << HTTP_TIER |
                                   1u << HTTP_COST | 1u << HTTP_TTL,
                               1u << HTTP_LIMIT, &q, error);
    if (e != 0) {
        return e;
    }
    struct weir_rules_key key = http_key_of(&q);
    return reservation_make(x->server->reservations, x->server->rules, &key, q.cost,
                            q.ttl_ms != 0 ? q.ttl_ms : RESERVATION_TTL_MS, x->now_ns, later, a, id,
                            error);
}

static void reply_reserved(struct exchange *x, int e, const struct answer *a, const char *id,
                           const struct weir_error *error)
{
    char more[64] = ",\"reservation\":null";
    if (e != 0) {
        fail_with(x, e, error);
        return;
    }
    if (id[0] != 0) {
        (void)snprintf(more, sizeof more, ",\"reservation\":\"%s\"", id);
    }
    x->more = text_of(more);
    http_reply_answer(x, http_status_of_answer(a), a);
}

static void put_reserved_later(struct deferred *d)
{
    struct http_request request;
    struct exchange x = http_resume(d, &request);
    struct weir_error error = {0};
    reply_reserved(&x, d->error, &d->answer, d->wire.id, &error);
    http_resumed(&x);
}

static void run_reserve(struct exchange *x)
{
    struct later later = {.worker = x->connection->worker};
    char id[RESERVATION_ID];
    struct weir_error error;
    struct answer a;
    json_t *body = http_read_json(x);
    if (body == NULL) {
        return;
    }
    int e = reserve(x, body, &later, &a, id, &error);
    if (e == ANSWER_LATER) {
        http_keep(x, &later, put_reserved_later);
    } else {
        reply_reserved(x, e, &a, id, &error);
    }
    json_decref(body);
}

/* Replies with the state of the key after settling: 200, whether or not more
 * units could be taken. */
static void reply_settled(struct exchange *x, int e, const struct answer *a,
                          const struct weir_error *error)
{
    if (e != 0) {
        fail_with(x, e, error);
    } else {
        http_reply_answer(x, 200, a);
    }
}

static void put_settled_later(struct deferred *d)
{
    struct http_request request;
    struct exchange x = http_resume(d, &request);
    struct weir_error error = {0};
    reply_settled(&x, d->error, &d->answer, &error);
    http_resumed(&x);
}

static void settle(struct exchange *x, unsigned members)
{
    struct later later = {.worker = x->connection->worker};
    struct http_question q;
    struct weir_error error = {0};
    struct answer a;
    json_t *body = http_read_json(x);
    if (body == NULL) {
        return;
    }
    int e = http_read_question(body, members, members, &q, &error);
    e = e != 0 ? e
               : reservation_settle(x->server->reservations, x->server->rules, q.reservation,
                                    q.actual, x->now_ns, &later, &a, &error);
    if (e == ANSWER_LATER) {
        http_keep(x, &later, put_settled_later);
    } else {
        reply_settled(x, e, &a, &error);
    }
    json_decref(body);
}

static void run_settle(struct exchange *x)
{
    settle(x, 1u << HTTP_RESERVATION | 1u << HTTP_ACTUAL);
}

static void run_cancel(struct exchange *x)
{
    settle(x, 1u << HTTP_RESERVATION);
}

const struct http_route http_reserve_routes[] = {
    {"POST", "/v1/reserve", HTTP_AT, ROLE_CHECK, run_reserve, "takes units that are settled later"},
    {"POST", "/v1/settle", HTTP_AT, ROLE_CHECK, run_settle, "replaces them by what was used"},
    {"POST", "/v1/cancel", HTTP_AT, ROLE_CHECK, run_cancel, "gives them back"},
    {NULL, NULL, HTTP_AT, ROLE_NONE, NULL, NULL},
};
