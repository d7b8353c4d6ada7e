/*
 * The part of cmocka's interface that the tests of libweir use. It stands in for
 * cmocka where there is only a compiler: cross builds, musl, WEIR_LIBRARY_ONLY.
 * A failed assert ends its test by longjmp(); the tests after it still run.
 */
#ifndef WEIR_TESTS_CMOCKA_H
#define WEIR_TESTS_CMOCKA_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef int (*CMFixtureFunction)(void **state);

struct CMUnitTest {
    const char *name;
    void (*test_func)(void **state);
    CMFixtureFunction setup_func;
    CMFixtureFunction teardown_func;
    void *initial_state;
};

#define cmocka_unit_test(f)                                                                        \
    {                                                                                              \
#f, f, NULL, NULL, NULL                                                                    \
    }
#define cmocka_unit_test_setup(f, setup)                                                           \
    {                                                                                              \
#f, f, setup, NULL, NULL                                                                   \
    }
#define cmocka_unit_test_teardown(f, teardown)                                                     \
    {                                                                                              \
#f, f, NULL, teardown, NULL                                                                \
    }
#define cmocka_unit_test_setup_teardown(f, setup, teardown)                                        \
    {                                                                                              \
#f, f, setup, teardown, NULL                                                               \
    }
#define cmocka_run_group_tests(tests, setup, teardown)                                             \
    cmocka_run(tests, sizeof(tests) / sizeof((tests)[0]), setup, teardown)

/* Runs the tests in order. Returns how many failed. */
int cmocka_run(const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup,
               CMFixtureFunction teardown);

/* Ends the test that runs, as failed or as skipped. */
_Noreturn void cmocka_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void cmocka_skip(void);

#define skip() cmocka_skip()
#define fail() fail_msg("failed")
#define fail_msg(...) cmocka_fail(__FILE__, __LINE__, __VA_ARGS__)
#define print_message(...) ((void)printf(__VA_ARGS__))
#define print_error(...) ((void)fprintf(stderr, __VA_ARGS__))

#define assert_true(x) cmocka_check(__FILE__, __LINE__, #x, (uintmax_t)(x) != 0)
#define assert_false(x) cmocka_check(__FILE__, __LINE__, "not " #x, (uintmax_t)(x) == 0)
#define assert_null(p) cmocka_check(__FILE__, __LINE__, #p " == NULL", (p) == NULL)
#define assert_non_null(p) cmocka_check(__FILE__, __LINE__, #p " != NULL", (p) != NULL)
#define assert_ptr_equal(a, b)                                                                     \
    cmocka_check(__FILE__, __LINE__, #a " == " #b, (const void *)(a) == (const void *)(b))
#define assert_int_equal(a, b)                                                                     \
    cmocka_check_equal(__FILE__, __LINE__, #a, (uintmax_t)(a), (uintmax_t)(b))
#define assert_int_not_equal(a, b)                                                                 \
    cmocka_check(__FILE__, __LINE__, #a " != " #b, (uintmax_t)(a) != (uintmax_t)(b))
#define assert_in_range(x, least, most)                                                            \
    cmocka_check_range(__FILE__, __LINE__, #x, (uintmax_t)(x), (uintmax_t)(least),                 \
                       (uintmax_t)(most))
#define assert_string_equal(a, b) cmocka_check_text(__FILE__, __LINE__, a, b)
#define assert_string_not_equal(a, b)                                                              \
    cmocka_check(__FILE__, __LINE__, #a " differs from " #b, strcmp(a, b) != 0)
#define assert_memory_equal(a, b, size)                                                            \
    cmocka_check(__FILE__, __LINE__, #a " has the bytes of " #b, memcmp(a, b, size) == 0)
#define assert_memory_not_equal(a, b, size)                                                        \
    cmocka_check(__FILE__, __LINE__, #a " differs from " #b, memcmp(a, b, size) != 0)

static inline void cmocka_check(const char *file, int line, const char *what, int is_true)
{
    if (!is_true) {
        cmocka_fail(file, line, "expected: %s", what);
    }
}

static inline void cmocka_check_equal(const char *file, int line, const char *what, uintmax_t x,
                                      uintmax_t expected)
{
    if (x != expected) {
        cmocka_fail(file, line, "%s is %jd, expected %jd", what, (intmax_t)x, (intmax_t)expected);
    }
}

static inline void cmocka_check_range(const char *file, int line, const char *what, uintmax_t x,
                                      uintmax_t least, uintmax_t most)
{
    if (x < least || x > most) {
        cmocka_fail(file, line, "%s is %jd, expected %jd to %jd", what, (intmax_t)x,
                    (intmax_t)least, (intmax_t)most);
    }
}

static inline void cmocka_check_text(const char *file, int line, const char *a, const char *b)
{
    if (strcmp(a, b) != 0) {
        cmocka_fail(file, line, "\"%s\", expected \"%s\"", a, b);
    }
}

#endif
