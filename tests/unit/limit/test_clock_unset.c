/*
 * Machines that start before anybody has told them the time: the wall clock says 1970 until it is
 * set. A limiter made before that keeps UTC windows afterwards.
 */
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define UNSET (17 * WEIR_SECOND + 123)                    /* 1970-01-01, 17 s after midnight */
#define SET (UINT64_C(1794830407) * WEIR_SECOND + 500000) /* 2026-11-16 12:00:07 */

/* The wall clock of this process; what runs since boot stays the kernel's. */
static uint64_t wall_ns;
static uint64_t wall_set_at_ns;
static unsigned wall_reads;

int clock_gettime(clockid_t id, struct timespec *t)
{
    int e = (int)syscall(SYS_clock_gettime, id == CLOCK_REALTIME ? CLOCK_BOOTTIME : id, t);
    if (e == 0 && id == CLOCK_REALTIME) {
        wall_reads++;
        uint64_t ns = (uint64_t)t->tv_sec * WEIR_SECOND + (uint64_t)t->tv_nsec;
        ns = wall_ns + ns - wall_set_at_ns;
        t->tv_sec = (time_t)(ns / WEIR_SECOND);
        t->tv_nsec = (long)(ns % WEIR_SECOND);
    }
    return e;
}

static uint64_t read_ns(clockid_t id)
{
    struct timespec t;
    assert_int_equal(clock_gettime(id, &t), 0);
    return (uint64_t)t.tv_sec * WEIR_SECOND + (uint64_t)t.tv_nsec;
}

static void set_wall(uint64_t ns)
{
    wall_set_at_ns = read_ns(CLOCK_BOOTTIME);
    wall_ns = ns;
}

static struct weir_options minute(int algorithm)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.algorithm = algorithm;
    o.count = 5;
    o.period_ns = WEIR_MINUTE;
    o.max_keys = 100;
    return o;
}

static struct weir *open_it(const struct weir_options *o)
{
    struct weir *w;
    struct weir_error error = {0, ""};
    if (weir_open(&w, o, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return w;
}

/* The windows of `w` end with the minutes of the wall clock, and its time is that clock's. */
static void expect_utc(struct weir *w)
{
    struct weir_answer a;
    uint64_t now_ns;
    uint64_t wall = read_ns(CLOCK_REALTIME);
    assert_int_equal(weir_check(w, "k", 1, 1, &a), 0);
    assert_int_equal(weir_now(w, &now_ns), 0);
    assert_in_range(now_ns, wall - WEIR_MILLISECOND, wall + 10 * WEIR_SECOND);
    uint64_t end = wall + a.reset_after_ns;
    assert_in_range((end + 20 * WEIR_SECOND) % WEIR_MINUTE, 10 * WEIR_SECOND, 20 * WEIR_SECOND);
}

static void windows_are_utc_once_the_clock_is_set(void **state)
{
    struct weir_answer a;
    struct weir_options o = minute(WEIR_FIXED_WINDOW);
    set_wall(UNSET);
    struct weir *w = open_it(&o);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(weir_check(w, "k", 1, 1, &a), 0);
        assert_int_equal(a.verdict, i < 5 ? WEIR_ALLOW : WEIR_DENY);
    }
    set_wall(UNSET + WEIR_HOUR); /* somebody sets it, but not to the time */
    assert_int_equal(weir_check(w, "k", 1, 1, &a), 0);
    assert_int_equal(a.verdict, WEIR_DENY);
    set_wall(SET);
    expect_utc(w);
    weir_close(w);
}

/* From then on the wall clock moves nothing. */
static void a_clock_that_is_set_again_moves_nothing(void **state)
{
    uint64_t before;
    uint64_t after;
    struct weir_options o = minute(WEIR_SLIDING_WINDOW);
    set_wall(UNSET);
    struct weir *w = open_it(&o);
    set_wall(SET);
    assert_int_equal(weir_now(w, &before), 0);
    set_wall(SET + WEIR_DAY);
    assert_int_equal(weir_now(w, &after), 0);
    assert_in_range(after, before, before + 10 * WEIR_SECOND);
    set_wall(UNSET);
    assert_int_equal(weir_now(w, &after), 0);
    assert_in_range(after, before, before + 10 * WEIR_SECOND);
    weir_close(w);
}

/* The fastest buckets live 3.4 years: their line must not begin in 1970. */
static void every_algorithm_goes_on_when_the_clock_is_set(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        struct weir_options o = minute(unit_algorithms[i]);
        o.count = unit_algorithms[i] <= WEIR_LEAKY_BUCKET ? UINT64_C(600000000) : 5;
        set_wall(UNSET);
        struct weir *w = open_it(&o);
        struct weir_answer a;
        assert_int_equal(weir_check(w, "k", 1, 1, &a), 0);
        set_wall(SET);
        assert_int_equal(weir_check(w, "k", 1, 1, &a), 0);
        assert_int_equal(a.verdict, WEIR_ALLOW);
        weir_close(w);
    }
}

/* A clock that is set beyond the life of the words is looked at by each call, and no more. */
static void a_clock_beyond_the_line_costs_one_look_a_call(void **state)
{
    struct weir_options o = minute(WEIR_TOKEN_BUCKET);
    struct weir_answer a;
    o.count = UINT64_C(600000000);
    set_wall(UNSET);
    struct weir *w = open_it(&o);
    set_wall(SET + 20 * 365 * WEIR_DAY);
    wall_reads = 0;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(weir_check(w, "k", 1, 1, &a), 0);
        assert_int_equal(a.verdict, WEIR_ALLOW);
    }
    assert_int_equal(wall_reads, 100);
    weir_close(w);
}

/* One line for all that have the file open, whoever notices first. */
static void openers_of_a_file_go_on_together(void **state)
{
    char dir[] = "/tmp/weir-unset-XXXXXX";
    char path[32];
    struct weir_options o = minute(WEIR_FIXED_WINDOW);
    assert_non_null(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/limit", dir);
    o.memory = WEIR_FILE;
    o.path = path;
    set_wall(UNSET);
    struct weir *a = open_it(&o);
    struct weir *b = open_it(&o);
    set_wall(SET);
    expect_utc(a);
    set_wall(SET + WEIR_HOUR);
    uint64_t of_a;
    uint64_t of_b;
    assert_int_equal(weir_now(a, &of_a), 0);
    assert_int_equal(weir_now(b, &of_b), 0);
    assert_in_range(of_b, of_a, of_a + 10 * WEIR_SECOND);
    weir_close(a);
    weir_close(b);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(dir), 0);
}

static uint64_t own_clock(void *arg)
{
    return *(const uint64_t *)arg;
}

static void a_clock_of_the_callers_may_say_1970(void **state)
{
    uint64_t now = 2 * WEIR_DAY;
    uint64_t told;
    struct weir_options o = minute(WEIR_FIXED_WINDOW);
    o.clock = own_clock;
    o.clock_arg = &now;
    set_wall(SET);
    struct weir *w = open_it(&o);
    assert_int_equal(weir_now(w, &told), 0);
    assert_int_equal(told, now);
    weir_close(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_are_utc_once_the_clock_is_set),
        cmocka_unit_test(a_clock_that_is_set_again_moves_nothing),
        cmocka_unit_test(every_algorithm_goes_on_when_the_clock_is_set),
        cmocka_unit_test(a_clock_beyond_the_line_costs_one_look_a_call),
        cmocka_unit_test(openers_of_a_file_go_on_together),
        cmocka_unit_test(a_clock_of_the_callers_may_say_1970),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
