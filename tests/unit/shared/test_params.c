/* Tests which limits a store can express, and the numbers that its scripts get. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shared/core/params.h"

static struct weir_options limit(int algorithm, uint64_t count, uint64_t period_ns)
{
    struct weir_options o = WEIR_OPTIONS_INIT;
    o.algorithm = algorithm;
    o.count = count;
    o.period_ns = period_ns;
    return o;
}

static struct store_params express(const struct weir_options *o)
{
    struct store_params p;
    struct weir_error error;
    if (store_params(o, &p, &error) != 0) {
        fail_msg("%s", error.text);
    }
    return p;
}

static void refused(const struct weir_options *o, int code, const char *because)
{
    struct store_params p;
    struct weir_error error;
    assert_int_equal(store_params(o, &p, &error), code);
    if (strstr(error.text, because) == NULL) {
        fail_msg("'%s' does not say '%s'", error.text, because);
    }
}

static void a_buckets_unit_is_whole_microseconds_where_it_can_be(void **state)
{
    struct weir_options o = limit(WEIR_TOKEN_BUCKET, 100, WEIR_MINUTE);
    struct store_params p = express(&o);
    assert_int_equal(p.a, 600000);
    assert_int_equal(p.b, 0);
    assert_int_equal(p.quota, 100);
    assert_int_equal(p.max_debt, 100); /* the library's default */
    o = limit(WEIR_TOKEN_BUCKET, 1, WEIR_DAY);
    assert_int_equal(express(&o).a, UINT64_C(86400000000));
}

static void elsewhere_it_is_rounded_as_the_local_one(void **state)
{
    struct weir_options o = limit(WEIR_TOKEN_BUCKET, 10000000, WEIR_SECOND);
    struct store_params p = express(&o);
    assert_int_equal(p.a, 0);
    assert_int_equal(p.b, 12800); /* 100 ns */
    o = limit(WEIR_LEAKY_BUCKET, 3, WEIR_SECOND);
    p = express(&o);
    assert_int_equal(p.a, 333333);
    /* a third of a us, rounded up to the next quarter of a nanosecond: 333.5 ns */
    assert_int_equal(p.b, 42688);
    assert_int_equal(p.quota, 1);
}

static void buckets_beyond_what_doubles_hold_are_refused(void **state)
{
    struct weir_options o = limit(WEIR_TOKEN_BUCKET, 1000000000, WEIR_SECOND);
    o.max_debt = WEIR_NO_DEBT;
    o.burst = (UINT64_C(1) << 52) / 128;
    assert_int_equal(express(&o).quota, o.burst);
    o.burst++;
    refused(&o, WEIR_EQUOTA, "more than a store can count, expected at most 35184372088832 units");
    o.burst--;
    o.max_debt = 1;
    refused(&o, WEIR_EQUOTA, "plus debt 1 ");
}

static void windows_and_logs_are_whole_microseconds(void **state)
{
    struct weir_options o = limit(WEIR_FIXED_WINDOW, 5, WEIR_SECOND);
    o.offset_ns = WEIR_MICROSECOND;
    struct store_params p = express(&o);
    assert_int_equal(p.a, 1000000);
    assert_int_equal(p.b, 1);
    o.offset_ns = 1;
    refused(&o, WEIR_ERATE, "at offset 1 ns, but a store's clock ticks in microseconds");
    o = limit(WEIR_SLIDING_LOG, 5, 1500);
    refused(&o, WEIR_ERATE, "a window of 1500 ns");
    o = limit(WEIR_SLIDING_WINDOW, 5, 1001);
    refused(&o, WEIR_ERATE, "expected multiples of 1000 ns");
    o = limit(WEIR_TOKEN_BUCKET, 5, 1001); /* a bucket has no window edges */
    (void)express(&o);
}

static void a_window_of_more_than_2_to_the_52_is_refused(void **state)
{
    struct weir_options o = limit(WEIR_FIXED_WINDOW, (UINT64_C(1) << 52) - 1, 3650 * WEIR_DAY);
    o.max_debt = WEIR_NO_DEBT;
    (void)express(&o);
    o.count++;
    refused(&o, WEIR_EQUOTA, "expected less than 4503599627370496 together");
}

static void what_the_library_refuses_is_refused_with_its_words(void **state)
{
    struct weir_options o = limit(WEIR_TOKEN_BUCKET, 0, WEIR_SECOND);
    refused(&o, WEIR_ERATE, "count is 0, expected at least 1");
    o = limit(77, 1, WEIR_SECOND);
    refused(&o, WEIR_EINVAL, "algorithm is 77");
    o = limit(WEIR_SLIDING_LOG, 65536, WEIR_SECOND);
    refused(&o, WEIR_EQUOTA, "65535");
    assert_int_equal(store_params(NULL, &(struct store_params){0}, NULL), WEIR_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_buckets_unit_is_whole_microseconds_where_it_can_be),
        cmocka_unit_test(elsewhere_it_is_rounded_as_the_local_one),
        cmocka_unit_test(buckets_beyond_what_doubles_hold_are_refused),
        cmocka_unit_test(windows_and_logs_are_whole_microseconds),
        cmocka_unit_test(a_window_of_more_than_2_to_the_52_is_refused),
        cmocka_unit_test(what_the_library_refuses_is_refused_with_its_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
