/* Bytes of requests and replies that connections keep. */
#include "bounds/bounds_scene.h"
#include "server/grpc/grpc.h"
#include "support/server/server_http2.h"
#include "support/tls/tls_client.h"

#define BATCH "/weir.v1.Limiter/Batch"
#define COMMANDS "*2\r\n$7\r\nCOMMAND\r\n$4\r\nDOCS\r\n" /* has a large reply */

/* Every reply of a long pipeline comes, in order. */
static void pipeline(struct scene *s)
{
    enum { PINGS = 5000 };
    struct server_options o = scene_options();
    scene_start(s, SCENE_RULES, &o);
    struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD);
    for (unsigned i = 0; i < PINGS; i++) {
        char words[32];
        (void)snprintf(words, sizeof words, "ECHO %u", i);
        assert_true(server_say(c, words));
    }
    for (unsigned i = 0; i < PINGS; i++) {
        char expected[32];
        (void)snprintf(expected, sizeof expected, "'%u'", i);
        assert_string_equal(server_reply(c), expected);
    }
    scene_both_are_served(s);
    scene_stop(s);
}

/* More pieces of replies than are composed at once, in one read. */
static void flushes(struct scene *s)
{
    struct server_options o = scene_options();
    scene_start(s, SCENE_RULES, &o);
    struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD);
    size_t one = scene_fetch_all(c, COMMANDS, 1) - scene_fetch_all(c, COMMANDS, 0);
    assert_in_range(one, 1000, SERVER_REPLY_BYTES);
    assert_int_equal(scene_fetch_all(c, COMMANDS, 300),
                     300 * one + scene_fetch_all(c, COMMANDS, 0));
    size_t composed = __atomic_load_n(&scene_worker(s)->replies.size, __ATOMIC_RELAXED);
    assert_in_range(composed, 1, 4 * (SERVER_FLUSH_BYTES + one));
    scene_both_are_served(s);
    scene_stop(s);
}

/* Returns whether a Batch of so many bytes is answered by a message. */
static bool is_decided(struct scene *s, unsigned bytes)
{
    static struct http2_frame frame;
    struct server_client *c = scene_add(s, PROTOCOL_GRPC, CROWD);
    bool decided = false;
    assert_true(http2_begin(c, 65535));
    assert_true(http2_call_padded(c, 1, BATCH, bytes));
    do {
        assert_true(http2_receive(c, &frame));
        decided = decided || frame.type == HTTP2_DATA;
    } while (frame.type != HTTP2_HEADERS || (frame.flags & 1) == 0);
    return decided;
}

static void request_bytes(struct scene *s)
{
    static char argument[16384 + 16];
    static struct http_answer a;
    struct server_options o = scene_options();
    int n = snprintf(argument, sizeof argument, "$16384\r\n%016384d\r\n", 0);
    scene_start(s, SCENE_RULES, &o);
    struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD);
    assert_true(server_send(c, "*30\r\n", 5));
    for (unsigned i = 0; i < 30 && server_send(c, argument, (size_t)n); i++) {
    }
    assert_string_equal(server_reply(c), "-ERR Protocol error: too big request");
    assert_string_equal(server_reply(c), "end");
    assert_int_equal(scene_http(s, PROTOCOL_HTTP, CROWD, "POST /v1/check/batch",
                                "Content-Length: 278529\r\nX-Ignored: ", "", &a),
                     413);
    assert_true(is_decided(s, SERVER_REQUEST_BYTES - 5));
    assert_false(is_decided(s, SERVER_REQUEST_BYTES));
    scene_both_are_served(s);
    scene_stop(s);
}

/* With small bounds, 1000 errors are a longer reply than the server makes. */
static void reply_bytes(struct scene *s)
{
    static struct http2_frame frame;
    struct server_options o = scene_options();
    scene_start(s, SCENE_RULES, &o);
    struct server_client *c = scene_add(s, PROTOCOL_GRPC, CROWD);
    assert_true(http2_begin(c, 1u << 20));
    for (unsigned stream = 1; stream < 9; stream += 2) {
        size_t bytes = 0;
        assert_true(http2_call(c, stream, BATCH, http2_batch(stream < 5 ? 500 : 1000)));
        do {
            assert_true(http2_receive(c, &frame));
            bytes += frame.type == HTTP2_DATA ? frame.len : 0;
        } while (frame.type != HTTP2_HEADERS || (frame.flags & 1) == 0);
        assert_true(stream < 5 ? bytes > 30000 : bytes == 0);
        assert_true(http2_open_window(c, 0, 100000));
    }
    scene_both_are_served(s);
    scene_stop(s);
}

/* ---- replies that are not fetched ---- */

/* Sends what one connection takes of a pipeline, and fetches nothing. */
static void flood(struct server_client *c)
{
    static char many[sizeof COMMANDS * 400];
    size_t len = 0;
    while (len + sizeof COMMANDS < sizeof many) {
        memcpy(many + len, COMMANDS, sizeof COMMANDS - 1);
        len += sizeof COMMANDS - 1;
    }
    (void)server_send(c, many, len);
}

static void ask_batches(struct server_client *c)
{
    bool goes_on = http2_begin(c, 0);
    for (unsigned i = 0; i < GRPC_STREAMS && goes_on; i++) {
        goes_on = http2_call(c, 2 * i + 1, BATCH, http2_batch(800));
    }
}

static void unsent(struct scene *s, unsigned n, unsigned addresses, size_t bound)
{
    struct server_options o = scene_options();
    scene_start(s, SCENE_RULES, &o);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < n; i++) {
            unsigned from = CROWD + i % addresses;
            if (i % 2 == 0) {
                ask_batches(scene_add(s, PROTOCOL_GRPC, from));
            } else {
                flood(scene_add(s, PROTOCOL_RESP, from));
            }
            if (i % 8 == 0) {
                scene_both_are_served(s);
            }
            assert_true(scene_units(s, CROWD_UNSENT) <= bound);
        }
        assert_true(scene_units(s, CROWD_UNSENT) > SERVER_OUTPUT_BYTES / 2);
        scene_close_crowd(s);
    }
    scene_both_are_served(s);
    for (unsigned i = 0; i < 600 && scene_units(s, CROWD_UNSENT) > 0; i++) {
        (void)usleep(100000);
    }
    assert_int_equal(scene_units(s, CROWD_UNSENT), 0);
    scene_stop(s);
}

static void output_bytes(struct scene *s)
{
    unsent(s, 1, 1, SERVER_OUTPUT_BYTES + SERVER_FLUSH_BYTES + (256u << 10));
}

static void thread_output_bytes(struct scene *s)
{
    size_t bound = 2 * SERVER_THREAD_OUTPUT_BYTES + SERVER_OUTPUT_BYTES;
    unsent(s, 40, 1, bound);
    unsent(s, 40, 20, bound);
}

/* ---- requests that are not complete ---- */

static void begin_http(struct server_client *c)
{
    static char body[100000] =
        "POST /v1/check/batch HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n[";
    size_t head = strlen(body);
    memset(body + head, ' ', sizeof body - head);
    (void)server_send(c, body, sizeof body);
    body[head] = 0;
}

static void begin_multi(struct server_client *c)
{
    (void)server_say(c, "MULTI");
    for (unsigned i = 0; i < 7; i++) {
        (void)server_say(c, "PING");
    }
}

static void begin_calls(struct server_client *c)
{
    bool goes_on = http2_begin(c, 65535);
    for (unsigned i = 0; i < GRPC_STREAMS && goes_on; i++) {
        goes_on = http2_begin_call(c, 2 * i + 1, BATCH);
    }
}

/* A head of 20,000 bytes with one field, of which the half comes. */
static void begin_head(struct server_client *c)
{
    static char head[9 + 10000] = "\0\x27\x10\1\0\0\0\0\1\x83\x86\x40\1x\x7f\xa1\x9b\1";
    memset(head + 18, 'x', sizeof head - 18);
    if (http2_begin(c, 65535)) {
        (void)server_send(c, head, sizeof head);
    }
}

enum { BODIES, MULTIS, CALLS, HEADS, KINDS };

static void begin(struct scene *s, unsigned kind, unsigned from)
{
    static const struct {
        enum server_protocol protocol;
        void (*begin)(struct server_client *c);
    } kinds[KINDS] = {[BODIES] = {PROTOCOL_HTTP, begin_http},
                      [MULTIS] = {PROTOCOL_RESP, begin_multi},
                      [CALLS] = {PROTOCOL_GRPC, begin_calls},
                      [HEADS] = {PROTOCOL_GRPC, begin_head}};
    kinds[kind].begin(scene_add(s, kinds[kind].protocol, from));
}

/* Begins requests that do not end, of one kind; KINDS: of any. */
static void kept(struct scene *s, unsigned addresses, unsigned kind)
{
    struct server_options o = scene_options();
    scene_start(s, SCENE_RULES, &o);
    for (unsigned i = 0; i < 90; i++) {
        begin(s, kind < KINDS ? kind : scene_random(KINDS), CROWD + i % addresses);
        if (i % 10 == 0) {
            scene_both_are_served(s);
        }
        assert_true(scene_units(s, CROWD_KEPT) <= SERVER_THREAD_INPUT_BYTES + SERVER_REQUEST_BYTES);
    }
    scene_await(&scene_worker(s)->counts.replaced_bytes, 1);
    scene_both_are_served(s);
    scene_close_crowd(s);
    for (unsigned i = 0; i < 600 && scene_units(s, CROWD_KEPT) > 0; i++) {
        (void)usleep(100000);
    }
    assert_int_equal(scene_units(s, CROWD_KEPT), 0);
    scene_stop(s);
}

static void thread_input_bytes(struct scene *s)
{
    kept(s, 1, KINDS);
    kept(s, 20, KINDS);
    kept(s, 20, HEADS);
}

static void call_bytes(struct scene *s)
{
    kept(s, 20, CALLS);
}

/* ---- TLS ---- */

static void start_tls(struct scene *s, struct certificates *files)
{
    struct server_options o = scene_options();
    certificates_make(files);
    o.tls.cert = certificates_path(files, "server.crt");
    o.tls.key = certificates_path(files, "server.key");
    o.tls.listener[PROTOCOL_RESP] = true;
    scene_start(s, SCENE_RULES, &o);
}

/* Makes a handshake and asks, from an address. */
static void is_served_over_tls(struct scene *s, struct tls_context *context, unsigned from)
{
    struct server_client socket;
    struct tls_client c;
    server_connect_from(&socket, s->address[PROTOCOL_RESP], from);
    tls_client_open(&c, socket.fd, context);
    assert_true(tls_client_shake(&c));
    assert_memory_equal(tls_client_ask(&c, "PING"), "+PONG", 5);
    tls_client_close(&c);
}

static void handshakes(struct scene *s)
{
    static struct certificates files;
    start_tls(s, &files);
    struct tls_context *context = tls_client_context(&files, "ca", NULL);
    for (unsigned addresses = 1; addresses <= 40; addresses += 13) {
        for (unsigned i = 0; i < 60; i++) {
            struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD + i % addresses);
            if (scene_random(3) == 0) {
                (void)server_send(c, "\x16\x03\x01\x02\x00\x01", 6); /* a hello that does not end */
            }
            if (i % 10 == 9) {
                is_served_over_tls(s, context, CROWD);
                is_served_over_tls(s, context, OTHER);
            }
            assert_true(scene_units(s, CROWD_KEPT) <=
                        SERVER_THREAD_INPUT_BYTES + SERVER_HANDSHAKE_BYTES);
        }
        scene_close_crowd(s);
    }
    assert_true(threads_get(&scene_worker(s)->counts.replaced_bytes) > 0);
    tls_context_unref(context);
    scene_stop(s);
    certificates_remove(&files);
}

/* Clients make their handshakes, ask, and begin a record that does not end. */
static void records(struct scene *s)
{
    enum { RECORDS = 90 };
    static struct certificates files;
    static struct tls_client crowd[RECORDS];
    start_tls(s, &files);
    struct tls_context *context = tls_client_context(&files, "ca", NULL);
    for (unsigned i = 0; i < RECORDS; i++) {
        struct server_client socket;
        server_connect_from(&socket, s->address[PROTOCOL_RESP], CROWD + i % 20);
        tls_client_open(&crowd[i], socket.fd, context);
        assert_true(tls_client_shake(&crowd[i]));
        assert_memory_equal(tls_client_ask(&crowd[i], "PING"), "+PONG", 5);
        assert_true(server_send(&socket, "\x17\x03\x03\x40\x00x", 6));
        if (i % 10 == 9) {
            is_served_over_tls(s, context, CROWD);
            is_served_over_tls(s, context, OTHER);
        }
        assert_true(scene_units(s, CROWD_KEPT) <=
                    SERVER_THREAD_INPUT_BYTES + SERVER_HANDSHAKE_BYTES);
    }
    scene_await(&scene_worker(s)->counts.replaced_bytes, 1);
    for (unsigned left = RECORDS; left > 0; left--) {
        unsigned i = scene_random(left);
        tls_client_close(&crowd[i]);
        crowd[i] = crowd[left - 1];
    }
    is_served_over_tls(s, context, OTHER);
    for (unsigned i = 0; i < 600 && scene_units(s, CROWD_KEPT) > 0; i++) {
        (void)usleep(100000);
    }
    assert_int_equal(scene_units(s, CROWD_KEPT), 0);
    tls_context_unref(context);
    scene_stop(s);
    certificates_remove(&files);
}

static void long_replies_over_tls(struct scene *s)
{
    static struct certificates files;
    struct tls_client c;
    start_tls(s, &files);
    struct tls_context *context = tls_client_context(&files, "ca", NULL);
    tls_client_connect(&c, s->address[PROTOCOL_RESP], context);
    assert_true(tls_client_shake(&c));
    for (unsigned i = 0; i < 100; i++) {
        assert_true(tls_client_say(&c, TEXT(COMMANDS)));
    }
    assert_true(tls_client_await_bytes(&c, 100000));
    tls_client_close(&c);
    is_served_over_tls(s, context, OTHER);
    is_served_over_tls(s, context, CROWD);
    size_t kept = __atomic_load_n(&scene_worker(s)->cipher.size, __ATOMIC_RELAXED);
    assert_in_range(kept, 1, 8192); /* small.sed */
    tls_context_unref(context);
    scene_stop(s);
    certificates_remove(&files);
}

const struct driver drivers_bytes[] = {
    {"server.h", "SERVER_READ_BYTES", pipeline, NULL, NULL},
    {"server.h", "SERVER_FLUSH_BYTES", flushes, NULL, NULL},
    {"server.h", "SERVER_REQUEST_BYTES", request_bytes, NULL, NULL},
    {"server.h", "SERVER_REPLY_BYTES", reply_bytes, NULL, NULL},
    {"server.h", "SERVER_OUTPUT_BYTES", output_bytes, NULL, NULL},
    {"server.h", "SERVER_THREAD_OUTPUT_BYTES", thread_output_bytes, NULL, NULL},
    {"server.h", "SERVER_THREAD_INPUT_BYTES", thread_input_bytes, NULL, NULL},
    {"server.h", "SERVER_HANDSHAKE_BYTES", handshakes, NULL, NULL},
    {"server.h", "SERVER_RECORD_BYTES", records, NULL, NULL},
    {"connection_tls.c", "KEEP_BYTES", long_replies_over_tls, NULL, NULL},
    {"grpc.h", "GRPC_CALL_BYTES", call_bytes, NULL, NULL},
    {0},
};
