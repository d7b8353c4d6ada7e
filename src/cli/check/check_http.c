/* The question as JSON over HTTP. */
#include "cli/answer_json.h"
#include "cli/check/check.h"

#include <stdlib.h>

#include "cli/http_client.h"

/* Returns the body; NULL if some of it is not UTF-8. The caller frees it. */
static char *make_body(const struct check *c)
{
    json_t *body = c->by_attributes ? attributes_question(c->words, c->count)
                                    : key_question(c->words, c->count, c->tier);
    if (c->cost > 0) {
        (void)json_object_set_new(body, "cost", json_integer((json_int_t)c->cost));
    }
    if (c->max_wait_ns > 0) {
        (void)json_object_set_new(body, "max_wait_ms",
                                  json_integer((json_int_t)check_max_wait_ms(c)));
    }
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    return text;
}

/* Removes what a problem has besides the answer, so that both protocols give the same members. */
static void drop_problem(json_t *said)
{
    static const char *const names[] = {"type", "title", "status", "violated-policies"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)json_object_del(said, names[i]);
    }
}

static int read_answer(const struct check *c, const struct http_peer *peer,
                       const struct http_response *response, json_t **said, struct buffer *why)
{
    int status = response->status;
    *said = json_loadb(response->body.at, response->body.len, JSON_ALLOW_NUL, NULL);
    if (status == 200 || json_object_get(*said, "verdict") != NULL) {
        drop_problem(*said);
        return CLI_OK;
    }
    http_put_status(why, peer, status, *said);
    if (status == 401 || (status == 403 && c->secret.source != NULL)) {
        check_put_access(c, why);
    }
    return status == 400 || status == 413 ? CLI_USAGE : CLI_FAILED;
}

int check_over_http(const struct check *c, json_t **said, struct buffer *why)
{
    struct http_peer peer = {c->address, c->secret.source != NULL ? c->secret.secret : NULL,
                             CHECK_TIMEOUT_MS, &c->tls};
    struct http_result result;
    struct weir_error error = {0};
    char *body = make_body(c);
    if (body == NULL) {
        buffer_put(why, TEXT("found an argument that is not UTF-8, expected text; --resp takes any "
                             "bytes"));
        return CLI_USAGE;
    }
    struct http_call call = {"POST", c->peek ? "/v1/peek" : "/v1/check", "application/json",
                             text_of(body)};
    int e = http_call(&peer, &call, &result, &error);
    int code = e == 0 ? read_answer(c, &peer, &result.response, said, why)
                      : check_unanswered(c, e, error.text, why);
    http_result_finish(&result);
    free(body);
    return code;
}
