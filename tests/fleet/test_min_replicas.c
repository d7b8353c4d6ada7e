// test-labels: long
// test-timeout: 600
/*
 * Tests the effect of min-replicas-to-write 1 and min-replicas-max-lag 2 of a master on a failover,
 * and its limits: the setting is Redis' own, counts in whole seconds, and needs a machine that is
 * not too busy.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "support/fleet/failover_ledger.h"
#include "support/store/fault_proxy.h"
#include "support/store/redis_world.h"

#define DEADLINE (50 * WEIR_MILLISECOND)
#define MAX_LAG_NS (2 * WEIR_SECOND) /* min-replicas-max-lag of the world */
#define SLACK_NS (5 * WEIR_SECOND)

enum { MASTER, REPLICA };

static struct redis_world world;
static struct crowd *crowd;
static struct fault_proxy *proxy;

static int stop(void **state)
{
    if (crowd != NULL) {
        crowd_end(crowd);
        crowd = NULL;
    }
    redis_world_stop(&world);
    fault_proxy_stop(proxy);
    return 0;
}

static void set_failover_timeout(unsigned ms)
{
    for (unsigned i = REDIS_SENTINELS; i < world.count; i++) {
        assert_string_equal(redis_node_run(&world.node[i], "SENTINEL SET %s failover-timeout %u",
                                           REDIS_MASTER_NAME, ms),
                            "OK");
    }
}

/* Lets the replica follow through a proxy. Sentinels would correct that after a failover-
 * timeout. */
static void put_proxy_between(void)
{
    proxy = fault_proxy_start(world.node[MASTER].port);
    set_failover_timeout(60000);
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

/* Waits until that many more questions were answered without the store. */
static void await_degraded(uint64_t n)
{
    uint64_t end_ms = redis_now_ms() + 20000;
    uint64_t until = crowd_tally(crowd).degraded + n;
    while (crowd_tally(crowd).degraded < until) {
        assert_true(redis_now_ms() < end_ms);
        redis_look_again_soon();
    }
}

static void await_refusal(void)
{
    uint64_t end_ms = redis_now_ms() + 20000;
    struct redis_node *n = &world.node[MASTER];
    while (redis_node_info(n, "replication", "min_slaves_good_slaves") != 0) {
        assert_true(redis_now_ms() < end_ms);
        redis_look_again_soon();
    }
    await_degraded(10);
}

/* Reads the master's state of the crowd's key. */
static void read_state(char state[64])
{
    char key[64];
    struct redis_node *n = &world.node[MASTER];
    redis_line(redis_node_run(n, "KEYS *alice*"), 0, key, sizeof key);
    redis_line(redis_node_run(n, "GET %s", key), 0, state, 64);
    assert_true(state[0] != 0);
}

/* A master that was kept from running may consider its replica lost, and then read a message from
 * it. So this waits for a period in which the master grants nothing. */
static void assert_the_refused_are_not_charged(void)
{
    char before[64];
    char after[64];
    uint64_t admitted;
    do {
        await_refusal();
        admitted = crowd_admitted(crowd, 0);
        read_state(before);
        await_degraded(100);
        read_state(after);
    } while (crowd_admitted(crowd, 0) != admitted);
    assert_string_equal(before, after);
}

/*
 * The network drops everything between master and replica without closing the connection. The
 * master notices by the missing messages, checks once a second, and counts in whole seconds, so it
 * takes up to two seconds more than the setting says. The units that it has granted until then are
 * lost with it. The new master has no replica, and accepts nothing, until the old one has become
 * its replica.
 */
static void with_min_replicas_a_silent_lag_ends_by_itself(void **state)
{
    redis_world_sentinel(&world,
                         &(struct redis_world_options){.down_ms = 500, .min_replicas = true});
    put_proxy_between();
    start_crowd();
    uint64_t silent_ns = clock_monotonic_ns();
    fault_proxy_set(proxy, &(struct faults){.black_hole = true});
    assert_the_refused_are_not_charged();
    redis_world_expect_failover(&world);
    redis_node_pause(&world.node[MASTER]);
    uint64_t died_ns = clock_monotonic_ns();
    fault_proxy_set(proxy, &(struct faults){.refuse = true});
    fault_proxy_reset(proxy);
    set_failover_timeout(3000); /* a failover that was given up is retried after two of these */
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
    assert_in_range(l.last, l.by_old,
                    l.by_old + crowd_tally(crowd).unknown); /* each charged once */
}

/* The setting considers when a replica was last heard, not what it has received: here it does not
 * stop the master. */
static void with_min_replicas_a_replica_that_only_talks_is_good_enough(void **state)
{
    redis_world_sentinel(&world, &(struct redis_world_options){.min_replicas = true});
    put_proxy_between();
    start_crowd();
    fault_proxy_set(proxy, &(struct faults){.to_client = FAULT_HOLD});
    crowd_await_progress(crowd, 500); /* the bytes in flight have arrived */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(with_min_replicas_a_silent_lag_ends_by_itself, stop),
        cmocka_unit_test_teardown(with_min_replicas_a_replica_that_only_talks_is_good_enough, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
