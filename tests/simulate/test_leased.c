/*
 * Tests fleets with leased limits in the simulator (simulate.h), seed by seed. By hand:
 * SEED[-LAST].
 */
#include "simulate/test_run.h"

static void a_fleet_keeps_what_is_promised_whatever_happens(void **state)
{
    run_seeds(REMOTE_LEASED);
}

static void one_seed_is_one_run(void **state)
{
    run_twice(REMOTE_LEASED);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fleet_keeps_what_is_promised_whatever_happens),
        cmocka_unit_test(one_seed_is_one_run),
    };
    program = argv[0];
    if (argc > 1) {
        return run_by_hand(REMOTE_LEASED, argv);
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    simulate_finish();
    return failed;
}
