/* Tests that two nodes share one limit. An example to copy: the smallest test of a fleet
 * with a real Redis. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "support/fleet/fleet_open.h"
#include "support/store/redis_alone.h"

static void two_nodes_admit_what_one_limit_allows(void **state)
{
    struct weir_fleet_limit_options options = fleet_hourly("api", 3);
    struct weir_fleet *nodes[2];
    struct weir_fleet_limit *limits[2];
    unsigned allowed = 0;
    for (unsigned i = 0; i < 2; i++) {
        nodes[i] = fleet_open_at(world.url, 0, 0);
        limits[i] = fleet_limit_of(nodes[i], &options);
        assert_true(fleet_await_store(limits[i]));
    }
    for (unsigned i = 0; i < 10; i++) {
        struct weir_answer answer;
        assert_int_equal(weir_fleet_check(limits[i % 2], "alice", 5, 1, &answer), 0);
        allowed += answer.verdict == WEIR_ALLOW;
    }
    assert_int_equal(allowed, 3);
    for (unsigned i = 0; i < 2; i++) {
        weir_fleet_limit_close(limits[i]);
        weir_fleet_close(nodes[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(two_nodes_admit_what_one_limit_allows)};
    return cmocka_run_group_tests(tests, start_redis, stop_redis);
}
