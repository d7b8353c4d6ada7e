/*
 * test-timeout: 300
 *
 * Tests a fleet whose store is a master with a replica and three Sentinels, and its count when the
 * master dies, hangs, or hands over.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "support/fleet/failover_ledger.h"
#include "support/fleet/fleet_crowd.h"
#include "support/store/redis_world.h"

#define DEADLINE (50 * WEIR_MILLISECOND)
#define THREADS 4
#define PLENTY 1000000

static struct redis_world world;
static struct crowd *crowd;

static void start(void)
{
    redis_world_sentinel(&world, &(struct redis_world_options){.down_ms = 500});
    struct crowd_options o = {.url = world.url,
                              .nodes = 2,
                              .threads = THREADS / 2,
                              .deadline_ns = DEADLINE,
                              .quota = PLENTY,
                              .grants = PLENTY,
                              .key_count = 1,
                              .keys = {"alice"}};
    crowd = crowd_start(&o);
    crowd_await_progress(crowd, 500);
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

/* Ends the load and checks the bounds of support/fleet/fleet_crowd.h. Returns how many units
 * the store has forgotten. */
static uint64_t settle(void)
{
    crowd_await_progress(crowd, 500);
    crowd_halt(crowd);
    uint64_t charged = crowd_charged(crowd, 0);
    struct crowd_tally t = crowd_tally(crowd);
    uint64_t lost = t.admitted > charged ? t.admitted - charged : 0;
    print_message("  admitted %" PRIu64 ", charged %" PRIu64 ", no reply %" PRIu64
                  ", degraded %" PRIu64 ", lost %" PRIu64 "; slowest answer %" PRIu64 " ms\n",
                  t.admitted, charged, t.unknown, t.degraded, lost,
                  t.slowest_ns / WEIR_MILLISECOND);
    assert_true(charged <= t.admitted + t.unknown);
    assert_true(t.slowest_ns <= CROWD_SLOWEST_NS);
    return lost;
}

/* The lag is the replica's natural one; for other lags see test_failover.c. */
static void a_killed_master_is_replaced_and_loses_what_was_granted_within_the_lag(void **state)
{
    start();
    redis_world_expect_failover(&world);
    redis_node_kill(&world.node[0]);
    uint64_t died_ns = clock_monotonic_ns();
    uint64_t ms = crowd_await_everybody(crowd);
    print_message("  kill -9: the store answers again after %" PRIu64 " ms\n", ms);
    assert_int_equal(redis_world_await_master(&world, 0), 1);
    uint64_t lost = settle();
    struct ledger l = ledger_of(crowd, 0, died_ns);
    ledger_print(&l, "kill -9");
    assert_true(lost <= l.lost && l.again <= l.lost && l.lost <= l.within);
    assert_true(l.kept > 0); /* it did not start from zero */
}

/* The old master continues, and does not know yet that it was replaced. It must not be asked any
 * more. */
static void a_master_that_stood_still_is_not_asked_when_it_goes_on(void **state)
{
    start();
    redis_world_expect_failover(&world);
    redis_node_pause(&world.node[0]);
    uint64_t ms = crowd_await_everybody(crowd);
    print_message("  SIGSTOP: the store answers again after %" PRIu64 " ms\n", ms);
    assert_int_equal(redis_world_await_master(&world, 0), 1);
    redis_node_resume(&world.node[0]);
    assert_in_range(settle(), 0, THREADS);
}

static void a_master_that_gives_its_place_away_is_followed(void **state)
{
    start();
    uint64_t begin = redis_now_ms();
    assert_int_equal(redis_world_failover(&world), 1);
    print_message("  SENTINEL FAILOVER took %" PRIu64 " ms\n", redis_now_ms() - begin);
    print_message("  then the store answers within %" PRIu64 " ms\n", crowd_await_answer(crowd, 0));
    (void)settle();
}

/* The first Sentinel in the list is paused and the second is dead, so only one answers. */
static void any_sentinel_is_enough(void **state)
{
    start();
    redis_node_pause(&world.node[REDIS_SENTINELS]);
    redis_node_kill(&world.node[REDIS_SENTINELS + 1]);
    struct crowd_options o = {.url = world.url,
                              .nodes = 1,
                              .threads = 1,
                              .quota = PLENTY,
                              .key_count = 1,
                              .keys = {"bob"}};
    struct crowd *late = crowd_start(&o);
    crowd_await_progress(late, 10);
    assert_int_equal(crowd_tally(late).unknown, 0);
    crowd_end(late);
    crowd_await_progress(crowd, 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(
            a_killed_master_is_replaced_and_loses_what_was_granted_within_the_lag, stop),
        cmocka_unit_test_teardown(a_master_that_stood_still_is_not_asked_when_it_goes_on, stop),
        cmocka_unit_test_teardown(a_master_that_gives_its_place_away_is_followed, stop),
        cmocka_unit_test_teardown(any_sentinel_is_enough, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
