/* The shared decision vectors, through gRPC: what the oracle says, in milliseconds rounded up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <cmocka.h>

#include "server/operations/operations.h"
#include "support/server/server_vectors.h"
#include "wire/protobuf.h"

#define FRAME_HEAD 9
#define PREFIX 5

/* A client that asks one call after the other, without header compression. */
struct caller {
    struct server_client connection;
    uint32_t stream;
    char message[4096]; /* of the last reply */
    size_t message_len;
};

static void put_frame(struct buffer *to, unsigned type, unsigned flags, uint32_t stream,
                      struct weir_text payload)
{
    const char head[FRAME_HEAD] = {(char)(payload.len >> 16),
                                   (char)(payload.len >> 8),
                                   (char)payload.len,
                                   (char)type,
                                   (char)flags,
                                   (char)(stream >> 24),
                                   (char)(stream >> 16),
                                   (char)(stream >> 8),
                                   (char)stream};
    buffer_put(to, (struct weir_text){head, FRAME_HEAD});
    buffer_put(to, payload);
}

static void send_all(struct caller *c, struct buffer *bytes)
{
    struct weir_text text = buffer_text(bytes);
    assert_false(bytes->full);
    assert_true(server_send(&c->connection, text.at, text.len));
    buffer_finish(bytes);
}

static void begin(struct caller *c, const char *address)
{
    struct buffer b;
    *c = (struct caller){.stream = 1};
    server_connect(&c->connection, address);
    buffer_init(&b, 256);
    buffer_put(&b, TEXT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    put_frame(&b, 4, 0, 0, TEXT(""));                 /* SETTINGS */
    put_frame(&b, 8, 0, 0, TEXT("\x7f\xff\x00\x00")); /* WINDOW_UPDATE: for all replies */
    send_all(c, &b);
}

static void receive(const struct caller *c, void *to, size_t len)
{
    assert_int_equal(len == 0 ? 0 : recv(c->connection.fd, to, len, MSG_WAITALL), (ssize_t)len);
}

/* Receives frames up to the end of the stream. */
static void receive_reply(struct caller *c)
{
    unsigned char head[FRAME_HEAD];
    char payload[16384];
    bool ended = false;
    c->message_len = 0;
    while (!ended) {
        receive(c, head, FRAME_HEAD);
        size_t len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        uint32_t stream =
            (uint32_t)head[5] << 24 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 8 | head[8];
        assert_true(len <= sizeof payload);
        receive(c, payload, len);
        if (head[3] == 0 && stream == c->stream) {
            assert_true(c->message_len + len <= sizeof c->message);
            memcpy(c->message + c->message_len, payload, len);
            c->message_len += len;
        }
        assert_int_not_equal(head[3], 7); /* GOAWAY */
        ended = stream == c->stream && head[3] == 1 && (head[4] & 1) != 0;
    }
    c->stream += 2;
}

static struct weir_text call(struct caller *c, const char *method, struct weir_text message)
{
    char head[128];
    const char prefix[PREFIX] = {0, 0, 0, (char)(message.len >> 8), (char)message.len};
    struct buffer data;
    struct buffer b;
    int n =
        snprintf(head, sizeof head, "\x83\x86\x41\x01x\x44%c/weir.v1.Limiter/%s\x5f\x10%s",
                 (int)(strlen("/weir.v1.Limiter/") + strlen(method)), method, "application/grpc");
    buffer_init(&data, 4096);
    buffer_init(&b, 8192);
    buffer_put(&data, (struct weir_text){prefix, PREFIX});
    buffer_put(&data, message);
    put_frame(&b, 1, 4, c->stream, (struct weir_text){head, (size_t)n});
    put_frame(&b, 0, 1, c->stream, buffer_text(&data));
    send_all(c, &b);
    buffer_finish(&data);
    receive_reply(c);
    assert_true(c->message_len >= PREFIX);
    return (struct weir_text){c->message + PREFIX, c->message_len - PREFIX};
}

/* Compares the numbers of the answer, by field. */
static void compare(const struct oracle_vector *v, size_t i, const char *limit,
                    struct weir_text message)
{
    const struct oracle_expected *e = &v->expected[i];
    uint64_t got[14] = {0};
    const uint64_t expected[14] = {
        [1] = (uint64_t)e->verdict,
        [3] = v->trace.rule.quota,
        [4] = e->remaining,
        [5] = e->verdict == WEIR_NEVER ? UINT64_MAX : server_vector_ms(v, e->retry),
        [6] = server_vector_ms(v, e->reset),
        [7] = server_vector_ms(v, e->delay),
        [11] = WEIR_REASON_LIMIT + 1,
    };
    struct protobuf_field f;
    int more;
    while ((more = protobuf_next(&message, &f)) == 1) {
        assert_true(f.number < 14);
        if (f.type == PROTOBUF_VARINT) {
            got[f.number] = f.value;
        } else {
            assert_int_equal(f.number, 2);
            assert_true(text_is(f.bytes, limit));
        }
    }
    assert_int_equal(more, 0);
    for (unsigned n = 1; n < 14; n++) {
        if (got[n] != expected[n]) {
            fail_msg("%s, call %zu, field %u: got %llu, expected %llu", limit, i + 1, n,
                     (unsigned long long)got[n], (unsigned long long)expected[n]);
        }
    }
}

static void send_one(void *arg, const struct oracle_vector *v, size_t i, const char *limit)
{
    const struct oracle_op *op = &v->trace.ops[i];
    struct buffer message;
    buffer_init(&message, 4096);
    protobuf_put_bytes(&message, ASK_LIMIT + 1, text_of(limit));
    protobuf_put_bytes(&message, ASK_KEY + 1, text_of(v->keys[op->key]));
    protobuf_put_number(&message, ASK_COST + 1, op->cost);
    protobuf_put_number(&message, ASK_MAX_WAIT + 1, op->wait_ns / WEIR_MILLISECOND);
    compare(v, i, limit,
            call(arg, op->verb == ORACLE_PEEK ? "Peek" : "Check", buffer_text(&message)));
    buffer_finish(&message);
}

static void the_vectors_hold_on_the_wire(void **state)
{
    struct server_options o = server_world_options();
    struct server_world w;
    struct caller caller;
    char address[SERVER_ADDRESS_MAX];
    o.adhoc_keys = 0;
    o.listen[PROTOCOL_RESP] = "off";
    o.listen[PROTOCOL_GRPC] = "127.0.0.1:0";
    server_world_start(&w, "limits: [{name: v, key: [user], rate: 1/s}]", &o);
    (void)server_address(&w.server, PROTOCOL_GRPC, address, sizeof address);
    begin(&caller, address);
    server_vectors_send(&w, send_one, &caller);
    server_disconnect(&caller.connection);
    server_world_stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_hold_on_the_wire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
