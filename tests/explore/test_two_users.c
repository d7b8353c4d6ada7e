// test-labels: nosan
/*
 * Two users, every schedule up to a bound, with and without the death of one of
 * them at any of its steps. One line of output for each: how many schedules,
 * and what bound is exhausted. Switches are made before accesses to memory that
 * both users touch and one changes; elsewhere they would change nothing
 * (scheduler.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "explore/scenario.h"

#ifdef WEIR_LONG
#define STEPS_MOST UINT64_C(1500000000)
#define PREEMPTIONS_MOST 16
#define KILLS_MOST 2
#else
#define STEPS_MOST UINT64_C(3000000)
#define PREEMPTIONS_MOST 8
#define KILLS_MOST 1
#endif

static void explore(const struct scenario *s, unsigned kills)
{
    assert_true(scenario_begin(s));
    struct found f = search_all(scenario_attempt, (void *)(uintptr_t)s, s->least, PREEMPTIONS_MOST,
                                kills, STEPS_MOST);
    if (f.failure != NULL) {
        scenario_print(s, f.failure);
    }
    assert_null(f.failure);
    printf("    %u deaths: all %llu schedules", kills, (unsigned long long)f.schedules);
    if (!f.unbounded) {
        printf(" with at most %u preemptions", f.bound);
    }
    printf("\n");
    assert_true(f.any);
    assert_true(f.unbounded || f.bound >= s->least);
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
