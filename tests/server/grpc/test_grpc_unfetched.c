/*
 * Replies that a client's window does not let out are unsent bytes like others: they are
 * bounded for the client and the thread, they are fetched in time, and a request is freed
 * when it is decided.
 */
// test-labels: notsan
// test-timeout: 600
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "server/grpc/grpc.h"
#include "support/engine/threads_run.h"
#include "support/server/server_http2.h"
#include "support/server/server_memory.h"

#define BATCH "/weir.v1.Limiter/Batch"
#define WATCH "/grpc.health.v1.Health/Watch"
#define CHECKS 1000  /* in one message: the most */
#define STREAMS 250u /* of one connection */
#define WRITE_MS 2000
#define OPEN 0x7fff0000u /* a window that never closes */

static struct server_world world;
static char address[SERVER_ADDRESS_MAX];

static void start(uint64_t write_ms)
{
    struct server_options o = server_world_options();
    o.threads = 1;
    o.write_ms = write_ms;
    o.listen[PROTOCOL_RESP] = "off";
    o.listen[PROTOCOL_GRPC] = "127.0.0.1:0";
    server_world_start(&world, "limits: [{name: a, key: [user], rate: 1000000/s}]", &o);
    (void)server_address(&world.server, PROTOCOL_GRPC, address, sizeof address);
}

static size_t unsent(void)
{
    return __atomic_load_n(&world.server.workers[0].crowds[CROWD_UNSENT].units, __ATOMIC_RELAXED);
}

static size_t kept(void)
{
    return __atomic_load_n(&world.server.workers[0].crowds[CROWD_KEPT].units, __ATOMIC_RELAXED);
}

static uint64_t cut(void)
{
    return threads_get(&world.server.workers[0].counts.timed_out);
}

static uint64_t closed_for_bytes(void)
{
    return threads_get(&world.server.workers[0].counts.replaced_bytes);
}

static unsigned answered(void)
{
    const struct worker *w = &world.server.workers[0];
    return (unsigned)threads_get(&w->counts.requests[REQUEST_ERROR][PROTOCOL_GRPC]) / CHECKS;
}

/* Waits until the server has answered so many batches, or no more for a second. */
static void await(unsigned batches)
{
    unsigned before = UINT32_MAX;
    while (answered() < batches && answered() != before) {
        before = answered();
        (void)usleep(1000000);
    }
}

/* Asks for about 70 KB on each stream, for which the server takes 128 KB. */
static bool ask_much(struct server_client *c, unsigned streams)
{
    bool goes_on = true;
    for (unsigned i = 0; i < streams && goes_on; i++) {
        goes_on = http2_call(c, 2 * i + 1, BATCH, http2_batch(CHECKS));
    }
    return goes_on;
}

/* The client may have the last bytes before the server has counted them. */
static void assert_nothing_unsent(void)
{
    for (unsigned i = 0; unsent() > 0 && i < 1000; i++) {
        (void)usleep(10000);
    }
    assert_int_equal(unsent(), 0);
}

/* Receives everything. Returns how many streams have ended, and the bytes of their messages. */
static unsigned fetch(struct server_client *c, unsigned streams, size_t *bytes)
{
    static struct http2_frame frame;
    unsigned ended = 0;
    *bytes = 0;
    while (ended < streams && http2_receive(c, &frame)) {
        *bytes += frame.type == HTTP2_DATA ? frame.len : 0;
        ended += frame.type == HTTP2_HEADERS && (frame.flags & 1) != 0;
    }
    return ended;
}

static void an_address_cannot_fill_the_memory_with_replies(void **state)
{
    enum { CONNECTIONS = 60 };
    struct server_client crowd[CONNECTIONS];
    struct server_client honest;
    size_t before = server_resident_bytes();
    size_t most = 0;
    start(120000);
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        server_connect_from(&crowd[i], address, 2);
        if (http2_begin(&crowd[i], 0)) {
            (void)ask_much(&crowd[i], STREAMS);
        }
        most = unsent() > most ? unsent() : most;
        server_connect(&honest, address);
        size_t bytes;
        assert_true(http2_begin(&honest, OPEN));
        assert_true(http2_call(&honest, 1, BATCH, http2_batch(10)));
        assert_int_equal(fetch(&honest, 1, &bytes), 1);
        server_disconnect(&honest);
    }
    most = unsent() > most ? unsent() : most;
    server_assert_grown_less(before, 4 * SERVER_THREAD_OUTPUT_BYTES);
    assert_true(most > SERVER_THREAD_OUTPUT_BYTES / 2);
    assert_true(most < 2 * SERVER_THREAD_OUTPUT_BYTES + SERVER_OUTPUT_BYTES);
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        server_disconnect(&crowd[i]);
    }
    server_world_stop(&world);
}

static void beyond_twice_the_bound_of_a_thread_connections_are_closed(void **state)
{
    enum { CONNECTIONS = 400, EACH = 4 }; /* each stays below what one client may keep */
    static struct server_client crowd[CONNECTIONS];
    start(120000);
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        server_connect_from(&crowd[i], address, 2 + i % 3);
        if (http2_begin(&crowd[i], 0)) {
            (void)ask_much(&crowd[i], EACH);
        }
        assert_true(unsent() < 2 * SERVER_THREAD_OUTPUT_BYTES + SERVER_OUTPUT_BYTES);
    }
    await(CONNECTIONS * EACH);
    assert_true(unsent() < 2 * SERVER_THREAD_OUTPUT_BYTES + SERVER_OUTPUT_BYTES);
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        server_disconnect(&crowd[i]);
    }
    server_world_stop(&world);
}

static void a_client_that_opens_its_window_gets_every_reply(void **state)
{
    struct server_client c;
    size_t bytes;
    start(120000);
    server_connect(&c, address);
    assert_true(http2_begin(&c, 0));
    assert_true(ask_much(&c, STREAMS));
    await(STREAMS);
    assert_int_equal(unsent(), SERVER_OUTPUT_BYTES);
    assert_int_equal(answered(), SERVER_OUTPUT_BYTES / (128u << 10)); /* the other calls wait */
    assert_true(http2_open_window(&c, 0, OPEN));
    for (unsigned i = 0; i < STREAMS; i++) {
        assert_true(http2_open_window(&c, 2 * i + 1, OPEN));
    }
    assert_int_equal(fetch(&c, STREAMS, &bytes), STREAMS);
    assert_int_equal(answered(), STREAMS);
    assert_int_equal(bytes % STREAMS, 0);
    assert_true(bytes / STREAMS > 65536);
    assert_nothing_unsent();
    server_disconnect(&c);
    assert_int_equal(cut() + closed_for_bytes(), 0);
    server_world_stop(&world);
}

static void a_request_is_freed_when_it_is_decided(void **state)
{
    struct server_client c;
    start(120000);
    server_connect(&c, address);
    assert_true(http2_begin(&c, 0));
    assert_true(ask_much(&c, 50));
    await(50);
    assert_int_equal(answered(), 50);
    assert_int_equal(kept(), 50 * GRPC_CALL_BYTES); /* the streams, without the messages */
    server_disconnect(&c);
    server_world_stop(&world);
}

/* Sends a part of a head that has a field of HALF bytes and more, which nghttp2 keeps until it
 * is whole. */
static void half_a_head_is_kept_until_it_is_whole(void **state)
{
    enum { HALF = 12000, REST = HALF + 3 - 127 };
    static char head[9 + HALF + 64] = "\0\0\0\1\0\0\0\0\1" /* HEADERS, which go on */
                                      "\x83\x86\x41\1x\x44\x16" BATCH "\x40\1x\x7f";
    static char rest[] = "\0\0\3\x09\4\0\0\0\1xxx"; /* CONTINUATION, which ends them */
    size_t n = 9 + 7 + strlen(BATCH) + 4;
    struct server_client c;
    head[n++] = (char)(REST % 128 | 128);
    head[n++] = REST / 128;
    memset(head + n, 'x', HALF);
    n += HALF;
    head[1] = (char)((n - 9) >> 8);
    head[2] = (char)(n - 9);
    start(120000);
    server_connect(&c, address);
    assert_true(http2_begin(&c, OPEN));
    assert_true(server_send(&c, head, n));
    for (unsigned i = 0; kept() < HALF && i < 1000; i++) {
        (void)usleep(10000);
    }
    assert_in_range(kept(), HALF, 4 * HALF);
    assert_true(server_send(&c, rest, sizeof rest - 1));
    for (unsigned i = 0; kept() > GRPC_CALL_BYTES && i < 1000; i++) {
        (void)usleep(10000);
    }
    assert_int_equal(kept(), GRPC_CALL_BYTES);
    server_disconnect(&c);
    server_world_stop(&world);
}

static void waits_until(uint64_t cut_connections)
{
    uint64_t begun = clock_boot_ns();
    while (cut() < cut_connections && clock_boot_ns() - begun < 120 * WEIR_SECOND) {
        (void)usleep(50000);
    }
    assert_int_equal(cut(), cut_connections);
}

static void a_client_that_fetches_nothing_is_cut_off(void **state)
{
    static const char *const paths[] = {BATCH, WATCH};
    start(WRITE_MS);
    for (unsigned i = 0; i < 2; i++) {
        static struct http2_frame frame;
        struct server_client c;
        server_connect(&c, address);
        assert_true(http2_begin(&c, 0));
        assert_true(http2_call(&c, 1, paths[i], http2_batch(i == 0 ? CHECKS : 0)));
        waits_until(i + 1);
        while (http2_receive(&c, &frame)) {
            assert_int_not_equal(frame.type, HTTP2_DATA);
        }
        server_disconnect(&c);
    }
    server_world_stop(&world);
}

static void crumbs_and_pings_are_no_progress(void **state)
{
    struct server_client c;
    start(WRITE_MS);
    server_connect(&c, address);
    assert_true(http2_begin(&c, 0));
    assert_true(ask_much(&c, 10));
    for (unsigned i = 0; i < 600 && cut() == 0; i++) {
        (void)(http2_ping(&c) && http2_open_window(&c, 1, 1));
        (void)usleep(100000);
    }
    assert_int_equal(cut(), 1);
    server_disconnect(&c);
    server_world_stop(&world);
}

/* Its windows never let out everything, so that the server always waits for it. */
static void a_client_that_fetches_steadily_is_not_cut_off(void **state)
{
    enum { CALLS = 12, STEP = 20000, STEPS = 5 };
    static struct http2_frame frame;
    struct server_client c;
    start(2 * WRITE_MS);
    server_connect(&c, address);
    assert_true(http2_begin(&c, 0));
    assert_true(http2_open_window(&c, 0, OPEN));
    assert_true(ask_much(&c, CALLS));
    unsigned ended = 0;
    for (unsigned stream = 1; ended < CALLS; stream += 2) {
        for (unsigned i = 0; i < STEPS; i++) {
            assert_true(http2_open_window(&c, stream, STEP));
            (void)usleep(WRITE_MS * 1000 / 10);
        }
        for (unsigned now = ended; ended == now;) {
            assert_true(http2_receive(&c, &frame));
            ended += frame.type == HTTP2_HEADERS && (frame.flags & 1) != 0;
        }
    }
    assert_int_equal(cut(), 0);
    assert_nothing_unsent();
    server_disconnect(&c);
    server_world_stop(&world);
}

static void replies_of_cancelled_calls_are_not_counted(void **state)
{
    struct server_client c;
    start(120000);
    server_connect(&c, address);
    assert_true(http2_begin(&c, 0));
    assert_true(ask_much(&c, STREAMS));
    await(STREAMS);
    for (unsigned i = 0; i < STREAMS; i++) {
        assert_true(http2_reset(&c, 2 * i + 1));
    }
    assert_true(http2_call(&c, 2 * STREAMS + 1, BATCH, http2_batch(CHECKS)));
    assert_true(http2_open_window(&c, 2 * STREAMS + 1, OPEN));
    size_t bytes;
    assert_true(http2_open_window(&c, 0, OPEN));
    assert_int_equal(fetch(&c, 1, &bytes), 1);
    assert_nothing_unsent();
    server_disconnect(&c);
    server_world_stop(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_cannot_fill_the_memory_with_replies),
        cmocka_unit_test(beyond_twice_the_bound_of_a_thread_connections_are_closed),
        cmocka_unit_test(a_client_that_opens_its_window_gets_every_reply),
        cmocka_unit_test(a_request_is_freed_when_it_is_decided),
        cmocka_unit_test(half_a_head_is_kept_until_it_is_whole),
        cmocka_unit_test(a_client_that_fetches_nothing_is_cut_off),
        cmocka_unit_test(crumbs_and_pings_are_no_progress),
        cmocka_unit_test(a_client_that_fetches_steadily_is_not_cut_off),
        cmocka_unit_test(replies_of_cancelled_calls_are_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
