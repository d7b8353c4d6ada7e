/* Tests numbers and times that are written without the C library: common/digits.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "common/digits.h"

static void numbers_are_those_of_printf(void **state)
{
    static const uint64_t numbers[] = {0, 1, 9, 10, 15, 16, 255, 256, 999, 1000, UINT64_MAX};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char wanted[32];
        char got[DIGITS_MAX + 1] = "";
        (void)snprintf(wanted, sizeof wanted, "%02ju", (uintmax_t)numbers[i]);
        got[digits_write(numbers[i], 10, 2, got)] = 0;
        assert_string_equal(got, wanted);
        (void)snprintf(wanted, sizeof wanted, "%016jx", (uintmax_t)numbers[i]);
        got[digits_write(numbers[i], 16, 16, got)] = 0;
        assert_string_equal(got, wanted);
    }
}

/* Every day of 584 years, which is as far as 64 bits of nanoseconds reach. */
static void days_are_those_of_gmtime(void **state)
{
    for (uint64_t day = 0; day < UINT64_MAX / 86400000000000; day++) {
        time_t seconds = (time_t)(day * 86400 + day % 86400);
        struct tm tm;
        char wanted[32];
        char got[DIGITS_TIME_MAX];
        (void)gmtime_r(&seconds, &tm);
        (void)strftime(wanted, sizeof wanted, "%Y-%m-%dT%H:%M:%S.042Z", &tm);
        digits_time((uint64_t)seconds * 1000000000 + 42000000, got);
        assert_string_equal(got, wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_those_of_printf),
        cmocka_unit_test(days_are_those_of_gmtime),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
