/* What test_leased.c and test_synced.c share: they run thousands of seeds, or single ones by
 * hand. */
#ifndef WEIR_TESTS_SIMULATE_TEST_RUN_H
#define WEIR_TESTS_SIMULATE_TEST_RUN_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/remote.h"
#include "simulate/simulate.h"

#ifdef WEIR_LONG
#define SEEDS 100000
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SEEDS 100
#else
#define SEEDS 1000
#endif

static const char *program = "";

static inline void run_seeds(int mode)
{
    struct simulate_result sum = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct simulate_result r;
        if (!simulate_seed(program, mode, seed, stderr, &r)) {
            fail_msg("seed %" PRIu64 ": %s", seed, r.text);
        }
        sum.questions += r.questions;
        sum.admitted += r.admitted > 0;
        sum.calls += r.calls;
        sum.here += r.here;
        sum.leases += r.leases;
        sum.waited += r.waited;
        sum.faults += r.faults;
        sum.nodes = r.nodes > sum.nodes ? r.nodes : sum.nodes;
    }
    print_message("%d seeds, up to %u nodes: %" PRIu64 " questions, %" PRIu64
                  " of them allowed without a call, %" PRIu64 " calls, %" PRIu64
                  " leases granted, %" PRIu64 " waited for another's call, %" PRIu64 " faults\n",
                  SEEDS, sum.nodes, sum.questions, sum.here, sum.calls, sum.leases, sum.waited,
                  sum.faults);
    if (mode == REMOTE_LEASED) {
        assert_true(sum.waited > SEEDS); /* otherwise the test has not covered waiting */
    }
}

static inline void run_twice(int mode)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct simulate_options o = {.seed = seed, .mode = mode};
        struct simulate_result a;
        struct simulate_result b;
        simulate(&o, &a);
        simulate(&o, &b);
        assert_true(a.print == b.print);
    }
}

/* Runs the seeds SEED[-LAST] of the command line. */
static inline int run_by_hand(int mode, char **argv)
{
    char *end;
    uint64_t seed = strtoull(argv[1], &end, 10);
    uint64_t last = *end == '-' ? strtoull(end + 1, NULL, 10) : seed;
    unsigned failed = 0;
    for (; seed <= last; seed++) {
        struct simulate_result r;
        if (!simulate_seed(program, mode, seed, failed == 0 ? stdout : NULL, &r)) {
            failed++;
            (void)printf("seed %" PRIu64 ": %s\n", seed, r.text);
        }
    }
    simulate_finish();
    (void)printf("%u failed\n", failed);
    return failed > 0;
}

#endif
