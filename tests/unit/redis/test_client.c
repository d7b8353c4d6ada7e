/* Tests the path of a call, and C1 and C2 of redis/client.h. C3 and C4 are in test_client_bounds.c,
 * the greeting in test_client_greeting.c, breakers in test_client_breaker.c. */
#include "unit/redis/client_story.h"

/* ---- the path of a call ---- */

static void a_call_is_answered_by_its_reply(void **state)
{
    struct world_call a;
    world_greet(w, 0);
    send_call(&a, "alice");
    assert_heard("EVALSHA ");
    assert_waits(&a);
    world_say(w, 0, ANSWER);
    assert_ended(&a, CLIENT_REPLIED);
    assert_int_equal(a.integer, 7);
    assert_int_equal(w->metrics.calls, 1);
    assert_int_equal(w->metrics.replies, 1);
    assert_int_equal(w->metrics.up, 1);
}

static void calls_of_one_turn_wake_the_loop_once_and_go_out_together(void **state)
{
    struct world_call a[100];
    world_greet(w, 0);
    world_flush(w, 0);
    unsigned wakes = w->sockets[0].wakes;
    for (size_t i = 0; i < 100; i++) {
        assert_int_equal(world_call(w, &a[i], "k", 0), 0);
        assert_int_equal(w->sockets[0].wakes, wakes + 1);
    }
    struct weir_text out = client_outgoing(w->sockets[0].link);
    assert_true(out.len > 100 * 50);
    client_sent(w->sockets[0].link, out.len);
    assert_int_equal(client_outgoing(w->sockets[0].link).len, 0);
    for (size_t i = 0; i < 100; i++) {
        world_say(w, 0, ANSWER);
        assert_ended(&a[i], CLIENT_REPLIED);
    }
}

static void a_new_connection_wakes_the_loop_also_if_the_old_one_ended_awake(void **state)
{
    struct world_call a;
    world_greet(w, 0);
    assert_int_equal(world_call(w, &a, "alice", 0), 0);
    assert_true(w->sockets[0].woken);
    world_down(w, 0);
    w->sockets[0].state = WORLD_UP;
    client_up(w->sockets[0].link, w->now);
    assert_true(w->sockets[0].woken);
    world_down(w, 0);
    assert_ended(&a, CLIENT_NOT_RUN);
}

static void calls_wait_for_the_greeting_and_follow_it(void **state)
{
    struct world_call a;
    assert_int_equal(world_call(w, &a, "alice", 0), 0);
    world_up(w, 0);
    assert_heard("PING");
    assert_heard("");
    world_say(w, 0, "+PONG\r\n");
    world_flush(w, 0);
    assert_heard("EVALSHA ");
    world_say(w, 0, ANSWER);
    assert_ended(&a, CLIENT_REPLIED);
}

static void an_error_of_no_known_kind_is_a_reply(void **state)
{
    struct world_call a;
    world_greet(w, 0);
    send_call(&a, "alice");
    world_say(w, 0, "-WRONGTYPE Operation against a key\r\n");
    assert_ended(&a, CLIENT_REPLIED);
    assert_int_equal(a.type, '-');
    assert_int_equal(a.refusal, STORE_REFUSED);
    assert_string_equal(client_last_error(w->client), "one:1: WRONGTYPE Operation against a key");
    send_call(&a, "bob");
    world_say(w, 0, ANSWER);
    assert_string_equal(client_last_error(w->client), "");
}

/* These errors come from a Redis whose commands were renamed. */
static void an_error_that_quotes_the_request_is_reported_without_the_quote(void **state)
{
    struct world_call a;
    world_greet(w, 0);
    send_call(&a, "alice");
    world_say(w, 0,
              "-ERR unknown command 'EVALSHA', with args beginning with: 'x' '{ralice}' \r\n");
    assert_string_equal(client_last_error(w->client), "one:1: ERR unknown command 'EVALSHA'");
    send_call(&a, "alice");
    world_say(w, 0,
              "-ERR weir: something else than a state of this limit is in w:1:a:t:{ralice}\r\n");
    assert_string_equal(client_last_error(w->client),
                        "one:1: ERR weir: something else than a state");
}

static void replies_may_be_cut_anywhere(void **state)
{
    static const char bytes[] = "*2\r\n:11\r\n:12\r\n$5\r\nhello\r\n-NOSCRIPT x\r\n:-3\r\n";
    size_t len = sizeof bytes - 1;
    for (size_t cut = 0; cut <= len; cut++) {
        for (size_t second = cut; second <= len; second++) {
            struct world_call a[4];
            struct world_call again;
            if (w->sockets[0].state == WORLD_CONNECTING) {
                world_greet(w, 0);
            }
            for (size_t i = 0; i < 4; i++) {
                send_call(&a[i], "k");
            }
            world_say_bytes(w, 0, (struct weir_text){bytes, cut});
            world_say_bytes(w, 0, (struct weir_text){bytes + cut, second - cut});
            world_say_bytes(w, 0, (struct weir_text){bytes + second, len - second});
            assert_ended(&a[0], CLIENT_REPLIED);
            assert_int_equal(a[0].integer, 11);
            assert_ended(&a[1], CLIENT_REPLIED);
            assert_int_equal(a[1].type, '$');
            assert_waits(&a[2]);
            assert_ended(&a[3], CLIENT_REPLIED);
            assert_int_equal(a[3].integer, -3);
            world_flush(w, 0);
            world_say(w, 0, ANSWER);
            assert_ended(&a[2], CLIENT_REPLIED);
            send_call(&again, "k");
            world_say(w, 0, ANSWER);
            assert_ended(&again, CLIENT_REPLIED);
        }
    }
}

static void an_invalid_reply_ends_the_connection(void **state)
{
    static const char *const bad[] = {"hello\r\n", ":12x\r\n", "*-2\r\n", "$-2\r\n", "\r\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct world_call a;
        finish(NULL);
        begin(NULL);
        world_greet(w, 0);
        send_call(&a, "alice");
        assert_false(world_say(w, 0, bad[i]));
        assert_int_equal(w->sockets[0].closed, 1);
        assert_ended(&a, CLIENT_UNKNOWN);
        assert_non_null(strstr(client_last_error(w->client), "one:1: "));
    }
}

static void a_reply_without_a_request_ends_the_connection(void **state)
{
    world_greet(w, 0);
    assert_false(world_say(w, 0, ANSWER));
}

/* ---- C1: the end of a call ---- */

static void a_call_without_a_reply_ends_at_its_deadline_unknown(void **state)
{
    struct world_call a;
    world_greet(w, 0);
    send_call(&a, "alice");
    uint64_t sent = w->now;
    world_pass(w, WORLD_DEADLINE - 1);
    assert_waits(&a);
    world_pass(w, 1);
    assert_ended(&a, CLIENT_UNKNOWN);
    assert_int_equal(a.at, sent + WORLD_DEADLINE);
    assert_false(a.has_reply);
}

static void a_call_that_was_never_sent_ends_at_its_deadline_not_run(void **state)
{
    struct world_call before;
    struct world_call a;
    assert_int_equal(world_call(w, &before, "b", 0), 0); /* there is no connection yet */
    world_pass(w, WORLD_DEADLINE);
    assert_ended(&before, CLIENT_NOT_RUN);
    world_greet(w, 0);
    assert_int_equal(world_call(w, &a, "alice", 0),
                     0); /* and the loop did not get to sending this one */
    world_pass(w, WORLD_DEADLINE);
    assert_ended(&a, CLIENT_NOT_RUN);
    world_flush(w, 0);
    assert_heard(""); /* and it is never sent later */
}

static void deadlines_of_any_length_are_kept(void **state)
{
    static const unsigned ms[] = {50, 3, 90, 1, 40, 7, 60, 2};
    struct world_call a[8];
    uint64_t start = w->now;
    for (size_t i = 0; i < 8; i++) {
        assert_int_equal(world_call(w, &a[i], "k", start + ms[i] * WORLD_MS), 0);
    }
    world_pass(w, 100 * WORLD_MS);
    for (size_t i = 0; i < 8; i++) {
        assert_ended(&a[i], CLIENT_NOT_RUN);
        assert_int_equal(a[i].at, start + ms[i] * WORLD_MS);
    }
}

static void bytes_that_were_given_to_the_loop_count_as_sent(void **state)
{
    struct world_call sent;
    struct world_call never;
    world_greet(w, 0);
    assert_int_equal(world_call(w, &sent, "alice", 0), 0);
    struct weir_text out = client_outgoing(w->sockets[0].link);
    client_sent(w->sockets[0].link, out.len / 2); /* half of it was sent */
    assert_int_equal(world_call(w, &never, "bob", 0), 0);
    world_down(w, 0);
    assert_ended(&sent, CLIENT_UNKNOWN);
    assert_waits(&never); /* a new connection is being made */
    world_greet(w, 0);
    world_flush(w, 0);
    assert_heard("EVALSHA ");
    world_say(w, 0, ANSWER);
    assert_ended(&never, CLIENT_REPLIED);
}

static void a_connection_that_cannot_be_made_leaves_calls_not_run_at_once(void **state)
{
    struct world_call a;
    assert_int_equal(world_call(w, &a, "alice", 0), 0);
    world_down(w, 0);
    assert_ended(&a, CLIENT_NOT_RUN);
    assert_int_equal(world_call(w, &a, "alice", 0), WEIR_EIO);
    assert_string_equal(client_last_error(w->client), "one:1: no connection");
}

static void the_end_of_a_client_ends_its_calls(void **state)
{
    struct world_call sent;
    struct world_call waits;
    struct world_call paused;
    world_greet(w, 0);
    send_call(&paused, "p");
    world_say(w, 0, "-TRYAGAIN x\r\n");
    send_call(&sent, "s");
    assert_int_equal(world_call(w, &waits, "w", 0), 0);
    world_stop(w);
    assert_ended(&sent, CLIENT_UNKNOWN);
    assert_ended(&waits, CLIENT_NOT_RUN);
    assert_ended(&paused, CLIENT_NOT_RUN);
    world_start(w, "redis://one:1", breakers);
}

/* ---- C2: sending again ---- */

static void an_unknown_script_is_sent_as_its_text(void **state)
{
    struct world_call a;
    world_greet(w, 0);
    send_call(&a, "alice");
    assert_heard("EVALSHA ");
    world_say(w, 0, "-NOSCRIPT No matching script.\r\n");
    world_flush(w, 0);
    const char *line = world_heard(w, 0);
    assert_true(strncmp(line, "EVAL ", 5) == 0);
    assert_non_null(strstr(line, " alice plain 1 5 5 "));
    world_say(w, 0, ANSWER);
    assert_ended(&a, CLIENT_REPLIED);
    assert_int_equal(w->metrics.resent, 1);
}

/* The calls of other threads wait until the text is there; a call that still meets a store without
 * the script carries the text itself. */
static void of_all_threads_one_sends_the_text_of_a_script(void **state)
{
    struct client_world other;
    struct world_call a, b;
    world_start(&other, "redis://one:1", breakers);
    world_greet(&other, 0);
    world_greet(w, 0);
    other.now = w->now;
    send_call(&a, "k");
    assert_heard("EVALSHA ");
    assert_int_equal(world_call(&other, &b, "k", 0), 0);
    world_flush(&other, 0);
    assert_true(strncmp(world_heard(&other, 0), "EVALSHA ", 8) == 0);
    world_say(w, 0, "-NOSCRIPT x\r\n");
    world_flush(w, 0);
    assert_heard("EVAL ");
    world_say(&other, 0, "-NOSCRIPT x\r\n");
    world_flush(&other, 0);
    assert_string_equal(world_heard(&other, 0), "");
    world_pass(&other, WORLD_MS);
    world_flush(&other, 0);
    assert_true(strncmp(world_heard(&other, 0), "EVALSHA ", 8) == 0);
    world_say(&other, 0, "-NOSCRIPT x\r\n");
    world_flush(&other, 0);
    assert_true(strncmp(world_heard(&other, 0), "EVAL ", 5) == 0);
    world_say(&other, 0, ANSWER);
    world_say(w, 0, ANSWER);
    assert_ended(&a, CLIENT_REPLIED);
    assert_ended(&b, CLIENT_REPLIED);
    world_stop(&other);
}

/* However often a connection is made again, the store knows its scripts. */
static void a_connection_that_is_made_again_sends_no_script(void **state)
{
    world_greet(w, 0);
    for (unsigned i = 0; i < 3; i++) {
        world_down(w, 0);
        while (w->sockets[0].state != WORLD_CONNECTING) {
            world_pass(w, WORLD_MS);
        }
        world_up(w, 0);
        assert_heard("PING");
        world_say(w, 0, "+PONG\r\n");
        world_flush(w, 0);
        assert_heard("");
    }
}

static void of_many_calls_with_an_unknown_script_one_carries_the_text(void **state)
{
    struct world_call a[50];
    world_greet(w, 0);
    for (size_t i = 0; i < 50; i++) {
        send_call(&a[i], "k");
        assert_heard("EVALSHA ");
    }
    for (size_t i = 0; i < 50; i++) {
        world_say(w, 0, "-NOSCRIPT x\r\n");
    }
    world_flush(w, 0);
    assert_heard("EVAL ");
    for (size_t i = 1; i < 50; i++) {
        assert_heard("EVALSHA ");
    }
    world_say(w, 0, ANSWER);
    world_say(w, 0, "-NOSCRIPT flushed again, in between\r\n");
    for (size_t i = 2; i < 50; i++) {
        world_say(w, 0, ANSWER);
    }
    world_flush(w, 0);
    assert_heard("EVAL ");
    world_say(w, 0, ANSWER);
    for (size_t i = 0; i < 50; i++) {
        assert_ended(&a[i], CLIENT_REPLIED);
    }
}

static void a_refused_call_is_sent_again_after_pauses_that_double(void **state)
{
    static const char *const refusals[] = {"-CLUSTERDOWN x\r\n", "-LOADING x\r\n",
                                           "-BUSY x\r\n",        "-OOM x\r\n",
                                           "-TRYAGAIN x\r\n",    "-NOREPLICAS x\r\n"};
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        struct world_call a;
        finish(NULL);
        begin(NULL);
        world_greet(w, 0);
        assert_int_equal(world_call(w, &a, "alice", w->now + 10 * WORLD_MS), 0);
        for (uint64_t pause = 1; pause <= 4; pause *= 2) {
            world_flush(w, 0);
            assert_heard("EVALSHA ");
            world_say(w, 0, refusals[i]);
            world_pass(w, pause * WORLD_MS - 1);
            world_flush(w, 0);
            assert_heard("");
            world_pass(w, 1);
        }
        world_flush(w, 0);
        assert_waits(&a);
        world_say(w, 0, refusals[i]); /* the next pause would exceed the deadline */
        assert_ended(&a, CLIENT_NOT_RUN);
        assert_true(a.has_reply);
        assert_true(store_did_not_run(a.refusal));
        assert_int_equal(w->metrics.resent, 3);
    }
}

static void a_call_that_was_sent_is_not_sent_again_on_another_connection(void **state)
{
    struct world_call a;
    world_greet(w, 0);
    send_call(&a, "alice");
    world_down(w, 0);
    assert_ended(&a, CLIENT_UNKNOWN);
    world_greet(w, 0);
    world_flush(w, 0);
    assert_heard("");
}

static void a_node_of_a_cluster_is_recognised_by_its_refusal(void **state)
{
    struct world_call a;
    world_greet(w, 0);
    send_call(&a, "alice");
    world_say(w, 0, "-MOVED 1 two:2\r\n");
    assert_ended(&a, CLIENT_NOT_RUN);
    assert_non_null(strstr(client_last_error(w->client), "redis-cluster://"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_call_is_answered_by_its_reply),
        STORY(calls_of_one_turn_wake_the_loop_once_and_go_out_together),
        STORY(a_new_connection_wakes_the_loop_also_if_the_old_one_ended_awake),
        STORY(calls_wait_for_the_greeting_and_follow_it),
        STORY(an_error_of_no_known_kind_is_a_reply),
        STORY(an_error_that_quotes_the_request_is_reported_without_the_quote),
        STORY(replies_may_be_cut_anywhere),
        STORY(an_invalid_reply_ends_the_connection),
        STORY(a_reply_without_a_request_ends_the_connection),
        STORY(a_call_without_a_reply_ends_at_its_deadline_unknown),
        STORY(a_call_that_was_never_sent_ends_at_its_deadline_not_run),
        STORY(deadlines_of_any_length_are_kept),
        STORY(bytes_that_were_given_to_the_loop_count_as_sent),
        STORY(a_connection_that_cannot_be_made_leaves_calls_not_run_at_once),
        STORY(the_end_of_a_client_ends_its_calls),
        STORY(an_unknown_script_is_sent_as_its_text),
        STORY(of_all_threads_one_sends_the_text_of_a_script),
        STORY(a_connection_that_is_made_again_sends_no_script),
        STORY(of_many_calls_with_an_unknown_script_one_carries_the_text),
        STORY(a_refused_call_is_sent_again_after_pauses_that_double),
        STORY(a_call_that_was_sent_is_not_sent_again_on_another_connection),
        STORY(a_node_of_a_cluster_is_recognised_by_its_refusal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
