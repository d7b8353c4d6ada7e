// test-timeout: 900
/*
 * The library against the oracle: every answer to random calls must be the same
 * in verdict, remaining, retry, reset and delay. A trace that differs is made as
 * small as it gets and printed as a vector (tests/vectors/README.md).
 *
 * WEIR_SEED=n in the environment runs another set of traces, or the one that
 * failed.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

#include <cmocka.h>

#include "support/oracle/oracle_trace.h"

#if defined(WEIR_LONG)
#define DECISIONS UINT64_C(1000000000)
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(WEIR_EMULATED)
#define DECISIONS UINT64_C(250000)
#else
#define DECISIONS UINT64_C(10000000)
#endif

#define ALGORITHMS 5
#define TRACE_MOST 2000

static uint64_t seed(void)
{
    const char *given = getenv("WEIR_SEED");
    uint64_t s = 1;
    if (given != NULL) {
        return strtoull(given, NULL, 0);
    }
#if defined(WEIR_LONG)
    assert_int_equal(getrandom(&s, sizeof s, 0), sizeof s);
#endif
    return s;
}

static void fail_with(struct oracle_trace *t, oracle_run_fn run, uint64_t trace_seed)
{
    fprintf(stderr, "WEIR_SEED=%" PRIu64 " fails; making it smaller\n", trace_seed);
    oracle_shrink(t, run);
    oracle_report(stderr, t, run);
    fail();
}

/* One trace; returns its length. */
static size_t run_one(int algorithm, uint64_t trace_seed, struct oracle_op *ops)
{
    struct oracle_random g = {trace_seed};
    struct oracle_trace t = {.rule = oracle_random_rule(&g, algorithm), .ops = ops};
    struct oracle_difference d;
    bool batched = oracle_once_in(&g, 4);
    oracle_run_fn run = batched ? oracle_run_batched : oracle_run;
    bool set_back = oracle_once_in(&g, 3);
    oracle_random_ops(&g, &t, (size_t)oracle_between(&g, 20, TRACE_MOST), set_back);
    assert_true(run(&t, &d));
    if (d.at != t.n) {
        fail_with(&t, run, trace_seed);
    }
    return t.n;
}

/* Trace i has seed s + i, so that a failing one can be run alone. */
static void run_many(int algorithm)
{
    static struct oracle_op ops[TRACE_MOST];
    uint64_t s = seed();
    uint64_t decisions = 0;
    print_message("# WEIR_SEED=%" PRIu64 "\n", s);
    for (uint64_t i = 0; decisions < DECISIONS / ALGORITHMS; i++) {
        decisions += run_one(algorithm, s + i, ops);
    }
    print_message("# %" PRIu64 " decisions\n", decisions);
}

static void token_bucket_answers_like_the_oracle(void **state)
{
    run_many(WEIR_TOKEN_BUCKET);
}

static void leaky_bucket_answers_like_the_oracle(void **state)
{
    run_many(WEIR_LEAKY_BUCKET);
}

static void fixed_window_answers_like_the_oracle(void **state)
{
    run_many(WEIR_FIXED_WINDOW);
}

static void sliding_window_answers_like_the_oracle(void **state)
{
    run_many(WEIR_SLIDING_WINDOW);
}

static void sliding_log_answers_like_the_oracle(void **state)
{
    run_many(WEIR_SLIDING_LOG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(token_bucket_answers_like_the_oracle),
        cmocka_unit_test(leaky_bucket_answers_like_the_oracle),
        cmocka_unit_test(fixed_window_answers_like_the_oracle),
        cmocka_unit_test(sliding_window_answers_like_the_oracle),
        cmocka_unit_test(sliding_log_answers_like_the_oracle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
