/* Tests the breaker alone: C5 of redis/client.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "redis/breaker.h"
#include "support/engine/threads_run.h"

#define MS 1000000ull

static struct breakers *all;
static struct breaker *b;

static int begin(void **state)
{
    all = breakers_create(7);
    b = breaker_find(all, "one:1");
    return 0;
}

static int finish(void **state)
{
    breakers_destroy(all);
    return 0;
}

static void fail_times(unsigned n, uint64_t now)
{
    while (n-- > 0) {
        breaker_bad(b, now);
    }
}

static void five_failures_in_a_row_open_it(void **state)
{
    fail_times(4, 0);
    breaker_good(b, 1, 0);
    fail_times(4, 0);
    assert_false(breaker_is_open(b));
    assert_true(breaker_due(b) == UINT64_MAX);
    fail_times(1, 0);
    assert_true(breaker_is_open(b));
}

/* Alternates `good_each` successes and one failure, so that there are never five failures in a
 * row. */
static bool opens_at(unsigned bad, unsigned good_each, uint64_t step)
{
    uint64_t now = 1000 * MS;
    for (unsigned i = 0; i < bad; i++, now += step) {
        breaker_good(b, good_each, now);
        breaker_bad(b, now);
    }
    return breaker_is_open(b);
}

static void half_of_twenty_within_a_second_open_it(void **state)
{
    assert_false(opens_at(9, 1, 0)); /* 18 are too few */
    breaker_good(b, 1, 1000 * MS);
    breaker_bad(b, 1000 * MS);
    assert_true(breaker_is_open(b));
}

static void less_than_half_do_not(void **state)
{
    assert_false(opens_at(1000, 2, 0));
}

static void failures_of_more_than_a_second_ago_are_forgotten(void **state)
{
    assert_false(opens_at(1000, 1, 125 * MS)); /* 16 within any second */
    finish(NULL);
    begin(NULL);
    assert_true(opens_at(1000, 1, 60 * MS));
}

static void a_probe_comes_after_a_random_part_that_doubles_up_to_five_seconds(void **state)
{
    static const uint64_t most[] = {100, 200, 400, 800, 1600, 3200, 5000, 5000, 5000};
    for (unsigned k = 0; k < 9; k++) {
        uint64_t least_seen = UINT64_MAX;
        uint64_t most_seen = 0;
        for (unsigned seed = 0; seed < 300; seed++) {
            breakers_destroy(all);
            all = breakers_create(seed * 1000003);
            b = breaker_find(all, "one:1");
            uint64_t now = 77 * MS;
            fail_times(5, now);
            for (unsigned i = 0; i < k; i++) {
                now = breaker_due(b);
                assert_true(breaker_may_probe(b, now));
                breaker_probed(b, false, now);
            }
            uint64_t wait = breaker_due(b) - now;
            least_seen = wait < least_seen ? wait : least_seen;
            most_seen = wait > most_seen ? wait : most_seen;
        }
        assert_true(most_seen <= most[k] * MS);
        assert_true(most_seen > most[k] * MS * 9 / 10); /* over the whole interval */
        assert_true(least_seen < most[k] * MS / 10);    /* from its beginning */
    }
}

static void there_is_one_probe_at_a_time(void **state)
{
    assert_false(breaker_may_probe(b, 0)); /* closed */
    fail_times(5, 0);
    uint64_t due = breaker_due(b);
    assert_true(due == 0 || !breaker_may_probe(b, due - 1));
    assert_true(breaker_may_probe(b, due));
    assert_false(breaker_may_probe(b, due + 5000 * MS));
    breaker_probed(b, false, due + 5000 * MS);
    assert_true(breaker_is_open(b));
    assert_true(breaker_may_probe(b, breaker_due(b)));
}

static void a_probe_that_never_ends_is_left_to_other_threads(void **state)
{
    fail_times(5, 0);
    uint64_t due = breaker_due(b);
    assert_true(breaker_may_probe(b, due));
    assert_true(breaker_may_probe(b, due + 10000 * MS));
}

static void only_a_good_probe_closes_it(void **state)
{
    fail_times(5, 0);
    breaker_good(b, 1000, 0);
    assert_true(breaker_is_open(b));
    assert_true(breaker_may_probe(b, breaker_due(b)));
    breaker_probed(b, true, 1);
    assert_false(breaker_is_open(b));
    fail_times(4, 1); /* earlier failures are forgotten */
    assert_false(breaker_is_open(b));
}

static void each_endpoint_has_its_own(void **state)
{
    struct breaker_seen seen[3];
    struct breaker *other = breaker_find(all, "two:2");
    assert_ptr_not_equal(other, b);
    assert_ptr_equal(breaker_find(all, "one:1"), b);
    fail_times(5, 0);
    assert_false(breaker_is_open(other));
    assert_int_equal(breakers_see(all, seen, 3), 2);
    assert_string_equal(seen[0].endpoint, "one:1");
    assert_true(seen[0].open && !seen[1].open);
    assert_int_equal(breakers_count_open(all), 1);
}

static void endpoints_that_take_calls_are_marked(void **state)
{
    struct breaker_seen seen[2];
    breaker_for_calls(breaker_find(all, "two:2"));
    assert_int_equal(breakers_see(all, seen, 2), 2);
    assert_true(!seen[0].calls && seen[1].calls);
}

/* A store in containers gets another address after each restart. */
static void addresses_that_come_and_go_do_not_use_the_places_up(void **state)
{
    struct breaker_seen seen[2];
    fail_times(5, 0);
    for (unsigned i = 0; i < 3 * BREAKERS_MAX; i++) {
        char name[20];
        (void)snprintf(name, sizeof name, "host%u:1", i);
        struct breaker *one = breaker_find(all, name);
        assert_non_null(one);
        assert_false(breaker_is_open(one));
        for (unsigned k = 0; k < 5; k++) {
            breaker_bad(one, 0);
        }
        breaker_leave(one);
    }
    assert_int_equal(breakers_see(all, seen, 2), 1);
    assert_string_equal(seen[0].endpoint, "one:1");
    assert_ptr_equal(breaker_find(all, "one:1"), b);
    assert_true(breaker_is_open(b));
    assert_true(breaker_is_open(breaker_find(all, "host3071:1"))); /* what was learnt is kept */
}

static void the_number_of_endpoints_and_the_length_of_names_are_bounded(void **state)
{
    char name[301];
    for (unsigned i = 1; i < BREAKERS_MAX; i++) {
        (void)snprintf(name, sizeof name, "host%u:1", i);
        assert_non_null(breaker_find(all, name));
    }
    assert_null(breaker_find(all, "one:2"));
    assert_ptr_equal(breaker_find(all, "one:1"), b);
    memset(name, 'x', 300);
    name[300] = 0;
    assert_null(breaker_find(all, name));
}

/* ---- many threads ---- */

enum { THREADS = 8 };

static uint64_t probes;
static uint64_t probing;

/* Time stands still: a probe is always due, and no prober can appear to have died. */
static void probe_and_fail(unsigned me, void *arg)
{
    unsigned rounds = (unsigned)THREADS_ROUNDS(4000, 2000, 1000);
    for (unsigned i = 0; i < rounds; i++) {
        char name[20];
        (void)snprintf(name, sizeof name, "host:%u", i % 100);
        struct breaker *other = breaker_find(all, name);
        threads_require(other != NULL);
        if (i >= 100) {
            breaker_leave(other); /* each thread holds each once */
        }
        breaker_bad(b, 0);
        if (breaker_may_probe(b, 5001 * MS)) {
            threads_require(threads_add(&probing, 1) == 0);
            (void)threads_add(&probes, 1);
            (void)threads_add(&probing, UINT64_MAX);
            breaker_probed(b, i % 3 == 0, 0);
        }
    }
}

static void threads_never_probe_at_once_and_agree_on_endpoints(void **state)
{
    struct breaker_seen seen;
    threads_run(THREADS, probe_and_fail, NULL);
    assert_true(probes > 0);
    assert_int_equal(breakers_see(all, &seen, 1), 101);
}

int main(void)
{
#define STORY(name) cmocka_unit_test_setup_teardown(name, begin, finish)
    const struct CMUnitTest tests[] = {
        STORY(five_failures_in_a_row_open_it),
        STORY(half_of_twenty_within_a_second_open_it),
        STORY(less_than_half_do_not),
        STORY(failures_of_more_than_a_second_ago_are_forgotten),
        STORY(a_probe_comes_after_a_random_part_that_doubles_up_to_five_seconds),
        STORY(there_is_one_probe_at_a_time),
        STORY(a_probe_that_never_ends_is_left_to_other_threads),
        STORY(only_a_good_probe_closes_it),
        STORY(each_endpoint_has_its_own),
        STORY(endpoints_that_take_calls_are_marked),
        STORY(addresses_that_come_and_go_do_not_use_the_places_up),
        STORY(the_number_of_endpoints_and_the_length_of_names_are_bounded),
        STORY(threads_never_probe_at_once_and_agree_on_endpoints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
