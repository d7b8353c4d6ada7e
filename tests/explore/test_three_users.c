// test-labels: nosan
/*
 * Three users, every schedule, with and without the death of one of them. Each
 * does one thing: the first two what they begin with in the scenario, the third
 * the same as the second.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "explore/scenario.h"

#ifdef WEIR_LONG
#define SIZE_MOST IN_THE_LONG_BUILD
#else
#define SIZE_MOST SOON
#endif

static void explore(const struct scenario *s, unsigned kills)
{
    struct found f = scenario_explore(s, kills);
    assert_null(f.failure);
    assert_true(f.complete);
}

static void holds_in_every_schedule_of_three(void **state)
{
    const struct scenario *two = *state;
    struct scenario s = *two;
    memset(s.script, 0, sizeof s.script);
    s.users = 3;
    s.script[0][0] = two->script[0][0];
    s.script[1][0] = two->script[1][0];
    s.script[2][0] = two->script[1][0];
    if (s.world.on_full == WEIR_EVICT) {
        s.judge = BY_STATES; /* who is forgotten depends on who is where */
    }
    explore(&s, 0);
    explore(&s, 1);
}

int main(void)
{
    struct CMUnitTest tests[64];
    unsigned n = 0;
    assert_true(scenario_count <= 64);
    for (unsigned i = 0; i < scenario_count; i++) {
        if (scenarios[i].three <= SIZE_MOST) {
            tests[n++] = (struct CMUnitTest){scenarios[i].name, holds_in_every_schedule_of_three,
                                             NULL, NULL, (void *)(uintptr_t)&scenarios[i]};
        }
    }
    return _cmocka_run_group_tests("three users", tests, n, NULL, NULL);
}
