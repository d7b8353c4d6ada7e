// test-labels: nosan
/*
 * The engine with one bug planted in it: PLANTED names the bug, SCENARIO what it
 * breaks, KILLS how many users may die. Passes only if the explorer finds it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "explore/scenario.h"

#define STATES_MOST UINT64_C(2000000)

static void the_planted_bug_is_found(void **state)
{
    const struct scenario *s = scenario_named(SCENARIO);
    assert_non_null(s);
    struct subject subject;
    assert_true(scenario_begin(s, &subject));
    struct how how = {KILLS, true, STATES_MOST};
    struct found f = search_all(&subject, &how);
    assert_non_null(f.failure);
    printf("    %s: found in schedule %llu, after %llu states\n", PLANTED,
           (unsigned long long)f.schedules, (unsigned long long)f.states);
    if (getenv("WEIR_EXPLORE_VERBOSE") != NULL) {
        scenario_print(s, f.failure);
    } else {
        printf("    %s (WEIR_EXPLORE_VERBOSE=1 prints the schedule)\n", f.failure);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_planted_bug_is_found)};
    return cmocka_run_group_tests_name(PLANTED, tests, NULL, NULL);
}
