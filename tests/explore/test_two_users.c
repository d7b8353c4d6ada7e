// test-labels: nosan
/*
 * Two users, every schedule, with and without the death of one of them at any of
 * its steps (in the long build, of both). No bound: a scenario that cannot be
 * explored whole fails. search.h says why nothing is left out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "explore/scenario.h"

#ifdef WEIR_LONG
#define KILLS_MOST 2
#define WALKS 50000
#else
#define KILLS_MOST 1
#define WALKS 300
#endif

static void explore(const struct scenario *s, unsigned kills)
{
    struct found f = scenario_explore(s, kills);
    assert_null(f.failure);
    assert_true(f.complete);
    assert_true(scenario_walk(s, kills, WALKS));
}

static void holds_in_every_schedule(void **state)
{
    const struct scenario *s = *state;
    for (unsigned kills = 0; kills <= KILLS_MOST; kills++) {
        explore(s, kills);
    }
}

int main(void)
{
    struct CMUnitTest tests[64];
    assert_true(scenario_count <= 64);
    for (unsigned i = 0; i < scenario_count; i++) {
        tests[i] = (struct CMUnitTest){scenarios[i].name, holds_in_every_schedule, NULL, NULL,
                                       (void *)(uintptr_t)&scenarios[i]};
    }
    return _cmocka_run_group_tests("two users", tests, scenario_count, NULL, NULL);
}
