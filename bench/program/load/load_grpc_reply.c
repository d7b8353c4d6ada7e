/* Reads the frames of replies to gRPC calls. */
#include "load/load_grpc.h"

#include <stdlib.h>

#include "load/load_connection.h"

#define FRAME_MAX 16384            /* this client does not allow larger ones */
#define MESSAGE_HEAD_BYTES 5       /* whether it is compressed, its length */
#define REFILL (UINT64_C(1) << 30) /* enlarge the window after this many bytes */
#define STATUS_UNAVAILABLE "14"    /* of gRPC: too busy to decide */

struct frame {
    unsigned type;
    unsigned flags;
    uint32_t stream;
    struct weir_text payload;
};

static uint32_t read_u32(const char *at)
{
    uint32_t number;
    memcpy(&number, at, sizeof number);
    return __builtin_bswap32(number);
}

struct load_streams *load_streams_create(unsigned depth)
{
    struct load_streams *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return NULL;
    }
    s->verdict = calloc(depth, sizeof *s->verdict);
    if (s->verdict == NULL || nghttp2_hd_inflate_new(&s->inflater) != 0) {
        load_streams_destroy(s);
        return NULL;
    }
    s->next = 3; /* the opening has used stream 1 */
    return s;
}

void load_streams_destroy(struct load_streams *s)
{
    if (s != NULL) {
        nghttp2_hd_inflate_del(s->inflater);
        free(s->verdict);
        free(s);
    }
}

/* ---- the ring ---- */

#define NO_PLACE UINT32_MAX

/* Returns the place of a stream in the ring; NO_PLACE: it is not in flight. */
static uint32_t place_of(const struct load_connection *c, uint32_t stream)
{
    uint32_t oldest = c->streams->next - 2 * c->in_flight;
    uint32_t after = (stream - oldest) / 2;
    if (stream < oldest || after >= c->in_flight) {
        return NO_PLACE;
    }
    return (c->oldest + after) % c->depth;
}

static void end_call(struct load_connection *c, uint32_t stream, enum load_verdict verdict,
                     struct load_ended *ended)
{
    uint32_t place = place_of(c, stream);
    *ended = (struct load_ended){.opening = stream == 1, .verdict = verdict};
    if (place == NO_PLACE) {
        return;
    }
    ended->due_ns = c->due_ns[place];
    c->due_ns[place] = 0;
    while (c->in_flight > 0 && c->due_ns[c->oldest] == 0) {
        (void)load_connection_take(c);
    }
}

/* ---- frames ---- */

/* Removes padding and priority. Returns false if the frame is malformed. */
static bool unpad(struct frame *f)
{
    size_t pad = 0;
    if ((f->flags & NGHTTP2_FLAG_PADDED) != 0) {
        pad = f->payload.len > 0 ? (uint8_t)f->payload.at[0] : 1;
        f->payload = text_after(f->payload, f->payload.len > 0 ? 1 : 0);
    }
    if (f->type == NGHTTP2_HEADERS && (f->flags & NGHTTP2_FLAG_PRIORITY) != 0) {
        pad = f->payload.len < 5 ? SIZE_MAX : pad;
        f->payload = text_after(f->payload, f->payload.len < 5 ? 0 : 5);
    }
    if (pad > f->payload.len) {
        return false;
    }
    f->payload.len -= pad;
    return true;
}

/* Notes what the message says. In answers of weir, of Envoy's rate limit service and of others,
 * field 1 is a number that is 1 if the request is allowed. */
static void read_message(struct load_connection *c, const struct frame *f)
{
    uint32_t place = place_of(c, f->stream);
    struct weir_text message = f->payload;
    if (place == NO_PLACE || message.len < MESSAGE_HEAD_BYTES + 2) {
        return;
    }
    message = text_after(message, MESSAGE_HEAD_BYTES);
    if (message.at[0] == 0x08) {
        c->streams->verdict[place] = message.at[1] == 1 ? LOAD_ALLOWED : LOAD_DENIED;
    }
}

static int64_t read_data(struct load_connection *c, struct frame *f, struct load_ended *ended)
{
    c->streams->unread += f->payload.len;
    if (!unpad(f)) {
        return LOAD_BROKEN;
    }
    read_message(c, f);
    if ((f->flags & NGHTTP2_FLAG_END_STREAM) != 0) {
        end_call(c, f->stream, LOAD_ERROR, ended); /* without a status */
    }
    if (c->streams->unread >= REFILL) {
        c->streams->unread -= REFILL;
        static const char update[] = "\0\0\4\10\0\0\0\0\0\x40\0\0";
        return load_connection_queue(c, (struct weir_text){update, sizeof update}) ? 0
                                                                                   : LOAD_BROKEN;
    }
    return 0;
}

/* Reads a block of header fields, and copies the value of grpc-status. Returns false if
 * the block is malformed. */
static bool read_fields(nghttp2_hd_inflater *inflater, struct weir_text block, char status[4])
{
    const uint8_t *at = (const uint8_t *)block.at;
    const uint8_t *end = at + block.len;
    for (;;) {
        nghttp2_nv nv;
        int flags = 0;
        ssize_t n = nghttp2_hd_inflate_hd2(inflater, &nv, &flags, at, (size_t)(end - at), 1);
        if (n < 0) {
            return false;
        }
        at += n;
        struct weir_text name = {(const char *)nv.name, nv.namelen};
        if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0 && text_is(name, "grpc-status") &&
            nv.valuelen < 4) {
            memcpy(status, nv.value, nv.valuelen);
            status[nv.valuelen] = 0;
        }
        if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) {
            return nghttp2_hd_inflate_end_headers(inflater) == 0;
        }
        if ((flags & NGHTTP2_HD_INFLATE_EMIT) == 0 && at == end) {
            return false;
        }
    }
}

static int64_t read_headers(struct load_connection *c, struct frame *f, struct load_ended *ended)
{
    char status[4] = "";
    if (!unpad(f) || (f->flags & NGHTTP2_FLAG_END_HEADERS) == 0 ||
        !read_fields(c->streams->inflater, f->payload, status)) {
        return LOAD_BROKEN; /* replies to calls have few fields: none needs a second frame */
    }
    if ((f->flags & NGHTTP2_FLAG_END_STREAM) != 0) {
        uint32_t place = place_of(c, f->stream);
        enum load_verdict said = place != NO_PLACE ? c->streams->verdict[place] : LOAD_OTHER;
        end_call(c, f->stream,
                 strcmp(status, "0") == 0                  ? said
                 : strcmp(status, STATUS_UNAVAILABLE) == 0 ? LOAD_REFUSED
                                                           : LOAD_ERROR,
                 ended);
    }
    return 0;
}

static int64_t read_reset(struct load_connection *c, const struct frame *f,
                          struct load_ended *ended)
{
    if (f->payload.len != 4) {
        return LOAD_BROKEN;
    }
    bool refused = read_u32(f->payload.at) == NGHTTP2_REFUSED_STREAM;
    end_call(c, f->stream, refused ? LOAD_REFUSED : LOAD_ERROR, ended);
    return 0;
}

/* Returns SETTINGS and PING to the server, as it expects. */
static int64_t acknowledge(struct load_connection *c, const struct frame *f)
{
    char bytes[LOAD_FRAME_HEAD_BYTES + 8] = {0};
    size_t len = f->type == NGHTTP2_PING ? 8 : 0;
    if ((f->flags & NGHTTP2_FLAG_ACK) != 0) {
        return 0;
    }
    if (f->type == NGHTTP2_PING && f->payload.len != len) {
        return LOAD_BROKEN;
    }
    bytes[2] = (char)len;
    bytes[3] = (char)f->type;
    bytes[4] = NGHTTP2_FLAG_ACK;
    memcpy(bytes + LOAD_FRAME_HEAD_BYTES, f->payload.at, len);
    struct weir_text text = {bytes, LOAD_FRAME_HEAD_BYTES + len};
    return load_connection_queue(c, text) ? 0 : LOAD_BROKEN;
}

static int64_t read_frame(struct load_connection *c, struct frame *f, struct load_ended *ended)
{
    switch (f->type) {
    case NGHTTP2_DATA:
        return read_data(c, f, ended);
    case NGHTTP2_HEADERS:
        return read_headers(c, f, ended);
    case NGHTTP2_RST_STREAM:
        return read_reset(c, f, ended);
    case NGHTTP2_SETTINGS:
    case NGHTTP2_PING:
        return acknowledge(c, f);
    case NGHTTP2_PUSH_PROMISE:
    case NGHTTP2_CONTINUATION:
        return LOAD_BROKEN;
    default: /* after GOAWAY the server closes the connection */
        return 0;
    }
}

int64_t load_grpc_read(struct load_connection *c, struct weir_text input, struct load_ended *ended)
{
    *ended = (struct load_ended){.due_ns = 0};
    if (input.len < LOAD_FRAME_HEAD_BYTES) {
        return 0;
    }
    size_t len = read_u32(input.at) >> 8;
    if (len > FRAME_MAX) {
        return LOAD_BROKEN;
    }
    if (input.len < LOAD_FRAME_HEAD_BYTES + len) {
        return 0;
    }
    struct frame f = {.type = (uint8_t)input.at[3],
                      .flags = (uint8_t)input.at[4],
                      .stream = read_u32(input.at + 5) & INT32_MAX,
                      .payload = {input.at + LOAD_FRAME_HEAD_BYTES, len}};
    return read_frame(c, &f, ended) == LOAD_BROKEN ? LOAD_BROKEN
                                                   : (int64_t)(LOAD_FRAME_HEAD_BYTES + len);
}
