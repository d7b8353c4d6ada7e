/* Prometheus text read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "cli/top/metrics_text.h"

static void assert_text(struct weir_text found, const char *expected)
{
    assert_int_equal(found.len, strlen(expected));
    assert_memory_equal(found.at, expected, found.len);
}

static void samples_are_read_and_comments_passed_over(void **state)
{
    struct weir_text rest = TEXT("# HELP a_total what\n# TYPE a_total counter\na_total 3\n\n"
                                 "b{x=\"1\",y=\"two \\\"}\\\\\"} 1.5e3 1700000000000\nc +Inf");
    struct metric_sample m;
    struct weir_text value;
    assert_true(metric_next(&rest, &m));
    assert_text(m.name, "a_total");
    assert_int_equal(m.labels.len, 0);
    assert_true(m.value == 3);
    assert_true(metric_next(&rest, &m));
    assert_text(m.name, "b");
    assert_true(m.value == 1500);
    assert_true(metric_label(&m, "x", &value));
    assert_text(value, "1");
    assert_true(metric_label(&m, "y", &value));
    assert_text(value, "two \\\"}\\\\");
    assert_false(metric_label(&m, "z", &value));
    assert_true(metric_next(&rest, &m));
    assert_true(isinf(m.value));
    assert_false(metric_next(&rest, &m));
}

static void what_cannot_be_read_is_passed_over(void **state)
{
    static const char *const texts[] = {"",       "\n\n",        "a",    "a ",    "a{",
                                        "a{x=\"", "a{x=\"1\"}",  "a b",  "a NaN", " 1",
                                        "a{x} ",  "a{x=1,y=} x", "{} 1", "a 1e",  "#"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct weir_text rest = text_of(texts[i]);
        struct metric_sample m;
        assert_false(metric_next(&rest, &m));
        assert_int_equal(rest.len, 0);
    }
    struct weir_text rest = TEXT("a{x=1,\"} 2\n");
    struct metric_sample m = {.labels = TEXT("x=\"never closed\\\"")};
    struct weir_text value;
    assert_false(metric_next(&rest, &m)); /* the quote is never closed */
    m.labels = TEXT("x=\"never closed\\\"");
    assert_false(metric_label(&m, "x", &value));
}

static void assert_near(double found, double expected)
{
    assert_true(fabs(found - expected) < 1e-9);
}

static const struct metric_histogram before = {
    4, {0.001, 0.01, 0.1, INFINITY}, {100, 100, 100, 100}};

static void a_share_lies_within_its_bucket(void **state)
{
    struct metric_histogram now = {4, {0.001, 0.01, 0.1, INFINITY}, {150, 190, 200, 200}};
    assert_near(metric_quantile(&before, &now, 0.5), 0.001);
    assert_near(metric_quantile(&before, &now, 0.25), 0.0005);
    assert_near(metric_quantile(&before, &now, 0.7), 0.001 + 0.009 * 20 / 40);
    assert_near(metric_quantile(&before, &now, 1), 0.1);
}

static void nothing_new_has_no_share_and_a_new_server_begins_again(void **state)
{
    struct metric_histogram fresh = {4, {0.001, 0.01, 0.1, INFINITY}, {0, 2, 2, 2}};
    struct metric_histogram none = {0};
    assert_true(metric_quantile(&before, &before, 0.5) < 0);
    assert_true(metric_quantile(NULL, &none, 0.5) < 0);
    assert_near(metric_quantile(&before, &fresh, 0.5), 0.001 + 0.009 / 2);
    assert_near(metric_quantile(NULL, &fresh, 0.5), 0.001 + 0.009 / 2);
}

static void beyond_the_last_bound_it_is_at_least_that(void **state)
{
    struct metric_histogram now = {2, {0.5, INFINITY}, {1, 100}};
    assert_near(metric_quantile(NULL, &now, 0.99), 0.5);
}

static void more_buckets_than_fit_are_left_out(void **state)
{
    struct metric_histogram h = {0};
    for (unsigned i = 0; i < METRIC_BUCKETS_MAX + 10; i++) {
        metric_histogram_put(&h, i, i);
    }
    assert_int_equal(h.count, METRIC_BUCKETS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_are_read_and_comments_passed_over),
        cmocka_unit_test(what_cannot_be_read_is_passed_over),
        cmocka_unit_test(a_share_lies_within_its_bucket),
        cmocka_unit_test(nothing_new_has_no_share_and_a_new_server_begins_again),
        cmocka_unit_test(beyond_the_last_bound_it_is_at_least_that),
        cmocka_unit_test(more_buckets_than_fit_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
