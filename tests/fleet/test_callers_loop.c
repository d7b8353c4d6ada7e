/* Tests a fleet on the caller's loop: one thread, poll(), and weir_fleet_run(). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "support/fleet/fleet_open.h"
#include "support/store/redis_alone.h"

struct tally {
    unsigned answered, allowed, denied, degraded, errors;
    bool inside; /* weir_fleet_run() is running */
    bool outside;
};

static void count(void *arg, int error, const struct weir_answer *answer)
{
    struct tally *t = arg;
    t->answered++;
    t->outside |= !t->inside;
    if (error != 0) {
        t->errors++;
        return;
    }
    t->allowed += answer->verdict == WEIR_ALLOW;
    t->denied += answer->verdict == WEIR_DENY;
    t->degraded += (answer->flags & WEIR_FLAG_DEGRADED) != 0;
}

static void ask(struct weir_fleet_limit *limit, const char *key, struct tally *t)
{
    struct weir_question q = {.key = key, .key_len = strlen(key), .cost = 1};
    struct weir_answer a;
    assert_int_equal(weir_fleet_ask(limit, &q, &a, count, t), 0);
}

/* Works like fleet_run_until(), but records when callbacks may come. */
static void run(struct weir_fleet *fleet, struct tally *t, unsigned until)
{
    uint64_t end = clock_monotonic_ns() + 20 * WEIR_SECOND;
    while (t->answered < until && clock_monotonic_ns() < end) {
        struct pollfd p = {weir_fleet_fd(fleet), POLLIN, 0};
        (void)poll(&p, 1, weir_fleet_timeout_ms(fleet));
        t->inside = true;
        assert_int_equal(weir_fleet_run(fleet), 0);
        t->inside = false;
    }
    assert_int_equal(t->answered, until);
}

static void questions_are_answered_within_run_and_totals_are_exact(void **state)
{
    struct weir_fleet *fleet = fleet_open_at(world.url, WEIR_FLEET_CALLERS_LOOP, 0);
    struct weir_fleet_limit_options o = fleet_hourly("loop", 300);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
    struct tally t = {0};
    for (int i = 0; i < 1000; i++) {
        ask(limit, "k", &t);
    }
    assert_int_equal(t.answered, 0);
    run(fleet, &t, 1000);
    assert_int_equal(t.allowed, 300);
    assert_int_equal(t.denied, 700);
    assert_int_equal(t.degraded, 0);
    assert_false(t.outside);
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
}

/* Replaces the C library's send() to count how often and how much the fleet writes. */
static unsigned writes;
static size_t written;
static int written_to;

__attribute__((visibility("default"))) ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
    writes++;
    written += n;
    written_to = fd;
    return sendto(fd, bytes, n, flags, NULL, 0);
}

static void questions_of_one_turn_leave_in_one_write(void **state)
{
    struct weir_fleet *fleet = fleet_open_at(world.url, WEIR_FLEET_CALLERS_LOOP, 0);
    struct weir_fleet_limit_options o = fleet_hourly("write", 1000000);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
    struct tally t = {0};
    ask(limit, "k", &t);
    run(fleet, &t, 1); /* the connection is open */
    unsigned before = writes;
    for (int i = 0; i < 50; i++) {
        ask(limit, "k", &t);
    }
    assert_int_equal(writes, before);
    run(fleet, &t, 51);
    assert_in_range(writes - before, 1, 3); /* a heartbeat may come in between */
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
}

static void waiting_is_not_for_a_loop_that_nobody_else_runs(void **state)
{
    struct weir_fleet *fleet = fleet_open_at(world.url, WEIR_FLEET_CALLERS_LOOP, 0);
    struct weir_fleet_limit_options o = fleet_hourly("wait", 10);
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
    struct weir_answer a;
    assert_int_equal(weir_fleet_check(limit, "k", 1, 1, &a), WEIR_ENOTSUP);
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
}

/* Asks until the store answers: on a busy machine the first answers may come after the deadline. */
static void await_store(struct weir_fleet *fleet, struct weir_fleet_limit *limit)
{
    uint64_t end = clock_monotonic_ns() + 20 * WEIR_SECOND;
    struct weir_question q = {.key = "first", .key_len = 5, .cost = 1};
    struct tally t;
    do {
        struct weir_answer a;
        assert_true(clock_monotonic_ns() < end);
        t = (struct tally){0};
        int said = weir_fleet_ask(limit, &q, &a, count, &t);
        assert_in_range(said, 0, 1);
        if (said == 1) {
            count(&t, 0, &a);
            assert_int_equal(weir_fleet_run(fleet), 0);
            redis_look_again_soon();
        }
        run(fleet, &t, 1);
    } while (t.degraded > 0);
}

/* A caller that waits only for the descriptor is woken in time: deadlines are not only in the
 * timeout. */
static void a_deadline_makes_the_descriptor_readable(void **state)
{
    struct weir_fleet *fleet =
        fleet_open_at(world.url, WEIR_FLEET_CALLERS_LOOP, 20 * WEIR_MILLISECOND);
    struct weir_fleet_limit_options o = fleet_hourly("deadline", 1000000);
    o.on_store_failure = WEIR_FLEET_CLOSED;
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
    struct tally t = {0};
    await_store(fleet, limit);
    redis_node_pause(&world.node[0]);
    uint64_t begun = clock_monotonic_ns();
    ask(limit, "k", &t);
    for (int i = 0; t.answered < 1 && i < 1000; i++) {
        struct pollfd p = {weir_fleet_fd(fleet), POLLIN, 0};
        (void)weir_fleet_run(fleet);
        if (t.answered < 1) {
            assert_int_equal(poll(&p, 1, 5000), 1);
        }
    }
    uint64_t took = clock_monotonic_ns() - begun;
    redis_node_resume(&world.node[0]);
    assert_int_equal(t.answered, 1);
    assert_int_equal(t.degraded, 1);
    assert_int_equal(t.denied, 1);
    print_message("a deadline of 20 ms: answered after %.2f ms\n", (double)took / 1e6);
    assert_in_range(took, 20 * WEIR_MILLISECOND, WEIR_SECOND);
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
}

static int option_of(int level, int name)
{
    int value = 0;
    socklen_t size = sizeof value;
    assert_int_equal(getsockopt(written_to, level, name, &value, &size), 0);
    return value;
}

/* The store knows the scripts from the first connection on. */
static void a_new_connection_sends_little_and_is_kept_alive(void **state)
{
    for (unsigned i = 0; i < 3; i++) {
        struct weir_fleet *fleet = fleet_open_at(world.url, WEIR_FLEET_CALLERS_LOOP, 0);
        struct weir_fleet_limit_options o = fleet_hourly("little", 100);
        struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
        struct tally t = {0};
        written = 0;
        ask(limit, "k", &t);
        run(fleet, &t, 1);
        assert_int_equal(t.allowed, 1);
        assert_int_equal(t.degraded, 0);
        assert_true(i == 0 || written <= 2048);
        assert_int_equal(option_of(SOL_SOCKET, SO_KEEPALIVE), 1);
        assert_int_equal(option_of(IPPROTO_TCP, TCP_KEEPIDLE), 15);
        weir_fleet_limit_close(limit);
        weir_fleet_close(fleet);
    }
}

static void closing_answers_what_is_out(void **state)
{
    struct weir_fleet *fleet = fleet_open_at(world.url, WEIR_FLEET_CALLERS_LOOP, 0);
    struct weir_fleet_limit_options o = fleet_hourly("closing", 10);
    o.on_store_failure = WEIR_FLEET_OPEN;
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
    struct tally t = {0};
    for (int i = 0; i < 100; i++) {
        ask(limit, "k", &t);
    }
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
    assert_int_equal(t.answered, 100);
    assert_int_equal(t.errors, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions_are_answered_within_run_and_totals_are_exact),
        cmocka_unit_test(questions_of_one_turn_leave_in_one_write),
        cmocka_unit_test(waiting_is_not_for_a_loop_that_nobody_else_runs),
        cmocka_unit_test(a_deadline_makes_the_descriptor_readable),
        cmocka_unit_test(a_new_connection_sends_little_and_is_kept_alive),
        cmocka_unit_test(closing_answers_what_is_out),
    };
    return cmocka_run_group_tests(tests, start_redis, stop_redis);
}
