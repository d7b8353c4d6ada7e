/*
 * test-timeout: 300
 *
 * Tests a fleet whose store is a Cluster of six nodes: slots move while the fleet asks, and
 * primaries change, die and hang.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "redis/slots.h"
#include "shared/core/script.h"
#include "support/fleet/failover_lag.h"
#include "support/fleet/failover_ledger.h"
#include "support/fleet/fleet_crowd.h"
#include "support/store/redis_world.h"

#define DEADLINE (50 * WEIR_MILLISECOND)
#define PLENTY 1000000
#define SLOT 1000

static struct redis_world world;
static struct crowd *crowd;

/* Options without keys; add_keys() adds keys of a slot. */
static struct crowd_options options_for(uint64_t quota)
{
    return (struct crowd_options){.url = world.url, .nodes = 2, .threads = 2, .quota = quota};
}

static void add_keys(struct crowd_options *o, unsigned slot, unsigned count)
{
    static unsigned used; /* by earlier tests: each test has its own keys */
    for (unsigned i = 0; i < count; i++) {
        crowd_key_in_slot(slot, used++, o->keys[o->key_count++]);
    }
}

static int end_crowd(void **state)
{
    if (crowd != NULL) {
        crowd_end(crowd);
        crowd = NULL;
    }
    failover_end();
    return 0;
}

static void print_tally(const char *what)
{
    struct crowd_tally t = crowd_tally(crowd);
    print_message("  %s: admitted %" PRIu64 ", denied %" PRIu64 ", degraded %" PRIu64
                  ", no reply %" PRIu64 ", sent again %" PRIu64 "; slowest answer %" PRIu64 " ms\n",
                  what, t.admitted, t.denied, t.degraded, t.unknown, t.resent,
                  t.slowest_ns / WEIR_MILLISECOND);
}

/* Checks that no unit was lost, or charged twice. */
static void assert_exact(const struct crowd_options *o)
{
    struct crowd_tally t = crowd_tally(crowd);
    crowd_halt(crowd);
    for (unsigned i = 0; i < o->key_count; i++) {
        assert_int_equal(crowd_charged(crowd, i), crowd_admitted(crowd, i));
    }
    assert_int_equal(t.degraded, 0);
    assert_int_equal(t.unknown, 0);
}

/* ---- slots that move ---- */

static bool all_is_taken(const struct crowd_options *o)
{
    return crowd_tally(crowd).admitted >= o->quota * o->key_count;
}

/* Moves the slot key by key, so that calls meet it in every state. */
static void move_slowly(int from, int to)
{
    redis_world_migrate_begin(&world, SLOT, from, to);
    while (redis_world_migrate_keys(&world, SLOT, from, to, 1) > 0) {
        crowd_await_answer(crowd, 0);
    }
    redis_world_migrate_end(&world, SLOT, from, to);
}

/* On a machine that stalls, a replica may take a primary's place, without its last writes. */
static bool a_primary_was_replaced(void)
{
    for (int i = 0; i < REDIS_PRIMARIES; i++) {
        const char *reply = redis_node_run(&world.node[i], "INFO replication");
        if (reply == NULL || strstr(reply, "role:master") == NULL) {
            return true;
        }
    }
    return false;
}

static void a_slot_that_moves_under_load_admits_exactly_the_limit(void **state)
{
    struct crowd_options o = options_for(4000);
    add_keys(&o, SLOT, 8);
    int home = redis_world_owner(&world, SLOT);
    int at = home;
    unsigned moves = 0;
    crowd = crowd_start(&o);
    while (!all_is_taken(&o) || moves < 6) {
        int to = (at + 1) % REDIS_PRIMARIES;
        move_slowly(at, to);
        at = to;
        moves++;
        /* A call that was told to ASK a node, and was delayed until the slot comes to that node
         * again, would make a second key there. */
        crowd_await_everybody(crowd);
    }
    print_tally("live migration");
    print_message("  the slot has moved %u times\n", moves);
    if (a_primary_was_replaced()) {
        print_message("  the Cluster has replaced a primary meanwhile: nothing to compare with\n");
        skip();
    }
    for (unsigned i = 0; i < o.key_count; i++) {
        assert_int_equal(crowd_admitted(crowd, i), o.quota);
    }
    assert_true(crowd_tally(crowd).resent >= moves);
    assert_exact(&o);
    if (at != home) {
        redis_world_migrate(&world, SLOT, at, home);
    }
}

static long long map_questions(void)
{
    long long n = 0;
    for (unsigned i = 0; i < world.count; i++) {
        const char *reply = redis_node_run(&world.node[i], "INFO commandstats");
        const char *at = reply != NULL ? strstr(reply, "cmdstat_cluster|slots:calls=") : NULL;
        n += at != NULL ? strtoll(strchr(at, '=') + 1, NULL, 10) : 0;
    }
    return n;
}

/* Promotes the replicas of two primaries, which have a third of all slots each. Calls in flight
 * there are MOVED. Returns how often the map was asked for. */
static long long give_places_away(const struct crowd_options *o, const unsigned slots[2])
{
    crowd = crowd_start(o);
    crowd_await_progress(crowd, 500);
    long long before = map_questions();
    for (unsigned i = 0; i < 2; i++) {
        int next = redis_world_promote(&world, redis_world_owner(&world, slots[i]));
        crowd_await_everybody(crowd);
        assert_true(redis_world_await_replica(&world, next));
    }
    long long asked = map_questions() - before;
    print_tally("CLUSTER FAILOVER, twice");
    print_message("  the map was asked for %lld times by %u nodes\n", asked, o->nodes);
    return asked;
}

/* On a busy machine a Cluster may consider itself down for a moment, and say so; then the test
 * tries again. */
static void a_primary_that_gives_its_place_away_costs_no_answer(void **state)
{
    static const unsigned slots[] = {SLOT, SLOTS / 2};
    struct crowd_options o = options_for(PLENTY);
    o.threads = 8;
    add_keys(&o, slots[0], 4);
    add_keys(&o, slots[1], 4);
    long long asked = give_places_away(&o, slots);
    for (unsigned i = 0; i < 2 && crowd_tally(crowd).degraded != 0; i++) {
        (void)end_crowd(state);
        o.key_count = 0;
        add_keys(&o, slots[0], 4);
        add_keys(&o, slots[1], 4);
        asked = give_places_away(&o, slots);
    }
    assert_exact(&o);
    assert_in_range(asked, 1, 100); /* not once for each call that was MOVED */
}

static void a_replica_is_enough_to_find_the_primaries(void **state)
{
    char url[64];
    struct crowd_options o = options_for(100);
    int primary = redis_world_owner(&world, SLOT);
    assert_true(redis_world_await_replica(&world, primary));
    int replica = redis_world_replica_of(&world, primary);
    (void)snprintf(url, sizeof url, "redis-cluster://127.0.0.1:1,127.0.0.1:%u",
                   world.node[replica].port);
    o.url = url;
    add_keys(&o, SLOT, 1);
    add_keys(&o, SLOTS / 2, 1);
    add_keys(&o, SLOTS - 1, 1);
    crowd = crowd_start(&o);
    crowd_await_everybody(crowd);
    assert_exact(&o);
}

/* ---- primaries that fail ---- */

/* Checks the bounds of support/fleet/fleet_crowd.h. */
static void assert_bounds(const struct crowd_options *o, const char *what)
{
    crowd_await_progress(crowd, 500);
    crowd_halt(crowd);
    struct crowd_tally t = crowd_tally(crowd);
    uint64_t charged = 0;
    uint64_t lost = 0;
    for (unsigned i = 0; i < o->key_count; i++) {
        uint64_t units = crowd_charged(crowd, i);
        uint64_t admitted = crowd_admitted(crowd, i);
        charged += units;
        lost += admitted > units ? admitted - units : 0;
    }
    print_tally(what);
    print_message("  charged %" PRIu64 ", lost %" PRIu64 "\n", charged, lost);
    assert_true(charged <= t.admitted + t.unknown);
    assert_true(lost < t.admitted);
    assert_true(t.slowest_ns <= CROWD_SLOWEST_NS);
}

static struct crowd_options start_on_all_primaries(void)
{
    struct crowd_options o = options_for(PLENTY);
    o.deadline_ns = DEADLINE;
    o.grants = PLENTY;
    add_keys(&o, SLOT, 1);
    add_keys(&o, SLOTS / 2, 1);
    add_keys(&o, SLOTS - 1, 1);
    crowd = crowd_start(&o);
    crowd_await_progress(crowd, 500);
    return o;
}

/* Restarts a node as the replica of the one that has replaced it. */
static void start_again(int old, unsigned slot)
{
    redis_node_restart_empty(&world.node[old]);
    int now = redis_world_await_owner(&world, slot, old);
    assert_true(redis_world_await_replica(&world, now));
}

static void a_killed_primary_is_replaced_by_its_replica(void **state)
{
    struct crowd_options o = start_on_all_primaries();
    int old = redis_world_owner(&world, SLOTS - 1);
    redis_node_kill(&world.node[old]);
    uint64_t died_ns = clock_monotonic_ns();
    uint64_t ms = crowd_await_answer(crowd, 2);
    print_message("  kill -9: its slots answer again after %" PRIu64 " ms, ", ms);
    print_message("everybody after %" PRIu64 " ms more\n", crowd_await_everybody(crowd));
    assert_bounds(&o, "killed primary");
    struct ledger l = ledger_of(crowd, 2, died_ns);
    ledger_print(&l, "kill -9");
    assert_true(l.kept > 0 && l.again <= l.lost && l.lost <= l.within);
    start_again(old, SLOTS - 1);
}

/* The same as in test_failover.c, where Sentinels are used. */
static void the_extra_is_what_was_granted_within_the_lag_and_at_most_the_limit(void **state)
{
    int old = redis_world_owner(&world, SLOT);
    assert_true(redis_world_await_replica(&world, old));
    failover_with_lag(&world, old, redis_world_replica_of(&world, old), SLOT);
    start_again(old, SLOT);
}

static void a_primary_that_stood_still_is_not_asked_when_it_goes_on(void **state)
{
    struct crowd_options o = start_on_all_primaries();
    int old = redis_world_owner(&world, SLOTS / 2);
    redis_node_pause(&world.node[old]);
    uint64_t ms = crowd_await_answer(crowd, 1);
    print_message("  SIGSTOP: its slots answer again after %" PRIu64 " ms\n", ms);
    crowd_await_everybody(crowd);
    redis_node_resume(&world.node[old]);
    assert_bounds(&o, "paused primary");
}

static int start_world(void **state)
{
    redis_world_cluster(&world, NULL);
    return 0;
}

static int stop_world(void **state)
{
    redis_world_stop(&world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_slot_that_moves_under_load_admits_exactly_the_limit, end_crowd),
        cmocka_unit_test_teardown(a_primary_that_gives_its_place_away_costs_no_answer, end_crowd),
        cmocka_unit_test_teardown(a_replica_is_enough_to_find_the_primaries, end_crowd),
        cmocka_unit_test_teardown(a_killed_primary_is_replaced_by_its_replica, end_crowd),
        cmocka_unit_test_teardown(
            the_extra_is_what_was_granted_within_the_lag_and_at_most_the_limit, end_crowd),
        cmocka_unit_test_teardown(a_primary_that_stood_still_is_not_asked_when_it_goes_on,
                                  end_crowd),
    };
    return cmocka_run_group_tests(tests, start_world, stop_world);
}
