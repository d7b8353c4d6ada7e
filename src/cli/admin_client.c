#include "cli/admin_client.h"

#include <stdlib.h>

#include "cli/buffer_format.h"
#include "cli/grid.h"

#define SECRET_FILE_MAX 65536
#define ADMIN_OUTPUT_MAX (64u << 20)

/* ---- address and secret ---- */

static int take_secret(struct admin_client *c, struct text from, const char *source)
{
    struct text line = {"", 0};
    while (line.len == 0 && from.len > 0) {
        line = text_trim(text_cut(&from, '\n'));
    }
    if (line.len == 0 || line.len > HTTP_CLIENT_SECRET_MAX) {
        return cli_complain(c->command, "%s: found a secret of %zu bytes, expected 1 to %d", source,
                            line.len, HTTP_CLIENT_SECRET_MAX);
    }
    memcpy(c->secret, line.at, line.len);
    c->secret[line.len] = 0;
    c->source = source;
    c->peer.secret = c->secret;
    return CLI_OK;
}

static int read_secret_file(struct admin_client *c, const char *path)
{
    static char text[SECRET_FILE_MAX];
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return cli_complain(c->command, "--secret-file: cannot read %s: %m", path);
    }
    size_t n = fread(text, 1, sizeof text, file);
    int code = ferror(file) != 0
                   ? cli_complain(c->command, "--secret-file: cannot read %s: %m", path)
                   : take_secret(c, (struct text){text, n}, path);
    (void)fclose(file);
    explicit_bzero(text, sizeof text);
    return code;
}

void admin_renew_secret(struct admin_client *c)
{
    if (c->source == NULL || c->source == c->found.path) {
        secret_file_find(c->peer.address, &c->found);
        if (c->found.secret[0] != 0) {
            (void)take_secret(c, text_of(c->found.secret), c->found.path);
        }
    }
}

static int read_secret(struct admin_client *c, const char *file)
{
    static const char *const names[] = {"WEIR_ADMIN_SECRET", "WEIR_ADMIN_SECRETS"};
    if (file != NULL) {
        return read_secret_file(c, file);
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const char *value = getenv(names[i]);
        if (value != NULL && value[0] != 0) {
            return take_secret(c, text_of(value), names[i]);
        }
    }
    admin_renew_secret(c);
    return CLI_OK;
}

int admin_open(struct admin_client *c, const struct cli_command *command, const char *address,
               const char *secret_file)
{
    const char *given = address != NULL ? address : getenv("WEIR_ADMIN");
    *c = (struct admin_client){.command = command};
    c->peer.address = given != NULL && given[0] != 0 ? given : ADMIN_ADDRESS;
    c->peer.timeout_ms = ADMIN_TIMEOUT_MS;
    return read_secret(c, secret_file);
}

/* ---- explaining errors ---- */

void admin_tell_messages(const json_t *messages)
{
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const char *text = json_string_value(json_array_get(messages, i));
        safe_print(stderr, text_of(text != NULL ? text : ""), false);
        (void)fputc('\n', stderr);
    }
}

/*
 * Explains a status: by the detail of a problem, or its title without one. Prints the messages of
 * an answer that refuses rules: they say where the rules are wrong.
 */
static void put_status(const struct admin_client *c, const struct http_response *response,
                       struct buffer *out)
{
    json_t *problem = json_loadb(response->body.at, response->body.len, 0, NULL);
    const char *detail = json_text(problem, "detail");
    const char *text = detail[0] != 0 ? detail : json_text(problem, "title");
    admin_tell_messages(json_object_get(problem, "messages"));
    if (text[0] != 0) {
        buffer_format(out, "%s (%d)", text, response->status);
    } else {
        buffer_format(out, "%s refused the request (%d)", c->peer.address, response->status);
    }
    json_decref(problem);
}

static void put_access(const struct admin_client *c, int status, struct buffer *out)
{
    if (c->source == NULL && c->found.path[0] != 0) {
        buffer_format(out, "; %s %s", c->found.path, c->found.refused);
    } else if (c->source == NULL) {
        buffer_format(out, "; give a secret with --secret-file FILE or WEIR_ADMIN_SECRET");
    } else {
        buffer_format(out, "; %s from %s",
                      status == 401 ? "the secret is"
                                    : "this needs a secret of the role admin; the given one is",
                      c->source);
    }
}

/* ---- calls ---- */

/* Does what admin_call() does, with a text that is not safe for a terminal. */
static int call_server(const struct admin_client *c, const struct http_call *call,
                       struct http_result *result, struct buffer *why)
{
    struct weir_error error = {0};
    int e = http_call(&c->peer, call, result, &error);
    int status = result->response.status;
    if (e != 0) {
        buffer_format(why, "%s%s", error.text,
                      e == WEIR_EIO ? "; is 'weir serve' running, with its admin listener there? "
                                      "Name another address with --admin ADDR:PORT or WEIR_ADMIN"
                                    : "");
        return e == WEIR_EINVAL ? CLI_USAGE : CLI_FAILED;
    }
    if (status >= 200 && status < 300) {
        return CLI_OK;
    }
    put_status(c, &result->response, why);
    if (status == 401 || status == 403) {
        put_access(c, status, why);
    }
    return status == 400 || status == 413 ? CLI_USAGE : CLI_FAILED;
}

int admin_fail(const struct admin_client *c, struct text text, struct buffer *why)
{
    struct buffer safe;
    struct buffer *to = why != NULL ? why : &safe;
    buffer_init(&safe, ADMIN_OUTPUT_MAX);
    safe_put(to, text, false);
    if (why == NULL) {
        (void)cli_complain(c->command, "%.*s", TEXT_ARGS(buffer_text(&safe)));
    }
    buffer_finish(&safe);
    return CLI_FAILED;
}

int admin_call(const struct admin_client *c, const struct http_call *call,
               struct http_result *result, struct buffer *why)
{
    struct buffer text;
    buffer_init(&text, ADMIN_OUTPUT_MAX);
    int code = call_server(c, call, result, &text);
    if (code != CLI_OK) {
        (void)admin_fail(c, buffer_text(&text), why);
    }
    buffer_finish(&text);
    return code;
}

int admin_call_json(const struct admin_client *c, const struct http_call *call, json_t **out,
                    int *status, struct buffer *why)
{
    struct http_result result;
    struct buffer text;
    buffer_init(&text, ADMIN_OUTPUT_MAX);
    *out = NULL;
    int code = admin_call(c, call, &result, why);
    struct text body = result.response.body;
    if (status != NULL) {
        *status = result.response.status;
    }
    if (code == CLI_OK && body.len > 0) {
        *out = json_loadb(body.at, body.len, JSON_ALLOW_NUL, NULL);
        if (*out == NULL) {
            buffer_format(&text, "%s: found an answer to %s %s that is not JSON", c->peer.address,
                          call->method, call->target);
            code = admin_fail(c, buffer_text(&text), why);
        }
    }
    buffer_finish(&text);
    http_result_finish(&result);
    return code;
}

/* ---- members of an answer ---- */

const char *json_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

double json_number(const json_t *object, const char *name)
{
    return json_number_value(json_object_get(object, name));
}
