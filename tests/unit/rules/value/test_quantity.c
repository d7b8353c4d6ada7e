#include "rules/value/quantity.h"
#include "support/engine/unit_limiter.h"

#include <inttypes.h>
#include <stdio.h>

#define TOP UINT64_MAX
#define US UINT64_C(1000)
#define MS (1000 * US)
#define S (1000 * MS)
#define MIN (60 * S)
#define H (60 * MIN)
#define DAY (24 * H)
#define WEEK (7 * DAY)

#define ZEROS_40 "0000000000000000000000000000000000000000"
#define NINES_40 "9999999999999999999999999999999999999999"

typedef int whole_fn(struct weir_text text, uint64_t *out, struct weir_error *error);

struct whole_row {
    const char *text;
    uint64_t value;
};

static void expect_one(whole_fn *parse, const struct whole_row *row, const char *behind)
{
    char longer[128];
    struct weir_error error = {0};
    uint64_t out = 1;
    (void)snprintf(longer, sizeof longer, "%s%s", row->text, behind);
    int e = parse((struct weir_text){longer, strlen(row->text)}, &out, &error);
    if (e != 0 || out != row->value) {
        fail_msg("'%s': %d, %" PRIu64 " %s", row->text, e, out, error.text);
    }
}

/* All rows are read as said, whatever stands in memory behind the text. */
static void expect(whole_fn *parse, const struct whole_row *rows, size_t n)
{
    static const char *const behind[] = {"", "9", "k", "s", "_1", ".5", "%", " ", "/"};
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < sizeof behind / sizeof behind[0]; k++) {
            expect_one(parse, &rows[i], behind[k]);
        }
    }
}

#define EXPECT(parse, ...)                                                                         \
    do {                                                                                           \
        const struct whole_row rows[] = {__VA_ARGS__};                                             \
        expect(parse, rows, sizeof rows / sizeof rows[0]);                                         \
    } while (0)

struct refused_row {
    struct weir_text text;
    const char *error;
};

static void refuse(whole_fn *parse, const struct refused_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct weir_error error = {0};
        uint64_t out = 77;
        assert_int_equal(parse(rows[i].text, &out, &error), WEIR_EINVAL);
        assert_int_equal(error.code, WEIR_EINVAL);
        assert_string_equal(error.text, rows[i].error);
        assert_int_equal(out, 77);
        assert_int_equal(parse(rows[i].text, &out, NULL), WEIR_EINVAL);
    }
}

#define REFUSE(parse, ...)                                                                         \
    do {                                                                                           \
        const struct refused_row rows[] = {__VA_ARGS__};                                           \
        refuse(parse, rows, sizeof rows / sizeof rows[0]);                                         \
    } while (0)

/* ---- counts ---- */

static void counts_have_decimals_and_thousands(void **state)
{
    EXPECT(count_parse, {"0", 0}, {"1", 1}, {"100", 100}, {"1k", 1000}, {"1K", 1000},
           {"1.5k", 1500}, {"1.5M", 1500000}, {"2G", 2000000000}, {"3T", 3000000000000},
           {"1_000_000", 1000000}, {"1_0", 10}, {"0.001k", 1}, {"1 k", 1000}, {" 12\t", 12},
           {"1.234_567M", 1234567}, {"0.5k", 500}, {"5.0", 5}, {"0k", 0}, {"0.0", 0});
}

static void zeros_around_a_number_change_nothing(void **state)
{
    EXPECT(count_parse, {"007", 7}, {"000", 0}, {ZEROS_40 "5", 5}, {"1." ZEROS_40, 1},
           {"1.50" ZEROS_40 "k", 1500}, {"0_0_7", 7}, {"1.5_0_0k", 1500});
}

static void the_largest_count_has_64_bits(void **state)
{
    EXPECT(count_parse, {"18446744073709551615", TOP}, {"18446744073709551.615k", TOP},
           {"18446744.073709551615T", TOP});
    REFUSE(count_parse,
           {TEXT("18446744073709551616"),
            "found '18446744073709551616', expected a whole number such as 100 or 1.5k; "
            "it does not fit into 64 bits"},
           {TEXT("18446744073709551.616k"),
            "found '18446744073709551.616k', expected a whole number such as 100 or 1.5k; "
            "it does not fit into 64 bits"},
           {TEXT("340282366920938463463374607431768211456"), /* 2^128 */
            "found '340282366920938463463374607431768211456', expected a whole number such as 100 "
            "or 1.5k; it does not fit into 64 bits"},
           {TEXT("340282366920938463463374607431768211455T"),
            "found '340282366920938463463374607431768211455'..., expected a whole number such as "
            "100 or 1.5k; it does not fit into 64 bits"},
           {TEXT(NINES_40), "found '999999999999999999999999999999999999999'..., expected a whole "
                            "number such as 100 or 1.5k; it does not fit into 64 bits"});
}

#define COUNT "expected a whole number such as 100 or 1.5k; "

static void a_bad_count_is_told_what_is_wrong_with_it(void **state)
{
    REFUSE(count_parse, {TEXT(""), "found nothing, expected a whole number such as 100 or 1.5k"},
           {{NULL, 0}, "found nothing, expected a whole number such as 100 or 1.5k"},
           {TEXT("  "), "found '  ', " COUNT "a number is missing"},
           {TEXT("1.5"), "found '1.5', " COUNT "it is not whole"},
           {TEXT("1.0001k"), "found '1.0001k', " COUNT "it is not whole"},
           {TEXT("-5"), "found '-5', " COUNT "a number is missing at '-5'"},
           {TEXT("+5"), "found '+5', " COUNT "a number is missing at '+5'"},
           {TEXT(".5k"), "found '.5k', " COUNT "a number is missing at '.5k'"},
           {TEXT("5.k"), "found '5.k', " COUNT "a digit is missing at 'k'"},
           {TEXT("5."), "found '5.', " COUNT "a digit is missing"},
           {TEXT("k"), "found 'k', " COUNT "a number is missing at 'k'"},
           {TEXT("1m"), "found '1m', " COUNT "unknown unit 'm' (k, M, G, T)"},
           {TEXT("1azAZ\x80\xff~"),
            "found '1azAZ\\x80\\xff~', " COUNT "unknown unit 'azAZ\\x80\\xff' (k, M, G, T)"},
           {TEXT("1kk"), "found '1kk', " COUNT "unknown unit 'kk' (k, M, G, T)"},
           {TEXT("1e3"), "found '1e3', " COUNT "unknown unit 'e' (k, M, G, T)"},
           {TEXT("0x10"), "found '0x10', " COUNT "unknown unit 'x' (k, M, G, T)"},
           {TEXT("1k5"), "found '1k5', " COUNT "unexpected '5'"},
           {TEXT("1,000"), "found '1,000', " COUNT "unexpected ',000'"},
           {TEXT("1 000"), "found '1 000', " COUNT "unexpected '000'"},
           {TEXT("1__0"), "found '1__0', " COUNT "unexpected '__0'"},
           {TEXT("1_"), "found '1_', " COUNT "unexpected '_'"},
           {TEXT("_1"), "found '_1', " COUNT "a number is missing at '_1'"},
           {TEXT("1._5k"), "found '1._5k', " COUNT "a digit is missing at '_5k'"},
           {TEXT("1.5.5"), "found '1.5.5', " COUNT "unexpected '.5'"},
           {TEXT("5\n"), "found '5\\x0a', " COUNT "unexpected '\\x0a'"});
}

static void bytes_that_only_look_like_digits_are_shown_as_they_are(void **state)
{
    REFUSE(
        count_parse, {TEXT("5\0"), "found '5\\x00', " COUNT "unexpected '\\x00'"},
        {TEXT("\0"), "found '\\x00', " COUNT "a number is missing at '\\x00'"},
        {TEXT("5\0k"), "found '5\\x00k', " COUNT "unexpected '\\x00k'"},
        /* fullwidth and Arabic 5, a non-breaking space, the minus of typography, an escape */
        {TEXT("\xef\xbc\x95"),
         "found '\\xef\\xbc\\x95', " COUNT "a number is missing at '\\xef\\xbc\\x95'"},
        {TEXT("1\xd9\xa5"), "found '1\\xd9\\xa5', " COUNT "unknown unit '\\xd9\\xa5' (k, M, G, T)"},
        {TEXT("1\xc2\xa0k"),
         "found '1\\xc2\\xa0k', " COUNT "unknown unit '\\xc2\\xa0k' (k, M, G, T)"},
        {TEXT("\xe2\x88\x92"
              "5"),
         "found '\\xe2\\x88\\x925', " COUNT "a number is missing at '\\xe2\\x88\\x925'"},
        {TEXT("1\x1b[2J"), "found '1\\x1b[2J', " COUNT "unexpected '\\x1b[2J'"},
        {TEXT("1\xff"), "found '1\\xff', " COUNT "unknown unit '\\xff' (k, M, G, T)"});
}

static void an_error_text_is_whole_however_long_the_input(void **state)
{
    static char input[5000];
    const unsigned char fill[] = {'9', 'x', 0, 0xff, '_', '/', '.', '%'};
    for (size_t i = 0; i < sizeof fill; i++) {
        memset(input, fill[i], sizeof input);
        struct weir_error error;
        uint64_t out;
        assert_int_equal(duration_parse((struct weir_text){input, sizeof input}, &out, &error),
                         WEIR_EINVAL);
        assert_in_range(strlen(error.text), 50, sizeof error.text - 2);
        assert_non_null(strstr(error.text, "'..., expected a duration such as 90s or 1h30m; "));
    }
}

/* ---- sizes ---- */

#define SIZE "expected a size such as 512KB or 1.5GiB; "

static int size(struct weir_text text, uint64_t *out, struct weir_error *error)
{
    return quantity_parse(&quantity_size, text, "a size such as 512KB or 1.5GiB", out, error);
}

static void sizes_tell_1000_from_1024(void **state)
{
    EXPECT(size, {"0", 0}, {"64", 64}, {"64B", 64}, {"512KB", 512000}, {"512kB", 512000},
           {"1KiB", 1024}, {"1GB", 1000000000}, {"1.5GiB", 1610612736}, {"1MB", 1000000},
           {"1MiB", 1048576}, {"2TB", 2000000000000}, {"1TiB", UINT64_C(1) << 40}, {"0.5KiB", 512},
           {" 1 GB ", 1000000000}, {"17592186044415.99999904632568359375MiB", TOP},
           {"18446744073709551615B", TOP});
}

static void a_size_is_a_whole_number_of_bytes_with_a_clear_unit(void **state)
{
    const char *why = "found '64M', " SIZE "unknown unit 'M' (KB, KiB, MB, MiB, GB, GiB, TB, TiB)";
    REFUSE(size, {TEXT("64M"), why},
           {TEXT("1.5"), "found '1.5', " SIZE "it is not a whole number of bytes"},
           {TEXT("0.0001KiB"), "found '0.0001KiB', " SIZE "it is not a whole number of bytes"},
           {TEXT("16777216TiB"), "found '16777216TiB', " SIZE "it does not fit into 64 bits"},
           {TEXT("-1KB"), "found '-1KB', " SIZE "a number is missing at '-1KB'"},
           {TEXT(""), "found nothing, expected a size such as 512KB or 1.5GiB"},
           {TEXT("0." ZEROS_40 "1TB"),
            "found '0.0000000000000000000000000000000000000'..., " SIZE "it has too many digits"});
}

/* ---- durations ---- */

static void durations_have_units(void **state)
{
    EXPECT(duration_parse, {"0s", 0}, {"1ns", 1}, {"5us", 5 * US}, {"5ms", 5 * MS}, {"90s", 90 * S},
           {"1m", MIN}, {"1min", MIN}, {"1h", H}, {"1d", DAY}, {"1day", DAY}, {"1w", WEEK},
           {"1week", WEEK}, {"1 day", DAY}, {"0.5s", 500 * MS}, {"1.5h", 90 * MIN},
           {"0.000000001s", 1}, {"5\xc2\xb5s", 5 * US}, {"5\xce\xbcs", 5 * US}, {"1_000ms", S},
           {" 2 h ", 2 * H}, {"0.1w", WEEK / 10}, {"05s", 5 * S});
}

static void units_have_long_names(void **state)
{
    EXPECT(duration_parse, {"1 nanosecond", 1}, {"2 nanoseconds", 2}, {"1 microsecond", US},
           {"2 microseconds", 2 * US}, {"1 millisecond", MS}, {"2 milliseconds", 2 * MS},
           {"1sec", S}, {"2secs", 2 * S}, {"1 second", S}, {"2 seconds", 2 * S}, {"2mins", 2 * MIN},
           {"1 minute", MIN}, {"2 minutes", 2 * MIN}, {"1hr", H}, {"2hrs", 2 * H}, {"1 hour", H},
           {"2 hours", 2 * H}, {"30day", 30 * DAY}, {"2 days", 2 * DAY}, {"2 weeks", 2 * WEEK},
           {"1wk", WEEK}, {"3nsec", 3}, {"3usec", 3 * US}, {"3msec", 3 * MS});
}

static void parts_of_a_duration_add_up(void **state)
{
    EXPECT(duration_parse, {"1h30m", 90 * MIN}, {"1h 30m", 90 * MIN}, {"1h05m", 65 * MIN},
           {"1w2d3h4m5s6ms7us8ns", WEEK + 2 * DAY + 3 * H + 4 * MIN + 5 * S + 6 * MS + 7 * US + 8},
           {"1.5h0.5m", 90 * MIN + 30 * S}, {"1 hour 30 minutes", 90 * MIN}, {"0h1s", S});
}

#define DURATION "expected a duration such as 90s or 1h30m; "
#define TIMES " (ns, us, ms, s, min, h, day, week)"

static void a_bad_duration_is_told_what_is_wrong_with_it(void **state)
{
    REFUSE(
        duration_parse, {TEXT(""), "found nothing, expected a duration such as 90s or 1h30m"},
        {TEXT("90"), "found '90', " DURATION "a unit is missing"},
        {TEXT("0"), "found '0', " DURATION "a unit is missing"},
        {TEXT("1h30"), "found '1h30', " DURATION "a unit is missing"},
        {TEXT("s"), "found 's', " DURATION "a number is missing at 's'"},
        {TEXT("-5s"), "found '-5s', " DURATION "a number is missing at '-5s'"},
        {TEXT("1h-5m"), "found '1h-5m', " DURATION "unexpected '-5m'"},
        {TEXT("5M"), "found '5M', " DURATION "unknown unit 'M'" TIMES},
        {TEXT("5S"), "found '5S', " DURATION "unknown unit 'S'" TIMES},
        {TEXT("5%"), "found '5%', " DURATION "a unit is missing at '%'"},
        {TEXT("5 fortnights"), "found '5 fortnights', " DURATION "unknown unit 'fortnights'" TIMES},
        {TEXT("30m1h"),
         "found '30m1h', " DURATION "larger units must come first, each once, not '1h'"},
        {TEXT("1m30min"),
         "found '1m30min', " DURATION "larger units must come first, each once, not '30min'"},
        {TEXT("0.5ns"), "found '0.5ns', " DURATION "it is finer than 1ns"},
        {TEXT("0.0000000001s"), "found '0.0000000001s', " DURATION "it is finer than 1ns"},
        {TEXT("0.33333333333333333333333333333333333333h"),
         "found '0.3333333333333333333333333333333333333'..., " DURATION "it is finer than 1ns"},
        {TEXT("333.33333333333333333333333333333333333w"),
         "found '333.33333333333333333333333333333333333'..., " DURATION "it has too many digits"},
        {TEXT("1h\0"), "found '1h\\x00', " DURATION "unexpected '\\x00'"});
}

static void month_and_year_are_refused_with_a_hint(void **state)
{
    const char *names[] = {"mo", "mon", "mth", "month", "months", "y", "yr", "year", "years"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char text[32];
        char expected[200];
        struct weir_error error;
        uint64_t ns;
        struct rate rate;
        (void)snprintf(text, sizeof text, "1 %s", names[i]);
        (void)snprintf(expected, sizeof expected,
                       "found '%s', " DURATION "month and year vary in length: use 30day or 365day",
                       text);
        assert_int_equal(duration_parse(text_of(text), &ns, &error), WEIR_EINVAL);
        assert_string_equal(error.text, expected);
        (void)snprintf(text, sizeof text, names[i][0] == 'm' ? "5/2%s" : "5/%s", names[i]);
        (void)snprintf(expected, sizeof expected,
                       "found '%s', expected a count per period such as 5/min; "
                       "month and year vary in length: use 30day or 365day",
                       text);
        assert_int_equal(rate_parse(text_of(text), 0, &rate, &error), WEIR_EINVAL);
        assert_string_equal(error.text, expected);
    }
}

static void a_rate_per_month_is_a_whole_count_per_calendar_month(void **state)
{
    struct rate rate;
    struct weir_error error;
    char text[QUANTITY_MAX];
    assert_int_equal(rate_parse(TEXT("100k / month "), 0, &rate, &error), 0);
    assert_int_equal(rate.count, 100000);
    assert_int_equal(rate.period_ns, WEIR_MONTH);
    assert_string_equal(rate_print(rate, text), "100k/month");
    assert_int_equal(rate_parse(TEXT("1.5/month"), 0, &rate, &error), WEIR_EINVAL);
    assert_string_equal(error.text, "found '1.5/month', expected a count per period such as 5/min; "
                                    "a count per month must be whole");
}

static void the_longest_duration_is_584_years(void **state)
{
    EXPECT(duration_parse, {"18446744073709551615ns", TOP}, {"18446744073.709551615s", TOP},
           {"213503day23h34min33.709551615s", TOP});
    REFUSE(duration_parse,
           {TEXT("18446744073.709551616s"),
            "found '18446744073.709551616s', " DURATION "it does not fit into 64 bits"},
           {TEXT("18446744073s709551616ns"),
            "found '18446744073s709551616ns', " DURATION "it does not fit into 64 bits"},
           {TEXT("30501w"), "found '30501w', " DURATION "it does not fit into 64 bits"},
           {TEXT("340282366920938463463374607431768211455w"),
            "found '340282366920938463463374607431768211455'..., " DURATION
            "it does not fit into 64 bits"});
}

/* ---- percentages ---- */

static int percent(struct weir_text text, uint64_t *out, struct weir_error *error)
{
    return quantity_parse(&quantity_percent, text, "a percentage such as 25% or 12.5%", out, error);
}

static void percentages_are_hundredths(void **state)
{
    EXPECT(percent, {"0", 0}, {"0%", 0}, {"100", 10000}, {"100%", 10000}, {"25%", 2500},
           {"12.5%", 1250}, {"12.5", 1250}, {"0.01%", 1}, {"99.99%", 9999}, {" 25 % ", 2500},
           {"100." ZEROS_40 "%", 10000}, {"0.25", 25}, {"1.2500%", 125});
}

#define PERCENT "expected a percentage such as 25% or 12.5%; "

static void a_percentage_ends_at_100_and_at_two_places(void **state)
{
    REFUSE(percent, {TEXT(""), "found nothing, expected a percentage such as 25% or 12.5%"},
           {TEXT("%"), "found '%', " PERCENT "a number is missing at '%'"},
           {TEXT("100.5"), "found '100.5', " PERCENT "it is more than 100%"},
           {TEXT("100.01%"), "found '100.01%', " PERCENT "it is more than 100%"},
           {TEXT("101"), "found '101', " PERCENT "it is more than 100%"},
           {TEXT("18446744073709551616"),
            "found '18446744073709551616', " PERCENT "it is more than 100%"},
           {TEXT(NINES_40), "found '999999999999999999999999999999999999999'..., " PERCENT
                            "it does not fit into 64 bits"},
           {TEXT("0.001%"), "found '0.001%', " PERCENT "it is finer than 0.01%"},
           {TEXT("33.3333333333333333333333333333333333"),
            "found '33.3333333333333333333333333333333333', " PERCENT "it is finer than 0.01%"},
           {TEXT("-1%"), "found '-1%', " PERCENT "a number is missing at '-1%'"},
           {TEXT("25%%"), "found '25%%', " PERCENT "unexpected '%'"},
           {TEXT("25k"), "found '25k', " PERCENT "unexpected 'k'"},
           {TEXT("1/4"), "found '1/4', " PERCENT "unexpected '/4'"});
}

/* ---- rates ---- */

struct rate_row {
    const char *text;
    struct rate rate;
};

static void expect_rates(const struct rate_row *rows, size_t n, uint64_t bare_ns)
{
    for (size_t i = 0; i < n; i++) {
        struct weir_error error = {0};
        struct rate out = {0};
        int e = rate_parse(text_of(rows[i].text), bare_ns, &out, &error);
        if (e != 0 || out.count != rows[i].rate.count || out.period_ns != rows[i].rate.period_ns) {
            fail_msg("'%s': %d, %" PRIu64 " per %" PRIu64 " ns %s", rows[i].text, e, out.count,
                     out.period_ns, error.text);
        }
    }
}

#define EXPECT_RATES(bare_ns, ...)                                                                 \
    do {                                                                                           \
        const struct rate_row rows[] = {__VA_ARGS__};                                              \
        expect_rates(rows, sizeof rows / sizeof rows[0], bare_ns);                                 \
    } while (0)

static void a_rate_is_a_count_per_unit_or_duration(void **state)
{
    EXPECT_RATES(0, {"5/min", {5, MIN}}, {"1k/min", {1000, MIN}}, {"1.5M/day", {1500000, DAY}},
                 {"20/90s", {20, 90 * S}}, {"3/1h30m", {3, 90 * MIN}}, {"100 / min", {100, MIN}},
                 {"10/s", {10, S}}, {"10/sec", {10, S}}, {"10/second", {10, S}},
                 {"10/minute", {10, MIN}}, {"10/h", {10, H}}, {"10/hour", {10, H}},
                 {"10/d", {10, DAY}}, {"10/day", {10, DAY}}, {"10/w", {10, WEEK}},
                 {"10/week", {10, WEEK}}, {"10/ms", {10, MS}}, {"10/m", {10, MIN}},
                 {"10/1m", {10, MIN}}, {"7/30day", {7, 30 * DAY}}, {" 5/ 1 h 30 m ", {5, 90 * MIN}},
                 {"1_000/s", {1000, S}}, {"2 k / s", {2000, S}}, {"20/1.5s", {20, 1500 * MS}});
}

static void a_decimal_count_becomes_whole_over_a_longer_period(void **state)
{
    EXPECT_RATES(0, {"0.5/s", {1, 2 * S}}, {"1.5/s", {3, 2 * S}}, {"2.0/s", {2, S}},
                 {"0.1/s", {1, 10 * S}}, {"0.25/min", {1, 4 * MIN}}, {"0.6/h", {3, 5 * H}},
                 {"1.5k/s", {1500, S}}, {"0.0015k/s", {3, 2 * S}}, {"0.5/90s", {1, 180 * S}},
                 {"0.000000001/ns", {1, S}});
}

static void a_whole_count_keeps_its_period(void **state)
{
    EXPECT_RATES(0, {"2/2s", {2, 2 * S}}, {"60/min", {60, MIN}}, {"1000/1000s", {1000, 1000 * S}});
}

static void a_bare_period_counts_in_the_callers_unit(void **state)
{
    EXPECT_RATES(S, {"3/10", {3, 10 * S}}, {"3/1.5", {3, 1500 * MS}}, {"3 / 10 ", {3, 10 * S}},
                 {"3/10ms", {3, 10 * MS}}, {"3/min", {3, MIN}}, {"0.5/10", {1, 20 * S}});
    EXPECT_RATES(1, {"3/10", {3, 10}});
    EXPECT_RATES(TOP, {"3/1", {3, TOP}});
}

static void the_largest_rates_have_64_bits(void **state)
{
    EXPECT_RATES(
        0, {"18446744073709551615/18446744073709551615ns", {TOP, TOP}},
        {"18446744073709551615/ns", {TOP, 1}}, {"1/18446744073709551615ns", {1, TOP}},
        {"0.000000000000000000134217728/ns", {1, UINT64_C(7450580596923828125)}} /* 5^27 */);
}

#define RATE "expected a count per period such as 5/min; "

static int rate_count(struct weir_text text, uint64_t *out, struct weir_error *error)
{
    struct rate rate = {77, 77};
    int e = rate_parse(text, 0, &rate, error);
    assert_true(e == 0 || rate.period_ns == 77);
    *out = rate.count;
    return e;
}

static void a_bad_rate_is_told_what_is_wrong_with_it(void **state)
{
    REFUSE(rate_count, {TEXT(""), "found nothing, expected a count per period such as 5/min"},
           {TEXT("5"), "found '5', " RATE "a slash is missing"},
           {TEXT("5k"), "found '5k', " RATE "a slash is missing"},
           {TEXT("5 per min"), "found '5 per min', " RATE "unknown unit 'per' (k, M, G, T)"},
           {TEXT("5/"), "found '5/', " RATE "a period is missing"},
           {TEXT("5/ "), "found '5/ ', " RATE "a period is missing"},
           {TEXT("/s"), "found '/s', " RATE "a number is missing at '/s'"},
           {TEXT("/"), "found '/', " RATE "a number is missing at '/'"},
           {TEXT("3/10"), "found '3/10', " RATE "a unit is missing"},
           {TEXT("3/10 "), "found '3/10 ', " RATE "a unit is missing"},
           {TEXT("5//s"), "found '5//s', " RATE "a number is missing at '/s'"},
           {TEXT("5/min/s"), "found '5/min/s', " RATE "unexpected '/s'"},
           {TEXT("5/s5"), "found '5/s5', " RATE "unexpected '5'"},
           {TEXT("5/parsec"), "found '5/parsec', " RATE "unknown unit 'parsec'" TIMES},
           {TEXT("5q/s"), "found '5q/s', " RATE "unknown unit 'q' (k, M, G, T)"},
           {TEXT("5%/s"), "found '5%/s', " RATE "a slash is missing at '%/s'"},
           {TEXT("-5/s"), "found '-5/s', " RATE "a number is missing at '-5/s'"},
           {TEXT("5/-1s"), "found '5/-1s', " RATE "a number is missing at '-1s'"},
           {TEXT("5/s\0"), "found '5/s\\x00', " RATE "unexpected '\\x00'"},
           {TEXT("5\0/s"), "found '5\\x00/s', " RATE "a slash is missing at '\\x00/s'"});
}

static void rates_of_nothing_or_too_much_are_refused(void **state)
{
    REFUSE(rate_count, {TEXT("0/min"), "found '0/min', " RATE "the count is zero"},
           {TEXT("0.0k/min"), "found '0.0k/min', " RATE "the count is zero"},
           {TEXT("5/0s"), "found '5/0s', " RATE "the period is zero"},
           {TEXT("5/0h0m"), "found '5/0h0m', " RATE "the period is zero"},
           {TEXT("18446744073709551616/s"),
            "found '18446744073709551616/s', " RATE "it does not fit into 64 bits"},
           {TEXT("1/18446744073709551616ns"),
            "found '1/18446744073709551616ns', " RATE "it does not fit into 64 bits"},
           {TEXT("0.00000000000000000001/ns"),
            "found '0.00000000000000000001/ns', " RATE "it does not fit into 64 bits"},
           {TEXT("0.5/18446744073s"),
            "found '0.5/18446744073s', " RATE "it does not fit into 64 bits"},
           {TEXT("1/0.5ns"), "found '1/0.5ns', " RATE "it is finer than 1ns"});
    struct rate rate = {77, 77};
    struct weir_error error;
    assert_int_equal(rate_parse(TEXT("3/2"), TOP, &rate, &error), WEIR_EINVAL);
    assert_string_equal(error.text, "found '3/2', " RATE "it does not fit into 64 bits");
    assert_int_equal(rate_parse(TEXT("3/0.5"), 1, &rate, &error), WEIR_EINVAL);
    assert_string_equal(error.text, "found '3/0.5', " RATE "it is finer than 1ns");
    assert_int_equal(rate_parse(TEXT("3/0"), S, &rate, &error), WEIR_EINVAL);
    assert_string_equal(error.text, "found '3/0', " RATE "the period is zero");
    assert_true(rate.count == 77 && rate.period_ns == 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_have_decimals_and_thousands),
        cmocka_unit_test(zeros_around_a_number_change_nothing),
        cmocka_unit_test(the_largest_count_has_64_bits),
        cmocka_unit_test(a_bad_count_is_told_what_is_wrong_with_it),
        cmocka_unit_test(bytes_that_only_look_like_digits_are_shown_as_they_are),
        cmocka_unit_test(an_error_text_is_whole_however_long_the_input),
        cmocka_unit_test(sizes_tell_1000_from_1024),
        cmocka_unit_test(a_size_is_a_whole_number_of_bytes_with_a_clear_unit),
        cmocka_unit_test(durations_have_units),
        cmocka_unit_test(units_have_long_names),
        cmocka_unit_test(parts_of_a_duration_add_up),
        cmocka_unit_test(a_bad_duration_is_told_what_is_wrong_with_it),
        cmocka_unit_test(month_and_year_are_refused_with_a_hint),
        cmocka_unit_test(a_rate_per_month_is_a_whole_count_per_calendar_month),
        cmocka_unit_test(the_longest_duration_is_584_years),
        cmocka_unit_test(percentages_are_hundredths),
        cmocka_unit_test(a_percentage_ends_at_100_and_at_two_places),
        cmocka_unit_test(a_rate_is_a_count_per_unit_or_duration),
        cmocka_unit_test(a_decimal_count_becomes_whole_over_a_longer_period),
        cmocka_unit_test(a_whole_count_keeps_its_period),
        cmocka_unit_test(a_bare_period_counts_in_the_callers_unit),
        cmocka_unit_test(the_largest_rates_have_64_bits),
        cmocka_unit_test(a_bad_rate_is_told_what_is_wrong_with_it),
        cmocka_unit_test(rates_of_nothing_or_too_much_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
