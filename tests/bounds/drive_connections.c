/* Connections, and the time that they may take. */
#include <arpa/inet.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/socket.h>

#include "bounds/bounds_scene.h"
#include "support/server/server_http2.h"

static struct http_answer a;

/* Opens idle connections of the crowd, each with an answer, and sees that
 * neighbours are served between. */
static void crowd_in(struct scene *s, enum server_protocol protocol, unsigned n, unsigned addresses)
{
    for (unsigned i = 0; i < n; i++) {
        struct server_client *c = scene_add(s, protocol, CROWD + i % addresses);
        if (protocol == PROTOCOL_RESP && scene_random(2) == 0) {
            (void)server_ask(c, "PING");
        }
    }
}

static void connections(struct scene *s)
{
    struct server_options o = scene_options();
    o.connections = 8;
    scene_start(s, SCENE_RULES, &o);
    for (unsigned round = 0; round < 3; round++) {
        crowd_in(s, PROTOCOL_RESP, 30, 3);
        scene_both_are_served(s);
        assert_true(threads_get(&s->world.server.connections) <= 8 + SERVER_RESERVE);
        scene_close_crowd(s);
    }
    assert_true(threads_get(&scene_worker(s)->counts.replaced) > 0);
    scene_stop(s);
}

static void per_address(struct scene *s)
{
    struct server_options o = scene_options();
    o.connections_per_address = 4;
    scene_start(s, SCENE_RULES, &o);
    struct server_client *first = scene_add(s, PROTOCOL_RESP, OTHER);
    assert_string_equal(server_ask(first, "PING"), "+PONG");
    crowd_in(s, PROTOCOL_RESP, 30, 1);
    scene_both_are_served(s);
    assert_string_equal(server_ask(first, "PING"), "+PONG");
    assert_true(threads_get(&scene_worker(s)->counts.replaced_address) > 0);
    scene_stop(s);
}

/* `most` are open, however many come; the honest ones come last, so all others were accepted. */
static void operators(struct scene *s, unsigned addresses, unsigned most)
{
    struct server_options o = scene_options();
    scene_start(s, SCENE_RULES, &o);
    const struct worker *w = scene_operators(s);
    for (unsigned round = 0; round < 3; round++) {
        crowd_in(s, PROTOCOL_ADMIN, 30, addresses);
        (void)usleep(2 * CROWD_FRESH_MS * 1000);
        assert_int_equal(scene_http(s, PROTOCOL_ADMIN, CROWD, "GET /v1/status", "", "", &a), 200);
        assert_int_equal(scene_http(s, PROTOCOL_ADMIN, OTHER, "GET /v1/status", "", "", &a), 200);
        assert_int_equal(scene_http(s, PROTOCOL_ADMIN, OTHER, "GET /readyz", "", "", &a), 200);
        assert_in_range(threads_get(&w->counts.open[PROTOCOL_ADMIN]), 1, most);
        scene_close_crowd(s);
    }
    scene_both_are_served(s);
    scene_stop(s);
}

/* Each address has fewer than it may. */
static void all_operators(struct scene *s)
{
    operators(s, 15, SERVER_ADMIN_CONNECTIONS);
}

static void operators_of_one_address(struct scene *s)
{
    operators(s, 1, SERVER_ADMIN_PER_ADDRESS + 2); /* that of OTHER may not have ended yet */
}

/* ---- connections that are not accepted ---- */

static sem_t entered;
static sem_t released;

/* A protocol that holds up the thread at each 'w', and answers every byte. */
static int64_t hold_up(struct connection *c, struct weir_text input)
{
    for (size_t i = 0; i < input.len; i++) {
        if (input.at[i] == 'w') {
            (void)sem_post(&entered);
            (void)sem_wait(&released);
        }
        buffer_put(&c->worker->replies, TEXT("."));
    }
    return (int64_t)input.len;
}

static const struct protocol protocol_hold = {
    .name = "hold", .kind = PROTOCOL_GRPC, .consume = hold_up};

/* Begins to connect from the address of the crowd. */
static int begin_connection(const struct scene *s)
{
    const char *port = strrchr(s->address[PROTOCOL_GRPC], ':') + 1;
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = {htonl(0x7f000000u + CROWD)}};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr = {htonl(INADDR_LOOPBACK)},
                             .sin_port = htons((uint16_t)atoi(port))};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    (void)connect(fd, (struct sockaddr *)&to, sizeof to);
    return fd;
}

/* While the thread is held up, the system keeps some connections; afterwards all are accepted. */
static void backlog(struct scene *s)
{
    enum { MANY = 4 * SERVER_BACKLOG };
    struct server_options o = scene_options();
    struct pollfd all[MANY];
    char byte;
    unsigned open = 0;
    o.speaks[PROTOCOL_GRPC] = &protocol_hold;
    (void)sem_init(&entered, 0, 0);
    (void)sem_init(&released, 0, 0);
    scene_start(s, SCENE_RULES, &o);
    assert_true(server_send(scene_add(s, PROTOCOL_GRPC, OTHER), "w", 1));
    (void)sem_wait(&entered);
    for (unsigned i = 0; i < MANY; i++) {
        all[i] = (struct pollfd){.fd = begin_connection(s), .events = POLLOUT};
    }
    (void)poll(NULL, 0, 100);
    (void)poll(all, MANY, 0);
    for (unsigned i = 0; i < MANY; i++) {
        open += all[i].revents == POLLOUT;
    }
    (void)sem_post(&released);
    assert_in_range(open, SERVER_BACKLOG, SERVER_BACKLOG + 2);
    scene_both_are_served(s);
    for (unsigned i = 0; i < MANY; i++) {
        struct pollfd answer = {.fd = all[i].fd, .events = POLLIN};
        assert_int_equal(poll(&all[i], 1, 60000), 1);
        assert_int_equal(send(all[i].fd, "n", 1, MSG_NOSIGNAL), 1);
        assert_int_equal(poll(&answer, 1, 60000), 1);
        assert_int_equal(recv(all[i].fd, &byte, 1, 0), 1);
        (void)close(all[i].fd);
    }
    scene_stop(s);
}

static void accepts(struct scene *s)
{
    struct server_options o = scene_options();
    scene_start(s, SCENE_RULES, &o);
    for (unsigned i = 0; i < 20 * SERVER_ACCEPTS; i++) {
        assert_true(server_say(scene_add(s, PROTOCOL_RESP, CROWD), "PING"));
    }
    for (unsigned i = 0; i < s->count; i++) {
        assert_string_equal(server_reply(&s->crowd[i]), "+PONG");
    }
    scene_both_are_served(s);
    scene_stop(s);
}

/* A silent connection that is not young any more makes room before one that has asked. */
static void is_idle_when_it_is_not_fresh(struct scene *s)
{
    struct server_client *silent = scene_add(s, PROTOCOL_RESP, CROWD);
    struct server_client *asked = scene_add(s, PROTOCOL_RESP, CROWD);
    assert_string_equal(server_ask(asked, "PING"), "+PONG");
    (void)usleep(2 * CROWD_FRESH_MS * 1000);
    assert_string_equal(server_ask(scene_add(s, PROTOCOL_RESP, CROWD), "PING"), "+PONG");
    assert_string_equal(server_reply(silent), "end");
    assert_string_equal(server_ask(asked, "PING"), "+PONG");
    scene_close_crowd(s);
}

/* Returns whether a silent connection was spared for one that does not fetch its replies. */
static bool is_spared_while_it_is_fresh(struct scene *s)
{
    static const char docs[] = "*2\r\n$7\r\nCOMMAND\r\n$4\r\nDOCS\r\n";
    int least = 4096;
    struct server_client *stalled = scene_add(s, PROTOCOL_RESP, CROWD + 1);
    struct server_client *silent = scene_add(s, PROTOCOL_RESP, CROWD + 1);
    (void)setsockopt(stalled->fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
    for (unsigned i = 0; i < 2000; i++) {
        (void)send(stalled->fd, docs, sizeof docs - 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    for (unsigned i = 0; i < 1000 && scene_units(s, CROWD_UNSENT) == 0; i++) {
        (void)usleep(1000);
    }
    (void)server_ask(scene_add(s, PROTOCOL_RESP, CROWD + 1), "PING");
    bool spared = strcmp(server_ask(silent, "PING"), "+PONG") == 0;
    scene_close_crowd(s);
    return spared;
}

/* The second part is tried again if this machine was too busy to do all of it in CROWD_FRESH_MS. */
static void fresh(struct scene *s)
{
    struct server_options o = scene_options();
    unsigned tries = 0;
    o.connections_per_address = 2;
    scene_start(s, SCENE_RULES, &o);
    is_idle_when_it_is_not_fresh(s);
    while (!is_spared_while_it_is_fresh(s)) {
        assert_true(++tries < 50);
    }
    scene_is_served(s, CROWD);
    scene_is_served(s, OTHER);
    scene_stop(s);
}

/* ---- time ---- */

/* Has a crowd of which each member does too little, until all were timed out. */
static void too_slow(struct scene *s, const struct server_options *o, bool asks, const char *bytes,
                     size_t len)
{
    enum { SLOW = 20 };
    scene_start(s, SCENE_RULES, o);
    for (unsigned i = 0; i < SLOW; i++) {
        struct server_client *c = scene_add(s, PROTOCOL_RESP, CROWD);
        if (asks) {
            assert_string_equal(server_ask(c, "PING"), "+PONG");
        }
        assert_true(len == 0 || server_send(c, bytes, len));
    }
    scene_both_are_served(s);
    scene_await(&scene_worker(s)->counts.timed_out, SLOW);
    for (unsigned i = 0; i < SLOW; i++) {
        assert_string_equal(server_reply(&s->crowd[i]), "end");
    }
    scene_both_are_served(s);
    scene_stop(s);
}

/* Without an option, the value of the row counts. */
static void defaults(struct scene *s)
{
    struct server_options o = scene_options();
    scene_start(s, SCENE_RULES, &o);
    const struct server_options *got = &s->world.server.options;
    assert_int_equal(got->idle_ms, SERVER_IDLE_MS);
    assert_int_equal(got->request_ms, SERVER_REQUEST_MS);
    assert_int_equal(got->write_ms, SERVER_WRITE_MS);
    scene_stop(s);
}

static void idle(struct scene *s)
{
    struct server_options o = scene_options();
    defaults(s);
    o.idle_ms = 500;
    too_slow(s, &o, true, NULL, 0);
}

/* Waits until so many calls have ended. */
static void await_ends(struct server_client *c, unsigned n)
{
    static struct http2_frame frame;
    while (n > 0) {
        assert_true(http2_receive(c, &frame));
        n -= frame.type == HTTP2_HEADERS && (frame.flags & 1) != 0;
    }
}

/* Over gRPC a call whose message does not end has its answer, and the connection goes on. It ends
 * if a head does not end, or the first frame. */
static void calls_that_do_not_end(struct scene *s)
{
    enum { CALLS = 5 };
    static const char head[] = "\0\0\1\1\0\0\0\0\1\x83"; /* HEADERS that go on */
    struct server_options o = scene_options();
    o.request_ms = 500;
    scene_start(s, SCENE_RULES, &o);
    struct server_client *c = scene_add(s, PROTOCOL_GRPC, CROWD);
    assert_true(http2_begin(c, 65535));
    for (unsigned i = 0; i < CALLS; i++) {
        assert_true(http2_begin_call(c, 2 * i + 1, "/weir.v1.Limiter/Batch"));
    }
    await_ends(c, CALLS);
    assert_true(http2_call(c, 2 * CALLS + 1, "/weir.v1.Limiter/Batch", http2_batch(1)));
    await_ends(c, 1);
    scene_both_are_served(s);
    for (unsigned i = 0; i < 10; i++) {
        struct server_client *slow = scene_add(s, PROTOCOL_GRPC, CROWD);
        assert_true(i % 2 == 0 || http2_begin(slow, 65535));
        assert_true(i % 2 == 0 ? server_send(slow, "PRI", 3)
                               : server_send(slow, head, sizeof head - 1));
    }
    scene_await(&scene_worker(s)->counts.timed_out, 10);
    scene_both_are_served(s);
    scene_stop(s);
}

static void requests_that_do_not_end(struct scene *s)
{
    struct server_options o = scene_options();
    o.request_ms = 500;
    defaults(s);
    calls_that_do_not_end(s);
    too_slow(s, &o, false, "*2\r\n$4\r\nPI", 10);
    too_slow(s, &o, true, "*2\r\n$4\r\nPI", 10);
    too_slow(s, &o, false, NULL, 0);
}

/* Over RESP what the network does not take; over gRPC what the window does not let out. */
static void replies_that_are_not_fetched(struct scene *s)
{
    struct server_options o = scene_options();
    defaults(s);
    o.write_ms = 500;
    scene_start(s, SCENE_RULES, &o);
    for (unsigned i = 0; i < 5; i++) {
        struct server_client *c = scene_add(s, PROTOCOL_GRPC, CROWD);
        assert_true(http2_begin(c, 0));
        assert_true(http2_call(c, 1, "/weir.v1.Limiter/Batch", http2_batch(100)));
    }
    scene_await(&scene_worker(s)->counts.timed_out, 5);
    scene_both_are_served(s);
    scene_stop(s);
}

/* The server has ended the connection, and the client leaves it open. */
static void linger(struct scene *s)
{
    struct server_options o = scene_options();
    scene_start(s, SCENE_RULES, &o);
    for (unsigned i = 0; i < 20; i++) {
        assert_true(server_send(scene_add(s, PROTOCOL_RESP, CROWD), "*x\r\n", 4));
    }
    scene_both_are_served(s);
    for (unsigned i = 0; i < 600 && threads_get(&s->world.server.connections) > 0; i++) {
        (void)usleep(100000);
    }
    assert_int_equal(threads_get(&s->world.server.connections), 0);
    scene_stop(s);
}

const struct driver drivers_connections[] = {
    {"server.h", "connections", connections, NULL, NULL},
    {"server.h", "connections_per_address", per_address, NULL, NULL},
    {"server.h", "SERVER_ADMIN_CONNECTIONS", all_operators, NULL, NULL},
    {"server.h", "SERVER_ADMIN_PER_ADDRESS", operators_of_one_address, NULL, NULL},
    {"server.h", "SERVER_BACKLOG", backlog, NULL, NULL},
    {"server.h", "SERVER_ACCEPTS", accepts, NULL, NULL},
    {"crowd.h", "CROWD_FRESH_MS", fresh, NULL, NULL},
    {"server.h", "SERVER_IDLE_MS", idle, NULL, NULL},
    {"server.h", "SERVER_REQUEST_MS", requests_that_do_not_end, NULL, NULL},
    {"server.h", "SERVER_WRITE_MS", replies_that_are_not_fetched, NULL, NULL},
    {"server.h", "SERVER_LINGER_MS", linger, NULL, NULL},
    {"server.h", "SERVER_AGE_MS", NULL, "server/loop/test_overload.c", "max_age_ms"},
    {0},
};
