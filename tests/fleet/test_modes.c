/* Tests leased and synced limits through the library: they are decided on the caller's thread,
 * within their bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/clock.h"
#include "support/fleet/fleet_open.h"
#include "support/store/redis_alone.h"

static struct weir_fleet_limit *open_limit(struct weir_fleet *fleet, int consistency,
                                           const char *name, uint64_t count, uint64_t period_ns)
{
    struct weir_fleet_limit_options o = fleet_hourly(name, count);
    o.limit.period_ns = period_ns;
    o.consistency = consistency;
    o.on_store_failure = WEIR_FLEET_CLOSED;
    struct weir_fleet_limit *limit = fleet_limit_of(fleet, &o);
    assert_int_equal(weir_fleet_limit_consistency(limit), consistency);
    return limit;
}

/* ---- how much is admitted ---- */

#define THREADS 4

struct asker {
    struct weir_fleet_limit *limit;
    uint64_t asks, allowed, degraded;
};

static void *keep_asking(void *arg)
{
    struct asker *a = arg;
    for (uint64_t i = 0; i < a->asks; i++) {
        struct weir_answer answer;
        assert_int_equal(weir_fleet_check(a->limit, "hot", 3, 1, &answer), 0);
        a->allowed += answer.verdict == WEIR_ALLOW;
        a->degraded += (answer.flags & WEIR_FLAG_DEGRADED) != 0;
    }
    return NULL;
}

static uint64_t ask_by_threads(struct weir_fleet_limit *const *limits, unsigned n, uint64_t asks)
{
    struct asker asker[8];
    pthread_t id[8];
    uint64_t allowed = 0;
    for (unsigned i = 0; i < n; i++) {
        asker[i] = (struct asker){.limit = limits[i], .asks = asks};
        assert_int_equal(pthread_create(&id[i], NULL, keep_asking, &asker[i]), 0);
    }
    for (unsigned i = 0; i < n; i++) {
        (void)pthread_join(id[i], NULL);
        assert_int_equal(asker[i].degraded, 0);
        allowed += asker[i].allowed;
    }
    return allowed;
}

/* The bucket gains less than one unit during the test. */
static void leases_never_admit_more_than_the_limit(void **state)
{
    struct weir_fleet *fleet[2];
    struct weir_fleet_limit *limits[THREADS];
    const uint64_t quota = 20000;
    for (unsigned i = 0; i < 2; i++) {
        fleet[i] = fleet_open_at(world.url, 0, 0);
        limits[i] = open_limit(fleet[i], WEIR_FLEET_LEASED, "lease", quota, 100 * WEIR_DAY);
        limits[i + 2] = limits[i];
    }
    uint64_t allowed = ask_by_threads(limits, THREADS, quota / 2);
    print_message("leased: %llu of %llu admitted\n", (unsigned long long)allowed,
                  (unsigned long long)quota);
    assert_in_range(allowed, quota / 2, quota);
    for (unsigned i = 0; i < 2; i++) {
        weir_fleet_limit_close(limits[i]);
        weir_fleet_close(fleet[i]);
    }
}

static void units_that_a_closed_fleet_had_leased_are_given_back(void **state)
{
    const uint64_t quota = 20000;
    struct weir_fleet *first = fleet_open_at(world.url, 0, 0);
    struct weir_fleet_limit *limit =
        open_limit(first, WEIR_FLEET_LEASED, "back", quota, 100 * WEIR_DAY);
    assert_int_equal(ask_by_threads(&limit, 1, 100), 100);
    weir_fleet_limit_close(limit);
    weir_fleet_close(first);
    struct weir_fleet *second = fleet_open_at(world.url, 0, 0);
    limit = open_limit(second, WEIR_FLEET_LEASED, "back", quota, 100 * WEIR_DAY);
    struct weir_answer a;
    assert_int_equal(weir_fleet_check(limit, "hot", 3, 1, &a), 0);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    assert_int_equal(a.remaining, quota - 101);
    weir_fleet_limit_close(limit);
    weir_fleet_close(second);
}

/* ---- how often the store is asked ---- */

static void the_store_is_asked_for_a_fraction_of_the_decisions(void **state)
{
    static const int modes[] = {WEIR_FLEET_LEASED, WEIR_FLEET_SYNCED};
    for (size_t i = 0; i < 2; i++) {
        struct weir_fleet *fleet = fleet_open_at(world.url, 0, 0);
        struct weir_fleet_limit *limit =
            open_limit(fleet, modes[i], i == 0 ? "few" : "fewer", 1000000, WEIR_SECOND);
        uint64_t begun = clock_monotonic_ns();
        uint64_t allowed = ask_by_threads(&limit, 1, 200000);
        uint64_t took = clock_monotonic_ns() - begun;
        uint64_t calls = fleet_stats_of(fleet).calls;
        print_message("%s: 200000 decisions, %llu allowed, %llu calls, %.0f ns for each\n",
                      i == 0 ? "leased" : "synced", (unsigned long long)allowed,
                      (unsigned long long)calls, (double)took / 200000);
        assert_int_equal(allowed, 200000);
        assert_in_range(calls, 1, 200000 / 20);
        weir_fleet_limit_close(limit);
        weir_fleet_close(fleet);
    }
}

/* ---- synced ---- */

static bool hears_of_it(struct weir_fleet_limit *limit, const char *key, uint64_t least)
{
    uint64_t end = clock_monotonic_ns() + 10 * WEIR_SECOND;
    while (clock_monotonic_ns() < end) {
        struct weir_answer a;
        assert_int_equal(weir_fleet_check(limit, key, strlen(key), 1, &a), 0);
        assert_int_equal(a.flags, 0);
        if (a.quota - a.remaining >= least) {
            return true;
        }
        redis_look_again_soon();
    }
    return false;
}

/* The first question about a key comes from a thread other than the one that exchanges. */
static void what_one_node_admits_the_other_hears(void **state)
{
    struct weir_fleet *fleet[2] = {fleet_open_at(world.url, 0, 0), fleet_open_at(world.url, 0, 0)};
    struct weir_fleet_limit *limit[2];
    for (unsigned i = 0; i < 2; i++) {
        limit[i] = open_limit(fleet[i], WEIR_FLEET_SYNCED, "heard", 1000000, 100 * WEIR_DAY);
    }
    struct weir_answer a;
    assert_int_equal(weir_fleet_check(limit[0], "k", 1, 500000, &a), 0);
    assert_int_equal(a.verdict, WEIR_ALLOW);
    uint64_t begun = clock_monotonic_ns();
    assert_true(hears_of_it(limit[1], "k", 500000));
    uint64_t took = clock_monotonic_ns() - begun;
    print_message("synced: heard after %.0f ms\n", (double)took / 1e6);
    assert_in_range(took, 0, 3 * WEIR_SECOND);
    for (unsigned i = 0; i < 2; i++) {
        weir_fleet_limit_close(limit[i]);
        weir_fleet_close(fleet[i]);
    }
}

static void a_closed_fleet_has_told_what_it_admitted(void **state)
{
    struct weir_fleet *fleet[2];
    struct weir_fleet_limit *limit[2];
    struct weir_answer a;
    for (unsigned i = 0; i < 2; i++) {
        fleet[i] = fleet_open_at(world.url, 0, 0);
        limit[i] = open_limit(fleet[i], WEIR_FLEET_SYNCED, "told", 1000000, 100 * WEIR_DAY);
    }
    assert_true(hears_of_it(limit[0], "k", 1));
    assert_int_equal(weir_fleet_check(limit[0], "k", 1, 500000, &a), 0);
    weir_fleet_limit_close(limit[0]);
    weir_fleet_close(fleet[0]);
    assert_true(hears_of_it(limit[1], "k", 500000));
    weir_fleet_limit_close(limit[1]);
    weir_fleet_close(fleet[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leases_never_admit_more_than_the_limit),
        cmocka_unit_test(units_that_a_closed_fleet_had_leased_are_given_back),
        cmocka_unit_test(the_store_is_asked_for_a_fraction_of_the_decisions),
        cmocka_unit_test(what_one_node_admits_the_other_hears),
        cmocka_unit_test(a_closed_fleet_has_told_what_it_admitted),
    };
    return cmocka_run_group_tests(tests, start_redis, stop_redis);
}
