/*
 * Tests `leased` with several nodes and a real redis-server, at times that the test sets: the fleet
 * never admits more than the limit, whatever is lost, late or duplicated, and not much less if more
 * is asked for.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/store/lease_fleet.h"
#include "support/store/lease_limit.h"
#include "support/store/store_run.h"

#ifdef WEIR_LONG
#define SEEDS 200
#else
#define SEEDS 4
#endif

static struct store_redis redis;
static struct fleet fleet;

static struct weir_options bucket(uint64_t count, uint64_t period_ns, uint64_t burst)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.algorithm = WEIR_TOKEN_BUCKET;
    o.count = count;
    o.period_ns = period_ns;
    o.burst = burst;
    return o;
}

static struct weir_options window(uint64_t count, uint64_t period_ns)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.algorithm = WEIR_FIXED_WINDOW;
    o.count = count;
    o.period_ns = period_ns;
    return o;
}

/* ---- never more ---- */

/* Makes bursts and pauses, cheap and expensive questions, and nodes that die. */
static void run_randomly(struct fleet *f, unsigned steps, uint64_t step_us)
{
    for (unsigned i = 0; i < steps; i++) {
        unsigned node = (unsigned)fleet_random(f, f->nodes);
        unsigned questions = (unsigned)fleet_random(f, 40);
        fleet_pass(f, fleet_random(f, 50) == 0 ? fleet_random(f, 60 * step_us)
                                               : fleet_random(f, step_us));
        for (unsigned q = 0; q < questions && !f->node[node].dead; q++) {
            (void)fleet_ask(f, node, fleet_random(f, 20) == 0 ? 1 + fleet_random(f, 40) : 1);
        }
        if (fleet_random(f, 400) == 0 && node != 0) {
            f->node[node].dead = true;
        }
    }
}

static const struct fleet_trouble calm = {0};
static const struct fleet_trouble trouble = {
    .lost = 20, .unanswered = 30, .late = 200, .twice = 50, .unsent = 20, .late_us = 300000};

static void check_limit(const struct weir_options *o, unsigned nodes, uint64_t seed,
                        const struct fleet_trouble *t, uint64_t step_us)
{
    fleet_start(&fleet, &redis, o, nodes, seed);
    fleet.trouble = *t;
    for (unsigned i = 0; i < nodes; i++) {
        fleet.node[i].drift_parts = (int64_t)fleet_random(&fleet, 18001) - 9000;
    }
    run_randomly(&fleet, 600, step_us);
    if (fleet.excess != 0 || fleet.admitted == 0) {
        fail_msg("%" PRIu64 " of %" PRIu64 " nodes with seed %" PRIu64 ": admitted %" PRIu64
                 ", %" PRIu64 " units too many",
                 o->count, (uint64_t)nodes, seed, fleet.admitted, fleet.excess);
    }
    fleet_stop(&fleet);
}

static void a_bucket_is_never_exceeded_in_any_stretch_of_time(void **state)
{
    const struct weir_options limits[] = {
        bucket(1000, WEIR_SECOND, 500),
        bucket(1700, WEIR_SECOND, 1000), /* a unit takes 588 us and 30,144 parts */
        bucket(7, WEIR_SECOND, 300),
        bucket(100, WEIR_MINUTE, 100),
    };
    for (unsigned i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        for (unsigned seed = 1; seed <= SEEDS; seed++) {
            check_limit(&limits[i], 1 + seed % 7 * 2, seed, seed == 1 ? &calm : &trouble, 20000);
        }
    }
}

static void a_window_is_never_exceeded(void **state)
{
    const struct weir_options limits[] = {window(1000, WEIR_SECOND), window(500, 3 * WEIR_SECOND),
                                          window(100, WEIR_SECOND / 4)};
    for (unsigned i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        for (unsigned seed = 1; seed <= SEEDS; seed++) {
            check_limit(&limits[i], 1 + seed % 7 * 2, seed, seed == 1 ? &calm : &trouble, 20000);
        }
    }
}

/* ---- the store's clock is set ---- */

static uint64_t excess_after(const struct weir_options *o, int64_t step_us, uint64_t seed)
{
    fleet_start(&fleet, &redis, o, 4, seed);
    fleet.trouble = trouble;
    run_randomly(&fleet, 60 + (unsigned)fleet_random(&fleet, 60), 20000);
    fleet.step_us = step_us;
    run_randomly(&fleet, 300, 20000);
    uint64_t excess = fleet.excess;
    fleet_stop(&fleet);
    return excess;
}

static void a_clock_that_is_set_forward_gives_what_would_have_refilled(void **state)
{
    const struct weir_options o = bucket(400, WEIR_SECOND, 500);
    uint64_t most[3] = {0};
    static const int64_t steps_us[3] = {100000, 700000, INT64_C(3600000000)};
    static const uint64_t bounds[3] = {40, 280, 500};
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned seed = 1; seed <= SEEDS; seed++) {
            most[i] = max_u64(most[i], excess_after(&o, steps_us[i], seed));
        }
        assert_true(most[i] <= bounds[i]);
    }
    assert_true(most[2] > most[0]);
    print_message("more by %" PRIu64 ", %" PRIu64 ", %" PRIu64 "\n", most[0], most[1], most[2]);
}

static void a_clock_that_is_set_back_gives_nothing(void **state)
{
    const struct weir_options o = bucket(400, WEIR_SECOND, 500);
    static const int64_t steps_us[3] = {-100000, -700000, -INT64_C(3600000000)};
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned seed = 1; seed <= SEEDS; seed++) {
            assert_int_equal(excess_after(&o, steps_us[i], seed), 0);
        }
    }
}

/* ---- not much less ---- */

/* Every node asks for more than there is, all the time. Returns how many units were admitted. */
static uint64_t saturate(const struct weir_options *o, unsigned nodes, uint64_t for_us)
{
    fleet_start(&fleet, &redis, o, nodes, 7);
    uint64_t end_us = fleet.now_us + for_us;
    while (fleet.now_us < end_us) {
        for (unsigned i = 0; i < nodes; i++) {
            for (unsigned q = 0; q < 40; q++) {
                (void)fleet_ask(&fleet, i, 1);
            }
        }
        fleet_pass(&fleet, 1000);
    }
    assert_int_equal(fleet.excess, 0);
    print_message("%u nodes: %" PRIu64 " asked, %" PRIu64 " admitted, %" PRIu64 " calls\n", nodes,
                  fleet.asked, fleet.admitted, fleet.calls);
    return fleet.admitted;
}

static void a_saturated_bucket_is_used_up_but_for_the_leases(void **state)
{
    const struct weir_options o = bucket(10000, WEIR_SECOND, 10000);
    for (unsigned nodes = 2; nodes <= 8; nodes += 6) {
        uint64_t admitted = saturate(&o, nodes, 3000000);
        uint64_t lease = 10000 / (4 * nodes);
        assert_true(admitted <= 40000);
        assert_true(admitted + nodes * lease >= 40000); /* burst + 3 s, less N q */
        assert_true(fleet.calls * 20 <= fleet.asked);
        fleet_stop(&fleet);
    }
}

static void a_saturated_window_is_used_up_but_for_the_leases(void **state)
{
    const struct weir_options o = window(10000, WEIR_SECOND);
    for (unsigned nodes = 2; nodes <= 8; nodes += 6) {
        uint64_t admitted = saturate(&o, nodes, 3000000);
        assert_true(admitted + nodes * 10000 / 8 >= 30000);
        assert_true(fleet.calls * 20 <= fleet.asked);
        fleet_stop(&fleet);
    }
}

/* A node asks a million times a second, under a limit that just allows it. */
static void a_busy_key_costs_a_call_for_many_thousand_decisions(void **state)
{
    const struct weir_options o = bucket(1000000, WEIR_SECOND, 1000000);
    fleet_start(&fleet, &redis, &o, 1, 7);
    for (unsigned ms = 0; ms < 1000; ms++) {
        for (unsigned q = 0; q < 1000; q++) {
            fleet.now_us++;
            (void)fleet_ask(&fleet, 0, 1);
        }
        fleet_pass(&fleet, 0);
    }
    print_message("%" PRIu64 " calls for %" PRIu64 " decisions\n", fleet.calls, fleet.asked);
    assert_int_equal(fleet.admitted, 1000000);
    assert_true(fleet.calls <= 100);
    fleet_stop(&fleet);
}

static int start(void **state)
{
    store_redis_start(&redis, NULL);
    return 0;
}

static int stop(void **state)
{
    store_redis_stop(&redis);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_bucket_is_never_exceeded_in_any_stretch_of_time, start,
                                        stop),
        cmocka_unit_test_setup_teardown(a_window_is_never_exceeded, start, stop),
        cmocka_unit_test_setup_teardown(a_clock_that_is_set_forward_gives_what_would_have_refilled,
                                        start, stop),
        cmocka_unit_test_setup_teardown(a_clock_that_is_set_back_gives_nothing, start, stop),
        cmocka_unit_test_setup_teardown(a_saturated_bucket_is_used_up_but_for_the_leases, start,
                                        stop),
        cmocka_unit_test_setup_teardown(a_saturated_window_is_used_up_but_for_the_leases, start,
                                        stop),
        cmocka_unit_test_setup_teardown(a_busy_key_costs_a_call_for_many_thousand_decisions, start,
                                        stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
