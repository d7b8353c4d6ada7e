/* Makes the bytes of a gRPC call, and those that open a connection. */
#include "load/load_grpc.h"

#include <stdlib.h>

#include "base/error.h"
#include "common/buffer.h"

#define FIELDS_BYTES 256
#define PATH_MAX_BYTES 126 /* HPACK has another form for longer texts */
#define PLACE "{key}"
#define FIRST_STREAM 1
#define OPENING_KEY UINT64_C(999999999999) /* above LOAD_KEYS_MAX: no counted call has it */

static void put_u32(struct buffer *b, uint32_t number)
{
    for (int shift = 24; shift >= 0; shift -= 8) {
        buffer_put_char(b, (char)(number >> shift));
    }
}

static void put_frame_head(struct buffer *b, size_t len, unsigned type, unsigned flags,
                           uint32_t stream)
{
    put_u32(b, (uint32_t)(len << 8 | type));
    buffer_put_char(b, (char)flags);
    put_u32(b, stream);
}

/* ---- the message ---- */

/* Returns the number of bytes of the message. */
static size_t message_len(const char *hex)
{
    size_t digits = strlen(hex);
    size_t keys = 0;
    for (const char *at = hex; (at = strstr(at, PLACE)) != NULL; at += sizeof PLACE - 1) {
        keys++;
    }
    return (digits - keys * (sizeof PLACE - 1)) / 2 + keys * LOAD_KEY_BYTES;
}

/* Appends the message. Returns false if it is not hexadecimal or has too many keys. */
static bool put_message(struct buffer *b, struct load_request *r, const char *hex)
{
    struct weir_text rest = text_of(hex);
    while (rest.len > 0) {
        bool is_key = text_starts(rest, PLACE);
        int byte = is_key ? 0 : text_hex_byte(rest, 0);
        if (byte < 0 || (is_key && !load_request_put_key(r, b))) {
            return false;
        }
        if (!is_key) {
            buffer_put_char(b, (char)byte);
        }
        rest = text_after(rest, is_key ? sizeof PLACE - 1 : 2);
    }
    return true;
}

/* ---- a call ---- */

/*
 * The header fields of the first call. ":method: POST" and ":scheme: http" are in the static table
 * of HPACK; the others are literals that the server adds to its dynamic table.
 */
static void put_first_fields(struct buffer *b, const char *path)
{
    buffer_put(b, TEXT("\x83\x86\x44")); /* :path has the number 4 */
    buffer_put_char(b, (char)strlen(path));
    buffer_put(b, text_of(path));
    buffer_put(b, TEXT("\x41\x09localhost"));      /* :authority, 1 */
    buffer_put(b, TEXT("\x40\x02te\x08trailers")); /* a new name */
    buffer_put(b, TEXT("\x5f\x10"
                       "application/grpc")); /* content-type, 31 */
}

/* The same fields of a later call: numbers of the static table, and 65 to 62 of the dynamic one. */
#define LATER_FIELDS TEXT("\x83\x86\xc1\xc0\xbf\xbe")

/* Appends both frames of a call. Returns false if the message is wrong or does not fit. */
static bool put_call(struct buffer *b, struct load_request *r, struct weir_text fields,
                     const char *message)
{
    size_t len = message_len(message);
    r->keys = 0;
    r->stream_at[0] = buffer_len(b) + LOAD_FRAME_HEAD_BYTES - 4;
    put_frame_head(b, fields.len, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, FIRST_STREAM);
    buffer_put(b, fields);
    r->stream_at[1] = buffer_len(b) + LOAD_FRAME_HEAD_BYTES - 4;
    put_frame_head(b, len + 5, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, FIRST_STREAM);
    buffer_put_char(b, 0); /* not compressed */
    put_u32(b, (uint32_t)len);
    return put_message(b, r, message) && !b->full;
}

/* Appends what a client says first. The window for replies is as large as it may be. */
static void put_preface(struct buffer *b)
{
    buffer_put(b, TEXT(NGHTTP2_CLIENT_MAGIC));
    put_frame_head(b, 6, NGHTTP2_SETTINGS, NGHTTP2_FLAG_NONE, 0);
    buffer_put_char(b, 0);
    buffer_put_char(b, NGHTTP2_SETTINGS_ENABLE_PUSH);
    put_u32(b, 0);
    put_frame_head(b, 4, NGHTTP2_WINDOW_UPDATE, NGHTTP2_FLAG_NONE, 0);
    put_u32(b, NGHTTP2_MAX_WINDOW_SIZE - NGHTTP2_INITIAL_CONNECTION_WINDOW_SIZE);
}

/* Makes both parts of the request. Returns false if the message is wrong or does not fit. */
static bool make_parts(struct load_request *request, const char *path, const char *message)
{
    struct buffer fields;
    struct buffer opening;
    struct buffer call;
    buffer_init(&fields, FIELDS_BYTES);
    buffer_init(&opening, LOAD_GRPC_IN_FLIGHT_BYTES);
    buffer_init(&call, LOAD_GRPC_IN_FLIGHT_BYTES);
    put_first_fields(&fields, path);
    put_preface(&opening);
    bool good = !fields.full && put_call(&opening, request, buffer_text(&fields), message);
    if (good) {
        load_request_set_key(request, opening.at, OPENING_KEY);
    }
    good = good && put_call(&call, request, LATER_FIELDS, message);
    buffer_finish(&fields);
    request->opening = opening.at; /* no bytes were consumed, so the memory begins at .at */
    request->opening_len = buffer_len(&opening);
    request->bytes = call.at;
    request->len = buffer_len(&call);
    return good;
}

int load_grpc_make(struct load_request *request, const char *path, const char *message,
                   struct weir_error *error)
{
    if (strlen(path) > PATH_MAX_BYTES) {
        return fail(error, WEIR_EINVAL, "found a path of %zu bytes, expected at most %d",
                    strlen(path), PATH_MAX_BYTES);
    }
    if (!make_parts(request, path, message)) {
        load_request_finish(request);
        return fail(error, WEIR_EINVAL,
                    "found '%.60s', expected a message in hexadecimal digits, with at most %d keys "
                    "and %d bytes",
                    message, LOAD_KEY_PLACES, LOAD_GRPC_IN_FLIGHT_BYTES / 2);
    }
    return 0;
}

void load_grpc_set_stream(const struct load_request *request, char *copy, uint32_t stream)
{
    for (unsigned i = 0; i < 2; i++) {
        uint32_t big_endian = __builtin_bswap32(stream);
        memcpy(copy + request->stream_at[i], &big_endian, sizeof big_endian);
    }
}
