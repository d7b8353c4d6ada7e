/*
 * test-timeout: 300
 *
 * What a failover lets through beyond a limit, and what min-replicas-to-write makes of it. In a Cluster:
 * test_cluster.c.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "support/failover_lag.h"
#include "support/failover_ledger.h"
#include "support/fault_proxy.h"

#define DEADLINE (50 * WEIR_MILLISECOND)
#define MAX_LAG_NS (2 * WEIR_SECOND) /* min-replicas-max-lag of the world */
#define SLACK_NS (5 * WEIR_SECOND)

enum { MASTER, REPLICA };

static struct redis_world world;
static struct crowd *crowd;
static struct fault_proxy *proxy;

static int stop(void **state)
{
    failover_end();
    if (crowd != NULL) {
        crowd_end(crowd);
        crowd = NULL;
    }
    redis_world_stop(&world);
    if (proxy != NULL) {
        fault_proxy_stop(proxy);
        proxy = NULL;
    }
    return 0;
}

static void the_extra_is_what_was_granted_within_the_lag_and_at_most_the_limit(void **state)
{
    redis_world_sentinel(&world, &(struct redis_world_options){.down_ms = 500});
    failover_with_lag(&world, MASTER, REPLICA, 0);
    assert_int_equal(redis_world_await_master(&world, MASTER), REPLICA);
}

/* ---- min-replicas-to-write 1, min-replicas-max-lag 2 ---- */

/* The replica follows through a proxy; Sentinels would put that right after a failover-timeout. */
static void put_proxy_between(void)
{
    proxy = fault_proxy_start(world.node[MASTER].port);
    for (unsigned i = REDIS_SENTINELS; i < world.count; i++) {
        assert_string_equal(redis_node_run(&world.node[i], "SENTINEL SET %s failover-timeout 60000",
                                           REDIS_MASTER_NAME),
                            "OK");
    }
    assert_string_equal(
        redis_node_run(&world.node[REPLICA], "REPLICAOF 127.0.0.1 %u", fault_proxy_port(proxy)),
        "OK");
}

static void start_crowd(void)
{
    crowd = crowd_start(&(struct crowd_options){.url = world.url,
                                                .nodes = 2,
                                                .threads = 2,
                                                .deadline_ns = DEADLINE,
                                                .quota = 1000000,
                                                .grants = 1000000,
                                                .key_count = 1,
                                                .keys = {"alice"}});
    crowd_await_progress(crowd, 500);
}

/* Until it takes no writes for want of replicas, and what it had taken is answered. */
static void await_refusal(void)
{
    uint64_t end_ms = redis_now_ms() + 20000;
    struct redis_node *n = &world.node[MASTER];
    while (redis_node_info(n, "replication", "min_slaves_good_slaves") != 0) {
        assert_true(redis_now_ms() < end_ms);
        redis_look_again_soon();
    }
    uint64_t degraded = crowd_tally(crowd).degraded;
    while (crowd_tally(crowd).degraded < degraded + 100) {
        assert_true(redis_now_ms() < end_ms);
        redis_look_again_soon();
    }
}

/* -NOREPLICAS proves that nothing was charged: all that was is what was admitted. */
static void assert_nothing_was_charged_by_the_refused(void)
{
    struct crowd_tally t = crowd_tally(crowd);
    uint64_t charged = crowd_charged(crowd, 0);
    print_message("  refused: %" PRIu64 " admitted, %" PRIu64 " charged, %" PRIu64
                  " degraded, sent again %" PRIu64 ", no reply %" PRIu64 "\n",
                  t.admitted, charged, t.degraded, t.resent, t.unknown);
    assert_in_range(charged, t.admitted, t.admitted + t.unknown);
    assert_int_equal(crowd_admitted(crowd, 0), t.admitted); /* and it goes on refusing */
}

/*
 * The network swallows all between master and replica, and nobody is told. The master finds out by what it
 * does not hear, looks once a second, and counts in whole seconds: so it takes up to two seconds more than
 * the setting says. What it has granted until then is lost with it. The new master has no replica, and
 * takes nothing, until the old one has become it.
 */
static void with_min_replicas_a_silent_lag_ends_by_itself(void **state)
{
    redis_world_sentinel(&world,
                         &(struct redis_world_options){.down_ms = 500, .min_replicas = true});
    put_proxy_between();
    start_crowd();
    uint64_t silent_ns = clock_monotonic_ns();
    fault_proxy_set(proxy, &(struct faults){.black_hole = true});
    await_refusal();
    assert_nothing_was_charged_by_the_refused();
    redis_node_pause(&world.node[MASTER]);
    uint64_t died_ns = clock_monotonic_ns();
    fault_proxy_set(proxy, &(struct faults){.refuse = true});
    fault_proxy_reset(proxy);
    assert_int_equal(redis_world_await_master(&world, MASTER), REPLICA);
    redis_node_resume(&world.node[MASTER]);
    uint64_t ms = crowd_await_answer(crowd, 0);
    print_message("  SIGCONT: the store answers again after %" PRIu64 " ms\n", ms);
    crowd_await_progress(crowd, 500);
    crowd_halt(crowd);
    struct ledger l = ledger_of(crowd, 0, died_ns);
    ledger_print(&l, "min-replicas-to-write 1");
    print_message("  the last that is lost was granted %.1f ms after the silence began\n",
                  (double)(l.last_lost_ns - silent_ns) / 1e6);
    assert_true(l.lost > 0 && l.first_lost_ns >= silent_ns);
    assert_true(l.last_lost_ns <= silent_ns + MAX_LAG_NS + 2 * WEIR_SECOND + SLACK_NS);
    assert_true(l.again <= l.lost && l.lost <= l.within);
}

#ifdef WEIR_LONG
/* What counts is when a replica was heard last, not what it has heard: here the setting ends nothing. */
static void with_min_replicas_a_replica_that_only_talks_is_good_enough(void **state)
{
    redis_world_sentinel(&world, &(struct redis_world_options){.min_replicas = true});
    put_proxy_between();
    start_crowd();
    fault_proxy_set(proxy, &(struct faults){.to_client = FAULT_HOLD});
    crowd_await_progress(crowd, 500); /* what was on its way has come */
    uint64_t until_ms = redis_now_ms() + 10000;
    struct redis_node *n = &world.node[REPLICA];
    long long heard = redis_node_info(n, "replication", "slave_repl_offset");
    while (redis_now_ms() < until_ms) {
        redis_look_again_soon();
    }
    print_message("  granted %" PRIu64 " ms after the question, 10 s after it fell behind\n",
                  crowd_await_answer(crowd, 0));
    assert_int_equal(redis_node_info(n, "replication", "slave_repl_offset"), heard);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(
            the_extra_is_what_was_granted_within_the_lag_and_at_most_the_limit, stop),
        cmocka_unit_test_teardown(with_min_replicas_a_silent_lag_ends_by_itself, stop),
#ifdef WEIR_LONG
        cmocka_unit_test_teardown(with_min_replicas_a_replica_that_only_talks_is_good_enough, stop),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
