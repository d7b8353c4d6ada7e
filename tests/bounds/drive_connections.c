/* Connections, and the time that they may take. */
#include "bounds/bounds_scene.h"
#include "support/server/server_http2.h"

static struct http_answer a;

/* Opens idle connections of the crowd, each with an answer, and sees that neighbours are served between. */
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

static void operators(struct scene *s, unsigned addresses)
{
    struct server_options o = scene_options();
    scene_start(s, SCENE_RULES, &o);
    for (unsigned round = 0; round < 3; round++) {
        crowd_in(s, PROTOCOL_ADMIN, 30, addresses);
        (void)usleep(2 * CROWD_FRESH_MS * 1000);
        assert_int_equal(scene_http(s, PROTOCOL_ADMIN, CROWD, "GET /v1/status", "", "", &a), 200);
        assert_int_equal(scene_http(s, PROTOCOL_ADMIN, OTHER, "GET /v1/status", "", "", &a), 200);
        assert_int_equal(scene_http(s, PROTOCOL_ADMIN, OTHER, "GET /readyz", "", "", &a), 200);
        scene_close_crowd(s);
    }
    scene_both_are_served(s);
    scene_stop(s);
}

static void all_operators(struct scene *s)
{
    operators(s, 5);
}

static void operators_of_one_address(struct scene *s)
{
    operators(s, 1);
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

/* A connection that is young is spared while an old silent one can make room. */
static void fresh(struct scene *s)
{
    struct server_options o = scene_options();
    o.connections_per_address = 2;
    scene_start(s, SCENE_RULES, &o);
    struct server_client *old = scene_add(s, PROTOCOL_RESP, CROWD);
    assert_string_equal(server_ask(old, "PING"), "+PONG");
    (void)usleep(2 * CROWD_FRESH_MS * 1000);
    struct server_client *young = scene_add(s, PROTOCOL_RESP, CROWD);
    scene_is_served(s, CROWD);
    assert_string_equal(server_reply(old), "end");
    scene_is_served(s, OTHER);
    (void)young;
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

static void idle(struct scene *s)
{
    struct server_options o = scene_options();
    o.idle_ms = 500;
    too_slow(s, &o, true, NULL, 0);
}

static void requests_that_do_not_end(struct scene *s)
{
    struct server_options o = scene_options();
    o.request_ms = 500;
    too_slow(s, &o, false, "*2\r\n$4\r\nPI", 10);
    too_slow(s, &o, true, "*2\r\n$4\r\nPI", 10);
    too_slow(s, &o, false, NULL, 0);
}

/* Over RESP what the network does not take; over gRPC what the window does not let out. */
static void replies_that_are_not_fetched(struct scene *s)
{
    struct server_options o = scene_options();
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
    {"server.h", "SERVER_ACCEPTS", accepts, NULL, NULL},
    {"crowd.h", "CROWD_FRESH_MS", fresh, NULL, NULL},
    {"server.h", "SERVER_IDLE_MS", idle, NULL, NULL},
    {"server.h", "SERVER_REQUEST_MS", requests_that_do_not_end, NULL, NULL},
    {"server.h", "SERVER_WRITE_MS", replies_that_are_not_fetched, NULL, NULL},
    {"server.h", "SERVER_LINGER_MS", linger, NULL, NULL},
    {"server.h", "SERVER_AGE_MS", NULL, "server/net/test_overload.c", "max_age_ms"},
    {0},
};
