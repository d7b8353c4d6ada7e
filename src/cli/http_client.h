/*
 * A small blocking HTTP/1.1 client for commands that talk to a server. It opens one connection
 * for each request, has one deadline for the whole call, and bounds the size of the answer.
 */
#ifndef WEIR_CLI_HTTP_CLIENT_H
#define WEIR_CLI_HTTP_CLIENT_H

#include <jansson.h>
#include <stdint.h>

#include <weir.h>

#include "common/buffer.h"
#include "wire/http_response.h"

struct http_peer {
    const char *address; /* "127.0.0.1:8082", "[::1]:8082", "localhost:8082", "unix:PATH" */
    const char *secret;  /* sent as a bearer token; NULL: none */
    uint64_t timeout_ms; /* for the whole call, until the answer is complete */
    const struct client_tls *tls; /* NULL: plain text */
};

struct http_call {
    const char *method;
    const char *target; /* "/v1/limits", encoded */
    const char *type;   /* content type of the body; NULL: no body */
    struct weir_text body;
};

struct http_result {
    struct http_response response;
    struct buffer input; /* bytes that the response points into */
};

void http_result_finish(struct http_result *r);

/*
 * Sends a request and reads the response into *result, which the caller finishes, also after an
 * error. Returns 0, whatever the response's status;
 * WEIR_EINVAL: an address or a secret that is not valid; WEIR_EIO: no connection, no complete
 * answer in time, or an answer that is not HTTP.
 */
int http_call(const struct http_peer *peer, const struct http_call *call,
              struct http_result *result, struct weir_error *error);

/*
 * Explains a status to a person: by the detail of the problem (RFC 9457) that came with it,
 * otherwise by its title. `problem` may be NULL.
 */
void http_put_status(struct buffer *out, const struct http_peer *peer, int status,
                     const json_t *problem);

/* Appends a percent-encoded text to a target. Letters, digits and "-._~" are not encoded. */
void http_put_encoded(struct buffer *target, struct weir_text text);

#endif
