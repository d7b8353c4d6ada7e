/*
 * Tests the worlds that other tests use: failover, slots that move, and cleanup.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "redis/slots.h"
#include "shared/core/script.h"
#include "support/store/redis_world.h"

static struct redis_world world;

static void a_node_is_paused_killed_and_started_again_empty(void **state)
{
    redis_world_alone(&world, NULL);
    struct redis_node *n = &world.node[0];
    assert_string_equal(redis_node_run(n, "SET a 1"), "OK");
    redis_node_pause(n);
    redis_node_resume(n);
    assert_string_equal(redis_node_run(n, "GET a"), "1");
    redis_node_restart_empty(n);
    assert_string_equal(redis_node_run(n, "GET a"), "");
    redis_node_kill(n);
    assert_null(redis_node_run(n, "GET a"));
}

/* The child is the test program that crashes. It first sends its world to the parent. */
static void a_world_ends_with_a_program_that_crashes(void **state)
{
    int tell[2];
    assert_int_equal(pipe(tell), 0);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t child = fork();
    if (child == 0) {
        redis_world_alone(&world, NULL);
        (void)!write(tell[1], &world, sizeof world);
        (void)raise(SIGSTOP);
    }
    assert_int_equal(read(tell[0], &world, sizeof world), sizeof world);
    (void)kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(waitpid(world.node[0].pid, NULL, 0), world.node[0].pid);
    world.node[0].pid = 0;
    world.node[0].held[0] = -1;
    buffer_init(&world.node[0].reply, 1);
    redis_world_stop(&world);
    (void)close(tell[0]);
    (void)close(tell[1]);
}

static void the_sentinels_make_the_replica_the_master_and_the_old_one_its_replica(void **state)
{
    uint64_t begin = redis_now_ms();
    redis_world_sentinel(&world, &(struct redis_world_options){.down_ms = 500});
    print_message("  started in %u ms\n", (unsigned)(redis_now_ms() - begin));
    assert_int_equal(redis_world_master(&world), 0);
    assert_string_equal(redis_node_run(&world.node[0], "SET a 1"), "OK");
    assert_true(redis_world_await_replica(&world, 0));
    redis_world_expect_failover(&world);
    begin = redis_now_ms();
    redis_node_kill(&world.node[0]);
    assert_int_equal(redis_world_await_master(&world, 0), 1);
    print_message("  failover in %u ms\n", (unsigned)(redis_now_ms() - begin));
    assert_string_equal(redis_node_run(&world.node[1], "GET a"), "1");
    redis_node_restart_empty(&world.node[0]);
    assert_true(redis_world_await_replica(&world, 1));
    assert_string_equal(redis_node_run(&world.node[0], "GET a"), "1");
}

/* Like a master on a busy machine. */
static void a_master_that_stands_still_is_not_replaced_before_a_failover_is_expected(void **state)
{
    redis_world_sentinel(&world, &(struct redis_world_options){.down_ms = 200});
    redis_node_pause(&world.node[0]);
    uint64_t end = redis_now_ms() + 2000;
    while (redis_now_ms() < end) {
        assert_int_equal(redis_world_master(&world), 0);
        redis_look_again_soon();
    }
    redis_node_resume(&world.node[0]);
    assert_true(redis_world_await_replica(&world, 0));
    assert_int_equal(redis_world_master(&world), 0);
}

static void a_slot_moves_with_its_keys(void)
{
    unsigned slot = cluster_slot(TEXT("a"));
    int from = redis_world_owner(&world, slot);
    int to = (from + 1) % REDIS_PRIMARIES;
    assert_in_range(from, 0, REDIS_PRIMARIES - 1);
    assert_string_equal(redis_node_run(&world.node[from], "MSET {a}1 1 {a}2 2"), "OK");
    redis_world_migrate_begin(&world, slot, from, to);
    assert_int_equal(redis_world_migrate_keys(&world, slot, from, to, 1), 1);
    assert_int_equal(redis_world_owner(&world, slot), from);
    assert_int_equal(redis_world_migrate_keys(&world, slot, from, to, 9), 0);
    redis_world_migrate_end(&world, slot, from, to);
    assert_int_equal(redis_world_owner(&world, slot), to);
    assert_string_equal(redis_node_run(&world.node[to], "MGET {a}1 {a}2"), "1\n2");
}

static void a_replica_of_a_killed_primary_takes_its_place(void)
{
    unsigned slot = cluster_slot(TEXT("a"));
    int old = redis_world_owner(&world, slot);
    assert_true(redis_world_await_replica(&world, old));
    int replica = redis_world_replica_of(&world, old);
    uint64_t begin = redis_now_ms();
    redis_node_kill(&world.node[old]);
    assert_int_equal(redis_world_await_owner(&world, slot, old), replica);
    print_message("  failover in %u ms\n", (unsigned)(redis_now_ms() - begin));
    assert_string_equal(redis_node_run(&world.node[replica], "MGET {a}1 {a}2"), "1\n2");
}

static void a_primary_gives_its_place_to_its_replica(void)
{
    int old = redis_world_owner(&world, 0);
    int promoted = redis_world_promote(&world, old);
    assert_int_equal(redis_world_await_owner(&world, 0, old), promoted);
}

static void the_nodes_of_a_cluster_move_slots_and_replace_each_other(void **state)
{
    uint64_t begin = redis_now_ms();
    redis_world_cluster(&world, NULL);
    print_message("  started in %u ms\n", (unsigned)(redis_now_ms() - begin));
    a_slot_moves_with_its_keys();
    a_primary_gives_its_place_to_its_replica();
    a_replica_of_a_killed_primary_takes_its_place();
}

static int stop(void **state)
{
    redis_world_stop(&world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_node_is_paused_killed_and_started_again_empty, stop),
        cmocka_unit_test_teardown(a_world_ends_with_a_program_that_crashes, stop),
        cmocka_unit_test_teardown(
            the_sentinels_make_the_replica_the_master_and_the_old_one_its_replica, stop),
        cmocka_unit_test_teardown(
            a_master_that_stands_still_is_not_replaced_before_a_failover_is_expected, stop),
        cmocka_unit_test_teardown(the_nodes_of_a_cluster_move_slots_and_replace_each_other, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
