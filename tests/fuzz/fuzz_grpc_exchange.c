/*
 * Answers what arrives on a gRPC connection. If the first byte is even, the rest are frames, which
 * begin after the preface and SETTINGS of a client. If it is odd, the rest is the message of a
 * call, and the byte chooses its method: 255 that of Envoy's service, the others one of weir's own.
 * The replies are whole frames, whatever has come; a call whose message is complete gets exactly
 * one end of its stream.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fuzz/fuzzed_server.h"
#include "rules/file/adhoc.h"
#include "server/grpc/grpc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define RLS 255

static const char rules[] =
    "server: {memory: 10MB}\nadhoc: off\n"
    "block: [{user: mallory}]\n"
    "limits:\n"
    "  - {name: api, when: {path: /api/**}, key: [user], rate: 10/s, max_keys: 1k}\n"
    "  - {name: b, key: [one, two], rate: 10/s, max_keys: 1k}\n"
    "  - {name: any, when: {domain: d, descriptor: k}, unless: {value_1: v}, key: [value_1],\n"
    "     rate: 3/min, algorithm: fixed_window, max_keys: 1k}\n"
    "  - {name: v, when: {domain: d, descriptor: k, value_1: v}, key: [], rate: 2/7day, label: l,\n"
    "     algorithm: fixed_window, align: epoch, expose: true, replaces: [w]}\n"
    "  - {name: w, when: {domain: d, descriptor: k/k}, key: [value_1, value_2], rate: unlimited,\n"
    "     max_keys: 1k}\n"
    "  - {name: q, when: {domain: d, descriptor: q}, key: [value_1], rate: 2/h, quota_mode: true,\n"
    "     max_keys: 1k, deny: {message: no}}\n"
    "  - {name: s, when: {domain: d, descriptor: s}, key: [value_1], rate: 1/h, shadow: true,\n"
    "     max_keys: 1k}\n";

static void prepare(void)
{
    struct weir_options o;
    prepare_server(rules, SERVER_OUTPUT_BYTES);
    adhoc_options(1000, WEIR_EVICT, &o);
    require(weir_open(&server.adhoc, &o, NULL) == 0);
}

/* ---- frames ---- */

static void put_frame(struct buffer *to, unsigned type, unsigned flags, unsigned stream,
                      struct weir_text payload)
{
    const char head[9] = {(char)(payload.len >> 16),
                          (char)(payload.len >> 8),
                          (char)payload.len,
                          (char)type,
                          (char)flags,
                          0,
                          0,
                          0,
                          (char)stream};
    buffer_put(to, (struct weir_text){head, sizeof head});
    buffer_put(to, payload);
}

/* Puts a call of the method, with a head that is not compressed. */
static void put_call(struct buffer *to, const struct grpc_method *method, struct weir_text message)
{
    char head[128];
    char prefix[5] = {0, 0, (char)(message.len >> 16), (char)(message.len >> 8), (char)message.len};
    int path = (int)(strlen(method->service) + strlen(method->name) + 2);
    int n = snprintf(head, sizeof head, "\x83\x86\x41\x01x\x44%c/%s/%s\x5f\x10%s", path,
                     method->service, method->name, "application/grpc");
    put_frame(to, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1,
              (struct weir_text){head, (size_t)n});
    put_frame(to, NGHTTP2_DATA, 0, 1, (struct weir_text){prefix, sizeof prefix});
    for (; message.len > 16000; message = text_after(message, 16000)) {
        put_frame(to, NGHTTP2_DATA, 0, 1, (struct weir_text){message.at, 16000});
    }
    put_frame(to, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, message);
}

/* Requires that the replies are whole frames. Returns how many of them end stream 1. */
static unsigned count_ends(void)
{
    struct weir_text rest = buffer_text(&worker->replies);
    unsigned ends = 0;
    while (rest.len > 0) {
        const unsigned char *b = (const unsigned char *)rest.at;
        require(rest.len >= 9);
        size_t len = (size_t)b[0] << 16 | (size_t)b[1] << 8 | b[2];
        require(rest.len >= 9 + len);
        ends += b[8] == 1 && ((b[3] == NGHTTP2_HEADERS && (b[4] & NGHTTP2_FLAG_END_STREAM) != 0) ||
                              b[3] == NGHTTP2_RST_STREAM);
        rest = text_after(rest, 9 + len);
    }
    buffer_take(&worker->replies, buffer_len(&worker->replies));
    return ends;
}

static unsigned feed(struct weir_text input, size_t piece)
{
    struct connection *c = begin_connection(&protocol_grpc);
    unsigned ends = 0;
    worker->now_ns = UINT64_C(1700000000) * WEIR_SECOND;
    while (input.len > 0) {
        struct weir_text now = {input.at, input.len < piece ? input.len : piece};
        int64_t used = protocol_grpc.consume(c, now);
        ends += count_ends();
        if (used == CONNECTION_CLOSE) {
            break;
        }
        require((size_t)used == now.len);
        input = text_after(input, now.len);
    }
    protocol_grpc.farewell(c, false);
    ends += count_ends();
    protocol_grpc.farewell(c, true);
    (void)count_ends();
    protocol_grpc.finish(c);
    require(c->session_kept == 0);
    end_connection(c);
    return ends;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    struct buffer input;
    size_t count;
    if (size < 1) {
        return 0;
    }
    if (worker == NULL) {
        prepare();
    }
    const struct grpc_method *methods = grpc_limiter_methods(&count);
    struct weir_text rest = {(const char *)data + 1, size - 1};
    bool call = (data[0] & 1) != 0;
    buffer_init(&input, 1 << 22);
    buffer_put(&input, (struct weir_text){preface, sizeof preface - 1});
    put_frame(&input, NGHTTP2_SETTINGS, 0, 0, (struct weir_text){"", 0});
    if (call) {
        size_t which = data[0] / 2 % (count + GRPC_HEALTH_METHODS);
        put_call(&input,
                 data[0] == RLS  ? grpc_rls_methods
                 : which < count ? &methods[which]
                                 : &grpc_health_methods[which - count],
                 rest);
    } else {
        buffer_put(&input, rest);
    }
    unsigned whole = feed(buffer_text(&input), buffer_len(&input));
    unsigned pieces = feed(buffer_text(&input), 1 + data[0]);
    require(!call || (whole == 1 && pieces == 1));
    buffer_finish(&input);
    return 0;
}
