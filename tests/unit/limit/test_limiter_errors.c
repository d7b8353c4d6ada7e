/* Options that make no sense: a named error, a text that says what and why, and no limiter. */
#include "algo/algo.h"
#include "base/hash.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>
#include <stdlib.h>

static struct weir_options options;

static int setup(void **state)
{
    options = unit_options(WEIR_TOKEN_BUCKET, 10, WEIR_SECOND);
    return 0;
}

/* weir_open() and weir_size() both refuse the options with this code and these words. */
static void assert_refused(const struct weir_options *o, int code, const char *found,
                           const char *expected)
{
    struct weir_error error = {0, ""};
    struct weir *w = (struct weir *)&error;
    uint64_t bytes = 77;
    assert_int_equal(weir_open(&w, o, &error), code);
    assert_null(w);
    assert_int_equal(error.code, code);
    if (strstr(error.text, found) == NULL || strstr(error.text, expected) == NULL) {
        fail_msg("\"%s\" lacks \"%s\" or \"%s\"", error.text, found, expected);
    }
    assert_int_equal(weir_open(&w, o, NULL), code);
    assert_int_equal(weir_size(o, &bytes, NULL), code);
    assert_int_equal(bytes, 77);
}

static void assert_opens(const struct weir_options *o)
{
    struct weir *w = unit_open(o);
    weir_close(w);
}

static void null_places_are_refused(void **state)
{
    struct weir *w;
    struct weir_error error;
    assert_int_equal(weir_open(NULL, &options, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.text, "NULL"));
    assert_int_equal(weir_open(NULL, &options, NULL), WEIR_EINVAL);
    assert_int_equal(weir_size(&options, NULL, &error), WEIR_EINVAL);
    assert_non_null(strstr(error.text, "NULL"));
    assert_int_equal(weir_open(&w, NULL, &error), WEIR_EINVAL);
    assert_null(w);
    assert_refused(NULL, WEIR_EINVAL, "options", "NULL");
}

static void closing_nothing_is_allowed(void **state)
{
    weir_close(NULL);
}

static void a_size_that_is_too_small_is_refused(void **state)
{
    const size_t sizes[] = {0, 1, offsetof(struct weir_options, period_ns)};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char found[40];
        (void)snprintf(found, sizeof found, "options.size is %zu", sizes[i]);
        options.size = sizes[i];
        assert_refused(&options, WEIR_EINVAL, found, "WEIR_OPTIONS_INIT");
    }
}

/* A caller of a later version, whose struct has grown. */
union later {
    struct weir_options options;
    unsigned char bytes[1 << 20];
};

static void fields_that_this_library_does_not_know_must_be_0(void **state)
{
    static union later grown;
    grown.options = options;
    grown.options.size = sizeof options + 64;
    assert_opens(&grown.options);
    grown.bytes[sizeof options + 63] = 1;
    assert_refused(&grown.options, WEIR_EINVAL, "options.size is", "older than its header");
    grown.bytes[sizeof options + 63] = 0;
    grown.bytes[sizeof options + 64] = 1; /* not the caller's */
    assert_opens(&grown.options);
}

static void an_absurd_size_is_refused(void **state)
{
    static union later absurd;
    absurd.options = options;
    absurd.options.size = sizeof absurd;
    assert_refused(&absurd.options, WEIR_EINVAL, "options.size is 1048576", "");
}

static void fields_beyond_the_callers_size_are_defaults(void **state)
{
    options.size = offsetof(struct weir_options, burst);
    options.burst = 3; /* garbage that an older caller does not know of */
    options.flags = ~0u;
    struct weir *w = unit_open(&options);
    struct weir_answer a;
    assert_int_equal(weir_check(w, "k", 1, 1, &a), 0);
    assert_int_equal(a.quota, 10);
    weir_close(w);
}

static void an_unknown_algorithm_is_refused(void **state)
{
    const int bad[] = {0, -1, 6, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char found[40];
        (void)snprintf(found, sizeof found, "algorithm is %d", bad[i]);
        options.algorithm = bad[i];
        assert_refused(&options, WEIR_EINVAL, found, "expected one of enum weir_algorithm");
    }
}

static void bad_enums_are_refused(void **state)
{
    const struct {
        const char *name;
        size_t offset;
        int last;
    } enums[] = {{"memory", offsetof(struct weir_options, memory), WEIR_FILE},
                 {"on_full", offsetof(struct weir_options, on_full), WEIR_ALLOW_NEW},
                 {"hash", offsetof(struct weir_options, hash), WEIR_XXH3},
                 {"align", offsetof(struct weir_options, align), WEIR_ALIGN_KEY}};
    for (size_t i = 0; i < sizeof enums / sizeof enums[0]; i++) {
        const int bad[] = {-1, enums[i].last + 1, INT32_MAX, INT32_MIN};
        for (size_t j = 0; j < 4; j++) {
            char found[40];
            char expected[40];
            struct weir_options o = options;
            memcpy((char *)&o + enums[i].offset, &bad[j], sizeof bad[j]);
            (void)snprintf(found, sizeof found, "%s is %d", enums[i].name, bad[j]);
            (void)snprintf(expected, sizeof expected, "expected 0 to %d", enums[i].last);
            assert_refused(&o, WEIR_EINVAL, found, expected);
        }
    }
}

static void xxh3_is_refused_by_a_library_without_it(void **state)
{
    options.hash = WEIR_XXH3;
    if (hash_has_xxh3) {
        weir_close(unit_open(&options));
    } else {
        assert_refused(&options, WEIR_ENOTSUP, "hash is WEIR_XXH3", "built without xxhash.h");
    }
}

static void unknown_flags_are_refused(void **state)
{
    for (unsigned bit = 0x80; bit != 0; bit <<= 1) {
        options.flags = WEIR_EXPLICIT_TIME | bit;
        assert_refused(&options, WEIR_EINVAL, "flags has unknown bits", "0x");
    }
}

static void flags_that_contradict_the_memory_are_refused(void **state)
{
    options.flags = WEIR_CHANGE;
    assert_refused(&options, WEIR_EINVAL, "WEIR_CHANGE", "need memory WEIR_FILE");
    options.flags = WEIR_MUST_EXIST;
    assert_refused(&options, WEIR_EINVAL, "WEIR_MUST_EXIST", "need memory WEIR_FILE");
    options.memory = WEIR_FILE;
    options.path = "/nowhere/at/all";
    options.flags = WEIR_PREFAULT;
    assert_refused(&options, WEIR_EINVAL, "WEIR_PREFAULT", "private and shared memory");
    options.flags = WEIR_HUGE_PAGES;
    assert_refused(&options, WEIR_EINVAL, "WEIR_HUGE_PAGES", "private and shared memory");
}

static uint64_t some_clock(void *arg)
{
    return *(uint64_t *)arg;
}

static void explicit_time_and_a_clock_exclude_each_other(void **state)
{
    options.clock = some_clock;
    assert_refused(&options, WEIR_EINVAL, "WEIR_EXPLICIT_TIME", "exclude each other");
}

static void a_path_and_file_memory_belong_together(void **state)
{
    options.path = "x";
    assert_refused(&options, WEIR_EINVAL, "path is set", "not WEIR_FILE");
    options.memory = WEIR_FILE;
    options.path = NULL;
    assert_refused(&options, WEIR_EINVAL, "WEIR_FILE", "path is NULL");
    options.path = "";
    assert_refused(&options, WEIR_EINVAL, "path", "empty");
}

static void zero_rates_are_refused(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        options = unit_options(unit_algorithms[i], 1, WEIR_SECOND);
        options.count = 0;
        assert_refused(&options, WEIR_ERATE, "count is 0", "at least 1");
    }
}

static void absurd_periods_are_refused_at_their_exact_bounds(void **state)
{
    const uint64_t bad[] = {0, 1, 999, ALGO_LIFE_NS + 1, INT64_MAX, UINT64_MAX};
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        for (size_t j = 0; j < sizeof bad / sizeof bad[0]; j++) {
            options = unit_options(unit_algorithms[i], 1, bad[j]);
            assert_refused(&options, WEIR_ERATE, "period_ns is", "(1 us) to");
        }
        options = unit_options(unit_algorithms[i], 1, 1000);
        assert_opens(&options);
        options = unit_options(unit_algorithms[i], 1, ALGO_LIFE_NS);
        options.count = 100; /* a bucket cannot hold a unit that takes a century */
        options.burst = unit_algorithms[i] == WEIR_TOKEN_BUCKET;
        assert_opens(&options);
    }
}

static void buckets_take_at_most_a_billion_per_second(void **state)
{
    for (int algorithm = WEIR_TOKEN_BUCKET; algorithm <= WEIR_LEAKY_BUCKET; algorithm++) {
        options = unit_options(algorithm, 1, WEIR_SECOND);
        options.count = 1000000000;
        assert_opens(&options);
        options.count++;
        assert_refused(&options, WEIR_ERATE, "1000000001 per 1000000000 ns",
                       "at most 1,000,000,000 per second");
        options.count = UINT64_MAX;
        assert_refused(&options, WEIR_ERATE, "18446744073709551615", "expected at most");
        options.count = 1001;
        options.period_ns = 1000;
        assert_refused(&options, WEIR_ERATE, "1001 per 1000 ns", "expected at most");
        options.count = 1000;
        assert_opens(&options);
    }
}

/* Finds the largest accepted value of a field by bisection and sees that it is `expected`. */
static void assert_largest(uint64_t *field, uint64_t expected, const char *word)
{
    *field = expected;
    assert_opens(&options);
    *field = expected + 1;
    assert_refused(&options, WEIR_EQUOTA, word, "expected at most");
    *field = UINT64_MAX - 1;
    assert_refused(&options, WEIR_EQUOTA, word, "expected at most");
}

static void a_bucket_holds_a_quarter_of_its_word(void **state)
{
    /* One per second in quarter nanoseconds: 4e9 a unit. */
    const uint64_t most = UINT64_MAX / 4 / 4000000000;
    options = unit_options(WEIR_TOKEN_BUCKET, 1, WEIR_SECOND);
    options.max_debt = WEIR_NO_DEBT;
    assert_largest(&options.burst, most, "burst");
    options.burst = 10;
    assert_largest(&options.max_debt, most - 10, "debt");
    options = unit_options(WEIR_LEAKY_BUCKET, 1, WEIR_SECOND);
    options.max_debt = WEIR_NO_DEBT;
    assert_largest(&options.queue, most - 1, "queue + 1");
    options.queue = UINT64_MAX;
    assert_refused(&options, WEIR_EQUOTA, "queue + 1", "expected at most");
    options.queue = 9;
    assert_largest(&options.max_debt, most - 10, "debt");
}

static void windows_hold_what_their_counters_can(void **state)
{
    const struct {
        int algorithm;
        uint64_t period;
        unsigned bits;
    } rows[] = {
        /* A hundred years of microseconds take 52 bits of index, of seconds 32, of centuries 2. */
        {WEIR_FIXED_WINDOW, WEIR_MICROSECOND, 12}, {WEIR_FIXED_WINDOW, WEIR_SECOND, 32},
        {WEIR_FIXED_WINDOW, ALGO_LIFE_NS, 62},     {WEIR_SLIDING_WINDOW, WEIR_MICROSECOND, 6},
        {WEIR_SLIDING_WINDOW, WEIR_SECOND, 16},    {WEIR_SLIDING_WINDOW, WEIR_DAY, 24},
        {WEIR_SLIDING_WINDOW, ALGO_LIFE_NS, 31},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t most = (UINT64_C(1) << rows[i].bits) - 1;
        options = unit_options(rows[i].algorithm, 1, rows[i].period);
        options.max_debt = WEIR_NO_DEBT;
        assert_largest(&options.count, most, "count");
        options.count = 1;
        assert_largest(&options.max_debt, most - 1, "debt");
    }
}

static void a_log_holds_65535_and_no_debt(void **state)
{
    options = unit_options(WEIR_SLIDING_LOG, 1, WEIR_SECOND);
    options.max_keys = 1;
    assert_largest(&options.count, 65535, "count");
    options.count = 5;
    options.max_debt = 1;
    assert_refused(&options, WEIR_EQUOTA, "max_debt is 1", "a log holds no debt");
    options.max_debt = WEIR_NO_DEBT;
    assert_opens(&options);
}

/* The default debt gives way before the quota does. */
static void a_default_debt_never_makes_a_limit_impossible(void **state)
{
    options = unit_options(WEIR_TOKEN_BUCKET, 1, WEIR_SECOND);
    options.burst = UINT64_MAX / 4 / 4000000000;
    assert_opens(&options);
    options = unit_options(WEIR_FIXED_WINDOW, 4095, WEIR_MICROSECOND);
    assert_opens(&options);
    options = unit_options(WEIR_SLIDING_WINDOW, 65535, WEIR_SECOND);
    assert_opens(&options);
}

static void burst_is_for_token_bucket_only(void **state)
{
    for (int i = 1; i < UNIT_ALGORITHMS; i++) {
        options = unit_options(unit_algorithms[i], 5, WEIR_SECOND);
        options.burst = 5;
        assert_refused(&options, WEIR_EINVAL, "burst", "token_bucket only");
    }
}

static void queue_is_for_leaky_bucket_only(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        options = unit_options(unit_algorithms[i], 5, WEIR_SECOND);
        options.queue = 5;
        if (unit_algorithms[i] != WEIR_LEAKY_BUCKET) {
            assert_refused(&options, WEIR_EINVAL, "queue", "leaky_bucket only");
        }
    }
}

static void align_is_for_fixed_window_only(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        options = unit_options(unit_algorithms[i], 5, WEIR_SECOND);
        options.align = WEIR_ALIGN_KEY;
        if (unit_algorithms[i] != WEIR_FIXED_WINDOW) {
            assert_refused(&options, WEIR_EINVAL, "align", "fixed_window only");
        }
    }
}

static void an_offset_is_for_windows_and_less_than_the_period(void **state)
{
    for (int i = 0; i < UNIT_ALGORITHMS; i++) {
        options = unit_options(unit_algorithms[i], 5, WEIR_SECOND);
        options.offset_ns = 1;
        bool window =
            unit_algorithms[i] == WEIR_FIXED_WINDOW || unit_algorithms[i] == WEIR_SLIDING_WINDOW;
        if (!window) {
            assert_refused(&options, WEIR_EINVAL, "offset_ns", "window algorithms only");
            continue;
        }
        options.offset_ns = WEIR_SECOND - 1;
        assert_opens(&options);
        options.offset_ns = WEIR_SECOND;
        assert_refused(&options, WEIR_EINVAL, "offset_ns is 1000000000", "less than the period");
        options.offset_ns = UINT64_MAX;
        assert_refused(&options, WEIR_EINVAL, "offset_ns is", "less than the period");
    }
}

static void a_table_too_large_for_any_machine_is_refused(void **state)
{
    options.max_keys = (UINT64_C(1) << 40) + 1;
    assert_refused(&options, WEIR_EINVAL, "max_keys is 1099511627777", "expected at most");
    options.max_keys = UINT64_MAX;
    assert_refused(&options, WEIR_EINVAL, "max_keys is", "expected at most");
}

static void out_of_memory_is_an_error_code(void **state)
{
    struct weir *w;
    struct weir_error error;
    options = unit_options(WEIR_SLIDING_LOG, 65535, WEIR_SECOND);
    options.max_keys = UINT64_C(1) << 40; /* 2^59 bytes of records */
    assert_int_equal(weir_open(&w, &options, &error), WEIR_ENOMEM);
    assert_null(w);
    assert_true(strlen(error.text) > 10);
    options.memory = WEIR_SHARED;
    assert_int_equal(weir_open(&w, &options, &error), WEIR_ENOMEM);
}

static void a_clock_beyond_time_is_an_error(void **state)
{
    uint64_t now = UINT64_MAX;
    struct weir *w;
    struct weir_error error;
    options.flags = 0;
    options.clock = some_clock;
    options.clock_arg = &now;
    assert_int_equal(weir_open(&w, &options, &error), WEIR_ETIME);
    assert_non_null(strstr(error.text, "time line"));
    assert_null(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(null_places_are_refused, setup),
        cmocka_unit_test_setup(closing_nothing_is_allowed, setup),
        cmocka_unit_test_setup(a_size_that_is_too_small_is_refused, setup),
        cmocka_unit_test_setup(fields_that_this_library_does_not_know_must_be_0, setup),
        cmocka_unit_test_setup(an_absurd_size_is_refused, setup),
        cmocka_unit_test_setup(fields_beyond_the_callers_size_are_defaults, setup),
        cmocka_unit_test_setup(an_unknown_algorithm_is_refused, setup),
        cmocka_unit_test_setup(bad_enums_are_refused, setup),
        cmocka_unit_test_setup(xxh3_is_refused_by_a_library_without_it, setup),
        cmocka_unit_test_setup(unknown_flags_are_refused, setup),
        cmocka_unit_test_setup(flags_that_contradict_the_memory_are_refused, setup),
        cmocka_unit_test_setup(explicit_time_and_a_clock_exclude_each_other, setup),
        cmocka_unit_test_setup(a_path_and_file_memory_belong_together, setup),
        cmocka_unit_test_setup(zero_rates_are_refused, setup),
        cmocka_unit_test_setup(absurd_periods_are_refused_at_their_exact_bounds, setup),
        cmocka_unit_test_setup(buckets_take_at_most_a_billion_per_second, setup),
        cmocka_unit_test_setup(a_bucket_holds_a_quarter_of_its_word, setup),
        cmocka_unit_test_setup(windows_hold_what_their_counters_can, setup),
        cmocka_unit_test_setup(a_log_holds_65535_and_no_debt, setup),
        cmocka_unit_test_setup(a_default_debt_never_makes_a_limit_impossible, setup),
        cmocka_unit_test_setup(burst_is_for_token_bucket_only, setup),
        cmocka_unit_test_setup(queue_is_for_leaky_bucket_only, setup),
        cmocka_unit_test_setup(align_is_for_fixed_window_only, setup),
        cmocka_unit_test_setup(an_offset_is_for_windows_and_less_than_the_period, setup),
        cmocka_unit_test_setup(a_table_too_large_for_any_machine_is_refused, setup),
        cmocka_unit_test_setup(out_of_memory_is_an_error_code, setup),
        cmocka_unit_test_setup(a_clock_beyond_time_is_an_error, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
