/* What weir simulate measures: counted by hand, and against a slow count. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/maths.h"
#include "unit/cli/simulate_plan.h"

/* Under a sanitizer the same, less often. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ROUNDS 30
#define MILLIONS 0
#else
#define ROUNDS 300
#define MILLIONS 1
#endif

static struct sim_result ran(const struct sim_plan *plan, const struct sim_traffic *traffic,
                             size_t index)
{
    struct sim_subject subject;
    struct sim_result result = {0};
    struct weir_error error = {0};
    int e = sim_subject_open(&subject, plan, index, traffic->clients, &error);
    if (e == 0) {
        e = sim_run(&subject, traffic, plan->rate.period_ns, &result, &error);
    }
    sim_subject_close(&subject);
    if (e != 0) {
        fail_msg("%s: %s", subject.name, error.text);
    }
    return result;
}

static struct sim_result ran_shape(const struct sim_plan *plan, const char *shape, size_t index)
{
    struct sim_traffic t;
    assert_int_equal(sim_traffic_make(plan, shape_of(shape), &t, NULL), 0);
    struct sim_result r = ran(plan, &t, index);
    sim_traffic_finish(&t);
    return r;
}

/*
 * 100 per minute, 150 in the 6 s before the edge and 150 in the 6 s after it. The
 * bucket gets one token each 600 ms, 19 within the 12 s, and leaks as many; two
 * windows count 0.1 of the first hundred less after 6 s.
 */
static void at_the_edge_the_fixed_window_lets_twice_the_quota_through_and_the_others_do_not(
    void **state)
{
    static const struct {
        const char *name;
        uint64_t admitted, worst, wait_ms;
    } rows[] = {
        {"fixed_window", 400, 200, 56000}, {"sliding_window", 218, 109, 2600},
        {"sliding_log", 200, 100, 56000},  {"token_bucket", 238, 119, 560},
        {"leaky_bucket", 238, 100, 59400},
    };
    struct sim_plan plan = default_plan();
    for (size_t i = 0; i < 5; i++) {
        struct sim_result r = ran_shape(&plan, "edge", i);
        assert_string_equal(r.name, rows[i].name);
        assert_int_equal(r.offered, 600);
        assert_int_equal(r.admitted, rows[i].admitted);
        assert_int_equal(r.denied, 600 - rows[i].admitted);
        assert_int_equal(r.worst, rows[i].worst);
        assert_int_equal(r.longest_wait_ns / WEIR_MILLISECOND, rows[i].wait_ms);
        assert_int_equal(r.never, 0);
    }
}

/* With the whole window full of requests a bucket comes to burst + rate * period, less one. */
static void a_token_bucket_under_a_flood_comes_one_short_of_twice_its_quota(void **state)
{
    struct sim_plan plan = default_plan();
    plan.load = 1000;
    struct sim_result r = ran_shape(&plan, "steady", 3);
    assert_string_equal(r.name, "token_bucket");
    assert_int_equal(r.worst, 199);
    plan.burst = 10;
    r = ran_shape(&plan, "steady", 3);
    assert_int_equal(r.worst, 109);
}

/* Checks the bounds of docs/explanation/algorithms.md for any period and any traffic. */
static void nobody_exceeds_the_bound_of_its_algorithm(void **state)
{
    static const uint64_t bound[] = {200, 199, 100, 200, 100};
    struct sim_plan plan = default_plan();
    plan.duration_ns = 10 * WEIR_MINUTE;
    for (plan.clients = 1; plan.clients <= 3; plan.clients += 2) {
        for (size_t row = 0; sim_shape_name(row) != NULL; row++) {
            for (size_t i = 0; i < 5; i++) {
                struct sim_result r = ran_shape(&plan, sim_shape_name(row), i);
                assert_true(r.worst > 0 && r.worst <= bound[i]);
                assert_true(sim_bound(&plan, i, &(struct sim_traffic){.count = 0}) == bound[i]);
            }
        }
    }
}

static void what_was_offered_was_admitted_or_denied_and_is_in_the_bins(void **state)
{
    struct sim_plan plan = default_plan();
    plan.clients = 3;
    plan.duration_ns = 7 * WEIR_MINUTE / 2;
    for (size_t row = 0; sim_shape_name(row) != NULL; row++) {
        for (size_t i = 0; i < 5; i++) {
            struct sim_result r = ran_shape(&plan, sim_shape_name(row), i);
            assert_true(r.offered == r.admitted + r.denied);
            assert_true(sim_total(r.offered_in, 0, SIM_BINS) == r.offered);
            assert_true(sim_total(r.admitted_in, 0, SIM_BINS) == r.admitted);
            for (size_t bin = 0; bin < SIM_BINS; bin++) {
                assert_true(r.admitted_in[bin] <= r.offered_in[bin]);
            }
            for (size_t bin = 0; bin < SIM_BINS; bin++) {
                assert_true(r.running[bin] <= r.worst);
            }
        }
    }
}

static void a_client_has_its_quota_whatever_the_others_do(void **state)
{
    struct sim_plan plan = default_plan();
    for (size_t i = 0; i < 5; i++) {
        plan.clients = 1;
        struct sim_result one = ran_shape(&plan, "edge", i);
        plan.clients = 7;
        struct sim_result seven = ran_shape(&plan, "edge", i);
        assert_true(seven.admitted == 7 * one.admitted && seven.denied == 7 * one.denied);
        assert_true(seven.worst == one.worst);
        assert_true(seven.longest_wait_ns == one.longest_wait_ns);
    }
}

/* ---- the herd ---------------------------------------------------------- */

static void a_denied_herd_comes_back_when_the_fixed_window_resets(void **state)
{
    struct sim_plan plan = default_plan();
    struct sim_result r = ran_shape(&plan, "herd", 0);
    /* 150 at 30 s: 100 in, 50 back at 60 s; the same again at 150 s. */
    assert_int_equal(r.offered, 400);
    assert_int_equal(r.admitted, 300);
    assert_int_equal(r.denied, 100);
    assert_int_equal(r.worst, 150);
    assert_true(r.longest_wait_ns == 30 * WEIR_SECOND);
    assert_int_equal(r.offered_in[sim_bin(60 * WEIR_SECOND, plan.duration_ns)], 50);
    assert_int_equal(r.admitted_in[sim_bin(60 * WEIR_SECOND, plan.duration_ns)], 50);
}

static void a_denied_herd_asks_a_bucket_again_for_each_token(void **state)
{
    struct sim_plan plan = default_plan();
    plan.duration_ns = 2 * WEIR_MINUTE;
    struct sim_result r = ran_shape(&plan, "herd", 3);
    /* 150 ask, then the 50 that are left, 49, ... each 600 ms: one gets in each time. */
    assert_int_equal(r.admitted, 150);
    assert_int_equal(r.offered, 150 + 50 * 51 / 2);
    assert_true(r.longest_wait_ns == 50 * 600 * WEIR_MILLISECOND);
}

static void a_herd_that_comes_back_to_a_queue_waits_for_its_turn_as_well(void **state)
{
    struct sim_plan plan = default_plan();
    struct sim_result r = ran_shape(&plan, "herd", 4);
    assert_string_equal(r.name, "leaky_bucket");
    /* The last of the 50 gets into the queue after 50 steps of 600 ms, and then waits for 99. */
    assert_true(r.longest_wait_ns == (50 + 99) * 600 * WEIR_MILLISECOND);
}

/* One each minute: the second of 0 s and that of 10 s come back at 60 s, when a new one comes. */
static void who_waits_longest_is_first_among_those_who_ask_at_one_moment(void **state)
{
    struct sim_request requests[] = {
        {0, 1, 0, 0}, {0, 1, 0, 1}, {10 * WEIR_SECOND, 1, 0, 2}, {60 * WEIR_SECOND, 1, 0, 3}};
    struct sim_traffic t = {.requests = requests,
                            .count = 4,
                            .clients = 1,
                            .duration_ns = 5 * WEIR_MINUTE,
                            .come_back = true};
    struct sim_plan plan = default_plan();
    plan.rate.count = 1;
    struct sim_result r = ran(&plan, &t, 0);
    assert_int_equal(r.admitted, 4);
    assert_int_equal(r.denied, 1 + 1 + 2 + 1);
    assert_true(r.longest_wait_ns == 120 * WEIR_SECOND); /* the new one's: 60, 110 and 120 s */
}

static void who_would_come_back_after_the_end_does_not(void **state)
{
    struct sim_plan plan = default_plan();
    plan.duration_ns = WEIR_MINUTE;
    struct sim_result r = ran_shape(&plan, "herd", 0);
    assert_int_equal(r.offered, 150);
    assert_int_equal(r.denied, 50);
}

static void a_herd_that_never_ends_is_refused(void **state)
{
    struct sim_plan plan = default_plan();
    struct sim_traffic t;
    struct sim_subject subject;
    struct sim_result result;
    struct weir_error error = {0};
    if (!MILLIONS) {
        skip();
    }
    plan.rate.count = 10000;
    assert_int_equal(sim_traffic_make(&plan, shape_of("herd"), &t, NULL), 0);
    assert_int_equal(sim_subject_open(&subject, &plan, 3, 1, &error), 0);
    assert_int_equal(sim_run(&subject, &t, plan.rate.period_ns, &result, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.text, "with those that come back"));
    sim_subject_close(&subject);
    sim_traffic_finish(&t);
}

/* ---- costs ------------------------------------------------------------- */

static void a_request_counts_as_much_as_it_costs_and_one_that_never_fits_waits_for_nothing(
    void **state)
{
    struct sim_request requests[] = {{0, 60, 0, 0},
                                     {WEIR_SECOND, 50, 0, 1},
                                     {2 * WEIR_SECOND, 40, 0, 2},
                                     {3 * WEIR_SECOND, 101, 0, 3}};
    struct sim_traffic t = {
        .requests = requests, .count = 4, .clients = 1, .duration_ns = WEIR_MINUTE};
    struct sim_plan plan = default_plan();
    struct sim_result r = ran(&plan, &t, 2);
    assert_string_equal(r.name, "sliding_log");
    assert_int_equal(r.offered, 251);
    assert_int_equal(r.admitted, 100);
    assert_int_equal(r.denied, 151);
    assert_int_equal(r.never, 101);
    assert_int_equal(r.worst, 100);
    assert_true(r.longest_wait_ns == 59 * WEIR_SECOND);
}

/* ---- any window -------------------------------------------------------- */

static uint64_t slow_count(const struct sim_release *r, size_t n, uint32_t client, uint64_t at,
                           uint64_t period_ns)
{
    uint64_t units = 0;
    for (size_t i = 0; i < n; i++) {
        bool inside = r[i].time_ns <= at && at - r[i].time_ns < period_ns;
        units += r[i].client == client && inside ? r[i].units : 0;
    }
    return units;
}

/* A window is fullest when it ends at a release. */
static uint64_t slow_worst(const struct sim_release *r, size_t n, uint64_t period_ns)
{
    uint64_t worst = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t units = slow_count(r, n, r[i].client, r[i].time_ns, period_ns);
        worst = units > worst ? units : worst;
    }
    return worst;
}

/* The highest count of any client in one bin, looked at in each of its moments. */
static uint64_t slow_running(const struct sim_release *r, size_t n, size_t bin,
                             uint64_t duration_ns, uint64_t period_ns)
{
    uint64_t worst = 0;
    for (uint64_t at = 0; at < duration_ns; at++) {
        for (uint32_t client = 0; sim_bin(at, duration_ns) == bin && client < 3; client++) {
            uint64_t units = slow_count(r, n, client, at, period_ns);
            worst = units > worst ? units : worst;
        }
    }
    return worst;
}

static void the_worst_window_is_that_of_a_slow_count(void **state)
{
    uint64_t seed = 5;
    for (int round = 0; round < ROUNDS; round++) {
        struct sim_release r[60];
        size_t n = 1 + splitmix_next(&seed) % 60;
        uint64_t period = 1 + splitmix_next(&seed) % 60;
        uint64_t duration = 480;
        for (size_t i = 0; i < n; i++) { /* some at the same moment, some after the end */
            r[i] = (struct sim_release){splitmix_next(&seed) % 500, 1 + splitmix_next(&seed) % 3,
                                        (uint32_t)(splitmix_next(&seed) % 3)};
        }
        struct sim_result result = {0};
        sim_windows(r, n, period, duration, &result);
        assert_true(result.worst == slow_worst(r, n, period));
        for (size_t bin = 0; bin < SIM_BINS; bin += 1 + splitmix_next(&seed) % 20) {
            assert_true(result.running[bin] == slow_running(r, n, bin, duration, period));
        }
    }
}

static void what_leaves_a_window_at_a_moment_is_not_counted_with_what_comes_at_it(void **state)
{
    struct sim_release r[] = {{0, 5, 0}, {10, 5, 0}};
    struct sim_result result = {0};
    sim_windows(r, 2, 10, 100, &result);
    assert_int_equal(result.worst, 5);
    result = (struct sim_result){0};
    sim_windows(r, 2, 11, 100, &result);
    assert_int_equal(result.worst, 10);
    result = (struct sim_result){0};
    sim_windows(NULL, 0, 11, 100, &result);
    assert_int_equal(result.worst, 0);
}

/* ---- who cannot be asked ----------------------------------------------- */

static void a_limiter_that_would_need_gigabytes_is_refused(void **state)
{
    struct sim_plan plan = default_plan();
    struct sim_subject subject;
    struct weir_error error = {0};
    plan.rate.count = 60000;
    assert_int_equal(sim_subject_open(&subject, &plan, 2, SIM_CLIENTS_MAX, &error), WEIR_EQUOTA);
    assert_non_null(strstr(error.text, "MiB for 100000 clients, expected at most 1024"));
    sim_subject_close(&subject);
    plan.rate.count = 100000;
    assert_int_equal(sim_subject_open(&subject, &plan, 2, 1, &error), WEIR_EQUOTA);
    sim_subject_close(&subject);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            at_the_edge_the_fixed_window_lets_twice_the_quota_through_and_the_others_do_not),
        cmocka_unit_test(a_token_bucket_under_a_flood_comes_one_short_of_twice_its_quota),
        cmocka_unit_test(nobody_exceeds_the_bound_of_its_algorithm),
        cmocka_unit_test(what_was_offered_was_admitted_or_denied_and_is_in_the_bins),
        cmocka_unit_test(a_client_has_its_quota_whatever_the_others_do),
        cmocka_unit_test(a_denied_herd_comes_back_when_the_fixed_window_resets),
        cmocka_unit_test(a_denied_herd_asks_a_bucket_again_for_each_token),
        cmocka_unit_test(a_herd_that_comes_back_to_a_queue_waits_for_its_turn_as_well),
        cmocka_unit_test(who_waits_longest_is_first_among_those_who_ask_at_one_moment),
        cmocka_unit_test(who_would_come_back_after_the_end_does_not),
        cmocka_unit_test(a_herd_that_never_ends_is_refused),
        cmocka_unit_test(
            a_request_counts_as_much_as_it_costs_and_one_that_never_fits_waits_for_nothing),
        cmocka_unit_test(the_worst_window_is_that_of_a_slow_count),
        cmocka_unit_test(what_leaves_a_window_at_a_moment_is_not_counted_with_what_comes_at_it),
        cmocka_unit_test(a_limiter_that_would_need_gigabytes_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
