/* One Redis for all tests of a program: cmocka_run_group_tests(tests, start_redis, stop_redis). */
#ifndef WEIR_TESTS_SUPPORT_REDIS_ALONE_H
#define WEIR_TESTS_SUPPORT_REDIS_ALONE_H

#include "support/store/redis_world.h"

static struct redis_world world;

static inline int start_redis(void **state)
{
    (void)state;
    redis_world_alone(&world, NULL);
    return 0;
}

static inline int stop_redis(void **state)
{
    (void)state;
    redis_world_stop(&world);
    return 0;
}

#endif
