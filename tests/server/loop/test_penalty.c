/* Wrong secrets cost time, for each address, in bounded memory; right ones never do. */
#include <poll.h>
#include <unistd.h>

#include "base/clock.h"
#include "server/loop/access_story.h"
#include "server/loop/penalty.h"

#define ATTEMPTS 20 /* at something that a busy machine may make too late */

static struct address address_of(const char *text)
{
    struct address a = {.family = 0};
    assert_int_equal(address_parse(text_of(text), &a, NULL), 0);
    return a;
}

static uint64_t now_ms(void)
{
    return clock_monotonic_ns() / WEIR_MILLISECOND;
}

/* ---- counts ---- */

static void the_tenth_of_an_address_is_delayed_and_then_each_twice_as_long(void **state)
{
    static const uint64_t late[] = {10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000};
    struct penalties *p;
    struct weir_error error;
    struct address one = address_of("203.0.113.7");
    struct address other = address_of("203.0.113.8");
    struct address unix_socket = {.family = 0};
    assert_int_equal(penalties_create(&p, &error), 0);
    for (unsigned i = 0; i < PENALTY_FREE; i++) {
        assert_int_equal(penalty_note(p, &one, 1000 + i), 0);
    }
    for (unsigned i = 0; i < sizeof late / sizeof late[0]; i++) {
        assert_int_equal(penalty_note(p, &one, 2000 + i), late[i]);
    }
    assert_int_equal(penalty_note(p, &other, 3000), 0);
    assert_int_equal(penalty_note(p, &unix_socket, 3000), 0);
    assert_int_equal(penalty_note(p, &one, 2009 + PENALTY_FORGET_MS), 1000);
    assert_int_equal(penalty_note(p, &one, 2010 + 2 * PENALTY_FORGET_MS), 0); /* forgotten */
    penalties_destroy(p);
    penalties_destroy(NULL);
}

static void a_64_of_ipv6_is_one_address(void **state)
{
    struct penalties *p;
    struct weir_error error;
    char text[64];
    assert_int_equal(penalties_create(&p, &error), 0);
    for (unsigned i = 0; i < PENALTY_FREE; i++) {
        (void)snprintf(text, sizeof text, "2001:db8::%x", i + 1);
        struct address a = address_of(text);
        assert_int_equal(penalty_note(p, &a, 1000), 0);
    }
    struct address same = address_of("2001:db8::ffff:1");
    struct address next = address_of("2001:db8:0:1::1");
    assert_int_equal(penalty_note(p, &same, 1000), PENALTY_FIRST_MS);
    assert_int_equal(penalty_note(p, &next, 1000), 0);
    penalties_destroy(p);
}

/* Each of the new addresses has one wrong secret: they replace each other. */
static void a_flood_of_addresses_does_not_hide_the_one_with_most(void **state)
{
    struct penalties *p;
    struct weir_error error;
    struct address worst = address_of("203.0.113.7");
    char text[64];
    assert_int_equal(penalties_create(&p, &error), 0);
    for (unsigned i = 0; i < 20; i++) {
        (void)penalty_note(p, &worst, 1000);
    }
    for (unsigned i = 0; i < 20 * PENALTY_PLACES; i++) {
        (void)snprintf(text, sizeof text, "10.%u.%u.%u", i >> 16 & 255, i >> 8 & 255, i & 255);
        struct address a = address_of(text);
        (void)penalty_note(p, &a, 1000);
    }
    assert_int_equal(penalty_note(p, &worst, 1000), PENALTY_MOST_MS);
    penalties_destroy(p);
}

/* ---- over the wire ---- */

/* Lets the address of the tests have so many wrong secrets that the next one costs a second. */
static void make_suspect(struct server *server)
{
    struct address loopback = address_of("127.0.0.1");
    for (unsigned i = 0; i < 30; i++) {
        (void)penalty_note(server->penalties, &loopback, now_ms());
    }
}

static void start(struct server_world *w)
{
    struct server_options o = server_world_options();
    o.access = secrets("check-1", "admin-1");
    server_world_start(w, rules, &o);
    make_suspect(&w->server);
}

static void stop(struct server_world *w)
{
    struct access *access = w->server.options.access;
    server_world_stop(w);
    access_close(access);
}

static void a_wrong_secret_waits_and_the_replies_after_it_too(void **state)
{
    struct server_world w;
    struct server_client c;
    start(&w);
    server_connect(&c, w.address);
    uint64_t began = now_ms();
    assert_true(server_say(&c, "AUTH wrong"));
    assert_true(server_say(&c, "AUTH check-1"));
    assert_true(server_say(&c, "PING"));
    assert_true(starts(server_reply(&c), "-WRONGPASS"));
    assert_true(now_ms() - began >=
                PENALTY_MOST_MS - 10); /* the loop's clock counts milliseconds */
    assert_string_equal(server_reply(&c), "+OK");
    assert_string_equal(server_reply(&c), "+PONG");
    began = now_ms();
    assert_true(starts(server_ask(&c, "HELLO 3 AUTH default wrong"), "-WRONGPASS"));
    assert_true(now_ms() - began >= PENALTY_MOST_MS - 10);
    uint64_t delayed = 0;
    uint64_t pending = 0;
    for (unsigned i = 0; i < w.server.workers_count; i++) {
        delayed += load_relaxed(&w.server.workers[i].counts.delayed);
        pending += load_relaxed(&w.server.workers[i].counts.pending); /* by the store */
    }
    assert_int_equal(delayed, 2);
    assert_int_equal(pending, 0);
    server_disconnect(&c);
    stop(&w);
}

static void in_a_transaction_the_whole_reply_waits(void **state)
{
    struct server_world w;
    struct server_client c;
    start(&w);
    server_connect(&c, w.address);
    assert_string_equal(server_ask(&c, "AUTH check-1"), "+OK");
    assert_string_equal(server_ask(&c, "MULTI"), "+OK");
    assert_string_equal(server_ask(&c, "PING"), "+QUEUED");
    assert_string_equal(server_ask(&c, "AUTH wrong"), "+QUEUED");
    assert_string_equal(server_ask(&c, "WEIR.PEEK api a"), "+QUEUED");
    uint64_t began = now_ms();
    const char *reply = server_ask(&c, "EXEC");
    assert_true(now_ms() - began >= PENALTY_MOST_MS - 10);
    assert_true(starts(reply, "[+PONG -WRONGPASS"));
    assert_non_null(strstr(reply, "['allow' 'api' 1000 1000"));
    assert_string_equal(server_ask(&c, "MULTI"), "+OK");
    assert_string_equal(server_ask(&c, "AUTH wrong"), "+QUEUED");
    assert_true(server_say(&c, "EXEC"));
    server_disconnect(&c); /* before the reply */
    stop(&w);
}

/* Returns whether the right secret was answered while the wrong one waited. */
static bool right_is_first(const char *address)
{
    struct server_client wrong;
    struct server_client right;
    server_connect(&wrong, address);
    server_connect(&right, address);
    assert_true(server_say(&wrong, "AUTH wrong"));
    assert_string_equal(server_ask(&right, "AUTH check-1"), "+OK");
    bool first = poll(&(struct pollfd){.fd = wrong.fd, .events = POLLIN}, 1, 0) == 0;
    server_disconnect(&wrong); /* also before its refusal was sent */
    server_disconnect(&right);
    return first;
}

static void a_right_secret_of_the_same_address_is_answered_at_once(void **state)
{
    struct server_world w;
    unsigned attempts = 0;
    start(&w);
    while (!right_is_first(w.address)) {
        assert_true(++attempts < ATTEMPTS);
    }
    stop(&w); /* while a refusal is delayed whose client has gone */
}

static void ten_wrong_secrets_end_the_connection_when_the_last_refusal_is_out(void **state)
{
    struct server_world w;
    struct server_client c;
    start(&w);
    server_connect(&c, w.address);
    for (unsigned i = 0; i < CONNECTION_WRONG_MAX; i++) {
        assert_true(server_say(&c, "AUTH wrong"));
    }
    for (unsigned i = 0; i < CONNECTION_WRONG_MAX; i++) {
        assert_true(starts(server_reply(&c), "-WRONGPASS"));
    }
    assert_string_equal(server_reply(&c), "end");
    server_disconnect(&c);
    stop(&w);
}

static void over_http_it_is_the_same(void **state)
{
    static const char wrong[] = "GET /v1/auth HTTP/1.1\r\nHost: x\r\nWeir-Secret: no\r\n\r\n";
    static const char right[] = "GET /v1/auth HTTP/1.1\r\nHost: x\r\nWeir-Secret: check-1\r\n\r\n";
    static struct http_answer a;
    struct http_server s;
    struct server_options o = {.access = secrets("check-1", NULL)};
    http_server_start(&s, rules, &o);
    make_suspect(&s.server);
    int fd = http_connect(&s);
    uint64_t began = now_ms();
    http_send(fd, wrong, sizeof wrong - 1);
    http_send(fd, right, sizeof right - 1);
    assert_true(http_receive(fd, &a));
    assert_true(now_ms() - began >= PENALTY_MOST_MS - 10);
    assert_int_equal(a.status, 401);
    assert_true(http_has_line(&a, "WWW-Authenticate: Bearer realm=\"weir\""));
    assert_true(http_receive(fd, &a));
    assert_int_equal(a.status, 200);
    (void)close(fd);
    http_server_stop(&s);
    access_close(o.access);
}

/* Connections whose refusals are delayed make room for an operator with the same address. */
static void refusals_that_wait_do_not_lock_the_operator_out(void **state)
{
    enum { OPERATORS = 64, MANY = OPERATORS };
    static const char wrong[] =
        "GET /v1/mode HTTP/1.1\r\nHost: localhost\r\nWeir-Secret: no\r\n\r\n";
    static struct http_answer a;
    static struct http_server s; /* only its address is used */
    struct server_world w;
    struct server_options o = server_world_options();
    int fds[MANY];
    o.access = secrets("check-1", "admin-1");
    o.listen[PROTOCOL_ADMIN] = "127.0.0.1:0";
    o.operators = OPERATORS;
    server_world_start(&w, rules, &o);
    make_suspect(&w.server);
    (void)server_address(&w.server, PROTOCOL_ADMIN, s.address, sizeof s.address);
    for (unsigned i = 0; i < MANY; i++) {
        fds[i] = http_connect(&s);
        http_send(fds[i], wrong, sizeof wrong - 1);
    }
    http_ask(&s, "GET /v1/mode", "Weir-Secret: admin-1\r\n", "", &a);
    assert_int_equal(a.status, 200);
    for (unsigned i = 0; i < MANY; i++) {
        (void)close(fds[i]);
    }
    stop(&w);
}

/* An idle connection, although it is older, stays. */
static void a_connection_that_waits_for_its_refusal_makes_room_first(void **state)
{
    struct server_world w;
    struct server_client c[3];
    struct server_options o = server_world_options();
    o.access = secrets("check-1", "admin-1");
    o.threads = 1;
    o.connections_per_address = 2;
    server_world_start(&w, rules, &o);
    make_suspect(&w.server);
    server_connect(&c[0], w.address);
    assert_string_equal(server_ask(&c[0], "AUTH check-1"), "+OK");
    server_connect(&c[1], w.address);
    assert_true(server_say(&c[1], "AUTH wrong"));
    while (load_relaxed(&w.server.workers[0].counts.delayed) == 0) {
        (void)poll(NULL, 0, 1);
    }
    server_connect(&c[2], w.address);
    assert_string_equal(server_reply(&c[1]), "end");
    assert_string_equal(server_ask(&c[0], "PING"), "+PONG");
    assert_string_equal(server_ask(&c[2], "AUTH check-1"), "+OK");
    for (unsigned i = 0; i < 3; i++) {
        server_disconnect(&c[i]);
    }
    stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_tenth_of_an_address_is_delayed_and_then_each_twice_as_long),
        cmocka_unit_test(a_64_of_ipv6_is_one_address),
        cmocka_unit_test(a_flood_of_addresses_does_not_hide_the_one_with_most),
        cmocka_unit_test(a_wrong_secret_waits_and_the_replies_after_it_too),
        cmocka_unit_test(in_a_transaction_the_whole_reply_waits),
        cmocka_unit_test(a_right_secret_of_the_same_address_is_answered_at_once),
        cmocka_unit_test(ten_wrong_secrets_end_the_connection_when_the_last_refusal_is_out),
        cmocka_unit_test(over_http_it_is_the_same),
        cmocka_unit_test(refusals_that_wait_do_not_lock_the_operator_out),
        cmocka_unit_test(a_connection_that_waits_for_its_refusal_makes_room_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
