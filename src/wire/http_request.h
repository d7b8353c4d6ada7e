/*
 * HTTP/1.1 requests as bytes, without I/O, on llhttp.
 *
 * Nothing is remembered between calls, as with RESP: the caller keeps the bytes of a request that
 * is not all there and asks again. request->needed says from how many bytes on that is of use.
 *
 * What two parsers could read in two ways is not read at all, since the other one may be a proxy in
 * front of us: both Content-Length and Transfer-Encoding, or one of them twice; a line that ends
 * without CR LF, or is folded; CR, LF or NUL inside one; codings other than chunked; extensions and
 * trailers of chunks; no Host, or two. Behind such a request nobody knows where the next begins, so
 * the connection must end.
 */
#ifndef WEIR_WIRE_HTTP_REQUEST_H
#define WEIR_WIRE_HTTP_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "common/text.h"

#define HTTP_HEAD_MAX 16384  /* bytes of the request line and the fields */
#define HTTP_FIELDS_MAX 64   /* of them */
#define HTTP_BODY_MAX 262144 /* bytes of a body: a thousand questions */
#define HTTP_CHUNKED_MAX                                                                           \
    65536 /* of a chunked one, also with its framing: it is read several times */
#define HTTP_REQUEST_MAX (HTTP_HEAD_MAX + HTTP_BODY_MAX)

enum { HTTP_READ = 1, HTTP_MORE = 0, HTTP_BAD = -1 };

struct http_field {
    struct text name; /* as it was written */
    struct text value;
};

struct http_request {
    struct text method;
    struct text target; /* "/v1/check?a=b", as it was written */
    struct text path;   /* of it: before the '?' */
    struct text query;  /* behind it */
    struct http_field fields[HTTP_FIELDS_MAX];
    unsigned fields_count;
    struct text body;
    bool keep_alive;
    bool old;            /* HTTP/1.0 */
    bool wants_continue; /* HTTP_MORE: the head is good, and the sender waits for a 100 */
    size_t used;         /* bytes of the input that the request took */
    size_t needed;       /* HTTP_MORE: fewer bytes than these are not all of it; 0: not known yet */
    int status;          /* HTTP_BAD: 400, 413 or 431 */
    const char *complaint;          /* HTTP_BAD */
    char chunked[HTTP_CHUNKED_MAX]; /* the body, put together */
};

/*
 * Reads one request from the start of the input; an empty line before it is passed over.
 *
 * HTTP_READ: *out is set and points into the input (a chunked body: into *out).
 * HTTP_MORE: the beginning of one; never said of HTTP_REQUEST_MAX bytes. HTTP_BAD: answer with
 * out->status and close.
 */
int http_parse(struct text input, struct http_request *out);

/* The first field of that name (in lower case), or NULL. */
const struct http_field *http_field(const struct http_request *request, const char *lower);

/* In upper or lower case; the name itself is given in lower case. */
bool http_same_name(struct text name, const char *lower);

/*
 * Takes the next "name=value" off the front of a query, decoded (%XX, and '+' for a space) into
 * `room`, which must hold query->len bytes. False at the end.
 */
struct http_pair {
    struct text name;
    struct text value;
};
bool http_next_pair(struct text *query, char *room, struct http_pair *pair);

#endif
