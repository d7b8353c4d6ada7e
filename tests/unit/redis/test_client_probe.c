/* Tests a store that is reachable but refuses calls: how the client finds out that it accepts them
 * again, and which error it reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/store/client_world.h"

static struct client_world worlds[2]; /* two threads of a process */
static struct client_world *w = &worlds[0];
static struct client_world *other = &worlds[1];
static struct breakers *breakers;
static struct breaker *one;

static int begin(void **state)
{
    breakers = breakers_create(3);
    for (size_t i = 0; i < 2; i++) {
        world_start(&worlds[i], "redis://one:1", breakers);
        world_greet(&worlds[i], 0);
    }
    one = breaker_find(breakers, "one:1");
    return 0;
}

static int finish(void **state)
{
    world_stop(w);
    world_stop(other);
    breakers_destroy(breakers);
    return 0;
}

static void answer_calls(struct client_world *of, unsigned n, const char *key, const char *reply)
{
    static struct world_call calls[32];
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(world_call(of, &calls[i], key, 0), 0);
        world_flush(of, 0);
        world_pass_over(of, 0, 1);
        world_say(of, 0, reply);
    }
    world_pass(of, WORLD_DEADLINE); /* no call is pausing any more */
    world_flush(of, 0);
    while (world_heard(of, 0)[0] != 0) {
        world_say(of, 0, reply); /* replies to calls that were sent again */
    }
}

/* Returns the probe that this client sends. */
static const char *probe_of(struct client_world *of)
{
    uint64_t start = of->now;
    while (!of->sockets[0].woken) {
        world_pass(of, WORLD_MS);
        assert_true(of->now - start < 6000 * WORLD_MS);
    }
    world_flush(of, 0);
    return world_heard(of, 0);
}

static void a_store_that_refuses_calls_is_probed_by_what_they_need(void **state)
{
    answer_calls(w, 5, "k", "-OOM command not allowed\r\n");
    assert_true(breaker_is_open(one));
    for (unsigned i = 0; i < 4; i++) {
        assert_string_equal(probe_of(w), WORLD_PROBE_OF_K);
        world_say(w, 0, "-OOM command not allowed\r\n");
        assert_true(breaker_is_open(one));
        assert_string_equal(client_last_error(w->client), "one:1: OOM command not allowed");
    }
    assert_string_equal(probe_of(w), WORLD_PROBE_OF_K);
    world_say(w, 0, ":0\r\n");
    assert_false(breaker_is_open(one));
    assert_string_equal(client_last_error(w->client), "");
}

static void the_probe_of_any_thread_uses_the_key_of_a_refused_call(void **state)
{
    answer_calls(other, 1, "k", ":1\r\n");
    answer_calls(w, 5, "k", "-NOREPLICAS Not enough good replicas\r\n");
    assert_true(breaker_is_open(one));
    other->now = w->now;
    assert_string_equal(probe_of(other), WORLD_PROBE_OF_K);
    world_say(other, 0, "-NOREPLICAS Not enough good replicas\r\n");
    assert_true(breaker_is_open(one));
}

static void replies_to_a_probe_decide_whether_the_breaker_closes(void **state)
{
    static const struct {
        const char *said;
        bool opens;
    } rows[] = {
        {"-WRONGTYPE Operation against a key\r\n", false}, /* a log is a sorted set */
        {"-MOVED 1 two:2\r\n", true}, /* a call would end: the URL is not redis-cluster:// */
        {"-ASK 1 two:2\r\n", true},
        {":8\r\n", false},
        {"-READONLY x\r\n", true},
        {"-MISCONF x\r\n", true},
        {"-CLUSTERDOWN Hash slot not served\r\n", false},
        {"-CLUSTERDOWN The cluster is down\r\n", true},
        {"-BUSY x\r\n", true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        finish(NULL);
        begin(NULL);
        answer_calls(w, 5, "k", "-MISCONF Redis is configured to save\r\n");
        assert_true(breaker_is_open(one));
        assert_string_equal(probe_of(w), WORLD_PROBE_OF_K);
        world_say(w, 0, rows[i].said);
        if (breaker_is_open(one) != rows[i].opens) {
            fail_msg("%s", rows[i].said);
        }
    }
}

static void after_answered_calls_a_silent_store_is_probed_without_a_key_again(void **state)
{
    struct world_call calls[5];
    answer_calls(w, 1, "k", "-OOM x\r\n");
    answer_calls(w, 1, "k", ":1\r\n");
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(world_call(w, &calls[i], "k", 0), 0);
    }
    world_flush(w, 0);
    world_pass_over(w, 0, 5);
    world_pass(w, WORLD_DEADLINE);
    assert_true(breaker_is_open(one));
    assert_string_equal(probe_of(w), WORLD_PROBE "0");
}

/* ---- complaints ---- */

static void a_client_without_calls_learns_from_other_threads_that_calls_succeed(void **state)
{
    answer_calls(w, 1, "k", "-OOM x\r\n");
    answer_calls(other, 1, "k", "-NOPERM x\r\n"); /* says nothing about that */
    world_pass(w, 900 * WORLD_MS);
    assert_string_equal(client_last_error(w->client), "one:1: OOM x");
    other->now = w->now;
    answer_calls(other, 1, "k", ":1\r\n");
    world_pass(w, 2000 * WORLD_MS);
    assert_string_equal(client_last_error(w->client), "");
    assert_false(w->sockets[0].woken); /* and it does not ask any more */
}

static void a_client_without_calls_checks_the_store_itself(void **state)
{
    answer_calls(w, 1, "k", "-OOM x\r\n");
    for (unsigned i = 0; i < 3; i++) {
        assert_string_equal(probe_of(w), WORLD_PROBE_OF_K);
        world_say(w, 0, "-OOM x\r\n");
        assert_string_equal(client_last_error(w->client), "one:1: OOM x");
        assert_false(breaker_is_open(one));
    }
    assert_string_equal(probe_of(w), WORLD_PROBE_OF_K);
    world_say(w, 0, ":0\r\n");
    assert_string_equal(client_last_error(w->client), "");
}

static void missing_permissions_are_reported_until_a_call_is_answered(void **state)
{
    answer_calls(w, 1, "k", "-NOPERM x\r\n");
    world_pass(w, 5000 * WORLD_MS);
    assert_false(w->sockets[0].woken);
    assert_string_equal(client_last_error(w->client), "one:1: NOPERM x");
    answer_calls(w, 1, "k", ":1\r\n");
    assert_string_equal(client_last_error(w->client), "");
}

static void a_silent_link_is_closed_in_time_while_an_error_is_reported(void **state)
{
    struct world_call call;
    answer_calls(w, 1, "k", "-OOM x\r\n");
    assert_int_equal(world_call(w, &call, "k", 0), 0);
    world_flush(w, 0);
    world_pass(w, 10 * WORLD_DEADLINE + 100 * WORLD_MS);
    assert_non_null(strstr(client_last_error(w->client), "silent"));
}

int main(void)
{
#define STORY(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        STORY(a_store_that_refuses_calls_is_probed_by_what_they_need),
        STORY(the_probe_of_any_thread_uses_the_key_of_a_refused_call),
        STORY(replies_to_a_probe_decide_whether_the_breaker_closes),
        STORY(after_answered_calls_a_silent_store_is_probed_without_a_key_again),
        STORY(a_client_without_calls_learns_from_other_threads_that_calls_succeed),
        STORY(a_client_without_calls_checks_the_store_itself),
        STORY(missing_permissions_are_reported_until_a_call_is_answered),
        STORY(a_silent_link_is_closed_in_time_while_an_error_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
