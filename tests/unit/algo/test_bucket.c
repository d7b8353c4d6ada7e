/* What the two buckets share: compiling a rate into steps of a fraction of a nanosecond. */
#include "algo/bucket.h"
#include "support/engine/unit_cell.h"

static int compile(uint64_t count, uint64_t period, uint64_t quota, uint64_t debt,
                   const struct algo_layout *layout, struct algo_params *p)
{
    struct limit_spec spec = unit_spec(WEIR_TOKEN_BUCKET, quota, period, debt);
    spec.count = count;
    memset(p, 0, sizeof *p);
    return algo_token_bucket.compile(&spec, layout, p, NULL);
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

static void a_refund_goes_back_in_time_but_not_before_now(void **state)
{
    struct unit_cell c = unit_cell(WEIR_TOKEN_BUCKET, 10, WEIR_SECOND, 0);
    uint64_t later = WEIR_MINUTE + WEIR_SECOND;
    (void)unit_cell_take(&c, 10, WEIR_MINUTE);
    (void)unit_cell_take(&c, 10, later);
    uint64_t word = c.word;
    unit_cell_refund(&c, 3, WEIR_MINUTE, later);
    assert_int_equal(c.word, word - 3 * c.params.step);
    unit_cell_refund(&c, UINT64_MAX, WEIR_MINUTE, later);
    assert_int_equal(unit_cell_fresh_in(&c, later), 0);
    word = c.word;
    unit_cell_refund(&c, 1, WEIR_MINUTE, later);
    assert_int_equal(c.word, word); /* a full bucket stays as it is */
}

/*
 * Half a second after a charge of ten to a full bucket, five of them have
 * refilled; the others come back, whatever was taken since, and no more.
 */
static void a_roll_back_returns_no_unit_that_has_refilled(void **state)
{
    for (uint64_t taken = 0; taken <= 5; taken++) {
        struct unit_cell c = unit_cell(WEIR_TOKEN_BUCKET, 10, WEIR_SECOND, 0);
        struct unit_cell twin = c;
        uint64_t later = WEIR_MINUTE + WEIR_SECOND / 2;
        struct algo_ask ask = {later, 10, 0};
        (void)unit_cell_take(&c, 10, WEIR_MINUTE);
        struct algo_charge charge = {WEIR_MINUTE, c.params.step, c.word};
        if (taken != 0) {
            assert_int_equal(unit_cell_take(&c, taken, later), WEIR_ALLOW);
            assert_int_equal(unit_cell_take(&twin, taken, later), WEIR_ALLOW);
        }
        c.word = c.ops->refund(&c.params, (struct algo_state){c.word, c.record}, &ask, &charge);
        assert_int_equal(unit_cell_peek(&c, 1, later).remaining, 10 - taken);
        assert_int_equal(unit_cell_fresh_in(&c, later), unit_cell_fresh_in(&twin, later));
    }
}

/* Whatever others take between a charge and its roll-back: no richer than a twin without it. */
static void a_roll_back_never_makes_a_key_richer_than_if_it_had_not_been_charged(void **state)
{
    uint64_t seed = 12;
    uint64_t exact = 0;
    for (int i = 0; i < 20000; i++) {
        struct unit_cell c = unit_cell(WEIR_TOKEN_BUCKET, 10, WEIR_SECOND, 0);
        uint64_t now = WEIR_MINUTE;
        (void)unit_cell_charge(&c, unit_random(&seed) % 8, now);
        struct unit_cell twin = c;
        uint64_t units = 1 + unit_random(&seed) % 3;
        if (unit_cell_take(&c, units, now) != WEIR_ALLOW) {
            continue;
        }
        struct algo_charge charge = {now, c.params.step, c.word};
        for (uint64_t calls = unit_random(&seed) % 5; calls > 0; calls--) {
            uint64_t cost = 1 + unit_random(&seed) % 6;
            now += unit_random(&seed) % 3 * (unit_random(&seed) % (WEIR_SECOND / 3));
            if (unit_cell_take(&c, cost, now) == WEIR_ALLOW) {
                assert_int_equal(unit_cell_take(&twin, cost, now), WEIR_ALLOW);
            }
        }
        struct algo_ask ask = {now, units, 0};
        c.word = c.ops->refund(&c.params, (struct algo_state){c.word, c.record}, &ask, &charge);
        assert_true(unit_cell_fresh_in(&c, now) >= unit_cell_fresh_in(&twin, now));
        exact += unit_cell_fresh_in(&c, now) == unit_cell_fresh_in(&twin, now);
    }
    assert_true(exact > 10000);
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
        cmocka_unit_test(a_refund_goes_back_in_time_but_not_before_now),
        cmocka_unit_test(a_roll_back_returns_no_unit_that_has_refilled),
        cmocka_unit_test(a_roll_back_never_makes_a_key_richer_than_if_it_had_not_been_charged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
