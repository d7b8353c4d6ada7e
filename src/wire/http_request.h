/*
 * Reads HTTP/1.1 requests from bytes, without I/O, with llhttp.
 *
 * Nothing is remembered between calls, as with RESP: the caller keeps the bytes of an incomplete
 * request and calls again. request->needed is the number of bytes from which on that is useful; for
 * a chunked body, http_skip_chunks() says when it is.
 *
 * Input that two parsers could read in different ways is refused, because the other parser may be a
 * proxy in front of us: both Content-Length and Transfer-Encoding, or one of them twice; a line
 * that ends without CR LF, or is folded; CR, LF or NUL inside one; codings other than chunked;
 * trailers of chunks; no Host, or two. After such a request it is unknown where the next one
 * begins, so the connection must be closed. Extensions of chunks are ignored.
 */
#ifndef WEIR_WIRE_HTTP_REQUEST_H
#define WEIR_WIRE_HTTP_REQUEST_H

#include <stdbool.h>

#include "common/text.h"

#define HTTP_HEAD_MAX 16384    /* bytes up to the body: the request line, the fields, empty lines */
#define HTTP_FIELDS_MAX 64     /* number of fields */
#define HTTP_BODY_MAX 262144   /* bytes of a body: a thousand questions */
#define HTTP_CHUNKED_MAX 65536 /* bytes of a chunked body with its framing, which is copied */
#define HTTP_CHUNKS_MAX 2048   /* number of chunks, the last one not counted */
#define HTTP_CHUNK_LINE_MAX 256 /* bytes of a chunk's size and extensions, with the line end */
#define HTTP_REQUEST_MAX (HTTP_HEAD_MAX + HTTP_BODY_MAX)

enum { HTTP_READ = 1, HTTP_MORE = 0, HTTP_BAD = -1 };

struct http_field {
    struct weir_text name; /* as written */
    struct weir_text value;
};

struct http_request {
    struct weir_text method;
    struct weir_text target;    /* "/v1/check?a=b", without the "http://host" that may precede it */
    struct weir_text path;      /* target up to the '?' */
    struct weir_text query;     /* target after the '?' */
    struct weir_text host;      /* of the target, otherwise the Host field; empty: none */
    struct weir_text host_name; /* host without brackets and port */
    struct http_field fields[HTTP_FIELDS_MAX];
    unsigned fields_count;
    struct weir_text body;
    bool keep_alive;
    bool old;            /* HTTP/1.0 */
    bool wants_continue; /* HTTP_MORE: the head is good, and the client waits for a 100 */
    size_t used;         /* bytes of the input that the request took */
    size_t needed;       /* HTTP_MORE: the request has at least this many bytes; 0: not known yet */
    size_t body_at;      /* where the body begins; HTTP_MORE: 0 if the head is incomplete */
    int status;          /* HTTP_BAD: 400, 413, 431 or 501 */
    const char *complaint;          /* HTTP_BAD */
    char chunked[HTTP_CHUNKED_MAX]; /* the body, joined from its chunks */
};

/*
 * Reads one request from the start of the input. Empty lines before it are part of its head.
 *
 * HTTP_READ: *out is set and points into the input (a chunked body: into *out). HTTP_MORE: the
 * input is the beginning of a request; never returned for HTTP_REQUEST_MAX bytes. If out->body_at
 * is not 0, all of *out but the body is set. HTTP_BAD: the caller should answer with out->status
 * and close the connection.
 */
int http_parse(struct weir_text input, struct http_request *out);

/* Notes why a request is refused. Returns HTTP_BAD. */
static inline int http_bad(struct http_request *request, int status, const char *complaint)
{
    request->status = status;
    request->complaint = complaint;
    return HTTP_BAD;
}

/*
 * Joins the chunks of a body that begins the input into request->body; for http_parse(). *used is
 * the length of the body. Returns as http_parse() does.
 */
int http_read_chunks(struct weir_text input, struct http_request *request,
                     size_t *used); /* http_body.c */

extern const char http_chunked_too_long[];

/* What methods and names of fields may have besides letters and digits. */
#define HTTP_TOKEN "!#$%&'*+-.^_`|~"

/*
 * Reads "shop.example", "127.0.0.1:80" or "[::1]:80". *name is without brackets and port. Returns
 * false if it is no host.
 */
bool http_read_host(struct weir_text host, struct weir_text *name); /* http_target.c */

/*
 * Sets host_name, target, path and query of a request whose fields are known and whose host is that
 * of the Host field. A target with a host, such as "http://shop.example/a", replaces both (RFC
 * 9112, 3.2.2). Returns false if the host is none.
 */
bool http_read_target(struct http_request *request); /* http_target.c */

/*
 * Skips the chunks at *at, the beginning of a chunked body or where an earlier call has stopped, by
 * their announced sizes. Returns HTTP_MORE if the last chunk has not come, so that http_parse()
 * would find no end either. HTTP_READ or HTTP_BAD: http_parse() must decide.
 */
int http_skip_chunks(struct weir_text input, size_t *at); /* http_body.c */

/* Returns the value of the first field of that name (given in lower case); `at` is NULL if there
 * is none. */
struct weir_text http_value(const struct http_request *request, const char *lower);

/* Compares in upper or lower case; the name itself is given in lower case. */
bool http_same_name(struct weir_text name, const char *lower);

/*
 * Takes the next "name=value" off the front of a query, decoded (%XX, and '+' for a space) into
 * `room`, which must hold query->len bytes. False at the end.
 */
struct http_pair {
    struct weir_text name;
    struct weir_text value;
};
bool http_next_pair(struct weir_text *query, char *room, struct http_pair *pair);

#endif
