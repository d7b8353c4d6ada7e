/*
 * test-labels: long
 * test-timeout: 1800
 *
 * Tests one Cluster with one random fault after the other: primaries die, hang and hand over, slots
 * move, while a fleet asks. In every case the charged units were admitted or their replies lost, no
 * answer takes ten deadlines, and a primary that is replaced loses no more than it has granted
 * within the lag.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "redis/slots.h"
#include "shared/core/script.h"
#include "support/fleet/failover_ledger.h"
#include "support/fleet/fleet_crowd.h"
#include "support/oracle/oracle_trace.h"
#include "support/store/redis_world.h"

#define ROUNDS 40
#define DEADLINE (50 * WEIR_MILLISECOND)
#define PLENTY 1000000

static struct redis_world world;
static struct crowd *crowd;
static const unsigned slots[] = {1000, SLOTS / 2, SLOTS - 1};

/* Waits until the slot has an owner with a replica. Moving a slot by hand creates a new epoch, by
 * which a promoted node may be made a replica again, so the owner need not be the one that the
 * fault led to. */
static void await_pair(unsigned slot)
{
    uint64_t end = redis_now_ms() + 60000;
    do {
        redis_look_again_soon();
        assert_true(redis_now_ms() < end);
    } while (redis_world_replica_of(&world, redis_world_owner(&world, slot)) < 0);
}

/* When a primary granted its last unit; 0: no primary was replaced. */
static uint64_t died_ns;

static void kill_primary(unsigned slot)
{
    int old = redis_world_owner(&world, slot);
    redis_node_kill(&world.node[old]);
    died_ns = clock_monotonic_ns();
    assert_true(redis_world_await_owner(&world, slot, old) >= 0);
    redis_node_restart_empty(&world.node[old]);
}

static void hold_primary(unsigned slot)
{
    int old = redis_world_owner(&world, slot);
    redis_node_pause(&world.node[old]);
    died_ns = clock_monotonic_ns();
    assert_true(redis_world_await_owner(&world, slot, old) >= 0);
    redis_node_resume(&world.node[old]);
}

static void promote_replica(unsigned slot)
{
    (void)redis_world_promote(&world, redis_world_owner(&world, slot));
}

/* Moves the slot to the owner of another slot, and back. */
static void move_slot(unsigned slot)
{
    int from = redis_world_owner(&world, slot);
    int to = redis_world_owner(&world, slot == slots[0] ? slots[1] : slots[0]);
    redis_world_migrate(&world, slot, from, to);
    redis_world_migrate(&world, slot, to, from);
}

static const struct {
    const char *name;
    void (*happen)(unsigned slot);
} faults[] = {
    {"kill -9", kill_primary},
    {"SIGSTOP", hold_primary},
    {"CLUSTER FAILOVER", promote_replica},
    {"slot to and fro", move_slot},
};

static void start_crowd(unsigned round)
{
    struct crowd_options o = {.url = world.url,
                              .nodes = 2,
                              .threads = 2,
                              .deadline_ns = DEADLINE,
                              .quota = PLENTY,
                              .grants = PLENTY};
    for (unsigned i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        crowd_key_in_slot(slots[i], round, o.keys[o.key_count++]);
    }
    crowd = crowd_start(&o);
    crowd_await_progress(crowd, 500);
}

static void judge_lost(unsigned key, const char *what)
{
    struct ledger l = ledger_of(crowd, key, died_ns);
    ledger_print(&l, what);
    assert_true(l.again <= l.lost && l.lost <= l.within);
}

static void judge(const char *what, unsigned key)
{
    uint64_t ms = crowd_await_everybody(crowd);
    crowd_halt(crowd);
    uint64_t charged = crowd_charged(crowd, 0) + crowd_charged(crowd, 1) + crowd_charged(crowd, 2);
    struct crowd_tally t = crowd_tally(crowd);
    print_message("  %s: answers after %" PRIu64 " ms, admitted %" PRIu64 ", charged %" PRIu64
                  ", no reply %" PRIu64 ", degraded %" PRIu64 "; slowest %" PRIu64 " ms\n",
                  what, ms, t.admitted, charged, t.unknown, t.degraded,
                  t.slowest_ns / WEIR_MILLISECOND);
    assert_true(charged <= t.admitted + t.unknown);
    assert_true(t.slowest_ns <= CROWD_SLOWEST_NS);
    if (died_ns != 0) {
        judge_lost(key, what);
    }
    crowd_end(crowd);
    crowd = NULL;
}

static void fault_after_fault_nothing_is_charged_twice(void **state)
{
    struct oracle_random g = {7};
    redis_world_cluster(&world, NULL);
    for (unsigned round = 0; round < ROUNDS; round++) {
        size_t i = (size_t)oracle_between(&g, 0, sizeof faults / sizeof faults[0] - 1);
        start_crowd(round);
        unsigned key = (unsigned)oracle_between(&g, 0, 2);
        died_ns = 0;
        faults[i].happen(slots[key]);
        await_pair(slots[key]);
        judge(faults[i].name, key);
    }
}

static int stop(void **state)
{
    if (crowd != NULL) {
        crowd_end(crowd);
        crowd = NULL;
    }
    redis_world_stop(&world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(fault_after_fault_nothing_is_charged_twice, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
