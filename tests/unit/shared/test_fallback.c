/* Tests a node's part of a limit: exactly rate/N, and a burst of max(1, floor(B/N)). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shared/store/fallback.h"
#include "store_fakes.h"

static struct weir_options whole(int algorithm, uint64_t count, uint64_t period_ns)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.algorithm = algorithm;
    o.count = count;
    o.period_ns = period_ns;
    return o;
}

static struct weir_options divide(const struct weir_options *o, uint64_t nodes)
{
    struct weir_options part;
    assert_true(fallback_options(o, nodes, &part));
    return part;
}

/* Checks that count/period of the part is that of the whole divided by N. The period is rounded up
 * to ns, so the rate is never higher. */
static void assert_rate(const struct weir_options *o, const struct weir_options *part,
                        uint64_t nodes)
{
    unsigned __int128 a = (unsigned __int128)part->count * o->period_ns * nodes;
    unsigned __int128 b = (unsigned __int128)o->count * part->period_ns;
    assert_true(a <= b);
    assert_true(b - a < o->count);
}

static void a_bucket_keeps_its_units_and_takes_n_times_as_long(void **state)
{
    struct weir_options o = whole(WEIR_TOKEN_BUCKET, 100, WEIR_SECOND);
    struct weir_options part = divide(&o, 7);
    assert_rate(&o, &part, 7);
    assert_int_equal(part.burst, 14);
    o.burst = 3;
    assert_int_equal(divide(&o, 7).burst, 1);
}

static void a_queue_keeps_at_least_who_is_being_served(void **state)
{
    struct weir_options o = whole(WEIR_LEAKY_BUCKET, 10, WEIR_SECOND);
    o.queue = 9;
    struct weir_options part = divide(&o, 3);
    assert_rate(&o, &part, 3);
    assert_int_equal(part.queue, 2);
    assert_int_equal(divide(&o, 100).queue, 0);
    o.undelayed = 8;
    assert_int_equal(divide(&o, 3).undelayed, 2);
    assert_int_equal(divide(&o, 100).undelayed, 0);
}

static void a_window_that_does_not_divide_is_shorter(void **state)
{
    static const int algorithms[] = {WEIR_FIXED_WINDOW, WEIR_SLIDING_WINDOW, WEIR_SLIDING_LOG};
    for (unsigned i = 0; i < 3; i++) {
        for (uint64_t count = 1; count < 40; count++) {
            for (uint64_t nodes = 1; nodes < 50; nodes++) {
                struct weir_options o = whole(algorithms[i], count, WEIR_SECOND);
                struct weir_options part = divide(&o, nodes);
                assert_rate(&o, &part, nodes);
                assert_int_equal(part.count, count / nodes > 0 ? count / nodes : 1);
            }
        }
    }
}

/* All parts together allow at most the whole count in a calendar month, unless a part would have
 * less than one unit: then it has one in a longer time. */
static void a_part_of_a_calendar_month_has_calendar_months(void **state)
{
    struct weir_options o = whole(WEIR_FIXED_WINDOW, 100, WEIR_MONTH);
    assert_int_equal(divide(&o, 7).period_ns, WEIR_MONTH);
    assert_int_equal(divide(&o, 7).count, 14);
    struct weir_options part = divide(&o, 300);
    assert_int_equal(part.count, 1);
    assert_int_equal(part.period_ns, 3 * WEIR_MONTH);
}

static void a_part_that_would_take_too_long_cannot_be_expressed(void **state)
{
    struct weir_options o = whole(WEIR_TOKEN_BUCKET, 1, 36500 * WEIR_DAY);
    struct weir_options part;
    assert_false(fallback_options(&o, UINT64_C(1) << 40, &part));
    o.algorithm = WEIR_FIXED_WINDOW;
    assert_false(fallback_options(&o, UINT64_C(1) << 40, &part));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bucket_keeps_its_units_and_takes_n_times_as_long),
        cmocka_unit_test(a_queue_keeps_at_least_who_is_being_served),
        cmocka_unit_test(a_window_that_does_not_divide_is_shorter),
        cmocka_unit_test(a_part_of_a_calendar_month_has_calendar_months),
        cmocka_unit_test(a_part_that_would_take_too_long_cannot_be_expressed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
