/*
 * Tests how the client learns from a Cluster where slots are: redis/cluster.c. Socket 0 is the host
 * of the URL, "a:1", which is a primary too; the others follow in the order in which they are
 * named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "redis/slots.h"
#include "shared/core/script.h"
#include "support/store/client_world.h"

#define ANSWER ":7\r\n"
#define HALF (SLOTS / 2)

static struct client_world world;
static struct client_world *w = &world;
static struct breakers *breakers;

/* Keys in the lower and in the upper half of the slots. */
static const char *low;
static const char *high;

static int begin(void **state)
{
    static char names[2][8];
    char name[8];
    for (unsigned i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof name, "k%u", i);
        memcpy(names[cluster_slot(text_of(name)) / HALF], name, sizeof name);
    }
    low = names[0];
    high = names[1];
    breakers = breakers_create(1);
    world_start(w, "redis-cluster://a:1", breakers);
    return 0;
}

static int finish(void **state)
{
    world_stop(w);
    breakers_destroy(breakers);
    return 0;
}

/* Writes "*3 first last node" for one range. */
static size_t put_range(char *out, size_t size, unsigned first, unsigned last, const char *host,
                        unsigned port)
{
    return (size_t)snprintf(out, size,
                            "*3\r\n:%u\r\n:%u\r\n*3\r\n$%zu\r\n%s\r\n:%u\r\n$2\r\nid\r\n", first,
                            last, strlen(host), host, port);
}

static bool is_asked(unsigned i)
{
    world_flush(w, i);
    const char *line = world_heard(w, i);
    assert_true(line[0] == 0 || strcmp(line, "CLUSTER SLOTS") == 0);
    return line[0] != 0;
}

/* Waits for the question; gives up before a silent link would be closed. */
static void await_question(unsigned i)
{
    unsigned ms = 0;
    while (!is_asked(i)) {
        assert_true(ms++ < 1000);
        world_pass(w, 1 * WORLD_MS);
    }
}

/* Answers the question for the map: the lower half of the slots is at one port, the upper half at
 * another. */
static void says_map(unsigned i, const char *host, unsigned lower, unsigned upper)
{
    char reply[256] = "*2\r\n";
    size_t len = 4;
    len += put_range(reply + len, sizeof reply - len, 0, HALF - 1, host, lower);
    (void)put_range(reply + len, sizeof reply - len, HALF, SLOTS - 1, host, upper);
    world_say(w, i, reply);
    world_tick(w);
}

/* Sets up nodes a:1 and a:2, which are sockets 0 and 1, both connected. */
static void know_two(void)
{
    world_greet(w, 0);
    assert_true(is_asked(0));
    says_map(0, "a", 1, 2);
    world_greet(w, 1);
    assert_int_equal(w->sockets[1].port, 2);
}

static void send_to(struct world_call *call, const char *key, unsigned i, uint64_t deadline_ms)
{
    assert_int_equal(world_call(w, call, key, w->now + deadline_ms * WORLD_MS), 0);
    world_flush(w, i);
    assert_memory_equal(world_heard(w, i), "EVALSHA", 7);
}

static void answers(unsigned i, struct world_call *call)
{
    world_say(w, i, ANSWER);
    assert_int_equal(call->done, 1);
    assert_int_equal(call->end, CLIENT_REPLIED);
}

static void refuse(unsigned i, const char *word, const char *key, const char *where)
{
    char line[128];
    (void)snprintf(line, sizeof line, "-%s %u %s\r\n", word, cluster_slot(text_of(key)), where);
    world_say(w, i, line);
}

/* ---- */

static void calls_go_to_the_primary_of_their_slot(void **state)
{
    struct world_call a;
    struct world_call b;
    struct world_call early;
    assert_int_equal(world_call(w, &early, high, 0), 0); /* before any map is known */
    know_two();
    world_flush(w, 1);
    assert_memory_equal(world_heard(w, 1), "EVALSHA", 7);
    answers(1, &early);
    send_to(&a, low, 0, 5);
    send_to(&b, high, 1, 5);
    answers(0, &a);
    answers(1, &b);
}

static void an_empty_host_is_the_one_that_was_asked(void **state)
{
    struct world_call a;
    world_greet(w, 0);
    assert_true(is_asked(0));
    says_map(0, "", 1, 2);
    assert_int_equal(w->count, 2);
    assert_string_equal(w->sockets[1].host, "a");
    world_greet(w, 1);
    send_to(&a, low, 0, 5);
    refuse(0, "MOVED", low, ":2");
    world_flush(w, 1);
    assert_memory_equal(world_heard(w, 1), "EVALSHA", 7);
    answers(1, &a);
    assert_int_equal(w->count, 2);
}

static void moved_leads_to_a_node_that_was_not_known_and_to_one_question_for_the_map(void **state)
{
    struct world_call a[50];
    know_two();
    for (unsigned i = 0; i < 50; i++) {
        send_to(&a[i], low, 0, 100);
    }
    world_pass(w, 60 * WORLD_MS);
    for (unsigned i = 0; i < 50; i++) {
        refuse(0, "MOVED", low, "b:3");
    }
    assert_int_equal(w->count, 3);
    assert_int_equal(w->sockets[2].port, 3);
    world_greet(w, 2);
    world_flush(w, 2);
    for (unsigned i = 0; i < 50; i++) {
        assert_memory_equal(world_heard(w, 2), "EVALSHA", 7);
        answers(2, &a[i]);
    }
    unsigned asked = is_asked(0);
    asked += is_asked(1);
    asked += is_asked(2);
    assert_int_equal(asked, 1);
}

static void ask_is_followed_after_asking_and_changes_nothing_in_the_map(void **state)
{
    struct world_call a;
    struct world_call b;
    know_two();
    send_to(&a, low, 0, 100);
    refuse(0, "ASK", low, "a:2");
    world_flush(w, 1);
    assert_string_equal(world_heard(w, 1), "ASKING");
    assert_memory_equal(world_heard(w, 1), "EVALSHA", 7);
    world_say(w, 1, "+OK\r\n");
    answers(1, &a);
    send_to(&b, low, 0, 100);
    answers(0, &b);
    assert_false(is_asked(0) || is_asked(1));
}

static void tryagain_and_clusterdown_pause_a_call_within_its_deadline(void **state)
{
    struct world_call a;
    know_two();
    send_to(&a, low, 0, 5);
    world_say(w, 0, "-TRYAGAIN Multiple keys request during rehashing of slot\r\n");
    world_flush(w, 0);
    assert_string_equal(world_heard(w, 0), "");
    world_pass(w, 1 * WORLD_MS);
    world_flush(w, 0);
    assert_memory_equal(world_heard(w, 0), "EVALSHA", 7);
    world_say(w, 0, "-CLUSTERDOWN The cluster is down\r\n");
    world_pass(w, 2 * WORLD_MS);
    world_flush(w, 0);
    assert_memory_equal(world_heard(w, 0), "EVALSHA", 7);
    world_say(w, 0, "-CLUSTERDOWN The cluster is down\r\n");
    assert_int_equal(a.done, 1);
    assert_int_equal(a.end, CLIENT_NOT_RUN);
}

/* Two nodes each name the other as the owner: the call must not go back and forth at the speed of
 * the network. */
static void a_call_that_two_nodes_redirect_to_each_other_pauses(void **state)
{
    struct world_call a;
    know_two();
    send_to(&a, low, 0, 100);
    for (unsigned i = 0; i < 3; i++) {
        unsigned at = i % 2;
        refuse(at, "MOVED", low, at == 0 ? "a:2" : "a:1");
        world_flush(w, 1 - at);
        const char *line = world_heard(w, 1 - at);
        line = strcmp(line, "CLUSTER SLOTS") == 0 ? world_heard(w, 1 - at) : line;
        assert_memory_equal(line, "EVALSHA", 7);
    }
    unsigned wakes = w->sockets[0].wakes;
    refuse(1, "MOVED", low, "a:1");
    assert_int_equal(w->sockets[0].wakes, wakes);
    world_pass(w, 1 * WORLD_MS);
    world_flush(w, 0);
    const char *line = world_heard(w, 0);
    while (strcmp(line, "CLUSTER SLOTS") == 0) {
        says_map(0, "a", 1, 2);
        line = world_heard(w, 0);
    }
    assert_memory_equal(line, "EVALSHA", 7);
    answers(0, &a);
}

static void a_primary_that_is_lost_is_asked_about_until_another_has_its_slots(void **state)
{
    struct world_call a;
    struct world_call b;
    know_two();
    world_pass(w, 100 * WORLD_MS);
    send_to(&a, high, 1, 100);
    world_down(w, 1);
    assert_int_equal(a.end, CLIENT_UNKNOWN); /* and it is not sent again anywhere */
    assert_true(is_asked(0));
    world_down(w, 1); /* the next attempt */
    says_map(0, "a", 1, 2);
    assert_int_equal(world_call(w, &b, high, 0), WEIR_EIO);
    await_question(0);
    says_map(0, "a", 1, 3);
    assert_int_equal(w->sockets[2].port, 3);
    world_greet(w, 2);
    send_to(&b, high, 2, 5);
    answers(2, &b);
}

#define NOREPLICAS "-NOREPLICAS Not enough good replicas to write.\r\n"

/* Returns which of two nodes is asked for the map. The second node refuses all other commands. */
static unsigned await_question_of_two(void)
{
    for (unsigned ms = 0; ms < 2000; ms++) {
        if (is_asked(0)) {
            return 0;
        }
        world_flush(w, 1);
        const char *line = world_heard(w, 1);
        if (strcmp(line, "CLUSTER SLOTS") == 0) {
            return 1;
        }
        if (line[0] != 0) {
            world_say(w, 1, NOREPLICAS);
        }
        world_pass(w, 1 * WORLD_MS);
    }
    fail();
    return 0;
}

/* The primary is cut off from its replica and gets no calls any more; then the others choose
 * another. */
static void a_primary_without_replicas_is_asked_about_until_another_has_its_slots(void **state)
{
    struct world_call calls[5];
    know_two();
    world_pass(w, 100 * WORLD_MS);
    for (unsigned i = 0; i < 5; i++) {
        send_to(&calls[i], high, 1, 1);
    }
    for (unsigned i = 0; i < 5; i++) {
        world_say(w, 1, NOREPLICAS);
        assert_int_equal(calls[i].end, CLIENT_NOT_RUN);
    }
    assert_int_equal(world_call(w, &calls[0], high, 0), WEIR_EIO);
    for (unsigned i = 0; i < 5; i++) {
        says_map(await_question_of_two(), "a", 1, 2);
    }
    says_map(await_question_of_two(), "a", 1, 3);
    assert_int_equal(w->sockets[2].port, 3);
}

static void nodes_that_leave_are_closed_when_their_replies_have_had_time(void **state)
{
    struct world_call a;
    struct world_call b;
    know_two();
    world_pass(w, 100 * WORLD_MS);
    send_to(&a, high, 1, 100);
    send_to(&b, low, 0, 100);
    refuse(0, "MOVED", low, "a:3");
    assert_true(is_asked(0));
    says_map(0, "a", 3, 3);
    answers(1, &a);
    assert_int_equal(w->sockets[0].state, WORLD_UP);
    world_greet(w, 2);
    world_flush(w, 2);
    assert_memory_equal(world_heard(w, 2), "EVALSHA", 7);
    answers(2, &b);
    world_pass(w, 3000 * WORLD_MS);
    assert_int_equal(w->sockets[0].state, WORLD_CLOSED);
    assert_int_equal(w->sockets[1].state, WORLD_CLOSED);
    assert_int_equal(w->sockets[2].state, WORLD_UP);
    assert_int_equal(w->sockets[1].attempts, 1);
}

static void an_invalid_map_changes_nothing_and_is_asked_for_again(void **state)
{
    static const char *const bad[] = {"-ERR This instance has cluster support disabled\r\n",
                                      "*0\r\n", "*1\r\n:1\r\n", "+OK\r\n"};
    world_greet(w, 0);
    for (unsigned i = 0; i < 4; i++) {
        await_question(0);
        world_say(w, 0, bad[i]);
        assert_string_equal(client_last_error(w->client),
                            "a:1: names no primary with slots, expected a node of a Cluster");
    }
    await_question(0);
    says_map(0, "a", 1, 1);
    assert_int_equal(w->sockets[0].state, WORLD_UP);
}

static void a_call_for_a_slot_without_a_primary_is_refused_at_once(void **state)
{
    char reply[128] = "*1\r\n";
    struct world_call a;
    world_greet(w, 0);
    assert_true(is_asked(0));
    (void)put_range(reply + 4, sizeof reply - 4, 0, HALF - 1, "a", 1);
    world_say(w, 0, reply);
    assert_int_equal(world_call(w, &a, high, 0), WEIR_EIO);
    world_pass(w, 100 * WORLD_MS);
    assert_int_equal(world_call(w, &a, high, 0), 0); /* a node is being asked for the map */
    assert_true(is_asked(0));
    says_map(0, "a", 1, 1);
    world_flush(w, 0);
    assert_memory_equal(world_heard(w, 0), "EVALSHA", 7);
    answers(0, &a);
}

/* a:1, the host of the URL, has left the Cluster. Then the only node ends, and a:1 knows the new
 * owner. */
static void when_no_node_answers_the_hosts_of_the_url_are_asked_again(void **state)
{
    world_greet(w, 0);
    assert_true(is_asked(0));
    says_map(0, "a", 2, 2);
    world_greet(w, 1);
    world_pass(w, 3000 * WORLD_MS);
    assert_int_equal(w->sockets[0].state, WORLD_CLOSED);
    world_down(w, 1);
    world_pass(w, 60 * WORLD_MS);
    unsigned seed = 0; /* a new link of the same name */
    assert_int_equal(w->sockets[seed].port, 1);
    assert_int_equal(w->sockets[seed].state, WORLD_CONNECTING);
    world_greet(w, seed);
    assert_true(is_asked(seed));
    says_map(seed, "a", 1, 1);
    struct world_call a;
    send_to(&a, low, seed, 5);
    answers(seed, &a);
}

int main(void)
{
#define IN_WORLD(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        IN_WORLD(calls_go_to_the_primary_of_their_slot),
        IN_WORLD(an_empty_host_is_the_one_that_was_asked),
        IN_WORLD(moved_leads_to_a_node_that_was_not_known_and_to_one_question_for_the_map),
        IN_WORLD(ask_is_followed_after_asking_and_changes_nothing_in_the_map),
        IN_WORLD(tryagain_and_clusterdown_pause_a_call_within_its_deadline),
        IN_WORLD(a_call_that_two_nodes_redirect_to_each_other_pauses),
        IN_WORLD(a_primary_that_is_lost_is_asked_about_until_another_has_its_slots),
        IN_WORLD(a_primary_without_replicas_is_asked_about_until_another_has_its_slots),
        IN_WORLD(nodes_that_leave_are_closed_when_their_replies_have_had_time),
        IN_WORLD(an_invalid_map_changes_nothing_and_is_asked_for_again),
        IN_WORLD(a_call_for_a_slot_without_a_primary_is_refused_at_once),
        IN_WORLD(when_no_node_answers_the_hosts_of_the_url_are_asked_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
