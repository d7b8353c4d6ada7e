#include "cmocka/cmocka.h"

#include <setjmp.h>
#include <stdarg.h>

enum outcome { PASSED, FAILED, SKIPPED };

static jmp_buf end_of_test;

_Noreturn void cmocka_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fprintf(stderr, "%s:%d: ", file, line);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
    longjmp(end_of_test, FAILED);
}

_Noreturn void cmocka_skip(void)
{
    longjmp(end_of_test, SKIPPED);
}

/* A fixture that returns an error fails the test. */
static void run_phases(const struct CMUnitTest *test, void **state)
{
    if (test->setup_func != NULL && test->setup_func(state) != 0) {
        fail_msg("the setup of %s failed", test->name);
    }
    test->test_func(state);
    if (test->teardown_func != NULL && test->teardown_func(state) != 0) {
        fail_msg("the teardown of %s failed", test->name);
    }
}

static enum outcome run_one(const struct CMUnitTest *test)
{
    void *state = test->initial_state;
    switch (setjmp(end_of_test)) {
    case PASSED:
        run_phases(test, &state);
        return PASSED;
    case SKIPPED:
        return SKIPPED;
    default:
        return FAILED;
    }
}

int cmocka_run(const struct CMUnitTest *tests, size_t count, CMFixtureFunction setup,
               CMFixtureFunction teardown)
{
    static const char *const words[] = {"ok     ", "FAILED ", "skipped"};
    int failed = 0;
    void *state = NULL;
    if (setup != NULL && setup(&state) != 0) {
        return 1;
    }
    for (size_t i = 0; i < count; i++) {
        enum outcome outcome = run_one(&tests[i]);
        (void)printf("%s %s\n", words[outcome], tests[i].name);
        (void)fflush(stdout); /* a test may end the process, or fork */
        failed += outcome == FAILED;
    }
    if (teardown != NULL && teardown(&state) != 0) {
        failed++;
    }
    return failed;
}
