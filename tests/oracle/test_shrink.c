/*
 * The test of the tests: a planted fault is found, its trace is made small, and
 * what is printed can be read back and replayed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/oracle/oracle_vector.h"

#define CALLS 800

static struct oracle_trace random_trace(int algorithm, uint64_t seed, struct oracle_op *ops)
{
    struct oracle_random g = {seed};
    struct oracle_trace t = {.rule = oracle_random_rule(&g, algorithm), .ops = ops};
    oracle_random_ops(&g, &t, CALLS, true);
    return t;
}

/* "Fails" at a penalty for a key that was given a refund of ten or more before. */
static bool faulty(const struct oracle_trace *t, struct oracle_difference *d)
{
    bool refunded[ORACLE_KEYS] = {false};
    *d = (struct oracle_difference){.at = t->n, .what = "planted"};
    for (size_t i = 0; i < t->n; i++) {
        const struct oracle_op *op = &t->ops[i];
        if (op->verb == ORACLE_PENALIZE && refunded[op->key]) {
            d->at = i;
            return true;
        }
        refunded[op->key] |= op->verb == ORACLE_REFUND && op->cost >= 10;
    }
    return true;
}

static void a_failing_trace_is_made_as_small_as_it_gets(void **state)
{
    static struct oracle_op ops[CALLS];
    struct oracle_trace t = random_trace(WEIR_TOKEN_BUCKET, 2, ops);
    struct oracle_difference d;
    assert_true(faulty(&t, &d) && d.at < t.n);
    oracle_shrink(&t, faulty);
    assert_int_equal(t.n, 2);
    assert_int_equal(t.ops[0].verb, ORACLE_REFUND);
    assert_int_equal(t.ops[0].cost, 10);
    assert_int_equal(t.ops[1].verb, ORACLE_PENALIZE);
    assert_int_equal(t.ops[1].cost, 1);
    assert_int_equal(t.ops[0].key, 0);
    assert_int_equal(t.ops[0].time_ns, 0);
    assert_int_equal(t.ops[1].time_ns, 0);
}

static bool same_op(const struct oracle_op *a, const struct oracle_op *b)
{
    return a->verb == b->verb && a->time_ns == b->time_ns && a->cost == b->cost &&
           a->wait_ns == b->wait_ns && a->charged_ns == b->charged_ns;
}

static void read_back(const struct oracle_trace *t)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    oracle_report(out, t, oracle_run);
    assert_int_equal(fclose(out), 0);
    struct oracle_reader reader = {.in = fmemopen(text, size, "r")};
    struct oracle_vector v;
    assert_non_null(reader.in);
    assert_int_equal(oracle_vector_read(&reader, &v), 1);
    assert_int_equal(v.trace.n, t->n);
    assert_int_equal(v.trace.rule.algorithm, t->rule.algorithm);
    assert_int_equal(v.trace.rule.quota, t->rule.quota);
    assert_int_equal(v.trace.rule.period_ns, t->rule.period_ns);
    assert_int_equal(v.trace.rule.max_debt, t->rule.max_debt);
    assert_int_equal(v.trace.rule.offset_ns, t->rule.offset_ns);
    for (size_t i = 0; i < t->n; i++) {
        assert_true(same_op(&v.trace.ops[i], &t->ops[i]));
        assert_string_equal(v.keys[v.trace.ops[i].key], oracle_key_names[t->ops[i].key]);
    }
    oracle_vector_finish(&v);
    (void)fclose(reader.in);
    free(text);
}

static void a_printed_trace_can_be_read_back(void **state)
{
    static struct oracle_op ops[CALLS];
    for (int a = WEIR_TOKEN_BUCKET; a <= WEIR_SLIDING_LOG; a++) {
        for (uint64_t seed = 1; seed <= 5; seed++) {
            struct oracle_trace t = random_trace(a, seed, ops);
            read_back(&t);
        }
    }
}

/* Traces in which everything is allowed, or nothing, would prove little. */
static void random_traces_have_some_of_each_verdict(void **state)
{
    static struct oracle_op ops[CALLS];
    for (int a = WEIR_TOKEN_BUCKET; a <= WEIR_SLIDING_LOG; a++) {
        unsigned seen[WEIR_NEVER + 1] = {0};
        for (uint64_t seed = 1; seed <= 50; seed++) {
            struct oracle_trace t = random_trace(a, seed, ops);
            struct oracle_key keys[ORACLE_KEYS] = {{0}};
            for (size_t i = 0; i < t.n; i++) {
                struct weir_answer answer;
                oracle_apply(&t.rule, &keys[ops[i].key], &ops[i], &answer);
                seen[answer.verdict]++;
            }
            for (size_t k = 0; k < ORACLE_KEYS; k++) {
                oracle_key_finish(&keys[k]);
            }
        }
        print_message("# %s: %u allowed, %u denied, %u never\n", weir_algorithm_name(a),
                      seen[WEIR_ALLOW], seen[WEIR_DENY], seen[WEIR_NEVER]);
        assert_true(seen[WEIR_ALLOW] > 50 * CALLS / 5);
        assert_true(seen[WEIR_DENY] > 50 * CALLS / 5);
        assert_true(seen[WEIR_NEVER] > 50 * CALLS / 50);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failing_trace_is_made_as_small_as_it_gets),
        cmocka_unit_test(a_printed_trace_can_be_read_back),
        cmocka_unit_test(random_traces_have_some_of_each_verdict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
