/* What the operators' routes have in common: protection from forms, replies, the audit log. */
#include "server/admin/admin.h"

#include <jansson.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/error.h"

/* ---- forms of foreign web pages ---- */

static bool changes(const struct exchange *x)
{
    return !text_is(x->request->method, "GET") && !text_is(x->request->method, "HEAD");
}

/* Returns whether the body has a type that a form can send without a CORS preflight. */
static bool is_form(const struct exchange *x)
{
    static const char *const types[] = {"APPLICATION/X-WWW-FORM-URLENCODED", "MULTIPART/FORM-DATA",
                                        "TEXT/PLAIN"};
    struct weir_text type = text_trim(text_before(http_value(x->request, "content-type"), ';'));
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (text_is_word(type, types[i])) {
            return true;
        }
    }
    return false;
}

bool admin_admits(struct exchange *x)
{
    return !changes(x) || !is_form(x) ||
           http_refuse(
               x, 415,
               "found a Content-Type that an HTML form can send, expected application/json or "
               "application/yaml");
}

/* ---- replies ---- */

void admin_reply_json(struct exchange *x, int status, json_t *json)
{
    size_t most = SERVER_OUTPUT_BYTES / 2;
    char *text = json != NULL ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(15)) : NULL;
    json_decref(json);
    if (text == NULL) {
        http_reply_problem(x, 500, "out of memory");
    } else if (strlen(text) > most) {
        http_reply_problem(x, 500, "the list is too long for one reply: ask for one limit");
    } else {
        buffer_put(&x->body, text_of(text));
        http_reply(x, status, "application/json", NULL);
    }
    free(text);
}

void admin_put_messages(struct buffer *body, const json_t *messages)
{
    char *text = messages != NULL ? json_dumps(messages, JSON_COMPACT) : NULL;
    if (text != NULL) {
        body->end--;
        buffer_put(body, TEXT(",\"messages\":"));
        buffer_put(body, text_of(text));
        buffer_put_char(body, '}');
    }
    free(text);
}

void admin_reply_refused(struct exchange *x, int e, const struct weir_error *error,
                         json_t *messages)
{
    if (e != WEIR_ERULES) {
        http_reply_failure(x, e, error);
        return;
    }
    http_put_problem(&x->body, 422, error->text, 0);
    admin_put_messages(&x->body, messages);
    http_reply(x, 422, "application/problem+json", NULL);
}

const char *admin_member(struct exchange *x, const json_t *body, const char *name)
{
    const char *value = json_string_value(json_object_get(body, name));
    if (value == NULL) {
        struct weir_error error;
        (void)fail(&error, WEIR_EINVAL,
                   "found another body, expected a JSON object with the string \"%s\"", name);
        http_reply_failure(x, WEIR_EINVAL, &error);
    }
    return value;
}

/* ---- the audit log ---- */

void admin_audit(const struct exchange *x, const char *what, struct log_field more)
{
    char address[ADDRESS_MAX];
    LOG(LEVEL_AUDIT, what, LOG_STRING("address", peer_print(&x->connection->peer, address)),
        LOG_STRING("role", role_names[x->role]), more);
}
