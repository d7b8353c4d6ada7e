/*
 * Reads HTTP/1.1 responses from bytes, without I/O, with llhttp, for our own clients. As with
 * requests nothing is remembered between calls: the caller keeps the bytes and calls again.
 * response->needed is the number of bytes from which on that is useful.
 */
#ifndef WEIR_WIRE_HTTP_RESPONSE_H
#define WEIR_WIRE_HTTP_RESPONSE_H

#include <stdbool.h>

#include "common/buffer.h"
#include "wire/http_request.h"

#define HTTP_RESPONSE_HEAD_MAX 65536      /* bytes of the status line and the fields */
#define HTTP_RESPONSE_BODY_MAX (8u << 20) /* bytes of a body */
/*
 * Bytes of both, with the framing of chunks. Framing that is larger than its data is not accepted.
 */
#define HTTP_RESPONSE_MAX (HTTP_RESPONSE_HEAD_MAX + 2 * HTTP_RESPONSE_BODY_MAX)

struct http_response {
    int status;
    struct weir_text body;
    size_t needed;         /* HTTP_MORE: the response has at least this many bytes; 0: not known */
    const char *complaint; /* HTTP_BAD */
    struct buffer joined;  /* the body, if it came in chunks */
};

void http_response_init(struct http_response *r);
void http_response_finish(struct http_response *r);

/*
 * Reads one response from the start of the input; `ended` means that no more bytes will come.
 * HTTP_READ: *out points into the input (a chunked body: into *out). HTTP_MORE: the response is
 * incomplete; not returned if `ended`, or for HTTP_RESPONSE_MAX bytes. HTTP_BAD: out->complaint
 * says why.
 */
int http_response_parse(struct weir_text input, bool ended, struct http_response *out);

#endif
