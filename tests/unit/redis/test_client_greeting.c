/* Tests what a connection sends first (password, user, database), and how refusals are reported. */
#include "unit/redis/client_story.h"

/* ---- the greeting ---- */

static void a_password_and_a_database_come_first(void **state)
{
    struct world_call a;
    finish(NULL);
    breakers = breakers_create(1);
    world_prepare(w, "redis://one:1/3", breakers);
    w->options.user = TEXT("weir");
    w->password = TEXT("secret");
    world_create(w);
    assert_int_equal(world_call(w, &a, "alice", 0), 0);
    world_up(w, 0);
    assert_heard("AUTH weir secret");
    assert_heard("SELECT 3");
    world_say(w, 0, "+OK\r\n");
    world_flush(w, 0);
    assert_heard("");
    world_say(w, 0, "+OK\r\n");
    world_flush(w, 0);
    assert_heard("EVALSHA ");
    world_down(w, 0);
    w->options.user = TEXT("");
    w->password = TEXT("changed");
    world_up(w, 0);
    assert_heard("AUTH changed");
}

static void a_wrong_password_is_a_failure_with_a_reason_and_without_the_secret(void **state)
{
    struct world_call a;
    finish(NULL);
    breakers = breakers_create(1);
    world_prepare(w, "redis://one:1", breakers);
    w->password = TEXT("secret");
    world_create(w);
    assert_int_equal(world_call(w, &a, "alice", 0), 0);
    world_up(w, 0);
    assert_false(world_say(w, 0, "-WRONGPASS invalid\x01 pair\r\n"));
    assert_ended(&a, CLIENT_NOT_RUN);
    assert_string_equal(client_last_error(w->client), "one:1: AUTH: WRONGPASS invalid? pair");
    world_pass(w, 2000 * WORLD_MS); /* the client has tried again */
    assert_true(w->sockets[0].attempts > 1);
}

static void a_store_without_auth_is_reported_without_the_secret(void **state)
{
    finish(NULL);
    breakers = breakers_create(1);
    world_prepare(w, "redis://one:1", breakers);
    w->password = TEXT("secret");
    world_create(w);
    world_up(w, 0);
    assert_false(
        world_say(w, 0, "-ERR unknown command `AUTH`, with args beginning with: `secret`, \r\n"));
    assert_string_equal(client_last_error(w->client), "one:1: AUTH: ERR unknown command `AUTH`");
}

static void a_password_in_an_error_is_replaced(void **state)
{
    struct redact redact;
    struct world_call a;
    finish(NULL);
    breakers = breakers_create(1);
    world_prepare(w, "redis://one:1", breakers);
    assert_int_equal(redact_init(&redact), 0);
    w->options.redact = &redact;
    w->password = TEXT("se/cret");
    world_create(w);
    world_up(w, 0);
    assert_false(world_say(w, 0, "-WRONGPASS se/cret, se%2fcret and redis://u:x@h\r\n"));
    assert_string_equal(client_last_error(w->client),
                        "one:1: AUTH: WRONGPASS ***, *** and redis://***@h");
    world_pass(w, 2000 * WORLD_MS);
    w->password = TEXT("changed");
    world_up(w, 0);
    assert_true(world_say(w, 0, "+OK\r\n"));
    world_flush(w, 0);
    send_call(&a, "alice");
    world_say(w, 0, "-ERR changed from se/cret\r\n");
    assert_string_equal(client_last_error(w->client), "one:1: ERR *** from ***");
}

static void a_missing_password_is_noticed_before_calls(void **state)
{
    struct world_call a;
    assert_int_equal(world_call(w, &a, "alice", 0), 0);
    world_up(w, 0);
    assert_false(world_say(w, 0, "-NOAUTH Authentication required.\r\n"));
    assert_ended(&a, CLIENT_NOT_RUN);
    assert_string_equal(client_last_error(w->client),
                        "one:1: PING: NOAUTH Authentication required.");
}

static void the_reason_is_forgotten_when_the_store_is_there(void **state)
{
    world_down(w, 0);
    assert_string_not_equal(client_last_error(w->client), "");
    world_pass(w, 20 * WORLD_MS);
    world_greet(w, 0);
    assert_string_equal(client_last_error(w->client), "");
}

static void refusals_of_calls_are_a_reason_until_one_is_answered(void **state)
{
    struct world_call a;
    struct world_call b;
    world_greet(w, 0);
    send_call(&a, "alice");
    world_say(w, 0, "-OOM command not allowed script: 0123abcd, on @user_script:1.\r\n");
    assert_string_equal(client_last_error(w->client), "one:1: OOM command not allowed");
    send_call(&b, "bob");
    world_say(w, 0, ANSWER);
    assert_string_equal(client_last_error(w->client), "");
    world_pass(w, WORLD_DEADLINE);
}

static void a_password_does_not_stay_in_memory(void **state)
{
    finish(NULL);
    breakers = breakers_create(1);
    world_prepare(w, "redis://one:1", breakers);
    w->password = TEXT("secret");
    world_create(w);
    w->sockets[0].state = WORLD_UP;
    client_up(w->sockets[0].link, w->now);
    struct weir_text out = client_outgoing(w->sockets[0].link);
    assert_non_null(memmem(out.at, out.len, "secret", 6));
    client_sent(w->sockets[0].link, out.len);
    assert_null(memmem(out.at, out.len, "secret", 6));
}

static void a_greeting_that_is_not_answered_is_given_up(void **state)
{
    world_up(w, 0);
    world_pass(w, 999 * WORLD_MS);
    assert_int_equal(w->sockets[0].closed, 0);
    world_pass(w, WORLD_MS);
    assert_int_equal(w->sockets[0].closed, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORY(a_password_and_a_database_come_first),
        STORY(a_wrong_password_is_a_failure_with_a_reason_and_without_the_secret),
        STORY(a_store_without_auth_is_reported_without_the_secret),
        STORY(a_password_in_an_error_is_replaced),
        STORY(a_missing_password_is_noticed_before_calls),
        STORY(the_reason_is_forgotten_when_the_store_is_there),
        STORY(refusals_of_calls_are_a_reason_until_one_is_answered),
        STORY(a_password_does_not_stay_in_memory),
        STORY(a_greeting_that_is_not_answered_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
