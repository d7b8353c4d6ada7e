/*
 * Runs the simulator with one planted bug in the protocol: PLANTED is its name, MODE the protocol.
 * Passes only if a seed finds the bug. By hand: SEED[-LAST].
 */
#include "simulate/test_run.h"

#define SEEDS_MOST 1000

static void the_planted_bug_is_found(void **state)
{
    for (uint64_t seed = 1; seed <= SEEDS_MOST; seed++) {
        struct simulate_result r;
        if (!simulate_seed(program, MODE, seed, NULL, &r)) {
            print_message("%s: found by seed %" PRIu64 ": %s\n", PLANTED, seed, r.text);
            return;
        }
    }
    fail_msg("%d seeds have not found it", SEEDS_MOST);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_planted_bug_is_found)};
    program = argv[0];
    if (argc > 1) {
        return run_by_hand(MODE, argv);
    }
    int failed = cmocka_run_group_tests_name(PLANTED, tests, NULL, NULL);
    simulate_finish();
    return failed;
}
