/* Finds the end of a chunked body without reading its bytes. */
#include "wire/http_request.h"

#define CHUNK_LINE_MAX 256 /* bytes of a line that announces a chunk, with its extensions */

/* Reads the size that a line announces. Returns SIZE_MAX if it announces none, or too much. */
static size_t size_of(struct text line)
{
    size_t size = 0;
    size_t n = 0;
    for (; n < line.len && text_hex_digit(line.at[n]) < 16 && size <= HTTP_CHUNKED_MAX; n++) {
        size = size * 16 + text_hex_digit(line.at[n]);
    }
    return n > 0 && size <= HTTP_CHUNKED_MAX ? size : SIZE_MAX;
}

int http_skip_chunks(struct text input, size_t *at)
{
    while (*at < input.len) {
        struct text rest = text_after(input, *at);
        size_t bound = rest.len < CHUNK_LINE_MAX ? rest.len : CHUNK_LINE_MAX;
        const char *end = memchr(rest.at, '\n', bound);
        if (end == NULL) {
            return rest.len < CHUNK_LINE_MAX ? HTTP_MORE : HTTP_BAD;
        }
        size_t line = (size_t)(end + 1 - rest.at);
        size_t size = size_of((struct text){rest.at, line});
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
