/*
 * Tests how Sentinels determine the master: redis/sentinel.c. Sockets 0 to 2 are the Sentinels;
 * those of masters follow, in the order in which they are named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/store/client_world.h"

#define QUESTION "SENTINEL get-master-addr-by-name m"
#define MASTER "*3\r\n$6\r\nmaster\r\n:0\r\n*0\r\n"
#define REPLICA "*5\r\n$5\r\nslave\r\n$1\r\na\r\n:1\r\n$9\r\nconnected\r\n:0\r\n"
#define ANSWER ":7\r\n"
#define FIRST 3 /* socket of the first master */
#define SECOND 4

static struct client_world world;
static struct client_world *w = &world;
static struct breakers *breakers;

static int begin(void **state)
{
    breakers = breakers_create(1);
    world_start(w, "redis-sentinel://s:1,s:2,s:3/m", breakers);
    return 0;
}

static int finish(void **state)
{
    world_stop(w);
    breakers_destroy(breakers);
    return 0;
}

/* Completes the connection to a Sentinel. */
static void sentinel_up(unsigned i)
{
    world_up(w, i);
    assert_string_equal(world_heard(w, i), "PING");
    world_say(w, i, "+PONG\r\n");
    world_flush(w, i);
}

/* Completes it again, after the pause that follows a closed connection. */
static void sentinel_comes_back(unsigned i)
{
    world_pass(w, 10 * WORLD_MS);
    sentinel_up(i);
}

static bool is_asked(unsigned i)
{
    world_flush(w, i);
    const char *line = world_heard(w, i);
    assert_true(line[0] == 0 || strcmp(line, QUESTION) == 0);
    return line[0] != 0;
}

/* Answers with the node at this port of host "a"; 0: the Sentinel knows none. */
static void names(unsigned i, unsigned port)
{
    char reply[64] = "*-1\r\n";
    assert_true(is_asked(i));
    if (port != 0) {
        (void)snprintf(reply, sizeof reply, "*2\r\n$1\r\na\r\n$4\r\n%04u\r\n", port);
    }
    world_say(w, i, reply);
}

static void up_as(unsigned i, const char *role)
{
    assert_int_equal(w->sockets[i].state, WORLD_CONNECTING);
    world_up(w, i);
    assert_string_equal(world_heard(w, i), "ROLE");
    if (!world_say(w, i, role)) {
        return;
    }
    world_flush(w, i);
}

/* Reaches the normal state: the client keeps the connection to Sentinel 0. */
static void settle(void)
{
    sentinel_up(0);
    names(0, 1001);
    up_as(FIRST, MASTER);
    names(0, 1001);
    assert_int_equal(w->sockets[FIRST].port, 1001);
}

/* Requires that a call goes there and is answered. */
static void assert_master_is(unsigned i)
{
    struct world_call a;
    assert_int_equal(world_call(w, &a, "alice", 0), 0);
    world_flush(w, i);
    assert_memory_equal(world_heard(w, i), "EVALSHA", 7);
    world_say(w, i, ANSWER);
    assert_int_equal(a.done, 1);
    assert_int_equal(a.end, CLIENT_REPLIED);
}

/* ---- */

static void a_connected_sentinel_is_not_counted_as_a_connection_to_the_store(void **state)
{
    settle();
    assert_int_equal(w->metrics.up, 1);
    world_down(w, FIRST);
    assert_int_equal(w->metrics.up, 0);
    assert_int_equal(w->sockets[0].state, WORLD_UP);
}

static void the_first_sentinel_that_answers_is_enough_and_the_others_are_let_go(void **state)
{
    struct world_call a;
    assert_int_equal(world_call(w, &a, "alice", 0), 0); /* while no master is known */
    sentinel_up(1);
    names(1, 1001);
    up_as(FIRST, MASTER);
    world_flush(w, FIRST);
    assert_memory_equal(world_heard(w, FIRST), "EVALSHA", 7);
    world_say(w, FIRST, ANSWER);
    assert_int_equal(a.end, CLIENT_REPLIED);
    names(1, 1001);
    assert_int_equal(w->sockets[0].state, WORLD_CLOSED);
    assert_int_equal(w->sockets[1].state, WORLD_UP);
    assert_int_equal(w->sockets[2].state, WORLD_CLOSED);
}

static void while_all_is_well_one_sentinel_is_asked_about_once_a_second(void **state)
{
    settle();
    unsigned asked = 0;
    for (unsigned i = 0; i < 100; i++) {
        world_pass(w, 100 * WORLD_MS);
        if (is_asked(0)) {
            asked++;
            world_say(w, 0, "*2\r\n$1\r\na\r\n$4\r\n1001\r\n");
        }
    }
    assert_in_range(asked, 9, 20);
    assert_int_equal(w->sockets[1].attempts, 1);
    assert_int_equal(w->sockets[2].attempts, 1);
}

static void a_node_that_a_sentinel_names_must_be_a_master(void **state)
{
    sentinel_up(0);
    names(0, 1001);
    up_as(FIRST, REPLICA);
    assert_int_equal(w->sockets[FIRST].state, WORLD_CLOSED);
    assert_non_null(strstr(client_last_error(w->client), "a:1001: is not a master"));
    world_pass(w, 100 * WORLD_MS); /* it is tried again, because it may become one */
    up_as(FIRST, MASTER);
    assert_master_is(FIRST);
}

static void a_master_that_has_gone_is_replaced_by_what_any_sentinel_says(void **state)
{
    settle();
    world_down(w, FIRST);
    names(0, 1002);
    world_tick(w);
    assert_int_equal(w->sockets[SECOND].port, 1002);
    up_as(SECOND, MASTER);
    assert_master_is(SECOND);
}

/* Sentinels 1 and 2 are cut off and give an old answer; they outvote the one that does not. */
static void a_master_that_has_gone_is_not_replaced_if_more_sentinels_name_it_than_another(
    void **state)
{
    settle();
    world_down(w, FIRST);
    sentinel_comes_back(1);
    sentinel_comes_back(2);
    names(1, 1001);
    names(2, 1001);
    names(0, 1002);
    world_tick(w);
    assert_int_equal(w->count, 4);
    world_pass(w, 100 * WORLD_MS);
    names(1, 1002);
    world_tick(w);
    assert_int_equal(w->count, 5);
    assert_int_equal(w->sockets[SECOND].port, 1002);
}

static void a_master_that_stands_is_replaced_only_if_most_sentinels_say_so(void **state)
{
    settle();
    world_pass(w, 1000 * WORLD_MS);
    names(0, 1002);
    assert_master_is(FIRST);
    sentinel_comes_back(1);
    names(1, 1002);
    world_tick(w);
    assert_int_equal(w->sockets[SECOND].port, 1002);
    up_as(SECOND, MASTER);
    assert_master_is(SECOND);
}

/* Calls that were not sent go to the new master. The old connection is closed when its replies have
 * had their time. */
static void the_replies_of_a_master_that_was_replaced_still_count(void **state)
{
    struct world_call sent;
    struct world_call waits;
    settle();
    world_pass(w, 1000 * WORLD_MS);
    names(0, 1002);
    sentinel_comes_back(1);
    assert_int_equal(world_call(w, &sent, "alice", 0), 0);
    world_flush(w, FIRST);
    assert_int_equal(world_call(w, &waits, "bob", w->now + 100 * WORLD_MS), 0);
    names(1, 1002);
    world_tick(w);
    up_as(SECOND, MASTER);
    world_flush(w, SECOND);
    assert_memory_equal(world_heard(w, SECOND), "EVALSHA", 7);
    world_say(w, SECOND, ANSWER);
    assert_int_equal(waits.end, CLIENT_REPLIED);
    world_say(w, FIRST, ANSWER);
    assert_int_equal(sent.end, CLIENT_REPLIED);
    assert_int_equal(w->sockets[FIRST].state, WORLD_UP);
    world_pass(w, WORLD_DEADLINE);
    assert_int_equal(w->sockets[FIRST].state, WORLD_CLOSED);
}

static void a_readonly_master_is_doubted_and_the_call_goes_to_the_next(void **state)
{
    struct world_call a;
    settle();
    assert_int_equal(world_call(w, &a, "alice", w->now + 100 * WORLD_MS), 0);
    world_flush(w, FIRST);
    world_say(w, FIRST, "-READONLY You can't write against a read only replica.\r\n");
    world_flush(w, FIRST);
    (void)world_heard(w, FIRST); /* the call */
    assert_string_equal(world_heard(w, FIRST), "ROLE");
    names(0, 1002); /* a single Sentinel, while the master still stands */
    assert_int_equal(w->count, 4);
    world_say(w, FIRST, REPLICA); /* the master says that it is a replica now */
    assert_int_equal(w->sockets[FIRST].state, WORLD_CLOSED);
    world_tick(w);
    up_as(SECOND, MASTER);
    world_pass(w, 1 * WORLD_MS); /* the pause of the call */
    world_flush(w, SECOND);
    assert_memory_equal(world_heard(w, SECOND), "EVALSHA", 7);
    world_say(w, SECOND, ANSWER);
    assert_int_equal(a.done, 1);
    assert_int_equal(a.end, CLIENT_REPLIED);
}

#define NOREPLICAS "-NOREPLICAS Not enough good replicas to write.\r\n"

/* Refuses everything that the first master is asked, by calls or by the client itself. */
static void refuse(void)
{
    world_flush(w, FIRST);
    for (const char *line = world_heard(w, FIRST); line[0] != 0; line = world_heard(w, FIRST)) {
        world_say(w, FIRST, strcmp(line, "ROLE") == 0 ? MASTER : NOREPLICAS);
        world_flush(w, FIRST);
    }
}

static void refuse_calls(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct world_call a;
        assert_int_equal(world_call(w, &a, "alice", w->now + WORLD_MS), 0);
        refuse();
        assert_int_equal(a.end, CLIENT_NOT_RUN);
    }
}

/* The master is cut off from its replica, together with the Sentinel that is asked. Two other
 * Sentinels have chosen another. */
static void a_master_without_replicas_is_replaced_if_most_sentinels_say_so(void **state)
{
    settle();
    refuse_calls(1);
    names(0, 1001);
    sentinel_comes_back(1);
    names(1, 1002);
    sentinel_comes_back(2);
    world_tick(w);
    assert_int_equal(w->count, 4);
    names(2, 1002);
    world_tick(w);
    assert_int_equal(w->sockets[SECOND].port, 1002);
    up_as(SECOND, MASTER);
    assert_master_is(SECOND);
}

/* The others choose only later, when its breaker is open and it gets no calls any more. */
static void a_master_that_refuses_is_doubted_as_long_as_it_does(void **state)
{
    settle();
    refuse_calls(5);
    sentinel_comes_back(1);
    sentinel_comes_back(2);
    for (unsigned i = 0; i < 50; i++) {
        names(0, 1001);
        names(1, 1001);
        names(2, 1001);
        world_pass(w, 100 * WORLD_MS);
        refuse(); /* a probe */
    }
    names(1, 1002);
    names(2, 1002);
    world_tick(w);
    assert_int_equal(w->sockets[SECOND].port, 1002);
    up_as(SECOND, MASTER);
    assert_master_is(SECOND);
}

/* Calls of another thread were refused, but none of this one. */
static void a_probe_that_is_refused_makes_the_sentinels_be_asked(void **state)
{
    static struct client_world other;
    struct world_call answered;
    settle();
    world_start(&other, "redis-sentinel://s:1,s:2,s:3/m", breakers);
    w = &other;
    settle();
    assert_int_equal(world_call(w, &answered, "alice", 0), 0);
    world_flush(w, FIRST);
    world_pass_over(w, FIRST, 1);
    world_say(w, FIRST, ":1\r\n");
    w = &world;
    refuse_calls(5);
    w = &other;
    unsigned before = w->sockets[1].attempts;
    for (unsigned ms = 0; !w->sockets[FIRST].woken; ms++) {
        assert_true(ms < 6000);
        world_pass(w, WORLD_MS);
        if (is_asked(0)) {
            world_say(w, 0, "*2\r\n$1\r\na\r\n$4\r\n1001\r\n");
        }
    }
    refuse();
    world_pass(w, 10 * WORLD_MS);
    assert_int_equal(w->sockets[1].attempts, before + 1);
    world_stop(&other);
    w = &world;
}

static void a_master_name_that_no_sentinel_knows_is_reported(void **state)
{
    sentinel_up(0);
    names(0, 0);
    assert_string_equal(client_last_error(w->client), "s:1: knows no master named 'm'");
    world_pass(w, 100 * WORLD_MS);
    assert_true(is_asked(0));
    world_say(w, 0, "-NOAUTH Authentication required.\r\n");
    assert_string_equal(client_last_error(w->client), "s:1: NOAUTH Authentication required. 'm'");
}

static void a_sentinel_that_is_away_is_no_trouble_while_another_is_there(void **state)
{
    settle();
    world_down(w, 0);
    world_tick(w);
    world_pass(w, 10 * WORLD_MS);
    world_down(w, 1);
    assert_string_equal(client_last_error(w->client), "s:2: no connection");
    sentinel_up(2);
    names(2, 1001);
    assert_string_equal(client_last_error(w->client), "");
}

static void a_sentinel_that_has_gone_is_replaced_by_another(void **state)
{
    settle();
    world_down(w, 0);
    world_tick(w);
    sentinel_comes_back(2);
    names(2, 1001);
    assert_master_is(FIRST);
    world_pass(w, 1000 * WORLD_MS);
    assert_true(is_asked(2));
}

static void calls_are_refused_at_once_while_no_sentinel_can_name_a_master(void **state)
{
    struct world_call a;
    for (unsigned i = 0; i < 3; i++) {
        world_down(w, i);
    }
    assert_int_equal(world_call(w, &a, "alice", 0), WEIR_EIO);
}

static void a_sentinel_that_names_itself_is_not_believed(void **state)
{
    sentinel_up(0);
    assert_true(is_asked(0));
    world_say(w, 0, "*2\r\n$1\r\ns\r\n$1\r\n2\r\n");
    assert_non_null(
        strstr(client_last_error(w->client), "s:2 as the master, but it is a Sentinel"));
}

static void a_sentinel_that_names_a_unix_socket_is_not_believed(void **state)
{
    sentinel_up(0);
    assert_true(is_asked(0));
    world_say(w, 0, "*2\r\n$11\r\n/run/a.sock\r\n$4\r\n6379\r\n");
    assert_int_equal(w->count, FIRST); /* no connection but those to the Sentinels */
}

static bool permits_port_1001(void *arg, struct weir_text host, unsigned port)
{
    ++*(unsigned *)arg;
    return text_is(host, "a") && port == 1001;
}

static void a_master_outside_of_the_networks_does_not_replace_the_one_inside(void **state)
{
    unsigned asked = 0;
    w->options.permits = permits_port_1001;
    w->options.permits_arg = &asked;
    settle();
    assert_int_equal(asked, 1); /* the Sentinels are those of the URL */
    world_pass(w, 1000 * WORLD_MS);
    names(0, 1002);
    for (unsigned i = 1; i < 3; i++) {
        sentinel_up(i);
        names(i, 1002);
    }
    assert_true(asked > 1);
    assert_non_null(strstr(client_last_error(w->client), "outside of the store's networks"));
    assert_int_equal(w->count, FIRST + 1);
    assert_master_is(FIRST);
}

int main(void)
{
#define IN_WORLD(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_connected_sentinel_is_not_counted_as_a_connection_to_the_store),
        IN_WORLD(the_first_sentinel_that_answers_is_enough_and_the_others_are_let_go),
        IN_WORLD(while_all_is_well_one_sentinel_is_asked_about_once_a_second),
        IN_WORLD(a_node_that_a_sentinel_names_must_be_a_master),
        IN_WORLD(a_master_that_has_gone_is_replaced_by_what_any_sentinel_says),
        IN_WORLD(a_master_that_has_gone_is_not_replaced_if_more_sentinels_name_it_than_another),
        IN_WORLD(a_master_that_stands_is_replaced_only_if_most_sentinels_say_so),
        IN_WORLD(the_replies_of_a_master_that_was_replaced_still_count),
        IN_WORLD(a_readonly_master_is_doubted_and_the_call_goes_to_the_next),
        IN_WORLD(a_master_without_replicas_is_replaced_if_most_sentinels_say_so),
        IN_WORLD(a_master_that_refuses_is_doubted_as_long_as_it_does),
        IN_WORLD(a_probe_that_is_refused_makes_the_sentinels_be_asked),
        IN_WORLD(a_master_name_that_no_sentinel_knows_is_reported),
        IN_WORLD(a_sentinel_that_is_away_is_no_trouble_while_another_is_there),
        IN_WORLD(a_sentinel_that_has_gone_is_replaced_by_another),
        IN_WORLD(calls_are_refused_at_once_while_no_sentinel_can_name_a_master),
        IN_WORLD(a_sentinel_that_names_itself_is_not_believed),
        IN_WORLD(a_sentinel_that_names_a_unix_socket_is_not_believed),
        IN_WORLD(a_master_outside_of_the_networks_does_not_replace_the_one_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
