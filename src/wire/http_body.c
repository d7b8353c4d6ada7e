/*
 * Joins the chunks of a body (RFC 9112, 7.1). This is stricter than llhttp, which also takes a lone
 * LF for the end of the body, and reads extensions with escaped quotes, which llhttp refuses.
 * Before that, finds the end of a body that comes in pieces without reading its bytes.
 */
#include "wire/http_request.h"

/* Reads "1a" or "1a;name=value", without the CR LF at its end. Extensions are ignored. */
static int read_size(struct http_request *r, struct weir_text line, size_t *size)
{
    size_t digits = 0;
    *size = 0;
    while (digits < line.len && digits < 16 && text_hex_digit(line.at[digits]) < 16) {
        *size = *size * 16 + text_hex_digit(line.at[digits++]);
    }
    struct weir_text extension = text_after(line, digits);
    if (digits == 0 || (extension.len > 0 && extension.at[0] != ';')) {
        return http_bad(r, 400, "found a chunk without a size in hexadecimal digits");
    }
    for (size_t i = 0; i < extension.len; i++) {
        unsigned char c = (unsigned char)extension.at[i];
        if ((c < ' ' && c != '\t') || c == 0x7f) {
            return http_bad(r, 400, "found a control character in the extension of a chunk");
        }
    }
    return HTTP_READ;
}

/* Checks that CR LF is at the beginning of the text, as far as it has come. */
static int check_end(struct http_request *r, struct weir_text rest, const char *complaint)
{
    if ((rest.len > 0 && rest.at[0] != '\r') || (rest.len > 1 && rest.at[1] != '\n')) {
        return http_bad(r, 400, complaint);
    }
    return rest.len > 1 ? HTTP_READ : HTTP_MORE;
}

/* Reads the line that announces a chunk; *used is its length with CR LF. */
static int read_line(struct http_request *r, struct weir_text rest, size_t *size, size_t *used)
{
    size_t bound = rest.len < HTTP_CHUNK_LINE_MAX ? rest.len : HTTP_CHUNK_LINE_MAX;
    const char *end = memchr(rest.at, '\n', bound);
    if (end == NULL) {
        return bound < HTTP_CHUNK_LINE_MAX
                   ? HTTP_MORE
                   : http_bad(r, 400,
                              "found a chunk whose size and extensions have over 256 bytes");
    }
    *used = (size_t)(end + 1 - rest.at);
    if (*used < 2 || end[-1] != '\r') {
        return http_bad(r, 400, "found a line that does not end with CR LF");
    }
    return read_size(r, (struct weir_text){rest.at, *used - 2}, size);
}

/* Copies a chunk, which CR LF must follow. */
static int take_chunk(struct http_request *r, struct weir_text rest, size_t size)
{
    if (size > HTTP_CHUNKED_MAX - r->body.len) {
        return http_bad(r, 413, http_chunked_too_long);
    }
    if (rest.len < size) {
        return HTTP_MORE;
    }
    int got = check_end(r, text_after(rest, size), "found a chunk that does not end with CR LF");
    if (got == HTTP_READ) {
        memcpy(r->chunked + r->body.len, rest.at, size);
        r->body.len += size;
    }
    return got;
}

/* ---- small chunks ---- */

#define SMALL_BYTES 20 /* of the longest small chunk: "f", CR LF, 15 bytes, CR LF */

/*
 * Returns the size of the chunk at `at` if it is small: it has 1 to 15 bytes and no extension, and
 * the input does not end soon after it. Returns 0 for all others, good or not. A body can have
 * thousands of small chunks, so both loops below read them without a call.
 */
static inline unsigned small_at(const char *at, const char *end)
{
    unsigned size = end - at >= SMALL_BYTES ? text_hex_digit(at[0]) : 0;
    bool small = size > 0 && size < 16 && at[1] == '\r' && at[2] == '\n' && at[3 + size] == '\r' &&
                 at[4 + size] == '\n';
    return small ? size : 0;
}

/* Joins the small chunks at *at and moves over them. Returns how many there are. */
static unsigned take_small(struct http_request *r, struct weir_text input, size_t *at)
{
    const char *from = input.at + *at;
    const char *end = input.at + input.len;
    char *to = r->chunked + r->body.len;
    unsigned chunks = 0;
    unsigned size;
    while (chunks <= HTTP_CHUNKS_MAX && r->chunked + HTTP_CHUNKED_MAX - to >= 16 &&
           (size = small_at(from, end)) > 0) {
        memcpy(to, from + 3, 16); /* a copy of constant length is the fastest */
        to += size;
        from += size + 5;
        chunks++;
    }
    r->body.len = (size_t)(to - r->chunked);
    *at = (size_t)(from - input.at);
    return chunks;
}

static size_t skip_small(struct weir_text input, size_t at)
{
    unsigned size;
    while ((size = small_at(input.at + at, input.at + input.len)) > 0) {
        at += size + 5;
    }
    return at;
}

/* ---- complete bodies ---- */

int http_read_chunks(struct weir_text input, struct http_request *r, size_t *used)
{
    size_t at = 0;
    size_t size = 1;
    r->body = (struct weir_text){r->chunked, 0};
    for (unsigned chunks = 0; at < input.len; chunks++) {
        size_t line = 0;
        chunks += take_small(r, input, &at);
        if (chunks > HTTP_CHUNKS_MAX) {
            return http_bad(r, 413, "found a body of more than 2048 chunks");
        }
        int got = read_line(r, text_after(input, at), &size, &line);
        if (got != HTTP_READ) {
            return got;
        }
        at += line;
        if (size == 0) {
            *used = at + 2;
            return check_end(r, text_after(input, at),
                             "found trailer fields after the body, expected none");
        }
        got = take_chunk(r, text_after(input, at), size);
        if (got != HTTP_READ) {
            return got;
        }
        at += size + 2;
    }
    return HTTP_MORE;
}

/* ---- bodies that are incomplete ---- */

/* Reads the size that a line announces. Returns SIZE_MAX if it announces none, or too much. */
static size_t size_of(struct weir_text line)
{
    size_t size = 0;
    size_t n = 0;
    for (; n < line.len && text_hex_digit(line.at[n]) < 16 && size <= HTTP_CHUNKED_MAX; n++) {
        size = size * 16 + text_hex_digit(line.at[n]);
    }
    return n > 0 && size <= HTTP_CHUNKED_MAX ? size : SIZE_MAX;
}

int http_skip_chunks(struct weir_text input, size_t *at)
{
    while (*at < input.len) {
        *at = skip_small(input, *at);
        struct weir_text rest = text_after(input, *at);
        size_t bound = rest.len < HTTP_CHUNK_LINE_MAX ? rest.len : HTTP_CHUNK_LINE_MAX;
        const char *end = memchr(rest.at, '\n', bound);
        if (end == NULL) {
            return rest.len < HTTP_CHUNK_LINE_MAX ? HTTP_MORE : HTTP_BAD;
        }
        size_t line = (size_t)(end + 1 - rest.at);
        size_t size = size_of((struct weir_text){rest.at, line});
        if (size == SIZE_MAX) {
            return HTTP_BAD;
        }
        if (size == 0) { /* CR LF follows, or fields */
            return rest.len >= line + 2 ? HTTP_READ : HTTP_MORE;
        }
        *at += line + size + 2;
    }
    return HTTP_MORE;
}
