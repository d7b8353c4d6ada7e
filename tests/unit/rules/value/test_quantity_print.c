#include "base/maths.h"
#include "rules/value/quantity.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>

#define TOP UINT64_MAX
#define S UINT64_C(1000000000)
#define MIN (60 * S)
#define H (60 * MIN)
#define DAY (24 * H)

typedef const char *print_fn(uint64_t value, char *buffer);
typedef int parse_fn(struct weir_text text, uint64_t *out, struct weir_error *error);

static void expect(print_fn *print, uint64_t value, const char *text)
{
    char buffer[QUANTITY_MAX];
    assert_ptr_equal(print(value, buffer), buffer);
    assert_string_equal(buffer, text);
}

static void counts_take_the_unit_with_the_fewest_digits(void **state)
{
    expect(count_print, 0, "0");
    expect(count_print, 1, "1");
    expect(count_print, 150, "150");
    expect(count_print, 1000, "1k");
    expect(count_print, 1500, "1.5k");
    expect(count_print, 1230, "1230");
    expect(count_print, 1234, "1234");
    expect(count_print, 1500000, "1.5M");
    expect(count_print, 1234000, "1234k");
    expect(count_print, 2000000000, "2G");
    expect(count_print, UINT64_C(3000000000000), "3T");
    expect(count_print, TOP, "18446744073709551615");
}

static void sizes_are_printed_in_bytes_or_either_thousand(void **state)
{
    expect(size_print, 0, "0");
    expect(size_print, 64, "64");
    expect(size_print, 1000, "1KB");
    expect(size_print, 1024, "1KiB");
    expect(size_print, 65536, "64KiB");
    expect(size_print, 1610612736, "1.5GiB");
    expect(size_print, 1000000000, "1GB");
    expect(size_print, UINT64_C(1) << 40, "1TiB");
    expect(size_print, TOP, "18446744073709551615");
}

static void durations_are_printed_in_one_unit(void **state)
{
    expect(duration_print, 0, "0s");
    expect(duration_print, 1, "1ns");
    expect(duration_print, 5000000, "5ms");
    expect(duration_print, 500000000, "500ms");
    expect(duration_print, 1500000000, "1.5s");
    expect(duration_print, S, "1s");
    expect(duration_print, 90 * S, "90s");
    expect(duration_print, MIN, "1min");
    expect(duration_print, 90 * MIN, "90min");
    expect(duration_print, H, "1h");
    expect(duration_print, 36 * H, "36h");
    expect(duration_print, DAY, "1day");
    expect(duration_print, 7 * DAY, "1week");
    expect(duration_print, 30 * DAY, "30day");
    expect(duration_print, TOP, "18446744073709551615ns");
}

static void expect_rate(uint64_t count, uint64_t period_ns, const char *text)
{
    char buffer[QUANTITY_MAX];
    assert_ptr_equal(rate_print((struct rate){count, period_ns}, buffer), buffer);
    assert_string_equal(buffer, text);
}

static void one_unit_of_time_is_printed_without_its_number(void **state)
{
    expect_rate(5, MIN, "5/min");
    expect_rate(1000, MIN, "1k/min");
    expect_rate(1000000, DAY, "1M/day");
    expect_rate(20, 90 * S, "20/90s");
    expect_rate(1, 2 * S, "1/2s");
    expect_rate(3, 10 * S, "3/10s");
    expect_rate(3, 1500000000, "3/1.5s");
    expect_rate(10, 1, "10/ns");
    expect_rate(1, 7 * DAY, "1/week");
    expect_rate(TOP - 1, TOP, "18446744073709551614/18446744073709551615ns");
}

static void a_rate_of_the_highest_count_is_unlimited(void **state)
{
    struct rate rate;
    expect_rate(TOP, S, "unlimited");
    assert_int_equal(rate_parse_limit(TEXT(" unlimited "), &rate, NULL), 0);
    assert_true(rate.count == TOP && rate.period_ns == S);
    assert_int_equal(rate_parse(TEXT("unlimited"), 0, &rate, NULL), WEIR_EINVAL);
    expect_rate(0, MIN, "0/min");
    assert_int_equal(rate_parse_limit(TEXT("0/min"), &rate, NULL), 0);
    assert_true(rate.count == 0 && rate.period_ns == MIN);
    assert_int_equal(rate_parse(TEXT("0/min"), 0, &rate, NULL), WEIR_EINVAL);
    assert_int_equal(rate_parse_limit(TEXT("0/0s"), &rate, NULL), WEIR_EINVAL);
}

/* Numbers of any length, half of them with zeros at the end in tens or in twos. */
static uint64_t any_value(uint64_t *seed)
{
    static const uint64_t steps[] = {1,    10,   1000, 1024, 60,      3600,    86400, 604800,
                                     1000, 1024, S,    MIN,  1000000, 1 << 20, H,     7 * DAY};
    uint64_t value = unit_random(seed) >> unit_random(seed) % 64;
    uint64_t step = steps[unit_random(seed) % 16];
    return unit_random(seed) % 2 != 0 && value <= TOP / step ? value * step : value;
}

static void check_same(print_fn *print, parse_fn *parse, uint64_t value)
{
    char buffer[QUANTITY_MAX];
    struct weir_error error;
    uint64_t back = ~value;
    struct weir_text text = text_of(print(value, buffer));
    assert_in_range(text.len, 1, 24);
    if (parse(text, &back, &error) != 0 || back != value) {
        fail_msg("%llu is printed as %s", (unsigned long long)value, buffer);
    }
}

static int size(struct weir_text text, uint64_t *out, struct weir_error *error)
{
    return quantity_parse(&quantity_size, text, "a size such as 512KB or 1.5GiB", out, error);
}

static int percent(struct weir_text text, uint64_t *out, struct weir_error *error)
{
    return quantity_parse(&quantity_percent, text, "a percentage such as 25% or 12.5%", out, error);
}

static void what_is_printed_reads_back_as_the_same_value(void **state)
{
    uint64_t seed = 2;
    for (uint64_t round = 0; round < unit_scale(200000); round++) {
        uint64_t value = any_value(&seed);
        check_same(count_print, count_parse, value);
        check_same(size_print, size, value);
        check_same(duration_print, duration_parse, value);
    }
}

static void rates_read_back_as_the_same_rate(void **state)
{
    uint64_t seed = 3;
    for (uint64_t round = 0; round < unit_scale(200000); round++) {
        char buffer[QUANTITY_MAX];
        struct rate rate = {any_value(&seed), any_value(&seed)};
        struct rate back = {0};
        struct weir_error error;
        rate.count += rate.count == 0;
        rate.period_ns += rate.period_ns == 0;
        struct weir_text text = text_of(rate_print(rate, buffer));
        assert_int_equal(rate_parse(text, round % 2, &back, &error), 0);
        assert_true(back.count == rate.count && back.period_ns == rate.period_ns);
    }
}

/* n hundredths, written by hand. */
static void every_percentage_reads_back(void **state)
{
    for (unsigned n = 0; n <= 10000; n++) {
        char buffer[QUANTITY_MAX];
        uint64_t back = 0;
        (void)snprintf(buffer, sizeof buffer, "%u.%02u%%", n / 100, n % 100);
        assert_int_equal(percent(text_of(buffer), &back, NULL), 0);
        assert_int_equal(back, n);
        assert_int_equal(percent(text_of(percent_print(n, buffer)), &back, NULL), 0);
        assert_int_equal(back, n);
    }
}

static const struct {
    const char *name;
    uint64_t ns;
} units[] = {{"ns", 1},    {"us", 1000}, {"ms", 1000000}, {"s", S},
             {"min", MIN}, {"h", H},     {"day", DAY},    {"week", 7 * DAY}};

/* value / 10^places of a unit, against plain 128-bit arithmetic: true if it is whole. */
static bool check_decimal(uint64_t value, unsigned places, unsigned unit)
{
    uint64_t tens = 1;
    for (unsigned i = 0; i < places; i++) {
        tens *= 10;
    }
    char text[64];
    (void)snprintf(text, sizeof text, "%llu.%0*llu%s", (unsigned long long)(value / tens),
                   (int)places, (unsigned long long)(value % tens), units[unit].name);
    u128 product = mul_wide(value, units[unit].ns);
    bool fits = product % tens == 0 && product / tens <= TOP;
    uint64_t ns = 0;
    assert_int_equal(duration_parse(text_of(text), &ns, NULL), fits ? 0 : WEIR_EINVAL);
    assert_true(ns == (fits ? (uint64_t)(product / tens) : 0));
    return fits;
}

static void random_decimals_are_exact(void **state)
{
    uint64_t seed = 5;
    uint64_t whole = 0;
    for (uint64_t round = 0; round < unit_scale(200000); round++) {
        uint64_t value = unit_random(&seed) >> unit_random(&seed) % 64;
        unsigned places = 1 + unit_random(&seed) % 12;
        whole += check_decimal(value, places, unit_random(&seed) % 8);
    }
    assert_in_range(whole, unit_scale(200000) / 10, unit_scale(200000) * 9 / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_take_the_unit_with_the_fewest_digits),
        cmocka_unit_test(sizes_are_printed_in_bytes_or_either_thousand),
        cmocka_unit_test(durations_are_printed_in_one_unit),
        cmocka_unit_test(one_unit_of_time_is_printed_without_its_number),
        cmocka_unit_test(a_rate_of_the_highest_count_is_unlimited),
        cmocka_unit_test(what_is_printed_reads_back_as_the_same_value),
        cmocka_unit_test(rates_read_back_as_the_same_rate),
        cmocka_unit_test(every_percentage_reads_back),
        cmocka_unit_test(random_decimals_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
