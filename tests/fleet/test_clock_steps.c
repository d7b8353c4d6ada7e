// test-labels: nosan
/*
 * Tests steps of the store's clock. Forward by d: at most min(B, R d) more pass than otherwise.
 * Back, by any amount: no key is locked out for longer than a bucket takes to fill, plus the second
 * that clocks may differ. The store is a real Redis whose wall clock the test controls
 * (tests/preload/clock_step.c).
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "support/fleet/fleet_open.h"
#include "support/store/redis_world.h"

#define BURST 200
#define RATE 100 /* per second: full again after 2 s */
#define SLACK_NS WEIR_SECOND

static struct redis_world world;
static struct weir_fleet *fleet;
static int64_t *step_us;
static char path[] = "/tmp/weir-clock-XXXXXX";

static int open_world(void **state)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, sizeof *step_us), 0);
    step_us = mmap(NULL, sizeof *step_us, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(step_us != MAP_FAILED);
    (void)close(fd);
    (void)setenv("CLOCK_STEP_FILE", path, 1);
    (void)setenv("LD_PRELOAD", WEIR_BUILD_DIR "/tests/clock_step.so", 1);
    redis_world_alone(&world, NULL);
    (void)unsetenv("LD_PRELOAD");
    fleet = fleet_open_at(world.url, 0, 0);
    return 0;
}

static int close_world(void **state)
{
    weir_fleet_close(fleet);
    redis_world_stop(&world);
    (void)munmap(step_us, sizeof *step_us);
    return unlink(path);
}

static struct weir_fleet_limit *open_kind(const char *name, int consistency, uint64_t burst)
{
    struct weir_fleet_limit_options o = fleet_hourly(name, RATE);
    o.limit.period_ns = WEIR_SECOND;
    o.limit.burst = burst;
    o.consistency = consistency;
    return fleet_limit_of(fleet, &o);
}

static struct weir_fleet_limit *open_limit(const char *name)
{
    return open_kind(name, WEIR_FLEET_EXACT, BURST);
}

static bool passes(struct weir_fleet_limit *limit)
{
    struct weir_answer a;
    assert_int_equal(weir_fleet_check(limit, "k", 1, 1, &a), 0);
    assert_int_equal(a.flags & WEIR_FLAG_DEGRADED, 0);
    return a.verdict == WEIR_ALLOW;
}

/* Returns how many pass until one is denied. */
static uint64_t take_all(struct weir_fleet_limit *limit)
{
    uint64_t n = 0;
    while (passes(limit)) {
        n++;
    }
    return n;
}

static uint64_t set_forward(const char *name, int64_t us)
{
    struct weir_fleet_limit *limit = open_limit(name);
    assert_true(take_all(limit) >= BURST);
    uint64_t began_ns = clock_boot_ns();
    __atomic_fetch_add(step_us, us, __ATOMIC_SEQ_CST);
    uint64_t taken = take_all(limit);
    uint64_t came = (clock_boot_ns() - began_ns) * RATE / WEIR_SECOND + 1; /* refilled meanwhile */
    weir_fleet_limit_close(limit);
    return taken > came ? taken - came : 0;
}

static void forward_gives_what_would_have_refilled_and_no_more(void **state)
{
    uint64_t a_second = set_forward("second", 1000000);
    uint64_t an_hour = set_forward("hour", INT64_C(3600000000));
    printf("set forward by 1 s: %llu more; by 1 h: %llu more\n", (unsigned long long)a_second,
           (unsigned long long)an_hour);
    assert_in_range(a_second, RATE - 10, RATE);
    assert_in_range(an_hour, BURST - 10, BURST);
}

static uint64_t locked_out_ns(const char *name, int64_t back_us)
{
    struct weir_fleet_limit *limit = open_limit(name);
    for (unsigned i = 0; i < BURST / 2; i++) {
        assert_true(passes(limit));
    }
    __atomic_fetch_sub(step_us, back_us, __ATOMIC_SEQ_CST);
    uint64_t began_ns = clock_boot_ns();
    while (!passes(limit)) {
        assert_true(clock_boot_ns() - began_ns < 60 * WEIR_SECOND);
        (void)usleep(2000);
    }
    weir_fleet_limit_close(limit);
    return clock_boot_ns() - began_ns;
}

static void back_locks_out_for_one_time_to_full_at_most(void **state)
{
    static const int64_t steps[] = {500000, 5000000, INT64_C(3600000000)};
    for (unsigned i = 0; i < 3; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "back%u", i);
        uint64_t ns = locked_out_ns(name, steps[i]);
        printf("set back by %lld ms: locked out for %llu ms\n", (long long)steps[i] / 1000,
               (unsigned long long)(ns / WEIR_MILLISECOND));
        /* and half a second for a busy machine */
        assert_true(ns < BURST * WEIR_SECOND / RATE + SLACK_NS + WEIR_SECOND / 2);
    }
}

/* Asks again and again for `for_ns`. Returns the longest time in which none passed. */
static uint64_t longest_without_ns(struct weir_fleet_limit *limit, uint64_t for_ns)
{
    uint64_t longest = 0;
    uint64_t began_ns = clock_boot_ns();
    uint64_t last_ns = began_ns;
    for (uint64_t now_ns = began_ns; now_ns < began_ns + for_ns; now_ns = clock_boot_ns()) {
        if (passes(limit)) {
            last_ns = now_ns;
        }
        longest = now_ns - last_ns > longest ? now_ns - last_ns : longest;
        (void)usleep(2000);
    }
    return longest;
}

static void back_locks_out_for_no_longer_where_units_are_leased_or_synced(void **state)
{
    static const struct {
        int consistency;
        int64_t back_us;
    } cases[] = {
        {WEIR_FLEET_LEASED, INT64_C(3600000000)},
        {WEIR_FLEET_SYNCED, 8000000},
        {WEIR_FLEET_SYNCED, INT64_C(3600000000)},
    };
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "gap%u", i);
        struct weir_fleet_limit *limit = open_kind(name, cases[i].consistency, RATE);
        (void)take_all(limit);
        (void)longest_without_ns(limit, WEIR_SECOND / 2); /* so that the store knows of them */
        __atomic_fetch_sub(step_us, cases[i].back_us, __ATOMIC_SEQ_CST);
        uint64_t ns = longest_without_ns(limit, 4 * WEIR_SECOND);
        weir_fleet_limit_close(limit);
        printf("%s, set back by %lld ms: locked out for %llu ms\n",
               cases[i].consistency == WEIR_FLEET_LEASED ? "leased" : "synced",
               (long long)cases[i].back_us / 1000, (unsigned long long)(ns / WEIR_MILLISECOND));
        assert_true(ns > WEIR_SECOND / 2); /* the step back had an effect */
        assert_true(ns < WEIR_SECOND + SLACK_NS + WEIR_SECOND / 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_gives_what_would_have_refilled_and_no_more),
        cmocka_unit_test(back_locks_out_for_one_time_to_full_at_most),
        cmocka_unit_test(back_locks_out_for_no_longer_where_units_are_leased_or_synced),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
