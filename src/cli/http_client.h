/*
 * A small HTTP/1.1 client that blocks, for commands that talk to a server: one
 * connection for each request, a deadline for all of it, bounds on what comes back.
 */
#ifndef WEIR_CLI_HTTP_CLIENT_H
#define WEIR_CLI_HTTP_CLIENT_H

#include <stdint.h>

#include <weir.h>

#include "common/buffer.h"
#include "wire/http_response.h"

#define HTTP_CLIENT_SECRET_MAX 1024

struct http_peer {
    const char *address; /* "127.0.0.1:8082", "[::1]:8082", "localhost:8082", "unix:PATH" */
    const char *secret;  /* sent as a bearer token; NULL: none */
    uint64_t timeout_ms; /* from the call to the whole answer */
};

struct http_call {
    const char *method;
    const char *target; /* "/v1/limits", encoded */
    const char *type;   /* of the body; NULL: there is none */
    struct text body;
};

struct http_result {
    struct http_response response;
    struct buffer input; /* its bytes */
};

void http_result_init(struct http_result *r);
void http_result_finish(struct http_result *r);

/*
 * 0 and the response, whatever its status; WEIR_EINVAL: an address or a secret that cannot be;
 * WEIR_EIO: no connection, no answer in time, or none that is HTTP.
 */
int http_call(const struct http_peer *peer, const struct http_call *call,
              struct http_result *result, struct weir_error *error);

/* Appends a text to a target, encoded: letters, digits and "-._~" stand for themselves. */
void http_put_encoded(struct buffer *target, struct text text);

#endif
