/* What the two buckets share: compiling a rate into steps of a fraction of a nanosecond. */
#include "algo/bucket.h"
#include "support/unit_cell.h"

static int compile(uint64_t count, uint64_t period, uint64_t quota, uint64_t debt,
                   const struct algo_layout *layout, struct algo_params *p)
{
    struct limit_spec spec = unit_spec(WEIR_TOKEN_BUCKET, quota, period, debt);
    spec.count = count;
    memset(p, 0, sizeof *p);
    return bucket_compile(&spec, quota, "burst", layout, p, NULL);
}

static const struct algo_layout new_table = {0, 0, false};

static void the_time_unit_is_as_fine_as_the_rate_needs(void **state)
{
    const struct {
        uint64_t count;
        uint32_t shift;
    } rows[] = {{1, 2},       {400000, 2},  {400001, 3},   {800000, 3},
                {1600000, 4}, {5000000, 6}, {10000000, 7}, {1000000000, 7}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct algo_params p;
        assert_int_equal(compile(rows[i].count, WEIR_SECOND, 1, 0, &new_table, &p), 0);
        assert_int_equal(p.shift, rows[i].shift);
    }
}

/* A step is never shorter than the rate says, and at most one in ten thousand longer. */
static void a_step_is_rounded_up_by_less_than_one_in_10000(void **state)
{
    uint64_t seed = 1;
    for (int i = 0; i < 20000; i++) {
        uint64_t count = 1 + unit_random(&seed) % (10000000 >> unit_random(&seed) % 23);
        uint64_t period = WEIR_SECOND + unit_random(&seed) % WEIR_DAY;
        struct algo_params p;
        assert_int_equal(compile(count, period, 1, 0, &new_table, &p), 0);
        u128 scaled = mul_wide(period, UINT64_C(1) << p.shift);
        assert_true(mul_wide(p.step, count) >= scaled);
        assert_true(mul_wide(p.step - 1, count) < scaled);
        assert_true(p.step >= BUCKET_STEP_MIN);
    }
}

static void span_and_reach_are_what_quota_and_debt_take(void **state)
{
    struct algo_params p;
    assert_int_equal(compile(10, WEIR_SECOND, 7, 5, &new_table, &p), 0);
    assert_int_equal(p.step, 400000000);
    assert_int_equal(p.span, 7 * p.step);
    assert_int_equal(p.reach, 12 * p.step);
    assert_int_equal(p.quota, 7);
    /* The furthest word, and the clocks' slack above it, fit. */
    assert_true(p.max_time <= (UINT64_MAX - p.reach - (ALGO_SLACK_NS << p.shift)) >> p.shift);
    assert_true(p.max_time >= UINT64_C(140) * 365 * WEIR_DAY >> 1);
}

static void a_live_change_keeps_the_time_unit_or_is_refused(void **state)
{
    const struct algo_layout made = {3, 0, true};
    struct algo_params p;
    assert_int_equal(compile(1, WEIR_SECOND, 1, 0, &made, &p), 0);
    assert_int_equal(p.shift, 3);
    assert_int_equal(compile(800000, WEIR_SECOND, 1, 0, &made, &p), 0);
    assert_int_equal(compile(800001, WEIR_SECOND, 1, 0, &made, &p), WEIR_ERATE);
}

static void rates_above_one_in_a_nanosecond_are_refused(void **state)
{
    struct algo_params p;
    assert_int_equal(compile(1000, 1000, 1, 0, &new_table, &p), 0);
    assert_int_equal(compile(1001, 1000, 1, 0, &new_table, &p), WEIR_ERATE);
    assert_int_equal(compile(ALGO_LIFE_NS, ALGO_LIFE_NS, 1, 0, &new_table, &p), 0);
    assert_int_equal(compile(ALGO_LIFE_NS + 1, ALGO_LIFE_NS, 1, 0, &new_table, &p), WEIR_ERATE);
    assert_int_equal(compile(UINT64_MAX, 1000, 1, 0, &new_table, &p), WEIR_ERATE);
}

static void quotas_whose_refill_does_not_fit_are_refused(void **state)
{
    struct algo_params p;
    const uint64_t most = UINT64_MAX / 4 / 4000000000;
    assert_int_equal(compile(1, WEIR_SECOND, most, 0, &new_table, &p), 0);
    assert_int_equal(compile(1, WEIR_SECOND, most + 1, 0, &new_table, &p), WEIR_EQUOTA);
    assert_int_equal(compile(1, WEIR_SECOND, 1, most - 1, &new_table, &p), 0);
    assert_int_equal(compile(1, WEIR_SECOND, 1, most, &new_table, &p), WEIR_EQUOTA);
    assert_int_equal(compile(1, WEIR_SECOND, UINT64_MAX, UINT64_MAX, &new_table, &p), WEIR_EQUOTA);
}

static void a_refund_of_what_has_drained_long_ago_is_nothing(void **state)
{
    struct unit_cell c = unit_cell(WEIR_TOKEN_BUCKET, 10, WEIR_SECOND, 0);
    (void)unit_cell_take(&c, 10, WEIR_MINUTE);
    (void)unit_cell_take(&c, 10, WEIR_MINUTE + WEIR_SECOND);
    uint64_t word = c.word;
    unit_cell_refund(&c, 10, WEIR_MINUTE, WEIR_MINUTE + WEIR_SECOND);
    assert_int_equal(c.word, word); /* a whole reach has passed */
    unit_cell_refund(&c, 1, WEIR_MINUTE + 1, WEIR_MINUTE + WEIR_SECOND);
    assert_int_equal(c.word, word - c.params.step);
    unit_cell_refund(&c, UINT64_MAX, WEIR_MINUTE + WEIR_SECOND, WEIR_MINUTE + WEIR_SECOND);
    assert_int_equal(unit_cell_fresh_in(&c, WEIR_MINUTE + WEIR_SECOND), 0);
}

static void a_debt_is_repaid_last_so_its_refund_counts_for_longer(void **state)
{
    struct unit_cell c = unit_cell(WEIR_TOKEN_BUCKET, 10, WEIR_SECOND, 10);
    assert_int_equal(unit_cell_charge(&c, 20, WEIR_MINUTE), 20);
    uint64_t later = WEIR_MINUTE + WEIR_SECOND + WEIR_SECOND / 2; /* past the quota, in the debt */
    uint64_t word = c.word;
    unit_cell_refund(&c, 5, WEIR_MINUTE, later);
    assert_int_equal(c.word, word - 5 * c.params.step);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_time_unit_is_as_fine_as_the_rate_needs),
        cmocka_unit_test(a_step_is_rounded_up_by_less_than_one_in_10000),
        cmocka_unit_test(span_and_reach_are_what_quota_and_debt_take),
        cmocka_unit_test(a_live_change_keeps_the_time_unit_or_is_refused),
        cmocka_unit_test(rates_above_one_in_a_nanosecond_are_refused),
        cmocka_unit_test(quotas_whose_refill_does_not_fit_are_refused),
        cmocka_unit_test(a_debt_is_repaid_last_so_its_refund_counts_for_longer),
        cmocka_unit_test(a_refund_of_what_has_drained_long_ago_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
