/*
 * What strangers may do to the server: they are told once, cut off in time, and
 * take no more memory than the bounds of server.h.
 */
// test-timeout: 120
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/loop/worker.h"
#include "support/server/server_client.h"
#include "support/server/server_memory.h"
#include "support/engine/threads_run.h"
#include "support/engine/unit_limiter.h"

static const char rules[] = "limits: [{name: api, key: [user], rate: 1000/day}]";

static uint64_t timed_out(const struct server_world *w)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < w->server.workers_count; i++) {
        n += threads_get(&w->server.workers[i].counts.timed_out);
    }
    return n;
}

/* ---- bombs ---- */

#define OFF "; inline commands other than HELLO and PING are off"

static const struct {
    const char *bytes;
    const char *reply; /* behind it the connection ends */
} bombs[] = {
    {"*2147483647\r\n", "-ERR Protocol error: invalid multibulk length"},
    {"*129\r\n", "-ERR Protocol error: invalid multibulk length"},
    {"*99999999999999999999\r\n", "-ERR Protocol error: invalid multibulk length"},
    {"*1\r\n$536870912\r\n", "-ERR Protocol error: invalid bulk length"},
    {"*1\r\n$16385\r\n", "-ERR Protocol error: invalid bulk length"},
    {"*1\r\n$-1\r\n", "-ERR Protocol error: invalid bulk length"},
    {"*1\r\n$9223372036854775808\r\n", "-ERR Protocol error: invalid bulk length"},
    {"*1\r\n:1\r\n", "-ERR Protocol error: expected '$', got ':'"},
    {"*1\r\n*1\r\n$4\r\nPING\r\n", "-ERR Protocol error: expected '$', got '*'"},
    {"*1\r\n$4\r\nPINGxx", "-ERR Protocol error: expected CR LF after a bulk string"},
    {"*111111111111111111111111111111111111111", "-ERR Protocol error: too big mbulk count string"},
    {"ECHO x\r\n", "-ERR Protocol error: expected '*', got 'E'" OFF},
    {"POST / HTTP/1.1\r\nHost: x\r\n\r\n", "-ERR Protocol error: expected '*', got 'P'" OFF},
    {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "-ERR Protocol error: expected '*', got 'G'" OFF},
    {"\x16\x03\x01\x02", "-ERR Protocol error: expected '*', got '\\x16'" OFF},
};

static void a_bomb_is_told_what_it_is_and_ends(void **state)
{
    struct server_options o = server_world_options();
    struct server_world w;
    size_t before = server_resident_bytes();
    server_world_start(&w, rules, &o);
    for (unsigned i = 0; i < sizeof bombs / sizeof bombs[0]; i++) {
        struct server_client c;
        server_connect(&c, w.address);
        assert_string_equal(server_ask(&c, "PING"), "+PONG");
        assert_true(server_send(&c, bombs[i].bytes, strlen(bombs[i].bytes)));
        const char *heard = server_reply(&c);
        if (strcmp(heard, bombs[i].reply) != 0) {
            fail_msg("bomb %u: got %s, expected %s", i, heard, bombs[i].reply);
        }
        assert_string_equal(server_reply(&c), "end");
        server_disconnect(&c);
    }
    server_assert_grown_less(before, 16 << 20);
    server_world_stop(&w);
}

static void the_reason_arrives_however_much_is_sent_behind(void **state)
{
    struct server_options o = server_world_options();
    struct server_world w;
    struct server_client c;
    static char rest[1 << 20];
    server_world_start(&w, rules, &o);
    server_connect(&c, w.address);
    assert_true(server_send(&c, "*1\r\n$99999\r\n", 12));
    assert_true(server_send(&c, rest, sizeof rest));
    assert_string_equal(server_reply(&c), "-ERR Protocol error: invalid bulk length");
    assert_string_equal(server_reply(&c), "end");
    server_disconnect(&c);
    server_world_stop(&w);
}

static void a_request_has_a_largest_size(void **state)
{
    struct server_options o = server_world_options();
    struct server_world w;
    struct server_client c;
    static char argument[16384 + 16];
    int n = snprintf(argument, sizeof argument, "$16384\r\n%016384d\r\n", 0);
    server_world_start(&w, rules, &o);
    server_connect(&c, w.address);
    assert_true(server_send(&c, "*9\r\n", 4));
    for (unsigned i = 0; i < 9 && server_send(&c, argument, (size_t)n); i++) {
    }
    assert_string_equal(server_reply(&c), "-ERR Protocol error: too big request");
    assert_string_equal(server_reply(&c), "end");
    server_disconnect(&c);
    server_world_stop(&w);
}

/* What is announced is not allocated; idle connections hold next to nothing. */
static void many_connections_cost_what_they_sent(void **state)
{
    enum { MOST = 1000 };
    unsigned n = (unsigned)THREADS_ROUNDS(MOST, 200, 100);
    n = n > MOST ? MOST : n;
    struct server_options o = server_world_options();
    struct server_world w;
    static struct server_client c[MOST];
    struct rlimit files;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    server_world_start(&w, rules, &o);
    for (unsigned i = 0; i < n; i++) {
        server_connect(&c[i], w.address);
        assert_string_equal(server_ask(&c[i], "PING"),
                            "+PONG"); /* the client's buffer counts too */
    }
    size_t before = server_resident_bytes();
    for (unsigned i = 0; i < n; i++) {
        assert_true(server_send(&c[i], "*128\r\n$16384\r\n", 14));
    }
    struct server_client other;
    server_connect(&other, w.address);
    for (unsigned i = 0; i < 100; i++) {
        assert_string_equal(server_ask(&other, "PING"), "+PONG");
    }
    server_assert_grown_less(before, 8 << 20);
    assert_int_equal(threads_get(&w.server.connections), n + 1);
    for (unsigned i = 0; i < w.server.workers_count; i++) { /* each thread has its share */
        assert_true(threads_get(&w.server.workers[i].counts.accepted[PROTOCOL_RESP]) > n / 10);
    }
    server_disconnect(&other);
    for (unsigned i = 0; i < n; i++) {
        server_disconnect(&c[i]);
    }
    server_world_stop(&w);
    assert_int_equal(w.server.connections, 0);
}

/* Each may send the beginning of a large request, but not all of them at once. */
static void requests_that_never_end_have_one_bound_together(void **state)
{
    enum { N = 900 };
    static char part[80000] = "*128\r\n";
    static struct server_client c[N];
    struct server_options o = server_world_options();
    struct server_world w;
    size_t len = strlen(part);
    for (unsigned i = 0; i < 4; i++) { /* whole ones: 64 KiB */
        len += (size_t)sprintf(part + len, "$16384\r\n");
        memset(part + len, 'x', 16384);
        len += 16384;
        len += (size_t)sprintf(part + len, "\r\n");
    }
    len += (size_t)sprintf(part + len, "$16000\r\n");
    memset(part + len, 'x', sizeof part - len);
    o.threads = 1;
    o.request_ms = 600000;
    server_world_start(&w, rules, &o);
    for (unsigned i = 0; i < N; i++) {
        server_connect(&c[i], w.address);
        (void)server_send(&c[i], part, sizeof part);
    }
    struct server_client other;
    server_connect(&other, w.address);
    assert_string_equal(server_ask(&other, "PING"), "+PONG");
    uint64_t *open = &w.server.workers[0].counts.open[PROTOCOL_RESP];
    unsigned patience_ms = 60000;
    while (threads_get(open) > SERVER_THREAD_INPUT_BYTES / sizeof part + 1 && patience_ms > 0) {
        (void)usleep(1000);
        patience_ms--;
    }
    assert_true(patience_ms > 0);
    assert_int_equal(threads_get(open) + threads_get(&w.server.workers[0].counts.replaced_bytes),
                     N + 1);
    assert_int_equal(timed_out(&w), 0); /* none of them was slow */
    assert_string_equal(server_ask(&other, "PING"), "+PONG");
    server_disconnect(&other);
    for (unsigned i = 0; i < N; i++) {
        server_disconnect(&c[i]);
    }
    server_world_stop(&w);
}

/* ---- time ---- */

static void a_request_that_does_not_end_is_cut_off(void **state)
{
    struct server_options o = server_world_options();
    struct server_world w;
    struct server_client slow;
    struct server_client idle;
    o.request_ms = 50;
    server_world_start(&w, rules, &o);
    server_connect(&slow, w.address);
    server_connect(&idle, w.address);
    assert_string_equal(server_ask(&idle, "PING"), "+PONG");
    assert_true(server_send(&slow, "*1\r\n$4\r\nPI", 10));
    assert_string_equal(server_reply(&slow), "end");
    assert_int_equal(timed_out(&w), 1);
    assert_string_equal(server_ask(&idle, "PING"), "+PONG");
    server_disconnect(&slow);
    server_disconnect(&idle);
    server_world_stop(&w);
}

static void bytes_that_trickle_do_not_prolong_a_request(void **state)
{
    struct server_options o = server_world_options();
    struct server_world w;
    struct server_client c;
    o.request_ms = 50;
    server_world_start(&w, rules, &o);
    server_connect(&c, w.address);
    assert_true(server_send(&c, "*1\r\n$16384\r\n", 12));
    unsigned sent = 0;
    for (; sent < 16384 && server_send(&c, "x", 1) && timed_out(&w) == 0; sent++) {
        (void)usleep(1000);
    }
    assert_true(sent < 16384);
    assert_int_equal(timed_out(&w), 1);
    server_disconnect(&c);
    server_world_stop(&w);
}

static void silence_ends_after_its_time(void **state)
{
    struct server_options o = server_world_options();
    struct server_world w;
    struct server_client c;
    o.idle_ms = 50;
    server_world_start(&w, rules, &o);
    server_connect(&c, w.address);
    assert_string_equal(server_ask(&c, "PING"), "+PONG");
    assert_string_equal(server_reply(&c), "end");
    assert_int_equal(timed_out(&w), 1);
    server_disconnect(&c);
    server_world_stop(&w);
}

/* Asks for more than the bounds hold and fetches nothing. */
static void who_fetches_no_replies_is_cut_off_and_bounded(void **state)
{
    struct server_options o = server_world_options();
    struct server_world w;
    struct server_client c;
    char bytes[64];
    static char many[1 << 16];
    size_t n = server_pack("COMMAND DOCS", bytes, sizeof bytes);
    size_t len = 0;
    for (; len + n <= sizeof many; len += n) {
        memcpy(many + len, bytes, n);
    }
    o.write_ms = 200;
    server_world_start(&w, rules, &o);
    server_connect(&c, w.address);
    size_t before = server_resident_bytes();
    while (server_send(&c, many, len)) {
    }
    assert_int_equal(timed_out(&w), 1);
    server_assert_grown_less(before, 4 * SERVER_OUTPUT_BYTES);
    server_disconnect(&c);
    server_connect(&c, w.address);
    assert_string_equal(server_ask(&c, "PING"), "+PONG");
    server_disconnect(&c);
    server_world_stop(&w);
}

/* A write to a peer that is gone must not be a signal. */
static void who_hangs_up_before_the_answer_harms_nobody(void **state)
{
    struct server_options o = server_world_options();
    struct server_world w;
    struct server_client c;
    char *folder = unit_folder();
    char address[256];
    (void)snprintf(address, sizeof address, "unix:%s/socket", folder);
    o.listen[PROTOCOL_RESP] = address;
    server_world_start(&w, rules, &o);
    for (unsigned i = 0; i < 100; i++) {
        server_connect(&c, w.address);
        assert_true(server_say(&c, "PING"));
        server_disconnect(&c);
    }
    server_connect(&c, w.address);
    assert_string_equal(server_ask(&c, "PING"), "+PONG");
    server_disconnect(&c);
    server_world_stop(&w);
    assert_int_equal(w.server.connections, 0);
    unit_folder_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bomb_is_told_what_it_is_and_ends),
        cmocka_unit_test(the_reason_arrives_however_much_is_sent_behind),
        cmocka_unit_test(a_request_has_a_largest_size),
        cmocka_unit_test(many_connections_cost_what_they_sent),
        cmocka_unit_test(requests_that_never_end_have_one_bound_together),
        cmocka_unit_test(a_request_that_does_not_end_is_cut_off),
        cmocka_unit_test(bytes_that_trickle_do_not_prolong_a_request),
        cmocka_unit_test(silence_ends_after_its_time),
        cmocka_unit_test(who_fetches_no_replies_is_cut_off_and_bounded),
        cmocka_unit_test(who_hangs_up_before_the_answer_harms_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
