#include <stdlib.h>

#include "base/error.h"
#include "load/load_grpc.h"
#include "cli/buffer_format.h"

#define REQUEST_MAX 65536
#define PLACE "{key}"

static const char key_zero[LOAD_KEY_BYTES + 1] = "key:000000000000";

/* Returns the length of the text once its places are filled with keys. */
static size_t filled_len(const char *text)
{
    size_t len = strlen(text);
    for (const char *at = text; (at = strstr(at, PLACE)) != NULL; at += sizeof PLACE - 1) {
        len += LOAD_KEY_BYTES - (sizeof PLACE - 1);
    }
    return len;
}

bool load_request_put_key(struct load_request *request, struct buffer *bytes)
{
    if (request->keys == LOAD_KEY_PLACES) {
        return false;
    }
    request->key_at[request->keys++] = buffer_len(bytes);
    buffer_put(bytes, text_of(key_zero));
    return true;
}

/*
 * Appends the text with keys in its places, and notes where they are. Returns false if there are
 * too many.
 */
static bool put_filled(struct buffer *b, struct load_request *r, const char *text)
{
    const char *place;
    while ((place = strstr(text, PLACE)) != NULL) {
        buffer_put(b, (struct weir_text){text, (size_t)(place - text)});
        if (!load_request_put_key(r, b)) {
            return false;
        }
        text = place + sizeof PLACE - 1;
    }
    buffer_put(b, text_of(text));
    return true;
}

static bool put_resp(struct buffer *b, struct load_request *r, const char *const *words,
                     unsigned count)
{
    bool good = true;
    buffer_format(b, "*%u\r\n", count);
    for (unsigned i = 0; i < count; i++) {
        buffer_format(b, "$%zu\r\n", filled_len(words[i]));
        good = good && put_filled(b, r, words[i]);
        buffer_put(b, TEXT("\r\n"));
    }
    return good;
}

static bool put_http(struct buffer *b, struct load_request *r, const char *const *words,
                     unsigned count, const char *body)
{
    buffer_format(b, "%s ", words[0]);
    bool good = put_filled(b, r, words[1]);
    buffer_put(b, TEXT(" HTTP/1.1\r\nHost: localhost\r\n"));
    for (unsigned i = 2; i < count; i++) {
        good = good && put_filled(b, r, words[i]);
        buffer_put(b, TEXT("\r\n"));
    }
    if (body != NULL) {
        buffer_format(b, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                      filled_len(body));
    }
    buffer_put(b, TEXT("\r\n"));
    return good && (body == NULL || put_filled(b, r, body));
}

static int check_words(enum load_wire wire, const char *const *words, unsigned count,
                       const char *body, struct weir_error *error)
{
    if (wire == LOAD_RESP) {
        return body == NULL ? 0
                            : fail(error, WEIR_EINVAL, "found --body with --resp, expected --http");
    }
    if (wire == LOAD_GRPC) {
        return count == 1 && words[0][0] == '/' && body != NULL
                   ? 0
                   : fail(error, WEIR_EINVAL,
                          "found no call, expected --body and the path of a method, such as "
                          "/weir.v1.Limiter/Check");
    }
    if (count < 2 || words[1][0] != '/') {
        return fail(error, WEIR_EINVAL,
                    "found no path, expected a method and a path, such as GET /v1/auth");
    }
    for (unsigned i = 2; i < count; i++) {
        if (strchr(words[i], ':') == NULL) {
            return fail(error, WEIR_EINVAL,
                        "found '%s', expected a header field, such as 'X-User-Id: {key}'",
                        words[i]);
        }
    }
    return 0;
}

int load_request_make(struct load_request *request, enum load_wire wire, const char *const *words,
                      unsigned words_count, const char *body, struct weir_error *error)
{
    struct buffer b;
    *request = (struct load_request){.bytes = NULL};
    int e = check_words(wire, words, words_count, body, error);
    if (e != 0 || wire == LOAD_GRPC) {
        return e != 0 ? e : load_grpc_make(request, words[0], body, error);
    }
    buffer_init(&b, REQUEST_MAX);
    bool good = wire == LOAD_RESP ? put_resp(&b, request, words, words_count)
                                  : put_http(&b, request, words, words_count, body);
    if (!good || b.full) {
        buffer_finish(&b);
        return fail(
            error, WEIR_EINVAL,
            "found a request that is too large, expected at most %d bytes and %d times {key}",
            REQUEST_MAX, LOAD_KEY_PLACES);
    }
    request->bytes = b.at; /* no bytes were consumed, so the memory begins at b.at */
    request->len = buffer_len(&b);
    return 0;
}

void load_request_finish(struct load_request *request)
{
    free(request->bytes);
    free(request->opening);
    request->bytes = NULL;
    request->opening = NULL;
}

void load_request_set_key(const struct load_request *request, char *copy, uint64_t key)
{
    for (unsigned i = 0; i < request->keys; i++) {
        char *last = copy + request->key_at[i] + LOAD_KEY_BYTES - 1;
        uint64_t rest = key;
        for (unsigned digit = 0; digit < LOAD_KEY_BYTES - 4; digit++) {
            *last-- = (char)('0' + rest % 10);
            rest /= 10;
        }
    }
}
