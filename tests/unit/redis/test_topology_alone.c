/* Tests the topology of redis:// with one host: a failover may leave its connection open. */
#include "unit/redis/client_story.h"

#define MASTER "*3\r\n$6\r\nmaster\r\n:5\r\n*1\r\n*3\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\n5\r\n"
#define REPLICA "*5\r\n$5\r\nslave\r\n$1\r\na\r\n:1\r\n$9\r\nconnected\r\n:5\r\n"

/* The next connection begins within a second, and is made. */
static void connect_anew(void)
{
    for (unsigned i = 0; i <= 1000 && w->sockets[0].state == WORLD_CLOSED; i++) {
        world_pass(w, WORLD_MS);
    }
    assert_int_equal(w->sockets[0].state, WORLD_CONNECTING);
    world_up(w, 0);
}

/* A name may lead to another server after a failover, so the only host is connected anew. */
static void the_only_host_is_connected_anew_when_it_is_no_longer_a_master(void **state)
{
    static struct world_call a;
    world_greet(w, 0);
    send_call(&a, "k");
    assert_heard("EVALSHA ");
    world_say(w, 0, "-READONLY x\r\n");
    world_flush(w, 0);
    assert_heard("ROLE");
    assert_false(world_say(w, 0, REPLICA));
    for (unsigned i = 0; i < 20; i++) { /* it is asked for its role, again and again */
        connect_anew();
        assert_heard("ROLE");
        assert_false(world_say(w, 0, REPLICA));
        assert_string_equal(client_last_error(w->client), "one:1: READONLY, it is not a master");
        assert_int_equal(w->metrics.up, 0);
    }
    assert_int_equal(breakers_count_open(breakers), 1);
    connect_anew();
    world_say(w, 0, MASTER);
    assert_int_equal(w->metrics.up, 1);
    world_flush(w, 0);
    world_say(w, 0, ":0\r\n"); /* the probe, an empty write */
    assert_int_equal(breakers_count_open(breakers), 0);
    assert_string_equal(client_last_error(w->client), "");
}

/* READONLY shows that it is none. */
static void the_only_host_is_left_also_if_it_does_not_tell_its_role(void **state)
{
    static struct world_call a;
    world_greet(w, 0);
    send_call(&a, "k");
    world_say(w, 0, "-READONLY x\r\n");
    world_flush(w, 0);
    assert_false(world_say(w, 0, "-NOPERM this user has no permissions\r\n"));
    connect_anew();
    world_say(w, 0, "-NOPERM this user has no permissions\r\n");
    assert_int_equal(w->metrics.up, 1); /* taken for a master, until it replies READONLY */
}

static void a_master_that_was_a_replica_for_a_moment_is_kept(void **state)
{
    static struct world_call a;
    world_greet(w, 0);
    send_call(&a, "k");
    world_say(w, 0, "-READONLY x\r\n");
    world_flush(w, 0);
    assert_true(world_say(w, 0, MASTER));
    assert_int_equal(w->sockets[0].state, WORLD_UP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(the_only_host_is_connected_anew_when_it_is_no_longer_a_master),
        STORY(the_only_host_is_left_also_if_it_does_not_tell_its_role),
        STORY(a_master_that_was_a_replica_for_a_moment_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
