/*
 * HTTP responses. No byte beyond the input is read (copies of the exact size); a body lies in the
 * input or is its chunks; what is read before the end of the connection is read the same at it; at
 * the end nothing more is wanted.
 */
#include <stdlib.h>

#include "wire/http_response.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

static bool lies_in(struct weir_text part, struct weir_text whole)
{
    return part.len == 0 || (part.at >= whole.at && part.len <= whole.len &&
                             (size_t)(part.at - whole.at) <= whole.len - part.len);
}

static int parse(struct weir_text input, bool ended, struct http_response *r)
{
    int got = http_response_parse(input, ended, r);
    require((got == HTTP_BAD) == (r->complaint != NULL));
    if (got == HTTP_READ) {
        require(r->body.len <= HTTP_RESPONSE_BODY_MAX);
        require(lies_in(r->body, input) || lies_in(r->body, buffer_text(&r->joined)));
    }
    require(got != HTTP_MORE || r->needed == 0 || r->needed > input.len);
    return got;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct http_response open;
    struct http_response ended;
    char *copy = malloc(size > 0 ? size : 1);
    require(copy != NULL);
    if (size > 0) {
        memcpy(copy, data, size);
    }
    http_response_init(&open);
    http_response_init(&ended);
    int first = parse((struct weir_text){copy, size}, false, &open);
    int second = parse((struct weir_text){copy, size}, true, &ended);
    require(second != HTTP_MORE);
    if (first == HTTP_READ) {
        require(second == HTTP_READ && open.status == ended.status &&
                text_equal(open.body, ended.body));
    }
    require(first != HTTP_BAD || second == HTTP_BAD);
    http_response_finish(&open);
    http_response_finish(&ended);
    free(copy);
    return 0;
}
