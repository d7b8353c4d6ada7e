/*
 * Time by the processor's counter, on a machine whose counter and kernel's clock
 * the test moves: suspends, migrations, jumps, other rates, interrupted readings.
 */
#include "base/counter.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define US WEIR_MICROSECOND
#define MS WEIR_MILLISECOND
#define CALL_NS 40 /* from one reading to the next */

struct machine {
    struct counter_clock thread;
    uint64_t ns;           /* what the kernel's clock says */
    uint64_t ticks;        /* what the counter says */
    uint64_t rate;         /* ticks in 1000 ns */
    uint64_t rest;         /* thousandths of a tick */
    uint64_t interrupt_ns; /* the next sync loses this much between its readings */
    unsigned syncs;
};

static struct machine machine_up_for(uint64_t ns)
{
    return (struct machine){.ns = ns, .ticks = UINT64_C(1) << 62, .rate = 2600};
}

static void run(struct machine *m, uint64_t ns)
{
    m->rest += ns * m->rate;
    m->ns += ns;
    m->ticks += m->rest / 1000;
    m->rest %= 1000;
}

/* What clock_now_ns() does, on this machine. */
static uint64_t read_time(struct machine *m)
{
    uint64_t now_ns;
    if (counter_read(&m->thread, m->ticks, &now_ns)) {
        return now_ns;
    }
    m->syncs++;
    uint64_t before = m->ticks;
    uint64_t kernel_ns = m->ns;
    run(m, 20 + m->interrupt_ns);
    m->interrupt_ns = 0;
    return counter_sync(&m->thread, before, kernel_ns, m->ticks);
}

/* Reads the time every CALL_NS for so long. Returns the largest difference from the kernel's. */
static uint64_t read_for(struct machine *m, uint64_t ns)
{
    uint64_t most = 0;
    uint64_t last = 0;
    for (uint64_t end_ns = m->ns + ns; m->ns < end_ns; run(m, CALL_NS)) {
        uint64_t now_ns = read_time(m);
        uint64_t off_ns = now_ns > m->ns ? now_ns - m->ns : m->ns - now_ns;
        assert_true(now_ns >= last);
        last = now_ns;
        most = off_ns > most ? off_ns : most;
    }
    return most;
}

/* A thread in the middle of a window. */
static struct machine machine_in_use(void)
{
    struct machine m = machine_up_for(WEIR_HOUR);
    assert_in_range(read_for(&m, 10 * MS), 0, US);
    while (m.thread.span_ticks == 0 || m.ns - m.thread.sync_ns < MS / 2) {
        (void)read_time(&m);
        run(&m, CALL_NS);
    }
    return m;
}

/* Does the thread count again, or does each reading ask the kernel? */
static bool counts(struct machine *m)
{
    unsigned syncs = m->syncs;
    (void)read_for(m, 100 * US);
    return m->syncs - syncs <= 1;
}

/* ---- an even counter ---- */

static void a_new_thread_asks_the_kernel_until_it_has_measured_the_rate(void **state)
{
    struct machine m = machine_up_for(WEIR_HOUR);
    assert_false(counts(&m));
    assert_in_range(read_for(&m, 2 * MS), 0, US);
    assert_true(counts(&m));
}

static void a_window_lasts_a_millisecond(void **state)
{
    struct machine m = machine_in_use();
    unsigned syncs = m.syncs;
    assert_in_range(read_for(&m, 100 * MS), 0, US);
    assert_in_range(m.syncs - syncs, 95, 105);
}

static void every_rate_of_a_counter_gives_the_same_time(void **state)
{
    for (uint64_t rate = 50; rate < 15000; rate = rate * 5 / 4) {
        struct machine m = machine_up_for(WEIR_SECOND);
        m.rate = rate;
        assert_in_range(read_for(&m, 20 * MS), 0, US);
        assert_true(counts(&m));
    }
}

static void a_thread_that_slept_reads_the_kernels_time(void **state)
{
    for (uint64_t ns = 2 * MS; ns < 30 * WEIR_DAY; ns *= 3) {
        struct machine m = machine_in_use();
        run(&m, ns);
        assert_in_range(read_for(&m, 2 * MS), 0, US);
        assert_true(counts(&m));
    }
}

/* NTP slews by up to 500 ppm; the rate is measured against the slewed clock. */
static void a_clock_that_ntp_slews_is_followed(void **state)
{
    struct machine m = machine_in_use();
    m.rate -= m.rate / 2000;
    assert_in_range(read_for(&m, 10 * MS), 0, US);
    assert_true(counts(&m));
}

static void interrupted_readings_stay_within_the_stated_error(void **state)
{
    uint64_t most = 0;
    srandom(1);
    for (int i = 0; i < 200; i++) {
        struct machine m = machine_in_use();
        m.rate = 1000;
        (void)read_for(&m, 5 * MS);
        for (int syncs = 0; syncs < 10; syncs++) {
            m.interrupt_ns = (uint64_t)random() % (20 * US);
            uint64_t off_ns = read_for(&m, MS);
            most = off_ns > most ? off_ns : most;
        }
    }
    assert_in_range(most, US, COUNTER_ERROR_NS);
}

/* ---- other counters ---- */

enum suspended { RUNS_ON, STARTS_AGAIN, STANDS_STILL };

static struct machine machine_after_suspend(enum suspended counter)
{
    struct machine m = machine_in_use();
    m.ns += WEIR_HOUR;
    m.ticks = counter == STARTS_AGAIN ? 1000 : m.ticks;
    m.ticks += counter == RUNS_ON ? WEIR_HOUR * m.rate / 1000 : 0;
    return m;
}

static void after_a_suspend_the_time_is_the_kernels(void **state)
{
    for (enum suspended counter = RUNS_ON; counter <= STARTS_AGAIN; counter++) {
        struct machine m = machine_after_suspend(counter);
        assert_in_range(read_for(&m, 5 * MS), 0, US);
        assert_true(counts(&m));
    }
}

static void a_suspend_that_the_counter_slept_through_is_noticed_within_a_millisecond(void **state)
{
    struct machine m = machine_after_suspend(STANDS_STILL);
    assert_in_range(read_for(&m, MS), WEIR_HOUR - MS, WEIR_HOUR + US); /* as counter.h says */
    assert_in_range(read_for(&m, 5 * MS), 0, US);
    assert_true(counts(&m));
}

/* Forth and back every 100 us, by so many ticks. Returns how far the time was off. */
static uint64_t migrate(struct machine *m, uint64_t ticks)
{
    uint64_t most = 0;
    for (int i = 0; i < 100; i++) {
        m->ticks += i % 2 == 0 ? ticks : -ticks;
        uint64_t off_ns = read_for(m, 100 * US);
        most = off_ns > most ? off_ns : most;
    }
    return most;
}

/* By the difference itself, and by what it adds to the rate that is measured across it. */
static void a_migration_to_a_counter_a_little_off_shifts_the_time_a_little(void **state)
{
    for (uint64_t ticks = 26; ticks < 26000; ticks *= 2) {
        struct machine m = machine_in_use();
        assert_in_range(migrate(&m, ticks), 1, 4 * ticks * 1000 / m.rate + US);
        m = machine_in_use();
        assert_in_range(migrate(&m, -ticks), 1, 4 * ticks * 1000 / m.rate + US);
    }
}

static void counters_far_apart_shift_the_time_by_a_millisecond_at_most(void **state)
{
    for (uint64_t ticks = 26000; ticks < UINT64_C(1) << 50; ticks *= 2) {
        struct machine m = machine_in_use();
        assert_in_range(migrate(&m, ticks), 0, MS);
        m = machine_in_use();
        assert_in_range(migrate(&m, -ticks), 0, MS);
    }
}

static void after_a_jump_of_the_counter_the_kernel_is_asked_until_rates_agree(void **state)
{
    static const uint64_t jumps[] = {UINT64_C(1) << 40, -(UINT64_C(1) << 40), UINT64_C(1) << 63,
                                     26000000};
    for (size_t i = 0; i < sizeof jumps / sizeof jumps[0]; i++) {
        struct machine m = machine_in_use();
        m.ticks += jumps[i];
        assert_in_range(read_for(&m, 300 * US), 0, US);
        assert_false(counts(&m));
        assert_in_range(read_for(&m, 5 * MS), 0, US);
        assert_true(counts(&m));
    }
}

static void a_counter_that_changes_its_rate_is_measured_anew(void **state)
{
    static const uint64_t rates[] = {1300, 5200, 200, 15000};
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct machine m = machine_in_use();
        uint64_t window_ns = MS * m.rate / rates[i];
        m.rate = rates[i];
        assert_in_range(read_for(&m, window_ns), US, window_ns + MS);
        (void)read_for(&m, MS); /* what is early now stands still until the kernel has caught up */
        assert_in_range(read_for(&m, 5 * MS), 0, US);
        assert_true(counts(&m));
    }
}

static void a_counter_that_stands_still_is_not_used(void **state)
{
    struct machine m = machine_up_for(WEIR_HOUR);
    m.rate = 0;
    assert_in_range(read_for(&m, 10 * MS), 0, US);
    assert_false(counts(&m));
}

/* ---- an interrupted or a wrong clock ---- */

static void a_reading_that_was_interrupted_opens_no_window(void **state)
{
    struct machine m = machine_in_use();
    run(&m, MS);
    m.interrupt_ns = 4 * MS;
    uint64_t then_ns = m.ns;
    assert_int_equal(read_time(&m), then_ns); /* what the kernel said before the interruption */
    assert_in_range(read_for(&m, 5 * MS), 0, US);
    assert_true(counts(&m));
}

static void a_step_back_of_the_kernels_clock_is_followed_if_it_is_large(void **state)
{
    struct machine m = machine_in_use();
    uint64_t before_ns = read_time(&m);
    m.ns -= MS;
    run(&m, MS - 100 * US);
    assert_int_equal(read_time(&m), before_ns);
    m = machine_in_use();
    m.ns -= WEIR_HOUR; /* into another time namespace */
    run(&m, MS);
    uint64_t now_ns = m.ns;
    assert_int_equal(read_time(&m), now_ns);
    assert_in_range(read_for(&m, 5 * MS), 0, US);
}

/* ---- all of it ---- */

/* Everything that may happen to a counter between two readings but a loss of time (C4). */
static void disturb(struct machine *m)
{
    uint64_t x = (uint64_t)random();
    if (x % 10000 < 1) {
        m->ns += WEIR_HOUR;
        m->ticks = x << 32; /* suspended; somewhere else afterwards */
    } else if (x % 10000 < 3) {
        run(m, x % (3 * MS)); /* descheduled */
    } else if (x % 10000 < 5) {
        m->ticks += x % (10 * MS);
    } else if (x % 10000 < 10) {
        m->interrupt_ns = x % (2 * MS);
    }
}

static void whatever_the_counter_does_time_goes_forward_and_is_at_most_a_millisecond_off(
    void **state)
{
    struct machine m = machine_up_for(WEIR_SECOND);
    uint64_t last = 0;
    srandom(2);
    for (int i = 0; i < 1000000; i++) {
        disturb(&m);
        uint64_t interrupt_ns = m.interrupt_ns;
        uint64_t now_ns = read_time(&m);
        assert_true(now_ns >= last);
        assert_true(now_ns + MS + COUNTER_ERROR_NS + interrupt_ns >= m.ns);
        assert_true(now_ns <= m.ns + MS);
        last = now_ns;
        run(&m, (uint64_t)random() % (2 * US));
    }
    assert_in_range(m.syncs, 1000, 500000); /* most readings were counted */
}

/* ---- may it be used? ---- */

static void the_counter_is_used_only_where_the_kernel_keeps_time_by_it(void **state)
{
    static const char *const others[] = {"kvm-clock\n", "hpet\n", "tsc-early\n", "ts", "tsc", ""};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_false(counter_usable(others[i]));
    }
}

#ifdef PR_SET_TSC
static void the_counter_is_not_used_by_a_thread_that_may_not_read_it(void **state)
{
    bool before = counter_usable("tsc\n"); /* depends on the processor */
    pid_t pid = fork();
    if (pid == 0) {
        bool forbidden = prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0;
        bool usable = counter_usable("tsc\n");
        (void)prctl(PR_SET_TSC, PR_TSC_ENABLE); /* the kernel's clock needs it, too */
        _exit(forbidden && usable ? 1 : 0);
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_int_equal(counter_usable("tsc\n"), before);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_thread_asks_the_kernel_until_it_has_measured_the_rate),
        cmocka_unit_test(a_window_lasts_a_millisecond),
        cmocka_unit_test(every_rate_of_a_counter_gives_the_same_time),
        cmocka_unit_test(a_thread_that_slept_reads_the_kernels_time),
        cmocka_unit_test(a_clock_that_ntp_slews_is_followed),
        cmocka_unit_test(interrupted_readings_stay_within_the_stated_error),
        cmocka_unit_test(after_a_suspend_the_time_is_the_kernels),
        cmocka_unit_test(a_suspend_that_the_counter_slept_through_is_noticed_within_a_millisecond),
        cmocka_unit_test(a_migration_to_a_counter_a_little_off_shifts_the_time_a_little),
        cmocka_unit_test(counters_far_apart_shift_the_time_by_a_millisecond_at_most),
        cmocka_unit_test(after_a_jump_of_the_counter_the_kernel_is_asked_until_rates_agree),
        cmocka_unit_test(a_counter_that_changes_its_rate_is_measured_anew),
        cmocka_unit_test(a_counter_that_stands_still_is_not_used),
        cmocka_unit_test(a_reading_that_was_interrupted_opens_no_window),
        cmocka_unit_test(a_step_back_of_the_kernels_clock_is_followed_if_it_is_large),
        cmocka_unit_test(
            whatever_the_counter_does_time_goes_forward_and_is_at_most_a_millisecond_off),
        cmocka_unit_test(the_counter_is_used_only_where_the_kernel_keeps_time_by_it),
#ifdef PR_SET_TSC
        cmocka_unit_test(the_counter_is_not_used_by_a_thread_that_may_not_read_it),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
