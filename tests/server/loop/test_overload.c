/*
 * More than the server can do: what has waited for too long is refused, what is
 * fresh is decided, and everything is fine again afterwards. The thread is held
 * up by the clock that it reads before each batch.
 */
// test-serial: yes
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/loop/worker.h"
#include "support/server/server_client.h"
#include "support/server/server_http.h"
#include "support/engine/threads_run.h"

#define STALL_MS 150
#define REQUESTS 100

static const char rules[] = "limits: [{name: api, key: [user], rate: 1000000/day}]";

struct scene {
    struct server server;
    char resp[128];
    char http[128];
    uint64_t now_ns;
    uint64_t stalls;  /* how many of the next batches are to be late */
    uint64_t stalled; /* how many have been, or are */
};

static void sleep_ms(unsigned ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    (void)nanosleep(&t, NULL);
}

static uint64_t slow_clock(void *arg)
{
    struct scene *s = arg;
    if (threads_get(&s->stalled) < threads_get(&s->stalls)) {
        (void)threads_add(&s->stalled, 1);
        sleep_ms(STALL_MS);
    }
    return s->now_ns;
}

static void start(struct scene *s, uint64_t max_age_ms)
{
    struct weir_rules_options o = WEIR_RULES_OPTIONS_INIT;
    struct weir_error error = {0};
    *s = (struct scene){.now_ns = (uint64_t)time(NULL) * WEIR_SECOND};
    s->server.options = server_world_options();
    s->server.options.listen[PROTOCOL_HTTP] = "127.0.0.1:0";
    s->server.options.threads = 1;
    s->server.options.max_age_ms = max_age_ms;
    o.clock = slow_clock;
    o.clock_arg = s;
    if (weir_rules_open_text(&s->server.rules, "test", rules, strlen(rules), &o, &error) != 0 ||
        server_start(&s->server, &error) != 0) {
        fail_msg("%s", error.text);
    }
    (void)server_address(&s->server, PROTOCOL_RESP, s->resp, sizeof s->resp);
    (void)server_address(&s->server, PROTOCOL_HTTP, s->http, sizeof s->http);
}

static void stop(struct scene *s)
{
    server_stop(&s->server);
    weir_rules_close(s->server.rules);
}

/* Somebody's batch takes long; returns when it has begun. */
static void hold_up(struct scene *s, struct server_client *c)
{
    uint64_t before = threads_get(&s->stalled);
    threads_set(&s->stalls, before + 1);
    assert_true(server_say(c, "WEIR.CHECK api slow"));
    while (threads_get(&s->stalled) == before) {
        sleep_ms(1);
    }
}

/* And once more, for somebody who has waited for the first: that is too often. */
static void overload(struct scene *s, struct server_client *slow)
{
    hold_up(s, slow);
    hold_up(s, slow + 1);
}

static void connect_slow(struct scene *s, struct server_client *slow)
{
    for (unsigned i = 0; i < 2; i++) {
        server_connect(&slow[i], s->resp);
        assert_string_equal(server_ask(&slow[i], "PING"), "+PONG");
    }
}

static void disconnect_slow(struct server_client *slow)
{
    server_disconnect(&slow[0]);
    server_disconnect(&slow[1]);
}

static void say_many(struct server_client *c, const char *words, unsigned n)
{
    char one[256];
    size_t len = server_pack(words, one, sizeof one);
    char *all = malloc(len * n);
    assert_non_null(all);
    for (unsigned i = 0; i < n; i++) {
        memcpy(all + i * len, one, len);
    }
    assert_true(server_send(c, all, len * n));
    free(all);
}

struct heard {
    unsigned allowed, refused, other;
    bool refused_last;
};

static struct heard hear_many(struct server_client *c, unsigned n)
{
    struct heard h = {0};
    for (unsigned i = 0; i < n; i++) {
        const char *reply = server_reply(c);
        h.refused_last = strncmp(reply, "-OVERLOAD ", 10) == 0;
        h.refused += h.refused_last;
        h.allowed += strncmp(reply, "['allow' 'api' ", 15) == 0;
    }
    h.other = n - h.allowed - h.refused;
    return h;
}

static void refuse_what_has_waited(const char *words)
{
    struct scene s;
    struct server_client slow[2];
    struct server_client c;
    start(&s, 50);
    connect_slow(&s, slow);
    server_connect(&c, s.resp);
    assert_string_equal(server_ask(&c, "PING"), "+PONG");
    overload(&s, slow);
    say_many(&c, words, REQUESTS);
    struct heard h = hear_many(&c, REQUESTS);
    assert_int_equal(h.other, 0);
    assert_true(h.refused >= REQUESTS / 2);
    assert_false(h.refused_last);
    assert_int_equal(
        threads_get(&s.server.workers[0].counts.requests[REQUEST_OVERLOAD][PROTOCOL_RESP]),
        h.refused);
    for (unsigned i = 0; i < 2; i++) { /* the second had waited too, for a hiccup */
        assert_int_equal(strncmp(server_reply(&slow[i]), "['allow'", 8), 0);
    }

    char left[64]; /* the refused took nothing */
    (void)snprintf(left, sizeof left, "['allow' 'api' 1000000 %u ", 1000000 - h.allowed);
    assert_int_equal(strncmp(server_ask(&c, "WEIR.PEEK api alice"), left, strlen(left)), 0);
    server_disconnect(&c);
    disconnect_slow(slow);
    stop(&s);
}

static void stale_requests_are_refused_and_fresh_ones_are_decided(void **state)
{
    (void)state;
    refuse_what_has_waited("WEIR.CHECK api alice");
}

static void reservations_that_have_waited_are_refused_too(void **state)
{
    (void)state;
    refuse_what_has_waited("WEIR.RESERVE api alice");
}

static void a_handshake_does_not_save_the_stale_requests_after_it(void **state)
{
    struct scene s;
    struct server_client slow[2];
    struct server_client c;
    char bytes[256];
    size_t len = server_pack("PING", bytes, sizeof bytes);
    unsigned refused = 0;
    (void)state;
    len += server_pack("WEIR.CHECK api alice", bytes + len, sizeof bytes - len);
    start(&s, 50);
    connect_slow(&s, slow);
    server_connect(&c, s.resp);
    assert_string_equal(server_ask(&c, "PING"), "+PONG");
    overload(&s, slow);
    for (unsigned i = 0; i < 100; i++) {
        assert_true(server_send(&c, bytes, len));
    }
    for (unsigned i = 0; i < 100; i++) {
        assert_string_equal(server_reply(&c), "+PONG");
        refused += strncmp(server_reply(&c), "-OVERLOAD ", 10) == 0;
    }
    assert_true(refused >= 50);
    server_disconnect(&c);
    disconnect_slow(slow);
    stop(&s);
}

/* It is refused as a whole: a part of it is never decided. */
static void a_stale_transaction_is_refused_by_its_exec(void **state)
{
    struct scene s;
    struct server_client slow[2];
    struct server_client c;
    char bytes[256];
    unsigned refused = 0;
    size_t len = server_pack("MULTI", bytes, sizeof bytes);
    (void)state;
    len += server_pack("WEIR.CHECK api alice", bytes + len, sizeof bytes - len);
    len += server_pack("WEIR.CHECK api alice", bytes + len, sizeof bytes - len);
    len += server_pack("EXEC", bytes + len, sizeof bytes - len);
    start(&s, 50);
    connect_slow(&s, slow);
    server_connect(&c, s.resp);
    assert_string_equal(server_ask(&c, "PING"), "+PONG");
    overload(&s, slow);
    for (unsigned i = 0; i < 50; i++) {
        assert_true(server_send(&c, bytes, len));
    }
    for (unsigned i = 0; i < 50; i++) {
        assert_string_equal(server_reply(&c), "+OK");
        assert_string_equal(server_reply(&c), "+QUEUED");
        assert_string_equal(server_reply(&c), "+QUEUED");
        const char *reply = server_reply(&c);
        bool over = strncmp(reply, "-OVERLOAD ", 10) == 0;
        assert_true(over || strncmp(reply, "[['allow' ", 10) == 0);
        refused += over;
    }
    assert_true(refused >= 25);
    char left[64];
    (void)snprintf(left, sizeof left, "['allow' 'api' 1000000 %u ", 1000000 - 2 * (50 - refused));
    assert_int_equal(strncmp(server_ask(&c, "WEIR.PEEK api alice"), left, strlen(left)), 0);
    server_disconnect(&c);
    disconnect_slow(slow);
    stop(&s);
}

static void handshakes_and_health_are_answered_however_late(void **state)
{
    struct scene s;
    struct server_client slow[2];
    struct server_client c;
    struct server_client h;
    static const char http[] =
        "POST /v1/check HTTP/1.1\r\nHost: localhost\r\nContent-Length: 32\r\n\r\n"
        "{\"limit\":\"api\",\"key\":\"alice\"}   "
        "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    (void)state;
    start(&s, 50);
    connect_slow(&s, slow);
    server_connect(&c, s.resp);
    server_connect(&h, s.http);
    assert_string_equal(server_ask(&c, "PING"), "+PONG");
    overload(&s, slow);
    say_many(&c, "PING", REQUESTS);
    assert_true(server_send(&h, http, strlen(http)));
    for (unsigned i = 0; i < REQUESTS; i++) {
        assert_string_equal(server_reply(&c), "+PONG");
    }
    struct http_answer a;
    assert_true(http_receive(h.fd, &a));
    assert_int_equal(a.status, 503);
    assert_int_equal(http_retry_after(&a), 1);
    assert_true(http_receive(h.fd, &a));
    assert_int_equal(a.status, 200);
    server_disconnect(&h);
    server_disconnect(&c);
    disconnect_slow(slow);
    stop(&s);
}

static void a_client_that_waits_only_for_its_own_pipeline_is_not_refused(void **state)
{
    struct scene s;
    struct server_client c;
    unsigned n = 8 * SERVER_READ_BYTES / 40;
    (void)state;
    start(&s, 50);
    server_connect(&c, s.resp);
    hold_up(&s, &c);
    say_many(&c, "WEIR.CHECK api alice", n);
    assert_int_equal(strncmp(server_reply(&c), "['allow'", 8), 0);
    (void)hear_many(&c, SERVER_READ_BYTES / 40 + 1); /* the first read of it came after the wait */
    threads_set(&s.stalls, 3);
    struct heard h = hear_many(&c, n - SERVER_READ_BYTES / 40 - 1);
    assert_int_equal(h.refused + h.other, 0);
    server_disconnect(&c);
    stop(&s);
}

static void a_single_pause_is_not_overload(void **state)
{
    struct scene s;
    struct server_client slow;
    struct server_client c;
    (void)state;
    start(&s, 50);
    server_connect(&slow, s.resp);
    server_connect(&c, s.resp);
    hold_up(&s, &slow);
    say_many(&c, "WEIR.CHECK api alice", REQUESTS);
    assert_int_equal(hear_many(&c, REQUESTS).allowed, REQUESTS);
    server_disconnect(&c);
    server_disconnect(&slow);
    stop(&s);
}

static void without_a_largest_age_nothing_is_refused(void **state)
{
    struct scene s;
    struct server_client slow[2];
    struct server_client c;
    (void)state;
    start(&s, 0);
    connect_slow(&s, slow);
    server_connect(&c, s.resp);
    overload(&s, slow);
    say_many(&c, "WEIR.CHECK api alice", REQUESTS);
    assert_int_equal(hear_many(&c, REQUESTS).allowed, REQUESTS);
    server_disconnect(&c);
    disconnect_slow(slow);
    stop(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stale_requests_are_refused_and_fresh_ones_are_decided),
        cmocka_unit_test(reservations_that_have_waited_are_refused_too),
        cmocka_unit_test(a_handshake_does_not_save_the_stale_requests_after_it),
        cmocka_unit_test(a_stale_transaction_is_refused_by_its_exec),
        cmocka_unit_test(handshakes_and_health_are_answered_however_late),
        cmocka_unit_test(a_client_that_waits_only_for_its_own_pipeline_is_not_refused),
        cmocka_unit_test(a_single_pause_is_not_overload),
        cmocka_unit_test(without_a_largest_age_nothing_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
