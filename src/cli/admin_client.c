#include "cli/admin_client.h"

#include <stdlib.h>
#include <string.h>

#include "cli/buffer_format.h"
#include "cli/grid.h"

#define ADMIN_OUTPUT_MAX (64u << 20)

/* ---- address and secret ---- */

/* Takes a secret that was read, or returns the exit code of the reader. */
static int take_secret(struct admin_client *c, int code)
{
    if (code == CLI_OK && c->given.source != NULL) {
        c->peer.secret = c->given.secret;
    }
    return code;
}

void admin_renew_secret(struct admin_client *c)
{
    if (c->given.source == NULL || c->given.source == c->found.path) {
        secret_file_find(c->peer.address, &c->found);
        if (c->found.secret[0] != 0) {
            (void)take_secret(c, given_secret_take(&c->given, c->command, text_of(c->found.secret),
                                                   c->found.path));
        }
    }
}

static int read_secret(struct admin_client *c, const char *file)
{
    static const char *const names[] = {"WEIR_ADMIN_SECRET", "WEIR_ADMIN_SECRETS", NULL};
    int code = take_secret(c, given_secret_read(&c->given, c->command, file, names));
    if (code == CLI_OK && c->given.source == NULL) {
        admin_renew_secret(c);
    }
    return code;
}

int admin_open(struct admin_client *c, const struct cli_command *command,
               const struct admin_options *options)
{
    const char *given = options->admin != NULL ? options->admin : getenv("WEIR_ADMIN");
    *c = (struct admin_client){.command = command, .tls = options->tls};
    c->peer =
        (struct http_peer){.address = c->address, .timeout_ms = ADMIN_TIMEOUT_MS, .tls = &c->tls};
    int code = client_tls_open(&c->tls, command,
                               given != NULL && given[0] != 0 ? given : ADMIN_ADDRESS, c->address);
    return code == CLI_OK ? read_secret(c, options->secret_file) : code;
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

/* Returns the length of `detail` without a message at its end, which may be cut short there. */
static size_t length_without(const char *detail, const char *message)
{
    size_t length = strlen(detail);
    for (size_t i = 0; i < length; i++) {
        bool begins = i == 0 || (i > 1 && memcmp(detail + i - 2, ": ", 2) == 0);
        if (begins && strncmp(message, detail + i, length - i) == 0) {
            return i == 0 ? 0 : i - 2;
        }
    }
    return length;
}

/* Cuts the message off the detail of a problem that repeats it: the reader sees it once. */
static void cut_detail(json_t *problem, const json_t *messages)
{
    const char *detail = json_text(problem, "detail");
    size_t length = strlen(detail);
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const char *message = json_string_value(json_array_get(messages, i));
        size_t without = message != NULL ? length_without(detail, message) : length;
        length = without < length ? without : length;
    }
    if (length < strlen(detail)) {
        json_t *rest =
            length > 0 ? json_stringn(detail, length) : json_string("the rules stay as they were");
        (void)json_object_set_new(problem, "detail", rest);
    }
}

/*
 * Explains a status. Prints the messages of an answer that refuses rules: they say where the rules
 * are wrong.
 */
static void put_status(const struct admin_client *c, const struct http_response *response,
                       struct buffer *out)
{
    json_t *problem = json_loadb(response->body.at, response->body.len, 0, NULL);
    const json_t *messages = json_object_get(problem, "messages");
    admin_tell_messages(messages);
    cut_detail(problem, messages);
    http_put_status(out, &c->peer, response->status, problem);
    json_decref(problem);
}

static void put_access(const struct admin_client *c, int status, struct buffer *out)
{
    if (c->given.source == NULL && c->found.path[0] != 0) {
        buffer_format(out, "; %s %s", c->found.path, c->found.refused);
    } else if (c->given.source == NULL) {
        buffer_format(out,
                      "; give a secret with --secret-file FILE or WEIR_ADMIN_SECRET, or name the "
                      "server's state folder in WEIR_STATE");
    } else {
        buffer_format(out, "; %s from %s",
                      status == 401 ? "the secret is"
                                    : "this needs a secret of the role admin; the given one is",
                      c->given.source);
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

int admin_fail(const struct admin_client *c, struct weir_text text, struct buffer *why)
{
    if (why != NULL) {
        safe_put(why, text, false);
    } else {
        cli_complain_of(c->command, text);
    }
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
    struct weir_text body = result.response.body;
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

const char *admin_link_address(const char *address, char buffer[CLIENT_ADDRESS_MAX])
{
    static const char *const every[][2] = {{"0.0.0.0:", "127.0.0.1:"}, {"[::]:", "[::1]:"}};
    for (size_t i = 0; i < sizeof every / sizeof every[0]; i++) {
        size_t n = strlen(every[i][0]);
        if (strncmp(address, every[i][0], n) == 0) {
            (void)snprintf(buffer, CLIENT_ADDRESS_MAX, "%s%s", every[i][1], address + n);
            return buffer;
        }
    }
    return address;
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

/* ---- keys that are denied most ---- */

const char *const admin_minutes[] = {"1", "5", "15", NULL};

/* The default is not named: servers before 0.3 know no other time. */
void admin_put_top(char *target, size_t size, int minutes, uint64_t n)
{
    char of[32] = "";
    char so_many[32] = "";
    if (minutes != ADMIN_MINUTES_DEFAULT) {
        (void)snprintf(of, sizeof of, "?minutes=%s", admin_minutes[minutes]);
    }
    if (n > 0) {
        (void)snprintf(so_many, sizeof so_many, "%sn=%llu", of[0] != 0 ? "&" : "?",
                       (unsigned long long)n);
    }
    (void)snprintf(target, size, "/v1/top%s%s", of, so_many);
}
