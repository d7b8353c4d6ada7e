// test-labels: nosan
/*
 * Tests steps of the store's clock: a real Redis whose wall clock the test controls
 * (tests/preload/clock_step.c).
 *
 * Forward by d: of a bucket at most min(B, R d) more pass than otherwise; of a window or a log at
 * most the limit, and of a fixed window nothing unless a window ends. Back, by any amount: nothing
 * more passes, except that a log is forgotten after a step of more than a second; and no key is
 * locked out for longer than a bucket takes to fill, or for longer than a period of a window or a
 * log (sliding_window: two), plus the second that clocks may differ. A failover to a host whose
 * clock differs is such a step.
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
#include "support/store/fault_proxy.h"
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

/* ---- windows and logs ---- */

#define PERIOD_NS (2 * WEIR_SECOND)
#define LIMIT 100

static const struct window_kind {
    const char *name;
    int algorithm;
    int consistency;
    unsigned periods; /* for which a key may be locked out after a step back */
} kinds[] = {
    {"fixed", WEIR_FIXED_WINDOW, WEIR_FLEET_EXACT, 1},
    {"sliding", WEIR_SLIDING_WINDOW, WEIR_FLEET_EXACT, 2},
    {"log", WEIR_SLIDING_LOG, WEIR_FLEET_EXACT, 1},
    {"leased", WEIR_FIXED_WINDOW, WEIR_FLEET_LEASED, 1},
    {"synced", WEIR_FIXED_WINDOW, WEIR_FLEET_SYNCED, 1},
};
#define KINDS (sizeof kinds / sizeof kinds[0])

static struct weir_fleet_limit *open_window(const struct window_kind *kind, const char *suffix,
                                            uint64_t period_ns)
{
    char name[32];
    (void)snprintf(name, sizeof name, "%s%s", kind->name, suffix);
    struct weir_fleet_limit_options o = fleet_hourly(name, LIMIT);
    o.limit.algorithm = kind->algorithm;
    o.limit.period_ns = period_ns;
    o.consistency = kind->consistency;
    return fleet_limit_of(fleet, &o);
}

/* Returns how far the store's clock is in a window. */
static uint64_t phase_ns(uint64_t period_ns)
{
    char seconds[32];
    char us[32];
    const char *time = redis_node_run(&world.node[0], "TIME");
    redis_line(time, 0, seconds, sizeof seconds);
    redis_line(time, 1, us, sizeof us);
    return (strtoull(seconds, NULL, 10) * WEIR_SECOND + strtoull(us, NULL, 10) * 1000) % period_ns;
}

/* Steps forward if the hour of the store ends soon. */
static void be_early_in_the_hour(void)
{
    if (phase_ns(WEIR_HOUR) > WEIR_HOUR / 2) {
        __atomic_fetch_add(step_us, INT64_C(1800000000), __ATOMIC_SEQ_CST);
    }
}

static void await_window(void)
{
    while (phase_ns(PERIOD_NS) > PERIOD_NS / 40) {
        (void)usleep(1000);
    }
}

/* Takes all units, steps forward, and returns how many more pass at once. */
static uint64_t more_after(const struct window_kind *kind, const char *suffix, int64_t us)
{
    struct weir_fleet_limit *limit = open_window(kind, suffix, WEIR_HOUR);
    be_early_in_the_hour();
    uint64_t taken = take_all(limit);
    assert_in_range(taken, 1, LIMIT);
    __atomic_fetch_add(step_us, us, __ATOMIC_SEQ_CST);
    if (kind->consistency == WEIR_FLEET_SYNCED) {
        (void)usleep(300000); /* so that it learns of the new window */
    }
    uint64_t more = take_all(limit);
    weir_fleet_limit_close(limit);
    return more;
}

static void forward_gives_a_window_or_a_log_at_most_its_limit(void **state)
{
    for (unsigned i = 0; i < KINDS; i++) {
        uint64_t within = more_after(&kinds[i], "-within", 60000000);
        uint64_t one = more_after(&kinds[i], "-one", INT64_C(3600000000));
        uint64_t three = more_after(&kinds[i], "-three", 3 * INT64_C(3600000000));
        printf("%s of 1 h, set forward by 1 min, 1 h, 3 h: %llu, %llu, %llu more\n", kinds[i].name,
               (unsigned long long)within, (unsigned long long)one, (unsigned long long)three);
        /* A sliding window that has just begun has nothing before it that could leave. */
        assert_int_equal(within, 0);
        assert_in_range(one, 0, LIMIT);
        bool exact = kinds[i].consistency == WEIR_FLEET_EXACT; /* others ask later */
        assert_in_range(three, exact ? LIMIT : 0, LIMIT);
    }
}

/* Takes all units, and steps back. Returns for how long the key is locked out then, and in *more
 * how many pass before that. */
static uint64_t out_after(const struct window_kind *kind, const char *suffix, int64_t back_us,
                          uint64_t *more)
{
    struct weir_fleet_limit *limit = open_window(kind, suffix, PERIOD_NS);
    await_window();
    (void)take_all(limit);
    __atomic_fetch_sub(step_us, back_us, __ATOMIC_SEQ_CST);
    uint64_t began_ns = clock_boot_ns();
    *more = take_all(limit);
    while (!passes(limit)) {
        assert_true(clock_boot_ns() - began_ns < 60 * WEIR_SECOND);
        (void)usleep(2000);
    }
    weir_fleet_limit_close(limit);
    return clock_boot_ns() - began_ns;
}

static void back_locks_a_window_or_a_log_out_briefly_and_forgets_logs(void **state)
{
    static const int64_t steps[] = {500000, 5000000, INT64_C(3600000000)};
    for (unsigned i = 0; i < KINDS; i++) {
        for (unsigned k = 0; k < 3; k++) {
            char suffix[16];
            uint64_t more;
            (void)snprintf(suffix, sizeof suffix, "-back%u", k);
            uint64_t ns = out_after(&kinds[i], suffix, steps[k], &more);
            printf("%s, set back by %lld ms: %llu more, locked out for %llu ms\n", kinds[i].name,
                   (long long)steps[k] / 1000, (unsigned long long)more,
                   (unsigned long long)(ns / WEIR_MILLISECOND));
            bool forgets = kinds[i].algorithm == WEIR_SLIDING_LOG && steps[k] > 1000000;
            assert_int_equal(more, forgets ? LIMIT : 0);
            assert_true(ns < kinds[i].periods * PERIOD_NS + SLACK_NS + WEIR_SECOND / 2);
        }
    }
}

/* ---- a failover to a host whose clock differs ---- */

static void await_followed(struct redis_world *other)
{
    long long offset = redis_node_info(&world.node[0], "replication", "master_repl_offset");
    uint64_t end_ms = redis_now_ms() + 30000;
    while (redis_node_info(&other->node[0], "replication", "master_sync_in_progress") != 0 ||
           redis_node_info(&other->node[0], "replication", "slave_repl_offset") < offset) {
        assert_true(redis_now_ms() < end_ms);
        redis_look_again_soon();
    }
}

/* Starts a replica of the store whose clock is ahead by that much more. */
static void start_replica(struct redis_world *other, int64_t ahead_us)
{
    char name[] = "/tmp/weir-clock-XXXXXX";
    int64_t us = *step_us + ahead_us;
    int fd = mkstemp(name);
    assert_true(fd >= 0 && write(fd, &us, sizeof us) == sizeof us);
    (void)close(fd);
    (void)setenv("CLOCK_STEP_FILE", name, 1);
    (void)setenv("LD_PRELOAD", WEIR_BUILD_DIR "/tests/clock_step.so", 1);
    redis_world_alone(other, NULL);
    (void)unsetenv("LD_PRELOAD");
    (void)setenv("CLOCK_STEP_FILE", path, 1);
    assert_int_equal(unlink(name), 0);
    assert_string_equal(
        redis_node_run(&other->node[0], "REPLICAOF 127.0.0.1 %u", world.node[0].port), "OK");
    await_followed(other);
}

enum { EXACT_KINDS = 3 }; /* the first ones */

/* Uses up a bucket and the exact windows, and lets a replica take over. Sets more[] to what passes
 * at once after that: of the windows, and of the bucket in the last place. */
static void fail_over(const char *suffix, int64_t ahead_us, uint64_t more[EXACT_KINDS + 1])
{
    struct redis_world other;
    struct weir_fleet *before = fleet;
    struct weir_fleet_limit *limits[EXACT_KINDS + 1];
    char url[64];
    be_early_in_the_hour();
    start_replica(&other, ahead_us);
    struct fault_proxy *proxy = fault_proxy_start(world.node[0].port);
    (void)snprintf(url, sizeof url, "redis://127.0.0.1:%u", fault_proxy_port(proxy));
    fleet = fleet_open_at(url, 0, 0);
    for (unsigned i = 0; i <= EXACT_KINDS; i++) {
        struct weir_fleet_limit_options bucket = fleet_hourly(suffix, LIMIT);
        limits[i] = i < EXACT_KINDS ? open_window(&kinds[i], suffix, WEIR_HOUR)
                                    : fleet_limit_of(fleet, &bucket);
        assert_true(take_all(limits[i]) >= LIMIT);
    }
    await_followed(&other);
    assert_string_equal(redis_node_run(&other.node[0], "REPLICAOF NO ONE"), "OK");
    fault_proxy_lead_to(proxy, other.node[0].port);
    fault_proxy_reset(proxy);
    assert_true(fleet_await_store(limits[0]));
    for (unsigned i = 0; i <= EXACT_KINDS; i++) {
        more[i] = take_all(limits[i]);
        weir_fleet_limit_close(limits[i]);
    }
    weir_fleet_close(fleet);
    fleet = before;
    fault_proxy_stop(proxy);
    redis_world_stop(&other);
}

static void a_failover_to_a_host_with_another_clock_is_a_step(void **state)
{
    uint64_t ahead[EXACT_KINDS + 1];
    uint64_t behind[EXACT_KINDS + 1];
    fail_over("-ahead", 3 * INT64_C(3600000000), ahead);
    fail_over("-behind", -3 * INT64_C(3600000000), behind);
    for (unsigned i = 0; i <= EXACT_KINDS; i++) {
        bool log = i < EXACT_KINDS && kinds[i].algorithm == WEIR_SLIDING_LOG;
        printf("%s: %llu more ahead, %llu behind\n", i < EXACT_KINDS ? kinds[i].name : "bucket",
               (unsigned long long)ahead[i], (unsigned long long)behind[i]);
        assert_int_equal(ahead[i], LIMIT);
        assert_int_equal(behind[i], log ? LIMIT : 0);
    }
}

/* ---- remembered denials ---- */

/* A node remembers a denial for deny_cache at most, also if another node resets the key. */
static void a_reset_by_another_node_ends_a_remembered_denial_within_deny_cache(void **state)
{
    struct weir_fleet *another = fleet_open_at(world.url, 0, 0);
    struct weir_fleet_limit_options o = fleet_hourly("reset", 10);
    o.deny_cache_ns = 700 * WEIR_MILLISECOND;
    struct weir_fleet_limit *here = fleet_limit_of(fleet, &o);
    struct weir_fleet_limit *there = fleet_limit_of(another, &o);
    uint64_t denied_ns = 0;
    while (passes(here)) {
        denied_ns = clock_boot_ns();
    }
    assert_int_equal(weir_fleet_reset(there, "k", 1, NULL, NULL), 0);
    assert_true(passes(there));
    assert_false(passes(here)); /* by memory */
    while (!passes(here)) {
        (void)usleep(1000);
    }
    uint64_t ns = clock_boot_ns() - denied_ns;
    printf("after a reset by another node, denied for %llu ms\n",
           (unsigned long long)(ns / WEIR_MILLISECOND));
    assert_in_range(ns, 0, o.deny_cache_ns + WEIR_SECOND / 2);
    weir_fleet_limit_close(here);
    weir_fleet_limit_close(there);
    weir_fleet_close(another);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_gives_what_would_have_refilled_and_no_more),
        cmocka_unit_test(back_locks_out_for_one_time_to_full_at_most),
        cmocka_unit_test(back_locks_out_for_no_longer_where_units_are_leased_or_synced),
        cmocka_unit_test(forward_gives_a_window_or_a_log_at_most_its_limit),
        cmocka_unit_test(back_locks_a_window_or_a_log_out_briefly_and_forgets_logs),
        cmocka_unit_test(a_failover_to_a_host_with_another_clock_is_a_step),
        cmocka_unit_test(a_reset_by_another_node_ends_a_remembered_denial_within_deny_cache),
    };
    return cmocka_run_group_tests(tests, open_world, close_world);
}
