// test-labels: nosan
/*
 * Two users whose patience ends with the first wait (small.cmake), every
 * schedule. Who is in such a hurry may be refused although there is room, so
 * that the outcome need not be that of any order of whole operations. What must
 * hold all the same: the states of keys, and that keys are charged for exactly
 * what was granted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "explore/oracle.h"
#include "explore/scenario.h"

static void explore(const struct scenario *s, unsigned kills)
{
    struct found f = scenario_explore(s, kills);
    assert_null(f.failure);
    assert_true(f.complete);
}

static void charges_are_exact_in_every_schedule(void **state)
{
    struct scenario s = *(const struct scenario *)*state;
    if (s.judge == BY_ORDERS) { /* who was evicted has lost what it was charged */
        s.judge = s.world.on_full == WEIR_EVICT ? BY_STATES : BY_TOTALS;
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
        if (scenario_count_ops(&scenarios[i], CHANGE) == 0) { /* nobody waits for parameters */
            tests[n++] = (struct CMUnitTest){scenarios[i].name, charges_are_exact_in_every_schedule,
                                             NULL, NULL, (void *)(uintptr_t)&scenarios[i]};
        }
    }
    return _cmocka_run_group_tests("two users in a hurry", tests, n, NULL, NULL);
}
