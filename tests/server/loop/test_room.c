/*
 * No client can hold all connections: silent ones end, idle ones and those whose replies are not
 * fetched make room for others, and health checks and the kill switch are answered when there is no
 * room at all.
 */
// test-serial: yes
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/loop/worker.h"
#include "support/server/server_admin.h"
#include "support/server/server_client.h"
#include "support/server/server_fleet.h"
#include "support/engine/threads_run.h"

#define MANY 200
#define OPERATORS 64 /* connections of operators, half of them for one address */
#define PATIENCE_MS 60000

static const char rules[] = "limits: [{name: api, key: [user], rate: 1M/day}]\n";

static struct server_world world;
static const struct server *server = &world.server; /* whose counters COUNT() adds up */
static struct admin_world admin;                    /* the same server, for admin_ask() */
static struct server_client crowd[MANY];
static struct http_answer answer;

static void use(const struct server *of)
{
    server = of;
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        (void)server_address(server, (enum server_protocol)i, admin.address[i],
                             sizeof admin.address[i]);
    }
}

static void start(const struct server_options *given)
{
    struct server_options o = *given;
    o.listen[PROTOCOL_HTTP] = "127.0.0.1:0";
    o.listen[PROTOCOL_GRPC] = "127.0.0.1:0";
    o.listen[PROTOCOL_ADMIN] = "127.0.0.1:0";
    o.listen[PROTOCOL_METRICS] = "127.0.0.1:0";
    o.operators = OPERATORS;
    server_world_start(&world, rules, &o);
    use(&world.server);
}

static void start_with(unsigned threads, unsigned connections, unsigned per_address)
{
    struct server_options o = server_world_options();
    o.threads = threads;
    o.connections = connections;
    o.connections_per_address = per_address;
    start(&o);
}

/* Opens connections that say nothing, from 127.0.0.`first` on. */
static void hold(unsigned at, unsigned n, enum server_protocol listener, unsigned first,
                 unsigned addresses)
{
    for (unsigned i = 0; i < n; i++) {
        server_connect_from(&crowd[at + i], admin.address[listener], first + i % addresses);
    }
}

static void let_go(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        server_disconnect(&crowd[i]);
    }
}

/* Returns whether the server has closed the connection, and waits for that if `ended`. */
static bool is_over(const struct server_client *c, bool ended)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    char byte;
    return poll(&p, 1, ended ? PATIENCE_MS : 0) > 0 && recv(c->fd, &byte, 1, MSG_PEEK) <= 0;
}

static uint64_t sum_of(size_t offset)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < server->workers_count; i++) {
        const char *counts = (const char *)&server->workers[i].counts;
        n += threads_get((uint64_t *)(uintptr_t)(counts + offset));
    }
    return n;
}

#define COUNT(member) sum_of(offsetof(struct worker_counts, member))

static void assert_operable(void)
{
    for (unsigned i = 0; i < 5; i++) {
        admin_ask(&admin, "GET /readyz", "", "", &answer);
        assert_int_equal(answer.status, 200);
        admin_ask(&admin, "GET /healthz", "", "", &answer);
        assert_int_equal(answer.status, 200);
        admin_ask(&admin, "PUT /v1/mode", "", "{\"mode\":\"shadow\"}", &answer);
        assert_int_equal(answer.status, 200);
        admin_ask(&admin, "PUT /v1/mode", "", "{\"mode\":\"enforce\"}", &answer);
        assert_int_equal(answer.status, 200);
    }
}

/* Sends one request to the listener for clients, on a connection of its own. */
static int get(const char *path, unsigned from)
{
    struct server_client c;
    char text[256];
    server_connect_from(&c, admin.address[PROTOCOL_HTTP], from);
    int n = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path);
    assert_true(server_send(&c, text, (size_t)n));
    int status = http_receive(c.fd, &answer) ? answer.status : 0;
    server_disconnect(&c);
    return status;
}

/* ---- who says nothing ---- */

static void a_connection_without_a_request_ends_on_every_listener(void **state)
{
    struct server_options o = server_world_options();
    o.request_ms = 200;
    start(&o);
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        hold(i, 1, (enum server_protocol)i, 1, 1);
    }
    server_connect(&crowd[PROTOCOLS], admin.address[PROTOCOL_RESP]);
    assert_string_equal(server_ask(&crowd[PROTOCOLS], "PING"), "+PONG");
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        assert_true(is_over(&crowd[i], true));
    }
    assert_string_equal(server_ask(&crowd[PROTOCOLS], "PING"),
                        "+PONG"); /* idle, but it has asked */
    assert_int_equal(COUNT(timed_out), PROTOCOLS);
    let_go(PROTOCOLS + 1);
    server_world_stop(&world);
}

static void a_first_request_byte_by_byte_gets_no_more_time(void **state)
{
    struct server_options o = server_world_options();
    struct pollfd p = {.events = POLLIN};
    o.request_ms = 200;
    start(&o);
    server_connect(&crowd[0], admin.address[PROTOCOL_HTTP]);
    p.fd = crowd[0].fd;
    unsigned n = 0;
    do {
        (void)send(crowd[0].fd, "x", 1, MSG_NOSIGNAL);
        n++;
    } while (n < 1000 && poll(&p, 1, 20) == 0);
    assert_true(is_over(&crowd[0], true));
    assert_true(n < 1000);
    let_go(1);
    server_world_stop(&world);
}

/* ---- operators ---- */

static void idle_connections_do_not_lock_the_operator_out(void **state)
{
    start_with(2, 1000, 0);
    hold(0, 64, PROTOCOL_ADMIN, 1, 4); /* the operator is one of the four addresses */
    assert_operable();
    assert_true(COUNT(replaced) > 0);
    let_go(64);
    server_world_stop(&world);
}

static void one_address_has_a_bound_on_the_admin_listener(void **state)
{
    start_with(2, 1000, 0);
    hold(0, 100, PROTOCOL_ADMIN, 1, 1); /* the operator's own address */
    assert_operable();
    assert_int_equal(COUNT(replaced), 0);
    assert_true(COUNT(replaced_address) >= 100 - OPERATORS / 2);
    assert_true(COUNT(open[PROTOCOL_ADMIN]) <= OPERATORS / 2);
    for (unsigned i = 0; i < 100 - OPERATORS / 2; i++) {
        assert_true(is_over(&crowd[i], true));
    }
    let_go(100);
    server_world_stop(&world);
}

/* ---- clients ---- */

static void four_addresses_that_fill_the_server_keep_nobody_out(void **state)
{
    struct server_client c;
    start_with(2, 160, 40);
    hold(0, 160, PROTOCOL_RESP, 2, 4);
    assert_operable();
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(get("/readyz", 10 + i), 200);
        server_connect_from(&c, world.address, 10 + i);
        assert_string_equal(server_ask(&c, "PING"), "+PONG");
        server_disconnect(&c);
    }
    assert_true(COUNT(replaced) > 0);
    assert_int_equal(COUNT(refused), 0);
    assert_int_equal(COUNT(refused_address), 0);
    let_go(160);
    server_world_stop(&world);
}

static void the_oldest_of_the_address_that_has_most_makes_room(void **state)
{
    struct server_client c[2];
    start_with(1, 8, 0);
    hold(0, 3, PROTOCOL_RESP, 2, 1);
    hold(3, 5, PROTOCOL_RESP, 3, 1);
    for (unsigned i = 0; i < 8; i++) {
        assert_string_equal(server_ask(&crowd[i], "PING"), "+PONG");
    }
    for (unsigned i = 0; i < 2; i++) {
        server_connect_from(&c[i], world.address, 4);
        assert_string_equal(server_ask(&c[i], "PING"), "+PONG");
        assert_true(is_over(&crowd[3 + i], true));
    }
    for (unsigned i = 0; i < 8; i++) {
        if (i < 3 || i >= 5) {
            assert_string_equal(server_ask(&crowd[i], "PING"), "+PONG");
        }
    }
    assert_int_equal(COUNT(replaced), 2);
    server_disconnect(&c[0]);
    server_disconnect(&c[1]);
    let_go(8);
    server_world_stop(&world);
}

/* A client that has asked before expects that a connection may end; one that is about to send its
 * first request does not. They are fresh for 100 ms, so a busy machine gets several tries. */
static void of_fresh_connections_those_that_have_asked_make_room_first(void **state)
{
    bool seen = false;
    for (unsigned i = 0; i < 20 && !seen; i++) {
        struct server_client c;
        start_with(1, 4, 0);
        hold(0, 4, PROTOCOL_RESP, 2, 1);
        assert_string_equal(server_ask(&crowd[2], "PING"), "+PONG");
        assert_string_equal(server_ask(&crowd[3], "PING"), "+PONG");
        server_connect_from(&c, world.address, 3);
        assert_string_equal(server_ask(&c, "PING"), "+PONG");
        seen = is_over(&crowd[2], false) && !is_over(&crowd[0], false);
        server_disconnect(&c);
        let_go(4);
        server_world_stop(&world);
    }
    assert_true(seen);
}

static void the_oldest_of_a_full_address_makes_room_for_its_next(void **state)
{
    start_with(1, 100, 2);
    for (unsigned i = 0; i < 3; i++) {
        server_connect(&crowd[i], world.address);
        assert_string_equal(server_ask(&crowd[i], "PING"), "+PONG");
    }
    assert_true(is_over(&crowd[0], true));
    assert_string_equal(server_ask(&crowd[1], "PING"), "+PONG");
    assert_int_equal(COUNT(replaced_address), 1);
    let_go(3);
    server_world_stop(&world);
}

/* A gateway that was refused a connection would let the request of its client pass. */
static void a_proxy_that_is_named_has_no_bound_of_its_own(void **state)
{
    struct cidr gateway;
    struct cidr_set *named;
    struct server_options o = server_world_options();
    assert_int_equal(cidr_parse(text_of("127.0.0.2/32"), &gateway, NULL), 0);
    assert_int_equal(cidr_set_create(&gateway, 1, &named), 0);
    o.threads = 1;
    o.connections = 100;
    o.connections_per_address = 2;
    o.trusted = named;
    start(&o);
    for (unsigned from = 2; from <= 3; from++) {
        for (unsigned i = 0; i < 20; i++) {
            server_connect_from(&crowd[i], world.address, from);
            assert_string_equal(server_ask(&crowd[i], "PING"), "+PONG");
        }
        for (unsigned i = 0; i < 20; i++) {
            assert_int_equal(is_over(&crowd[i], false), from != 2 && i < 18);
        }
        let_go(20);
    }
    server_world_stop(&world);
    cidr_set_destroy(named);
}

/* A socket that both threads accept from: one of them may have all the connections. */
static void a_thread_without_idle_connections_asks_another(void **state)
{
    struct server_options o = server_world_options();
    char path[] = "/tmp/weir-room-XXXXXX";
    char address[64];
    struct server_client c[20];
    assert_non_null(mkdtemp(path));
    (void)snprintf(address, sizeof address, "unix:%s/resp", path);
    o.listen[PROTOCOL_RESP] = address;
    o.connections = 8;
    start(&o);
    for (unsigned i = 0; i < 8; i++) {
        server_connect(&crowd[i], address);
        assert_string_equal(server_ask(&crowd[i], "PING"), "+PONG");
    }
    for (unsigned i = 0; i < 20; i++) {
        server_connect(&c[i], address);
        assert_string_equal(server_ask(&c[i], "PING"), "+PONG");
    }
    assert_true(COUNT(replaced) >= 20 - SERVER_RESERVE / 2);
    for (unsigned i = 0; i < 20; i++) {
        server_disconnect(&c[i]);
    }
    let_go(8);
    server_world_stop(&world);
    (void)rmdir(path);
}

/* ---- replies that are not fetched ---- */

#define UNREAD 3000 /* replies of a connection, more than the network can hold */

/* Lets connections of different addresses ask for much and fetch nothing. Waits until
 * all replies are composed. */
static void make_busy(unsigned count)
{
    char one[64];
    int small = 4096;
    size_t len = server_pack("COMMAND DOCS", one, sizeof one);
    char *many = malloc(len * UNREAD);
    assert_non_null(many);
    for (unsigned i = 0; i < UNREAD; i++) {
        memcpy(many + i * len, one, len);
    }
    for (unsigned i = 0; i < count; i++) {
        server_connect_from(&crowd[i], world.address, 2 + i);
        assert_int_equal(setsockopt(crowd[i].fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small), 0);
        assert_true(server_send(&crowd[i], many, len * UNREAD));
    }
    free(many);
    while (COUNT(requests[PROTOCOL_RESP]) < (uint64_t)count * UNREAD) {
        (void)poll(NULL, 0, 1);
    }
}

static void replies_that_are_not_fetched_keep_nobody_out(void **state)
{
    struct server_client c;
    start_with(1, 4, 0);
    make_busy(4);
    server_connect_from(&c, world.address, 9);
    assert_string_equal(server_ask(&c, "PING"), "+PONG");
    assert_int_equal(get("/v1/auth", 9), 200);
    assert_int_equal(COUNT(refused), 0);
    assert_int_equal(COUNT(replaced), 2);
    server_disconnect(&c);
    let_go(4);
    server_world_stop(&world);
}

/* ---- no room at all ---- */

/* Connections that wait for the store are never closed. */
static void a_reserve_is_kept_for_health(void **state)
{
    static struct slow_scene scene;
    struct server_options o = server_world_options();
    struct server_client c;
    o.connections = 4;
    slow_start(&scene, rules, &o);
    use(&scene.server);
    for (unsigned i = 0; i < 4; i++) {
        server_connect_from(&crowd[i], scene.resp, 2 + i);
        assert_true(server_say(&crowd[i], "WEIR.CHECK api alice"));
    }
    slow_await(&scene, 4);
    for (unsigned i = 0; i < 3 * SERVER_RESERVE; i++) { /* each of them ends after its answer */
        assert_int_equal(get("/readyz", 9), 200);
        assert_non_null(strstr(answer.text, "Connection: close\r\n"));
    }
    assert_int_equal(get("/v1/auth", 9), 503);
    server_connect_from(&c, scene.resp, 9);
    assert_string_equal(server_ask(&c, "PING"), "-ERR max number of clients reached");
    assert_string_equal(server_reply(&c), "end");
    server_disconnect(&c);
    assert_int_equal(COUNT(replaced), 0);
    assert_int_equal(COUNT(refused), 2);
    assert_operable();
    slow_answer(&scene, 4);
    for (unsigned i = 0; i < 4; i++) {
        assert_memory_equal(server_reply(&crowd[i]), "['allow' ", 9);
    }
    let_go(4);
    slow_stop(&scene);
}

/* ---- new connections and open ones ---- */

static sem_t entered;
static sem_t released;
static uint64_t accepted_before; /* connections that had been accepted when an 'n' was read */

/* A protocol of single bytes: a 'w' stops the thread until `released`, an 'n' notes how many
 * connections it has accepted. Each byte is answered. */
static int64_t wait_or_note(struct connection *c, struct weir_text input)
{
    for (size_t i = 0; i < input.len; i++) {
        if (input.at[i] == 'w') {
            (void)sem_post(&entered);
            (void)sem_wait(&released);
        } else {
            threads_set(&accepted_before, c->worker->counts.accepted[PROTOCOL_RESP]);
        }
        buffer_put(&c->worker->replies, TEXT("."));
    }
    return (int64_t)input.len;
}

static const struct protocol protocol_wait = {
    .name = "wait", .kind = PROTOCOL_RESP, .consume = wait_or_note};

static void ask_byte(struct server_client *c, const char *byte)
{
    char reply;
    assert_true(byte == NULL || server_send(c, byte, 1));
    assert_int_equal(read(c->fd, &reply, 1), 1);
}

static void many_new_connections_do_not_delay_those_that_are_open(void **state)
{
    struct server_options o = server_world_options();
    o.threads = 1;
    o.speaks[PROTOCOL_RESP] = &protocol_wait;
    (void)sem_init(&entered, 0, 0);
    (void)sem_init(&released, 0, 0);
    start(&o);
    hold(0, 2, PROTOCOL_RESP, 1, 1);
    ask_byte(&crowd[0], "n");
    ask_byte(&crowd[1], "n");
    assert_true(server_send(&crowd[0], "w", 1));
    (void)sem_wait(&entered);
    hold(2, MANY - 2, PROTOCOL_RESP, 2, 4);
    assert_true(server_send(&crowd[1], "n", 1)); /* the last to arrive */
    (void)sem_post(&released);
    ask_byte(&crowd[1], NULL);
    assert_in_range(threads_get(&accepted_before), 2, 2 + SERVER_ACCEPTS);
    for (unsigned i = 0; i < MANY; i++) { /* all of them are accepted in the end */
        ask_byte(&crowd[i], i == 0 ? NULL : "n");
    }
    assert_int_equal(COUNT(accepted[PROTOCOL_RESP]), MANY);
    let_go(MANY);
    server_world_stop(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_without_a_request_ends_on_every_listener),
        cmocka_unit_test(a_first_request_byte_by_byte_gets_no_more_time),
        cmocka_unit_test(idle_connections_do_not_lock_the_operator_out),
        cmocka_unit_test(one_address_has_a_bound_on_the_admin_listener),
        cmocka_unit_test(four_addresses_that_fill_the_server_keep_nobody_out),
        cmocka_unit_test(the_oldest_of_the_address_that_has_most_makes_room),
        cmocka_unit_test(of_fresh_connections_those_that_have_asked_make_room_first),
        cmocka_unit_test(the_oldest_of_a_full_address_makes_room_for_its_next),
        cmocka_unit_test(a_proxy_that_is_named_has_no_bound_of_its_own),
        cmocka_unit_test(a_thread_without_idle_connections_asks_another),
        cmocka_unit_test(replies_that_are_not_fetched_keep_nobody_out),
        cmocka_unit_test(a_reserve_is_kept_for_health),
        cmocka_unit_test(many_new_connections_do_not_delay_those_that_are_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
