/*
 * Tests short stalls of the store, 15 ms every 0.5 s, with a deadline of 5 ms: a key that is asked
 * for all the time gets hardly more than its limit. During a stall this node admits what refills
 * meanwhile, and the store has it too; that is 3 %.
 */
// test-labels: nosan
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "support/fleet/fleet_open.h"
#include "support/store/fault_proxy.h"
#include "support/store/redis_world.h"

#define RATE 300
#define BURST 300
#define STALLS 10
#define THREADS 4

static struct redis_world world;
static struct fault_proxy *proxy;
static struct weir_fleet_limit *limit;
static uint64_t stop;
static uint64_t allowed;
static uint64_t degraded;
static uint64_t asked;

static void *keep_asking(void *arg)
{
    while (load_acquire(&stop) == 0) {
        struct weir_answer a;
        assert_int_equal(weir_fleet_check(limit, "k", 1, 1, &a), 0);
        (void)fetch_add(&asked, 1);
        (void)fetch_add(&allowed, a.verdict == WEIR_ALLOW);
        (void)fetch_add(&degraded, (a.flags & WEIR_FLAG_DEGRADED) != 0);
        (void)nanosleep(&(struct timespec){0, 200000}, NULL);
    }
    return NULL;
}

static void sleep_ms(long ms)
{
    (void)nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
}

/* Asks through stalls. Returns what was allowed, divided by what the limit allows meanwhile. */
static double ask_through_stalls(void)
{
    pthread_t threads[THREADS];
    stop = 0;
    allowed = 0;
    asked = 0;
    uint64_t began_ns = clock_monotonic_ns();
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, keep_asking, NULL), 0);
    }
    for (unsigned i = 0; i < STALLS; i++) {
        sleep_ms(485);
        fault_proxy_set(proxy, &(struct faults){.to_client = FAULT_HOLD});
        sleep_ms(15);
        fault_proxy_set(proxy, NULL);
    }
    store_release(&stop, 1);
    for (unsigned i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    uint64_t bound = BURST + (clock_monotonic_ns() - began_ns) * RATE / WEIR_SECOND;
    print_message("%llu asked, %llu degraded, %llu allowed of %llu: %.3f times\n",
                  (unsigned long long)asked, (unsigned long long)degraded,
                  (unsigned long long)allowed, (unsigned long long)bound,
                  (double)allowed / (double)bound);
    return (double)allowed / (double)bound;
}

/* A busy machine stalls the store as well, and for longer: the best of three attempts counts. */
static void short_stalls_admit_hardly_more(void **state)
{
    char url[64];
    redis_world_alone(&world, NULL);
    proxy = fault_proxy_start(world.node[0].port);
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%u", fault_proxy_port(proxy));
    struct weir_fleet *fleet = fleet_open_at(url, 0, 5 * WEIR_MILLISECOND);
    struct weir_fleet_limit_options o = fleet_hourly("stalls", RATE);
    o.limit.period_ns = WEIR_SECOND;
    o.limit.burst = BURST;
    limit = fleet_limit_of(fleet, &o);
    assert_true(fleet_await_store(limit));
    double times = 2;
    for (unsigned attempt = 0; attempt < 3 && times > 1.1; attempt++) {
        times = ask_through_stalls();
    }
    assert_true(degraded > 0);
    assert_true(times >= 0.5 && times <= 1.1);
    weir_fleet_limit_close(limit);
    weir_fleet_close(fleet);
    fault_proxy_stop(proxy);
    redis_world_stop(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_stalls_admit_hardly_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
