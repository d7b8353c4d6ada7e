#include "cli/http_client.h"

#include <jansson.h>

#include "base/error.h"
#include "cli/blocking_exchange.h"
#include "cli/buffer_format.h"
#include "cli/connect_address.h"
#include "server/access/access.h"

/* ---- the request ---- */

/*
 * Checks that the secret has printable ASCII only: a line end in it would begin another header
 * field.
 */
static int check_secret(const char *secret, struct weir_error *error)
{
    size_t n = strlen(secret);
    for (size_t i = 0; i < n; i++) {
        if (secret[i] <= ' ' || secret[i] > '~') {
            return fail(
                error, WEIR_EINVAL,
                "found a byte in the secret, at place %zu, that HTTP cannot carry; expected "
                "visible ASCII characters without blanks",
                i + 1);
        }
    }
    return n > 0 && n <= ACCESS_SECRET_MAX
               ? 0
               : fail(error, WEIR_EINVAL, "found a secret of %zu bytes, expected 1 to %d", n,
                      ACCESS_SECRET_MAX);
}

static void put_request(struct buffer *b, const struct http_peer *peer,
                        const struct http_call *call)
{
    buffer_format(b, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", call->method,
                  call->target, is_unix_address(peer->address) ? "localhost" : peer->address);
    if (peer->secret != NULL) {
        buffer_format(b, "Authorization: Bearer %s\r\n", peer->secret);
    }
    if (call->type != NULL) {
        buffer_format(b, "Content-Type: %s\r\nContent-Length: %zu\r\n", call->type, call->body.len);
    }
    buffer_put(b, TEXT("\r\n"));
    buffer_put(b, call->type != NULL ? call->body : TEXT(""));
}

/* ---- the answer ---- */

static int read_response(void *arg, struct weir_text input, bool ended, const char **complaint)
{
    struct http_response *response = arg;
    if (!ended && input.len < response->needed) {
        return EXCHANGE_MORE;
    }
    int got = http_response_parse(input, ended, response);
    *complaint = response->complaint;
    return got == HTTP_READ ? EXCHANGE_DONE : got == HTTP_MORE ? EXCHANGE_MORE : EXCHANGE_BAD;
}

void http_result_finish(struct http_result *r)
{
    http_response_finish(&r->response);
    buffer_finish(&r->input);
}

int http_call(const struct http_peer *peer, const struct http_call *call,
              struct http_result *result, struct weir_error *error)
{
    struct buffer request;
    buffer_init(&request, HTTP_RESPONSE_MAX);
    http_response_init(&result->response);
    buffer_init(&result->input, HTTP_RESPONSE_MAX + EXCHANGE_READ_BYTES);
    int e = peer->secret != NULL ? check_secret(peer->secret, error) : 0;
    if (e == 0) {
        put_request(&request, peer, call);
        e = request.full ? fail(error, WEIR_ENOMEM, "out of memory for the request") : 0;
    }
    if (e == 0) {
        struct blocking_exchange x = {.address = peer->address,
                                      .tls = peer->tls,
                                      .timeout_ms = peer->timeout_ms,
                                      .request = buffer_text(&request),
                                      .read = read_response,
                                      .arg = &result->response};
        e = blocking_exchange(&x, &result->input, error);
    }
    buffer_finish(&request);
    return e;
}

void http_put_status(struct buffer *out, const struct http_peer *peer, int status,
                     const json_t *problem)
{
    const char *detail = json_string_value(json_object_get(problem, "detail"));
    const char *text =
        detail != NULL ? detail : json_string_value(json_object_get(problem, "title"));
    if (text != NULL) {
        buffer_format(out, "%s (%d)", text, status);
    } else {
        buffer_format(out, "%s refused the request (%d)", peer->address, status);
    }
}

void http_put_encoded(struct buffer *target, struct weir_text text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (text_is_plain(c, "-._~")) {
            buffer_put_char(target, c);
        } else {
            buffer_format(target, "%%%02X", (unsigned)(unsigned char)c);
        }
    }
}
