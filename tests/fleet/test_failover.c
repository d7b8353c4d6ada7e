/*
 * test-timeout: 300
 *
 * Tests how much a failover by Sentinels admits beyond a limit. The same in a Cluster is in
 * test_cluster.c; the effect of min-replicas-to-write is in test_min_replicas.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/fleet/failover_lag.h"
#include "support/store/redis_world.h"

enum { MASTER, REPLICA };

static struct redis_world world;

static int stop(void **state)
{
    failover_end();
    redis_world_stop(&world);
    return 0;
}

static void the_extra_is_what_was_granted_within_the_lag_and_at_most_the_limit(void **state)
{
    redis_world_sentinel(&world, &(struct redis_world_options){.down_ms = 500});
    failover_with_lag(&world, MASTER, REPLICA, 0);
    assert_int_equal(redis_world_await_master(&world, MASTER), REPLICA);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(
            the_extra_is_what_was_granted_within_the_lag_and_at_most_the_limit, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
