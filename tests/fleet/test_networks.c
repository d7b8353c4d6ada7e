/*
 * Tests `networks` with a real Cluster and real Sentinels: addresses that they announce are used if
 * they are in the networks, and otherwise not, but the hosts of the URL always are.
 */
// test-timeout: 300
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/fleet/fleet_open.h"
#include "support/store/redis_world.h"

#define KEYS 60

static struct redis_world world;

static int finish(void **state)
{
    redis_world_stop(&world);
    return 0;
}

static struct weir_fleet *fleet;
static struct weir_fleet_limit *limit;

static void begin(const char *url, const char *networks, uint64_t deadline_ns)
{
    struct weir_fleet_limit_options options = fleet_hourly("api", 1000);
    fleet =
        fleet_open_with(url, (struct weir_fleet_options){.size = sizeof(struct weir_fleet_options),
                                                         .networks = networks,
                                                         .deadline_ns = deadline_ns});
    limit = fleet_limit_of(fleet, &options);
}

/* Asks about many keys. Returns how many of them the store has answered. */
static unsigned ask(void)
{
    unsigned answered = 0;
    for (unsigned i = 0; i < KEYS; i++) {
        char key[16];
        struct weir_answer a;
        (void)snprintf(key, sizeof key, "key-%u", i);
        assert_int_equal(weir_fleet_check(limit, key, strlen(key), 1, &a), 0);
        answered += (a.flags & WEIR_FLAG_DEGRADED) == 0;
    }
    return answered;
}

static void end(void)
{
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
}

static void a_cluster_in_the_networks_is_used(void **state)
{
    redis_world_cluster(&world, NULL);
    begin(world.url, "10.0.0.0/8, 127.0.0.0/8", FLEET_PATIENT_NS);
    assert_true(fleet_await_store(limit));
    assert_int_equal(ask(), KEYS);
    assert_int_equal(fleet_stats_of(fleet).targets_refused, 0);
    end();
}

static void only_the_node_of_the_url_is_used_of_a_cluster_elsewhere(void **state)
{
    char url[64];
    unsigned answered = 0;
    redis_world_cluster(&world, NULL);
    (void)snprintf(url, sizeof url, "redis-cluster://127.0.0.1:%u", world.node[0].port);
    begin(url, "10.0.0.0/8,::1", FLEET_PATIENT_NS);
    for (unsigned rounds = 0; rounds < 100 && answered == 0; rounds++) {
        answered = ask();
    }
    assert_in_range(answered, 1, KEYS - 1);
    assert_true(fleet_stats_of(fleet).targets_refused > 0);
    assert_int_equal(fleet_stats_of(fleet).up, 1);
    end();
}

static void a_master_in_the_networks_is_used(void **state)
{
    redis_world_sentinel(&world, NULL);
    begin(world.url, "127.0.0.1", FLEET_PATIENT_NS);
    assert_true(fleet_await_store(limit));
    assert_int_equal(ask(), KEYS);
    assert_int_equal(fleet_stats_of(fleet).targets_refused, 0);
    end();
}

static void a_master_elsewhere_is_not_used(void **state)
{
    struct weir_error error = {0};
    redis_world_sentinel(&world, NULL);
    begin(world.url, "", 20 * WEIR_MILLISECOND);
    while (fleet_stats_of(fleet).targets_refused == 0) {
        assert_int_equal(ask(), 0);
    }
    assert_int_equal(ask(), 0);
    assert_int_equal(fleet_stats_of(fleet).up, 0);
    assert_int_equal(weir_fleet_trouble(fleet, &error), WEIR_EIO);
    assert_non_null(strstr(error.text, "outside of the store's networks"));
    end();
}

static void wrong_networks_are_refused(void **state)
{
    struct weir_fleet_options o = WEIR_FLEET_OPTIONS_INIT;
    struct weir_error error;
    o.url = "redis-cluster://127.0.0.1:1";
    o.networks = "10.0.0.0/8,10.0.0.1/8";
    assert_int_equal(weir_fleet_open(&fleet, &o, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.text, "networks: "));
    assert_non_null(strstr(error.text, "10.0.0.0/8"));
    o.networks = "10.0.0.0/8,";
    assert_int_equal(weir_fleet_open(&fleet, &o, &error), 0);
    weir_fleet_close(fleet);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_cluster_in_the_networks_is_used, finish),
        cmocka_unit_test_teardown(only_the_node_of_the_url_is_used_of_a_cluster_elsewhere, finish),
        cmocka_unit_test_teardown(a_master_in_the_networks_is_used, finish),
        cmocka_unit_test_teardown(a_master_elsewhere_is_not_used, finish),
        cmocka_unit_test(wrong_networks_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
