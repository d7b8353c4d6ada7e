/* Tests C5 of redis/client.h: what calls and connections report to a breaker, and how an open
 * breaker affects them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/store/client_world.h"

static struct client_world world;
static struct client_world *w = &world;
static struct breakers *breakers;
static struct breaker *one;
static struct world_call calls[100];

static int begin(void **state)
{
    breakers = breakers_create(3);
    world_start(w, "redis://one:1", breakers);
    one = breaker_find(breakers, "one:1");
    return 0;
}

static int finish(void **state)
{
    world_stop(w);
    breakers_destroy(breakers);
    return 0;
}

/* Sends n calls after the greeting, which are not answered in time. */
static void lose_calls(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(world_call(w, &calls[i], "k", 0), 0);
    }
    world_flush(w, 0);
    world_pass_over(w, 0, n);
    world_pass(w, WORLD_DEADLINE);
}

static void pay_late(unsigned n)
{
    while (n-- > 0) {
        world_say(w, 0, ":1\r\n");
    }
}

static void wait_for_probe(void)
{
    uint64_t start = w->now;
    while (w->sockets[0].attempts == 0 || !w->sockets[0].woken) {
        world_pass(w, WORLD_MS);
        assert_true(w->now - start < 6000 * WORLD_MS);
    }
}

static void five_unknown_calls_open_it_and_calls_are_refused_at_once(void **state)
{
    struct world_call a;
    world_greet(w, 0);
    lose_calls(4);
    assert_false(breaker_is_open(one));
    pay_late(4); /* late replies do not count as success */
    lose_calls(1);
    assert_true(breaker_is_open(one));
    assert_int_equal(world_call(w, &a, "k", 0), WEIR_EIO);
    assert_int_equal(a.done, 0);
}

static void refusals_that_speak_of_the_endpoint_are_failures(void **state)
{
    static const struct {
        const char *said;
        bool opens;
        enum client_end end;
    } rows[] = {
        {"-READONLY x\r\n", true, CLIENT_NOT_RUN},    {"-NOREPLICAS x\r\n", true, CLIENT_NOT_RUN},
        {"-MISCONF x\r\n", true, CLIENT_REPLIED},     {"-BUSY x\r\n", true, CLIENT_NOT_RUN},
        {"-LOADING x\r\n", true, CLIENT_NOT_RUN},     {"-OOM x\r\n", true, CLIENT_NOT_RUN},
        {"-CLUSTERDOWN x\r\n", true, CLIENT_NOT_RUN}, {"-MASTERDOWN x\r\n", true, CLIENT_NOT_RUN},
        {"-TRYAGAIN x\r\n", false, CLIENT_REPLIED},   {"-NOSCRIPT x\r\n", false, CLIENT_REPLIED},
        {"-WRONGTYPE x\r\n", false, CLIENT_REPLIED},  {":1\r\n", false, CLIENT_REPLIED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        finish(NULL);
        begin(NULL);
        world_greet(w, 0);
        for (unsigned k = 0; k < 5; k++) {
            assert_int_equal(world_call(w, &calls[k], "k", 0), 0);
        }
        world_flush(w, 0);
        for (unsigned k = 0; k < 5; k++) {
            world_say(w, 0, rows[i].said);
        }
        if (breaker_is_open(one) != rows[i].opens) {
            fail_msg("%s", rows[i].said);
        }
        world_pass(w, 2 * WORLD_MS); /* an open breaker ends calls that are pausing */
        for (unsigned k = 0; rows[i].opens && k < 5; k++) {
            assert_int_equal(calls[k].done, 1);
            assert_int_equal(calls[k].end, rows[i].end);
        }
    }
}

static void half_of_twenty_calls_open_it(void **state)
{
    world_greet(w, 0);
    for (unsigned i = 0; i < 10; i++) {
        assert_false(breaker_is_open(one));
        assert_int_equal(world_call(w, &calls[0], "k", 0), 0);
        world_flush(w, 0);
        world_say(w, 0, ":1\r\n");
        lose_calls(1);
        pay_late(1);
    }
    assert_true(breaker_is_open(one));
}

static void connections_that_cannot_be_made_open_it(void **state)
{
    unsigned made = 0;
    while (!breaker_is_open(one)) {
        assert_true(++made <= 5);
        uint64_t start = w->now;
        while (w->sockets[0].state != WORLD_CONNECTING) {
            world_pass(w, WORLD_MS);
            assert_true(w->now - start < 1000 * WORLD_MS);
        }
        world_down(w, 0);
    }
    assert_int_equal(made, 5);
    assert_int_equal(w->sockets[0].attempts, 5);
}

static void an_end_without_calls_is_no_failure(void **state)
{
    for (unsigned i = 0; i < 20; i++) {
        while (w->sockets[0].state != WORLD_CONNECTING) {
            world_pass(w, WORLD_MS);
        }
        world_greet(w, 0);
        world_pass(w, 1000 * WORLD_MS);
        world_down(w, 0);
        assert_int_equal(w->sockets[0].state, WORLD_CONNECTING); /* at once */
    }
    assert_false(breaker_is_open(one));
}

static void connections_that_end_soon_are_made_less_and_less_often(void **state)
{
    uint64_t start = w->now;
    for (unsigned i = 0; i < 40; i++) {
        while (w->sockets[0].state != WORLD_CONNECTING) {
            world_pass(w, WORLD_MS);
        }
        world_greet(w, 0);
        world_down(w, 0);
    }
    assert_true(w->now - start > 3000 * WORLD_MS);
    assert_false(breaker_is_open(one));
}

static void a_probe_is_a_call_that_is_answered_in_time(void **state)
{
    struct world_call a;
    world_greet(w, 0);
    lose_calls(5);
    wait_for_probe();
    world_flush(w, 0);
    assert_string_equal(world_heard(w, 0), WORLD_PROBE "0");
    pay_late(5);
    world_say(w, 0, ":1\r\n");
    assert_false(breaker_is_open(one));
    assert_int_equal(world_call(w, &a, "k", 0), 0);
    world_flush(w, 0);
    world_say(w, 0, ":1\r\n");
    assert_int_equal(a.end, CLIENT_REPLIED);
}

static void a_probe_that_is_answered_late_or_badly_is_a_failure(void **state)
{
    world_greet(w, 0);
    lose_calls(5);
    pay_late(5);
    wait_for_probe();
    world_flush(w, 0);
    assert_string_equal(world_heard(w, 0), WORLD_PROBE "0");
    world_pass(w, WORLD_DEADLINE + 1);
    world_say(w, 0, ":1\r\n");
    assert_true(breaker_is_open(one));
    wait_for_probe();
    world_flush(w, 0);
    assert_string_equal(world_heard(w, 0), WORLD_PROBE "0");
    world_say(w, 0, "-LOADING x\r\n");
    assert_true(breaker_is_open(one));
    wait_for_probe();
    world_flush(w, 0);
    world_say(w, 0, ":1\r\n");
    assert_false(breaker_is_open(one));
}

/* A stall has ended: what the timeouts opened is closed by a probe that is made at once. */
static void a_late_reply_brings_the_probe_forward(void **state)
{
    world_greet(w, 0);
    lose_calls(5);
    assert_true(breaker_is_open(one));
    pay_late(1);
    world_flush(w, 0);
    assert_string_equal(world_heard(w, 0), WORLD_PROBE "0");
    pay_late(4);
    world_flush(w, 0);
    assert_string_equal(world_heard(w, 0), ""); /* one probe is enough */
    world_say(w, 0, ":1\r\n");
    assert_false(breaker_is_open(one));
}

/* A probe may have been sent during the stall. */
static void a_probe_that_is_answered_late_is_made_once_more_at_once(void **state)
{
    world_greet(w, 0);
    lose_calls(5);
    wait_for_probe();
    world_flush(w, 0);
    assert_string_equal(world_heard(w, 0), WORLD_PROBE "0");
    world_pass(w, WORLD_DEADLINE + 1);
    pay_late(5);
    world_say(w, 0, ":1\r\n");
    assert_true(breaker_is_open(one));
    world_flush(w, 0);
    assert_string_equal(world_heard(w, 0), WORLD_PROBE "0");
    world_say(w, 0, ":1\r\n");
    assert_false(breaker_is_open(one));
}

static void a_store_that_is_always_late_stays_away(void **state)
{
    world_greet(w, 0);
    lose_calls(5);
    pay_late(5);
    world_flush(w, 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_string_equal(world_heard(w, 0), WORLD_PROBE "0");
        world_pass(w, WORLD_DEADLINE + 1);
        world_say(w, 0, ":1\r\n");
        world_flush(w, 0);
    }
    assert_string_equal(world_heard(w, 0), "");
    assert_true(breaker_is_open(one));
    world_pass(w, 0);
}

static void a_probe_makes_a_connection_if_there_is_none(void **state)
{
    world_greet(w, 0);
    lose_calls(5);
    world_down(w, 0);
    unsigned before = w->sockets[0].attempts;
    while (w->sockets[0].state != WORLD_CONNECTING) {
        world_pass(w, WORLD_MS);
    }
    assert_int_equal(w->sockets[0].attempts, before + 1);
    world_up(w, 0);
    world_say(w, 0, ":1\r\n");
    world_flush(w, 0);
    assert_true(breaker_is_open(one)); /* that was only the greeting */
    world_pass_over(w, 0, 1);
    assert_string_equal(world_heard(w, 0), WORLD_PROBE "0");
    assert_string_equal(world_heard(w, 0), "");
    world_say(w, 0, ":1\r\n");
    assert_false(breaker_is_open(one));
}

static void a_store_that_is_away_is_probed_less_and_less_often(void **state)
{
    for (uint64_t end = w->now + 60000 * WORLD_MS; w->now < end; world_pass(w, WORLD_MS)) {
        if (w->sockets[0].state == WORLD_CONNECTING) {
            world_down(w, 0);
        }
    }
    assert_true(w->sockets[0].attempts > 5 + 10);
    assert_true(w->sockets[0].attempts < 5 + 60);
}

/* ---- several threads, as several clients with shared breakers ---- */

static unsigned connecting(struct client_world *of, unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++) {
        sum += of[i].sockets[0].state == WORLD_CONNECTING;
    }
    return sum;
}

static void a_process_makes_one_probe_at_a_time(void **state)
{
    enum { CLIENTS = 6 };
    static struct client_world many[CLIENTS];
    unsigned probes = 0;
    for (unsigned i = 0; i < CLIENTS; i++) {
        world_start(&many[i], "redis://two:2", breakers);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        world_down(&many[i], 0);
    }
    for (unsigned ms = 0; ms < 30000; ms++) {
        for (unsigned i = 0; i < CLIENTS; i++) {
            world_pass(&many[i], WORLD_MS);
        }
        unsigned now = connecting(many, CLIENTS);
        assert_true(now <= 1);
        for (unsigned i = 0; now == 1 && ms % 50 == 0 && i < CLIENTS; i++) {
            if (many[i].sockets[0].state == WORLD_CONNECTING) {
                world_down(&many[i], 0);
                probes++;
            }
        }
    }
    assert_true(probes >= 5);
    for (unsigned i = 0; i < CLIENTS; i++) {
        world_stop(&many[i]);
    }
}

static void all_connect_when_one_has_found_the_store_again(void **state)
{
    enum { CLIENTS = 3 };
    static struct client_world many[CLIENTS];
    unsigned prober = CLIENTS;
    for (unsigned i = 0; i < CLIENTS; i++) {
        world_start(&many[i], "redis://two:2", breakers);
    }
    while (!breaker_is_open(breaker_find(breakers, "two:2"))) {
        for (unsigned i = 0; i < CLIENTS; i++) {
            if (many[i].sockets[0].state == WORLD_CONNECTING) {
                world_down(&many[i], 0);
            }
            world_pass(&many[i], WORLD_MS);
        }
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        if (many[i].sockets[0].state == WORLD_CONNECTING) {
            world_down(&many[i], 0);
        }
    }
    while (prober == CLIENTS) {
        for (unsigned i = 0; i < CLIENTS; i++) {
            world_pass(&many[i], WORLD_MS);
            prober = many[i].sockets[0].state == WORLD_CONNECTING ? i : prober;
        }
    }
    world_up(&many[prober], 0);
    for (unsigned i = 0; i < 2; i++) {
        world_say(&many[prober], 0, "+PONG\r\n");
        world_flush(&many[prober], 0);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        world_pass(&many[i], 200 * WORLD_MS);
        assert_int_equal(many[i].sockets[0].state, i == prober ? WORLD_UP : WORLD_CONNECTING);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        world_stop(&many[i]);
    }
}

static void a_client_that_ends_while_probing_leaves_it_to_others(void **state)
{
    struct client_world other;
    world_greet(w, 0);
    lose_calls(5);
    world_start(&other, "redis://one:1", breakers);
    other.now = w->now;
    wait_for_probe();
    world_stop(w);
    world_pass(&other, 1000 * WORLD_MS);
    assert_int_equal(other.sockets[0].state, WORLD_CONNECTING);
    world_stop(&other);
    world_start(w, "redis://one:1", breakers);
}

/* ---- several hosts ---- */

#define MASTER "*3\r\n$6\r\nmaster\r\n:5\r\n*1\r\n*3\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\n5\r\n"
#define REPLICA "*5\r\n$5\r\nslave\r\n$1\r\na\r\n:1\r\n$9\r\nconnected\r\n:5\r\n"

static void of_several_hosts_the_first_that_is_a_master_is_used(void **state)
{
    struct world_call a;
    struct client_world several;
    world_start(&several, "redis://one:11,two:22,three:33", breakers);
    struct client_world *v = &several;
    assert_int_equal(v->count, 3);
    assert_int_equal(world_call(v, &a, "k", 0), 0);
    world_up(v, 0);
    assert_string_equal(world_heard(v, 0), "ROLE");
    assert_false(world_say(v, 0, REPLICA));
    assert_non_null(strstr(client_last_error(v->client), "one:11: is not a master"));
    world_up(v, 1);
    assert_string_equal(world_heard(v, 1), "ROLE");
    world_say(v, 1, MASTER);
    assert_int_equal(v->sockets[2].state, WORLD_CLOSED); /* not needed */
    world_flush(v, 1);
    assert_true(strncmp(world_heard(v, 1), "EVALSHA ", 8) == 0);
    world_say(v, 1, ":1\r\n");
    assert_int_equal(a.end, CLIENT_REPLIED);
    world_down(v, 1);
    world_pass(v, 100 * WORLD_MS);
    assert_int_equal(v->sockets[0].state, WORLD_CONNECTING); /* all hosts are asked again */
    assert_int_equal(v->sockets[2].state, WORLD_CONNECTING);
    world_stop(v);
}

static void of_several_hosts_one_that_asks_for_a_password_is_no_master(void **state)
{
    struct client_world several;
    world_start(&several, "redis://one:11,two:22", breakers);
    struct client_world *v = &several;
    world_up(v, 0);
    assert_string_equal(world_heard(v, 0), "ROLE");
    assert_false(world_say(v, 0, "-NOAUTH Authentication required.\r\n"));
    assert_string_equal(client_last_error(v->client), "one:11: requires a password");
    assert_int_equal(v->metrics.up, 0);
    world_stop(v);
}

static void a_master_that_has_become_a_replica_is_left(void **state)
{
    struct world_call a[2];
    struct client_world several;
    struct client_world *v = &several;
    world_start(v, "redis://one:11,two:22", breakers);
    world_up(v, 0);
    world_say(v, 0, MASTER);
    world_flush(v, 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(world_call(v, &a[i], "k", v->now + 100 * WORLD_MS), 0);
    }
    world_flush(v, 0);
    world_pass_over(v, 0, 1 + 2);
    world_say(v, 0, "-READONLY x\r\n");
    world_flush(v, 0);
    assert_string_equal(world_heard(v, 0), "ROLE");
    assert_false(world_say(v, 0, "-READONLY x\r\n" REPLICA));
    world_pass(v, 30 * WORLD_MS);
    world_up(v, 1);
    world_say(v, 1, MASTER);
    world_flush(v, 1);
    world_say(v, 1, ":1\r\n:2\r\n");
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(a[i].done, 1);
        assert_int_equal(a[i].end, CLIENT_REPLIED);
    }
    world_stop(v);
}

static void calls_lost_because_the_client_closed_the_connection_are_no_failures(void **state)
{
    enum { CALLS = 6 };
    struct client_world several;
    struct client_world *v = &several;
    struct breaker *first = breaker_find(breakers, "one:11");
    world_start(v, "redis://one:11,two:22", breakers);
    world_up(v, 0);
    world_say(v, 0, MASTER);
    world_flush(v, 0);
    assert_int_equal(world_call(v, &calls[0], "k", 0), 0);
    world_flush(v, 0);
    world_say(v, 0, "-READONLY x\r\n");
    for (unsigned i = 1; i < CALLS; i++) { /* they follow the question ROLE */
        assert_int_equal(world_call(v, &calls[i], "k", 0), 0);
    }
    world_flush(v, 0);
    assert_false(world_say(v, 0, REPLICA));
    for (unsigned i = 1; i < CALLS; i++) {
        assert_int_equal(calls[i].done, 1);
        assert_int_equal(calls[i].end, CLIENT_UNKNOWN);
    }
    assert_false(breaker_is_open(first));
    world_stop(v);
}

static void a_replica_that_answers_a_probe_has_its_breaker_closed(void **state)
{
    struct client_world several;
    struct client_world *v = &several;
    struct breaker *first = breaker_find(breakers, "one:11");
    world_start(v, "redis://one:11,two:22", breakers);
    while (!breaker_is_open(first)) {
        if (v->sockets[0].state == WORLD_CONNECTING) {
            world_down(v, 0);
        }
        world_pass(v, WORLD_MS);
    }
    while (v->sockets[0].state != WORLD_CONNECTING) {
        world_pass(v, WORLD_MS);
    }
    world_up(v, 0);
    assert_true(breaker_is_open(first));
    assert_false(world_say(v, 0, REPLICA));
    assert_false(breaker_is_open(first));
    world_stop(v);
}

static void without_any_host_calls_are_refused(void **state)
{
    struct world_call a[2];
    struct client_world several;
    struct client_world *v = &several;
    world_start(v, "redis://one:11,two:22", breakers);
    assert_int_equal(world_call(v, &a[0], "k", 0), 0);
    world_down(v, 0);
    assert_int_equal(a[0].done, 0);
    world_down(v, 1);
    assert_int_equal(a[0].done, 1);
    assert_int_equal(a[0].end, CLIENT_NOT_RUN);
    assert_int_equal(world_call(v, &a[1], "k", 0), WEIR_EIO);
    world_stop(v);
}

int main(void)
{
#define STORY(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        STORY(five_unknown_calls_open_it_and_calls_are_refused_at_once),
        STORY(refusals_that_speak_of_the_endpoint_are_failures),
        STORY(half_of_twenty_calls_open_it),
        STORY(connections_that_cannot_be_made_open_it),
        STORY(an_end_without_calls_is_no_failure),
        STORY(connections_that_end_soon_are_made_less_and_less_often),
        STORY(a_probe_is_a_call_that_is_answered_in_time),
        STORY(a_probe_that_is_answered_late_or_badly_is_a_failure),
        STORY(a_late_reply_brings_the_probe_forward),
        STORY(a_probe_that_is_answered_late_is_made_once_more_at_once),
        STORY(a_store_that_is_always_late_stays_away),
        STORY(a_probe_makes_a_connection_if_there_is_none),
        STORY(a_store_that_is_away_is_probed_less_and_less_often),
        STORY(a_process_makes_one_probe_at_a_time),
        STORY(all_connect_when_one_has_found_the_store_again),
        STORY(a_client_that_ends_while_probing_leaves_it_to_others),
        STORY(of_several_hosts_the_first_that_is_a_master_is_used),
        STORY(of_several_hosts_one_that_asks_for_a_password_is_no_master),
        STORY(a_master_that_has_become_a_replica_is_left),
        STORY(calls_lost_because_the_client_closed_the_connection_are_no_failures),
        STORY(a_replica_that_answers_a_probe_has_its_breaker_closed),
        STORY(without_any_host_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
