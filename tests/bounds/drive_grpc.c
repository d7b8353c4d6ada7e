/* gRPC. */
#include "bounds/bounds_scene.h"
#include "server/grpc/grpc.h"
#include "support/server/server_http2.h"

#define CHECK "/weir.v1.Limiter/Check"
#define BATCH "/weir.v1.Limiter/Batch"

static struct http2_frame frame;

/* Receives up to the end of a stream. Returns the type of the frame that ends it, or 99 at the end
 * of the connection; the bytes of messages in *bytes. */
static unsigned end_of(struct server_client *c, unsigned stream, size_t *bytes)
{
    *bytes = 0;
    while (http2_receive(c, &frame)) {
        bool own = frame.stream == stream;
        *bytes += own && frame.type == HTTP2_DATA ? frame.len : 0;
        if (own && (frame.type == HTTP2_RST_STREAM ||
                    (frame.type == HTTP2_HEADERS && (frame.flags & 1) != 0))) {
            return frame.type;
        }
    }
    return 99;
}

static void streams(struct scene *s)
{
    struct server_options o = scene_options();
    size_t bytes;
    scene_start(s, SCENE_RULES, &o);
    struct server_client *c = scene_add(s, PROTOCOL_GRPC, CROWD);
    assert_true(http2_begin(c, 65535));
    for (unsigned i = 0; i < GRPC_STREAMS; i++) {
        assert_true(http2_begin_call(c, 2 * i + 1, CHECK));
    }
    assert_true(http2_begin_call(c, 2 * GRPC_STREAMS + 1, CHECK));
    unsigned end = end_of(c, 2 * GRPC_STREAMS + 1, &bytes);
    assert_int_equal(end, HTTP2_RST_STREAM);
    assert_int_equal(frame.payload[3], 7); /* REFUSED_STREAM */
    scene_both_are_served(s);
    struct server_client *d = scene_add(s, PROTOCOL_GRPC, CROWD);
    assert_true(http2_begin(d, 65535));
    assert_true(http2_call(d, 1, BATCH, http2_batch(1)));
    assert_int_equal(end_of(d, 1, &bytes), HTTP2_HEADERS);
    assert_true(bytes > 0);
    scene_stop(s);
}

/* A field of 9000 bytes: more than a call may have, less than the frames of HTTP/2 allow. The
 * call is complete, and would be answered without the bound. */
static void fields(struct scene *s)
{
    enum { LONG = 9000, REST = LONG - 127 };
    static char bytes[16384];
    char head[] = "\x83\x86\x41\x01x\x44\x16" BATCH "\x5f\x10"
                  "application/grpc\x40\x01x\x7f";
    struct server_options o = scene_options();
    size_t got;
    size_t n = 9;
    memcpy(bytes + n, head, sizeof head - 1);
    n += sizeof head - 1;
    bytes[n++] = (char)(REST % 128 | 128);
    bytes[n++] = REST / 128;
    memset(bytes + n, 'a', LONG);
    n += LONG;
    const char frame_head[9] = {0, (char)((n - 9) >> 8), (char)(n - 9), HTTP2_HEADERS, 4, 0, 0, 0,
                                1};
    struct weir_text message = http2_batch(1);
    const char data_head[14] = {0, 0, (char)(5 + message.len), HTTP2_DATA, 1, 0, 0, 0, 1, 0, 0,
                                0, 0, (char)message.len};
    memcpy(bytes, frame_head, sizeof frame_head);
    memcpy(bytes + n, data_head, sizeof data_head);
    memcpy(bytes + n + sizeof data_head, message.at, message.len);
    n += sizeof data_head + message.len;
    scene_start(s, SCENE_RULES, &o);
    struct server_client *c = scene_add(s, PROTOCOL_GRPC, CROWD);
    assert_true(http2_begin(c, 65535));
    assert_true(server_send(c, bytes, n));
    assert_int_equal(end_of(c, 1, &got), HTTP2_HEADERS);
    assert_int_equal(got, 0);
    scene_both_are_served(s);
    scene_stop(s);
}

static void frames(struct scene *s)
{
    enum { PINGS = 50 * GRPC_FRAMES };
    struct server_options o = scene_options();
    scene_start(s, SCENE_RULES, &o);
    for (unsigned i = 0; i < 5; i++) {
        struct server_client *c = scene_add(s, PROTOCOL_GRPC, CROWD);
        unsigned answered = 0;
        assert_true(http2_begin(c, 65535));
        for (unsigned j = 0; j < PINGS && http2_ping(c); j++) {
        }
        while (answered < PINGS && http2_receive(c, &frame)) {
            answered += frame.type == HTTP2_PING;
        }
        assert_true(answered < PINGS); /* the connection has ended before */
        scene_both_are_served(s);
    }
    scene_stop(s);
}

static void batch(struct scene *s)
{
    static char message[1001 * 2];
    struct server_options o = scene_options();
    size_t bytes;
    for (unsigned i = 0; i < sizeof message; i += 2) {
        message[i] = 1 << 3 | 2;
    }
    scene_start(s, SCENE_RULES, &o);
    struct server_client *c = scene_add(s, PROTOCOL_GRPC, CROWD);
    assert_true(http2_begin(c, 1u << 20));
    assert_true(http2_call(c, 1, BATCH, (struct weir_text){message, 1000 * 2}));
    assert_int_equal(end_of(c, 1, &bytes), HTTP2_HEADERS);
    assert_true(bytes > 1000);
    assert_true(http2_call(c, 3, BATCH, (struct weir_text){message, 1001 * 2}));
    assert_int_equal(end_of(c, 3, &bytes), HTTP2_HEADERS);
    assert_int_equal(bytes, 0);
    scene_both_are_served(s);
    scene_stop(s);
}

const struct driver drivers_grpc[] = {
    {"grpc.h", "GRPC_STREAMS", streams, NULL, NULL},
    {"grpc.h", "GRPC_FIELDS_BYTES", fields, NULL, NULL},
    {"grpc.h", "GRPC_FRAMES", frames, NULL, NULL},
    {"grpc_limiter.c", "BATCH_MAX", batch, NULL, NULL},
    {0},
};
