/* Tests calls that follow their slot through a Cluster: C2 of redis/client.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/store/client_world.h"

#define SLOTS_AT_A "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$1\r\na\r\n:1\r\n$2\r\nid\r\n"

enum { A, B };

static struct client_world world;
static struct client_world *w = &world;
static struct breakers *breakers;
static struct world_call call;

/* Sets up a known map, with all slots at a, and sends a call. */
static int begin(void **state)
{
    breakers = breakers_create(1);
    world_start(w, "redis-cluster://a:1", breakers);
    world_up(w, A);
    world_say(w, A, "+PONG\r\n");
    world_flush(w, A);
    for (const char *line = ""; strcmp(line, "CLUSTER SLOTS") != 0;) {
        line = world_heard(w, A);
        assert_string_not_equal(line, "");
    }
    world_say(w, A, SLOTS_AT_A);
    world_flush(w, A);
    while (world_heard(w, A)[0] != 0) {
        world_say(w, A, "+OK\r\n");
    }
    assert_int_equal(world_call(w, &call, "k", w->now + 100 * WORLD_MS), 0);
    world_flush(w, A);
    return 0;
}

static int finish(void **state)
{
    world_stop(w);
    breakers_destroy(breakers);
    return 0;
}

static void assert_heard(unsigned i, const char *beginning)
{
    world_flush(w, i);
    const char *line = world_heard(w, i);
    if (strncmp(line, beginning, strlen(beginning)) != 0) {
        fail_msg("heard '%s', expected '%s...'", line, beginning);
    }
}

static void greet_b(void)
{
    assert_int_equal(w->count, 2);
    world_greet(w, B);
}

static void assert_answered(void)
{
    assert_int_equal(call.done, 1);
    assert_int_equal(call.end, CLIENT_REPLIED);
}

static void a_call_follows_a_slot_that_has_moved_and_so_do_others(void **state)
{
    struct world_call next;
    assert_heard(A, "EVALSHA ");
    world_say(w, A, "-MOVED 7629 b:2\r\n");
    greet_b();
    assert_heard(B, "EVALSHA ");
    world_say(w, B, ":1\r\n");
    assert_answered();
    assert_int_equal(w->metrics.resent, 1);
    assert_int_equal(world_call(w, &next, "k", 0), 0);
    assert_heard(B, "EVALSHA ");
    world_say(w, B, ":1\r\n");
    assert_int_equal(next.end, CLIENT_REPLIED);
}

static void a_call_follows_ask_after_asking_and_other_calls_do_not(void **state)
{
    struct world_call next;
    assert_heard(A, "EVALSHA ");
    world_say(w, A, "-ASK 7629 b:2\r\n");
    greet_b();
    assert_heard(B, "ASKING");
    assert_heard(B, "EVALSHA ");
    world_say(w, B, "+OK\r\n:1\r\n");
    assert_answered();
    assert_int_equal(world_call(w, &next, "k", 0), 0);
    assert_heard(A, "EVALSHA ");
    world_say(w, A, ":1\r\n");
    assert_int_equal(next.end, CLIENT_REPLIED);
}

static void a_script_that_is_not_loaded_there_is_sent_as_text_after_asking(void **state)
{
    assert_heard(A, "EVALSHA ");
    world_say(w, A, "-ASK 7629 b:2\r\n");
    greet_b();
    assert_heard(B, "ASKING");
    assert_heard(B, "EVALSHA ");
    world_say(w, B, "+OK\r\n-NOSCRIPT x\r\n");
    assert_heard(B, "ASKING");
    assert_heard(B, "EVAL ");
    world_say(w, B, "+OK\r\n:1\r\n");
    assert_answered();
}

static void a_probe_that_is_redirected_closes_the_breaker_and_its_slot_follows(void **state)
{
    static struct world_call others[5];
    struct breaker *a = breaker_find(breakers, "a:1");
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(world_call(w, &others[i], "k", w->now + WORLD_MS), 0);
    }
    world_flush(w, A);
    world_pass_over(w, A, 5);
    for (unsigned i = 0; i < 5; i++) {
        world_say(w, A, "-OOM x\r\n");
    }
    assert_true(breaker_is_open(a));
    for (const char *line = ""; strcmp(line, WORLD_PROBE_OF_K) != 0; line = world_heard(w, A)) {
        assert_string_equal(line, "");
        world_pass(w, WORLD_MS);
        world_flush(w, A);
    }
    world_say(w, A, "-MOVED 7629 b:2\r\n");
    assert_false(breaker_is_open(a));
    greet_b();
    assert_int_equal(world_call(w, &others[4], "k", 0), 0);
    assert_heard(B, "EVALSHA ");
}

/* For several keys of a slot that is moving the node says TRYAGAIN until all have been moved, then
 * ASK. */
static void after_many_pauses_a_call_still_follows(void **state)
{
    for (unsigned i = 0; i < 5; i++) {
        assert_heard(A, "EVALSHA ");
        world_say(w, A, "-TRYAGAIN x\r\n");
        world_pass(w, (1u << i) * WORLD_MS);
    }
    assert_heard(A, "EVALSHA ");
    world_say(w, A, "-ASK 7629 b:2\r\n");
    greet_b();
    assert_heard(B, "ASKING");
    assert_heard(B, "EVALSHA ");
    world_say(w, B, "+OK\r\n:1\r\n");
    assert_answered();
}

/* Each node says that the other has the slot: a call must not go back and forth without pauses. */
static void a_call_that_is_redirected_again_and_again_pauses(void **state)
{
    unsigned at = A;
    world_say(w, A, "-MOVED 7629 b:2\r\n");
    greet_b();
    world_pass_over(w, A, 1);
    for (unsigned hops = 1; hops < 4; hops++) {
        at = 1 - at;
        world_flush(w, at);
        const char *line = world_heard(w, at);
        while (strncmp(line, "CLUSTER", 7) == 0) {
            world_say(w, at, SLOTS_AT_A);
            line = world_heard(w, at);
        }
        assert_true(strncmp(line, "EVALSHA ", 8) == 0);
        world_say(w, at, at == A ? "-MOVED 7629 b:2\r\n" : "-MOVED 7629 a:1\r\n");
    }
    world_flush(w, A);
    world_flush(w, B);
    for (unsigned i = A; i <= B; i++) {
        const char *line = world_heard(w, i);
        assert_true(strncmp(line, "EVALSHA ", 8) != 0);
    }
    assert_int_equal(call.done, 0);
    world_pass(w, 100 * WORLD_MS);
    assert_int_equal(call.done, 1);
    assert_int_not_equal(call.end, CLIENT_REPLIED);
}

int main(void)
{
#define STORY(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        STORY(a_call_follows_a_slot_that_has_moved_and_so_do_others),
        STORY(a_call_follows_ask_after_asking_and_other_calls_do_not),
        STORY(a_probe_that_is_redirected_closes_the_breaker_and_its_slot_follows),
        STORY(a_script_that_is_not_loaded_there_is_sent_as_text_after_asking),
        STORY(after_many_pauses_a_call_still_follows),
        STORY(a_call_that_is_redirected_again_and_again_pauses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
