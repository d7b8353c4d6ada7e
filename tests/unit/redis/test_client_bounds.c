/* Tests C3 and C4 of redis/client.h: how much may wait, and replies that come late or never. */
#include "unit/redis/client_story.h"

/* ---- C3: bounds ---- */

static void calls_beyond_the_bound_are_refused_and_nothing_happens(void **state)
{
    struct world_call a[9];
    finish(NULL);
    breakers = breakers_create(1);
    world_prepare(w, "redis://one:1", breakers);
    w->options.in_flight = 8;
    world_create(w);
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(world_call(w, &a[i], "k", 0), 0);
    }
    assert_int_equal(world_call(w, &a[8], "k", 0), WEIR_EFULL);
    world_pass(w, WORLD_DEADLINE);
    assert_waits(&a[8]);
    assert_int_equal(world_call(w, &a[8], "k", 0), 0);
    world_pass(w, WORLD_DEADLINE);
    assert_ended(&a[8], CLIENT_NOT_RUN);
    assert_int_equal(w->metrics.calls, 9);
}

/* Outstanding replies take places: a caller that asks too fast waits, and its calls are not
 * sent. */
static void pending_replies_are_bounded_too(void **state)
{
    struct world_call a[40];
    unsigned unknown = 0;
    finish(NULL);
    breakers = breakers_create(1);
    world_prepare(w, "redis://one:1", breakers);
    w->options.in_flight = 2;
    world_create(w);
    world_greet(w, 0);
    for (size_t i = 0; i < 40 && world_call(w, &a[i], "k", w->now + WORLD_MS) == 0; i++) {
        world_flush(w, 0);
        world_pass(w, WORLD_MS);
        unknown += a[i].end == CLIENT_UNKNOWN;
    }
    assert_true(unknown <= 4);
}

static void a_call_that_waits_for_a_place_is_sent_when_pending_replies_come(void **state)
{
    struct world_call late[3];
    struct world_call a;
    finish(NULL);
    breakers = breakers_create(1);
    world_prepare(w, "redis://one:1", breakers);
    w->options.in_flight = 2;
    world_create(w);
    world_greet(w, 0);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(world_call(w, &late[i], "late", w->now + WORLD_MS), 0);
        world_flush(w, 0);
        assert_heard("EVALSHA ");
        world_pass(w, WORLD_MS);
    }
    assert_int_equal(world_call(w, &a, "alice", 0), 0);
    world_flush(w, 0);
    assert_heard("");
    world_say(w, 0, ANSWER ANSWER ANSWER);
    assert_true(w->sockets[0].woken);
    world_flush(w, 0);
    world_say(w, 0, ANSWER);
    assert_ended(&a, CLIENT_REPLIED);
}

static void the_arguments_of_a_call_are_bounded(void **state)
{
    static char bytes[65537];
    struct world_call a = {.world = w};
    struct client_call call = {.script = &store_scripts.row[1], .arguments = {bytes, 65537}};
    assert_int_equal(client_call(w->client, &call, w->now, NULL, &a), WEIR_EFULL);
}

static unsigned many_done;

static void count_done(void *arg, enum client_end end, const struct store_reply *reply,
                       uint64_t now_ns)
{
    assert_int_equal(end, CLIENT_NOT_RUN);
    many_done++;
}

static void bytes_that_wait_for_a_link_are_bounded(void **state)
{
    static char bytes[65536];
    struct client_call call = {.script = &store_scripts.row[1], .arguments = {bytes, 65536}};
    unsigned n = 0;
    many_done = 0;
    while (n < 10000 && client_call(w->client, &call, w->now, count_done, NULL) == 0) {
        n++;
    }
    assert_int_equal(n, 256); /* 16 MB */
    world_pass(w, WORLD_DEADLINE);
    assert_int_equal(many_done, 256);
    assert_int_equal(client_call(w->client, &call, w->now, count_done, NULL), 0);
    world_pass(w, WORLD_DEADLINE);
}

static void there_is_one_attempt_to_connect_at_a_time(void **state)
{
    static struct world_call a[10];
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(world_call(w, &a[i], "k", w->now + 1000 * WORLD_MS), 0);
        world_pass(w, 10 * WORLD_MS);
    }
    assert_int_equal(w->sockets[0].attempts, 1);
    assert_int_equal(w->metrics.connects, 1);
}

/* ---- C4: late replies, and silence ---- */

static void a_late_reply_is_dropped_and_the_connection_goes_on(void **state)
{
    struct world_call late;
    struct world_call next;
    world_greet(w, 0);
    send_call(&late, "alice");
    world_pass(w, WORLD_DEADLINE);
    assert_ended(&late, CLIENT_UNKNOWN);
    send_call(&next, "bob");
    world_say(w, 0, ":1\r\n");
    assert_waits(&next);
    world_say(w, 0, ":2\r\n");
    assert_ended(&next, CLIENT_REPLIED);
    assert_int_equal(next.integer, 2);
    assert_int_equal(w->metrics.late, 1);
    assert_int_equal(late.done, 1);
}

static void a_link_that_is_silent_while_calls_wait_is_closed(void **state)
{
    struct world_call a;
    world_greet(w, 0);
    world_pass(w, 10000 * WORLD_MS); /* silence alone is not a failure */
    assert_int_equal(w->sockets[0].closed, 0);
    send_call(&a, "alice");
    world_pass(w, 100 * WORLD_MS - 1);
    assert_int_equal(w->sockets[0].closed, 0);
    world_pass(w, 1);
    assert_int_equal(w->sockets[0].closed, 1);
    assert_int_equal(w->metrics.up, 0);
}

static void a_link_that_says_anything_is_not_closed(void **state)
{
    static struct world_call a[20];
    world_greet(w, 0);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(world_call(w, &a[i], "k", w->now + 5000 * WORLD_MS), 0);
        world_flush(w, 0);
        world_pass(w, 60 * WORLD_MS);
        world_say(w, 0, i % 2 == 0 ? ":" : "1\r\n:1\r\n");
    }
    assert_int_equal(w->sockets[0].closed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(calls_beyond_the_bound_are_refused_and_nothing_happens),
        STORY(pending_replies_are_bounded_too),
        STORY(a_call_that_waits_for_a_place_is_sent_when_pending_replies_come),
        STORY(the_arguments_of_a_call_are_bounded),
        STORY(bytes_that_wait_for_a_link_are_bounded),
        STORY(there_is_one_attempt_to_connect_at_a_time),
        STORY(a_late_reply_is_dropped_and_the_connection_goes_on),
        STORY(a_link_that_is_silent_while_calls_wait_is_closed),
        STORY(a_link_that_says_anything_is_not_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
