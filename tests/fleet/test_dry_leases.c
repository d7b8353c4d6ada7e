/* Tests questions about a key whose lease is dry, on the caller's loop: one of them asks the store,
 * and the others wait for its reply. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "support/store/fault_proxy.h"
#include "support/fleet/fleet_open.h"
#include "support/store/redis_world.h"

#define AT_ONCE 64
#define QUOTA 20000
#define DEADLINE_NS (200 * WEIR_MILLISECOND)

static struct redis_world world;
static struct fault_proxy *proxy;
static char proxied[64]; /* URL of the proxy */

struct tally {
    unsigned answered, allowed, denied, degraded, errors;
    uint64_t last; /* `remaining` of the last answer */
};

struct node {
    struct weir_fleet *fleet;
    struct weir_fleet_limit *limit;
    struct tally tally;
    unsigned asked;
};

static void count(void *arg, int error, const struct weir_answer *answer)
{
    struct tally *t = arg;
    t->answered++;
    t->errors += error != 0;
    if (error == 0) {
        t->allowed += answer->verdict == WEIR_ALLOW;
        t->denied += answer->verdict == WEIR_DENY;
        t->degraded += (answer->flags & WEIR_FLAG_DEGRADED) != 0;
        t->last = answer->remaining;
        assert_int_equal(answer->quota, QUOTA);
    }
}

/* Returns true if the question was answered at once. */
static bool ask(struct node *n, uint64_t cost)
{
    struct weir_question q = {.key = "hot", .key_len = 3, .cost = cost};
    struct weir_answer a;
    int said = weir_fleet_ask(n->limit, &q, &a, count, &n->tally);
    assert_in_range(said, 0, 1);
    n->asked++;
    if (said == 1) {
        count(&n->tally, 0, &a);
    }
    return said == 1;
}

static void run(struct node *n)
{
    assert_true(fleet_run_until(n->fleet, &n->tally.answered, n->asked));
}

/* Opens a node with a bucket that does not refill during the test. */
static void open_node(struct node *n, const char *url, const char *name, int policy)
{
    uint64_t deadline_ns = policy == WEIR_FLEET_OPEN ? DEADLINE_NS : 0;
    *n = (struct node){.fleet = fleet_open_at(url, WEIR_FLEET_CALLERS_LOOP, deadline_ns)};
    struct weir_fleet_limit_options o = fleet_hourly(name, QUOTA);
    o.limit.period_ns = 100 * WEIR_DAY;
    o.consistency = WEIR_FLEET_LEASED;
    o.on_store_failure = policy;
    n->limit = fleet_limit_of(n->fleet, &o);
    assert_int_equal(weir_fleet_limit_consistency(n->limit), WEIR_FLEET_LEASED);
    do {
        n->tally = (struct tally){0};
        n->asked = 0;
        (void)ask(n, 1);
        run(n);
    } while (n->tally.degraded > 0); /* until the connection is open */
}

static void close_node(struct node *n)
{
    weir_fleet_limit_close(n->limit);
    weir_fleet_close(n->fleet);
}

/* Spends the node's lease while its loop does not run. Then a renewal is pending, and the last
 * question waits. */
static void run_dry(struct node *n)
{
    (void)ask(n, 1);
    run(n); /* now the node expects more questions */
    while (ask(n, 1)) {
    }
    assert_int_equal(n->asked, n->tally.answered + 1);
}

static uint64_t calls_of(struct node *n)
{
    return fleet_stats_of(n->fleet).calls;
}

/* ---- with one call ---- */

/* Opens a node with a slow connection, so that a short stall of this process does not make a call
 * look late. */
static void open_slow_node(struct node *n, const char *name)
{
    fault_proxy_set(proxy, &(struct faults){.delay_us = 10000});
    open_node(n, proxied, name, WEIR_FLEET_CLOSED);
}

static void questions_of_one_turn_make_a_call_or_two_and_share_what_comes(void **state)
{
    struct node n;
    open_slow_node(&n, "share");
    run_dry(&n);
    uint64_t before = calls_of(&n);
    for (unsigned i = 1; i < AT_ONCE; i++) {
        assert_false(ask(&n, 1));
    }
    run(&n);
    assert_int_equal(n.tally.allowed, n.asked);
    assert_int_equal(n.tally.degraded, 0);
    /* the renewal, the next one at half of what it brought, a heartbeat */
    assert_in_range(calls_of(&n) - before, 1, 4);
    close_node(&n);
}

static void all_that_there_is_is_admitted_and_not_one_more(void **state)
{
    struct node n;
    open_node(&n, world.url, "all", WEIR_FLEET_CLOSED);
    uint64_t before = calls_of(&n);
    while (n.tally.denied == 0) {
        for (unsigned i = 0; i < AT_ONCE; i++) {
            (void)ask(&n, 1);
        }
        run(&n);
    }
    assert_int_equal(n.tally.allowed, QUOTA);
    assert_int_equal(n.tally.allowed + n.tally.denied, n.asked);
    assert_int_equal(n.tally.degraded, 0);
    assert_int_equal(n.tally.last, 0);
    assert_in_range(calls_of(&n) - before, 1, QUOTA / 20);
    close_node(&n);
}

static void what_others_have_taken_is_denied_to_all_who_wait_by_one_call(void **state)
{
    struct node here;
    struct node there;
    open_slow_node(&here, "taken");
    open_node(&there, world.url, "taken", WEIR_FLEET_CLOSED);
    run_dry(&here);
    (void)ask(&there, there.tally.last - 1000); /* except for the units that `here` may hold */
    run(&there);
    while (there.tally.denied == 0) {
        (void)ask(&there, 10);
        run(&there);
    }
    uint64_t before = calls_of(&here);
    for (unsigned i = 1; i < AT_ONCE; i++) {
        assert_false(ask(&here, 1));
    }
    unsigned answered = here.tally.answered;
    run(&here);
    assert_int_equal(here.tally.answered, answered + AT_ONCE);
    assert_int_equal(here.tally.degraded + here.tally.errors, 0);
    assert_in_range(here.tally.denied, AT_ONCE - 9, AT_ONCE); /* fewer than ten are left */
    assert_in_range(calls_of(&here) - before, 1, 4);
    close_node(&there);
    close_node(&here);
}

/* ---- without a call ---- */

static void be_silent(void)
{
    redis_node_pause(&world.node[0]);
}

static void speak(void)
{
    redis_node_resume(&world.node[0]);
}

static void lose_the_connection(void)
{
    fault_proxy_reset(proxy);
}

static void hold_replies(void)
{
    fault_proxy_set(proxy, &(struct faults){.to_client = FAULT_HOLD});
}

static void heal(void)
{
    fault_proxy_set(proxy, NULL);
}

static void all_who_wait_are_answered_by_their_policy(const char *name, void (*before)(void),
                                                      void (*during)(void), void (*after)(void))
{
    struct node n;
    fault_proxy_set(proxy, NULL);
    open_node(&n, proxied, name, WEIR_FLEET_OPEN);
    before();
    (void)ask(&n, 1);
    (void)weir_fleet_run(n.fleet);
    uint64_t begun = clock_monotonic_ns();
    while (n.asked < n.tally.answered + AT_ONCE) {
        (void)ask(&n, 1);
    }
    (void)weir_fleet_run(n.fleet); /* sends what is queued */
    during();
    run(&n);
    uint64_t took = clock_monotonic_ns() - begun;
    after();
    print_message("%s: the last answer after %.1f ms\n", name, (double)took / 1e6);
    assert_int_equal(n.tally.allowed, n.asked);
    assert_int_equal(n.tally.degraded, AT_ONCE);
    assert_true(took < 10 * DEADLINE_NS);
    close_node(&n);
}

static void nothing(void)
{
}

static void a_store_that_is_silent_leaves_them_to_their_policy(void **state)
{
    all_who_wait_are_answered_by_their_policy("silent", be_silent, nothing, speak);
}

static void a_connection_that_is_lost_leaves_them_to_their_policy(void **state)
{
    all_who_wait_are_answered_by_their_policy("lost", hold_replies, lose_the_connection, heal);
}

static void closing_answers_those_who_wait_once(void **state)
{
    struct node n;
    open_node(&n, world.url, "closing", WEIR_FLEET_OPEN);
    run_dry(&n);
    for (unsigned i = 1; i < AT_ONCE; i++) {
        assert_false(ask(&n, 1));
    }
    close_node(&n);
    assert_int_equal(n.tally.answered, n.asked);
    assert_int_equal(n.tally.errors, 0);
}

static void note_block(void *arg, int error, const struct weir_answer *answer)
{
    assert_int_equal(error, 0);
    ++*(unsigned *)arg;
}

/* Questions from before the block may get units that were granted before it. No later question may
 * get the rest of them. */
static void a_block_behind_those_who_wait_holds_for_all_who_come_after_it(void **state)
{
    struct node n;
    unsigned blocked = 0;
    open_node(&n, world.url, "block", WEIR_FLEET_CLOSED);
    run_dry(&n);
    for (unsigned i = 1; i < AT_ONCE; i++) {
        assert_false(ask(&n, 1));
    }
    assert_int_equal(weir_fleet_block(n.limit, "hot", 3, WEIR_HOUR, note_block, &blocked), 0);
    assert_true(fleet_run_until(n.fleet, &blocked, 1));
    run(&n);
    assert_int_equal(n.tally.allowed + n.tally.denied, n.asked);
    unsigned allowed = n.tally.allowed;
    for (unsigned i = 0; i < AT_ONCE; i++) {
        (void)ask(&n, 1);
    }
    run(&n);
    assert_int_equal(n.tally.allowed, allowed);
    assert_int_equal(n.tally.degraded, 0);
    close_node(&n);
}

static int start_redis(void **state)
{
    redis_world_alone(&world, NULL);
    proxy = fault_proxy_start(world.node[0].port);
    (void)snprintf(proxied, sizeof proxied, "redis://127.0.0.1:%u", fault_proxy_port(proxy));
    return 0;
}

static int stop_redis(void **state)
{
    fault_proxy_stop(proxy);
    redis_world_stop(&world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions_of_one_turn_make_a_call_or_two_and_share_what_comes),
        cmocka_unit_test(all_that_there_is_is_admitted_and_not_one_more),
        cmocka_unit_test(what_others_have_taken_is_denied_to_all_who_wait_by_one_call),
        cmocka_unit_test(a_store_that_is_silent_leaves_them_to_their_policy),
        cmocka_unit_test(a_connection_that_is_lost_leaves_them_to_their_policy),
        cmocka_unit_test(closing_answers_those_who_wait_once),
        cmocka_unit_test(a_block_behind_those_who_wait_holds_for_all_who_come_after_it),
    };
    return cmocka_run_group_tests(tests, start_redis, stop_redis);
}
