#include "base/maths.h"
#include "support/engine/unit_limiter.h"

#define TOP UINT64_MAX

static void sums_saturate(void **state)
{
    assert_int_equal(add_sat(1, 2), 3);
    assert_true(add_sat(TOP, 0) == TOP);
    assert_true(add_sat(TOP, 1) == TOP);
    assert_true(add_sat(TOP, TOP) == TOP);
    assert_true(add_sat(TOP - 1, 1) == TOP);
}

static void differences_stop_at_0(void **state)
{
    assert_int_equal(sub_floor0(5, 3), 2);
    assert_int_equal(sub_floor0(3, 3), 0);
    assert_int_equal(sub_floor0(3, 5), 0);
    assert_int_equal(sub_floor0(0, TOP), 0);
    assert_true(sub_floor0(TOP, 0) == TOP);
}

static void smaller_and_larger(void **state)
{
    assert_int_equal(min_u64(2, 3), 2);
    assert_int_equal(min_u64(TOP, 3), 3);
    assert_int_equal(max_u64(2, 3), 3);
    assert_true(max_u64(TOP, 3) == TOP);
}

static void the_high_half_of_a_product_maps_onto_a_range(void **state)
{
    assert_int_equal(mul_high(TOP, TOP), TOP - 1);
    assert_int_equal(mul_high(TOP, 10), 9);
    assert_int_equal(mul_high(UINT64_C(1) << 63, 10), 5);
    assert_int_equal(mul_high(0, TOP), 0);
    uint64_t seed = 1;
    for (int i = 0; i < 10000; i++) {
        uint64_t n = unit_random(&seed) | 1;
        assert_true(mul_high(unit_random(&seed), n) < n);
    }
}

/* Schoolbook long division by doubling, as a second opinion. */
static u128 divide(u128 a, uint64_t c)
{
    u128 quotient = 0;
    u128 rest = 0;
    for (int i = 127; i >= 0; i--) {
        rest = rest << 1 | (a >> i & 1);
        quotient <<= 1;
        if (rest >= c) {
            rest -= c;
            quotient |= 1;
        }
    }
    return quotient;
}

static void quotients_of_products_are_exact_and_saturate(void **state)
{
    uint64_t seed = 2;
    for (int i = 0; i < 5000; i++) {
        uint64_t a = unit_random(&seed) >> unit_random(&seed) % 64;
        uint64_t b = unit_random(&seed) >> unit_random(&seed) % 64;
        uint64_t c = (unit_random(&seed) >> unit_random(&seed) % 64) | 1;
        u128 floor = divide((u128)a * b, c);
        u128 ceil = floor + (floor * c != (u128)a * b);
        assert_true(mul_div(a, b, c) == (floor > TOP ? TOP : (uint64_t)floor));
        assert_true(mul_div_up(a, b, c) == (ceil > TOP ? TOP : (uint64_t)ceil));
    }
    assert_true(mul_div(TOP, TOP, TOP) == TOP);
    assert_true(mul_div_up(TOP, TOP, 1) == TOP);
    assert_true(mul_div_up(TOP, TOP, TOP) == TOP);
    assert_int_equal(mul_div_up(1, 1, TOP), 1);
    assert_int_equal(mul_div_up(0, TOP, TOP), 0);
}

static void shifts_round_up(void **state)
{
    assert_int_equal(shift_up(0, 7), 0);
    assert_int_equal(shift_up(1, 7), 1);
    assert_int_equal(shift_up(128, 7), 1);
    assert_int_equal(shift_up(129, 7), 2);
    assert_true(shift_up(TOP, 0) == TOP);
    assert_true(shift_up(TOP, 63) == 2);
    assert_true(shift_up(TOP, 1) == UINT64_C(1) << 63);
}

static void bits_of_numbers(void **state)
{
    assert_int_equal(bits_for(0), 0);
    assert_int_equal(bits_for(1), 1);
    assert_int_equal(bits_for(TOP), 64);
    for (unsigned i = 0; i < 64; i++) {
        assert_int_equal(bits_for(UINT64_C(1) << i), i + 1);
        assert_int_equal(bits_for((UINT64_C(1) << i) - 1), i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_saturate),
        cmocka_unit_test(differences_stop_at_0),
        cmocka_unit_test(smaller_and_larger),
        cmocka_unit_test(the_high_half_of_a_product_maps_onto_a_range),
        cmocka_unit_test(quotients_of_products_are_exact_and_saturate),
        cmocka_unit_test(shifts_round_up),
        cmocka_unit_test(bits_of_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
