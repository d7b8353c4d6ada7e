#include "algo/window.h"
#include "support/engine/unit_cell.h"

static int compile(uint64_t count, uint64_t debt, uint64_t period, unsigned counters,
                   struct algo_params *p)
{
    int algorithm = counters == 1 ? WEIR_FIXED_WINDOW : WEIR_SLIDING_WINDOW;
    struct limit_spec spec = unit_spec(algorithm, count, period, debt);
    struct algo_layout layout = {0, 0, false};
    memset(p, 0, sizeof *p);
    p->spec = spec;
    return algo_by_id(algorithm)->compile(&spec, &layout, p, NULL);
}

/* A hundred years of windows, two more, and the counters fit into one word. */
static void the_index_takes_as_many_bits_as_a_century_needs(void **state)
{
    for (uint64_t period = 1000; period <= ALGO_LIFE_NS; period = period * 7 / 3) {
        for (unsigned counters = 1; counters <= 2; counters++) {
            struct algo_params p;
            assert_int_equal(compile(1, 0, period, counters, &p), 0);
            uint64_t last = window_index(&p, p.max_time + period);
            assert_true(bits_for(last) + counters * bits_for(p.count_mask) <= 64);
            assert_true(bits_for(last) + counters * (bits_for(p.count_mask) + 1) > 64);
        }
    }
}

static void count_and_debt_share_the_counter(void **state)
{
    struct algo_params p;
    for (unsigned counters = 1; counters <= 2; counters++) {
        assert_int_equal(compile(1, 0, WEIR_HOUR, counters, &p), 0);
        uint64_t most = p.count_mask;
        assert_int_equal(compile(most, 0, WEIR_HOUR, counters, &p), 0);
        assert_int_equal(p.quota, most);
        assert_int_equal(compile(most + 1, 0, WEIR_HOUR, counters, &p), WEIR_EQUOTA);
        assert_int_equal(compile(most - 5, 5, WEIR_HOUR, counters, &p), 0);
        assert_int_equal(compile(most - 5, 6, WEIR_HOUR, counters, &p), WEIR_EQUOTA);
        assert_int_equal(compile(1, UINT64_MAX, WEIR_HOUR, counters, &p), WEIR_EQUOTA);
        assert_int_equal(compile(UINT64_MAX, UINT64_MAX, WEIR_HOUR, counters, &p), WEIR_EQUOTA);
    }
}

static void indexes_begin_at_1_and_starts_are_multiples(void **state)
{
    struct algo_params p;
    assert_int_equal(compile(1, 0, WEIR_HOUR, 1, &p), 0);
    assert_int_equal(window_index(&p, 0), 1);
    assert_int_equal(window_index(&p, WEIR_HOUR - 1), 1);
    assert_int_equal(window_index(&p, WEIR_HOUR), 2);
    for (uint64_t i = 1; i < 100; i++) {
        assert_int_equal(window_index(&p, window_start(&p, i)), i);
    }
}

/* Each multiple and its neighbours, and the ends of the range. */
static void quotients_are_exact_at(const struct algo_params *p, u128 x)
{
    uint64_t period = p->spec.period_ns;
    u128 multiple = x - x % period;
    u128 near[] = {x, multiple, multiple + 1, multiple + period - 1, multiple + period};
    for (size_t i = 0; i < sizeof near / sizeof near[0]; i++) {
        assert_int_equal(window_periods(p, near[i]), (uint64_t)(near[i] / period));
    }
}

static uint64_t next_random(uint64_t *x)
{
    *x = *x * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *x ^ *x >> 29;
}

/* 1 us, 100 years, powers of two with their neighbours, and others in between. */
static size_t periods_to_try(uint64_t *periods)
{
    size_t n = 0;
    for (unsigned bit = 10; bit <= 61; bit++) {
        periods[n++] = (UINT64_C(1) << bit) - 1;
        periods[n++] = UINT64_C(1) << bit;
        periods[n++] = (UINT64_C(1) << bit) + 1;
        periods[n++] = (UINT64_C(1) << bit) / 3 * 4 + bit;
    }
    const uint64_t common[] = {1000,     WEIR_MILLISECOND, WEIR_SECOND,  WEIR_MINUTE,
                               WEIR_DAY, 30 * WEIR_DAY,    ALGO_LIFE_NS, ALGO_LIFE_NS - 1};
    for (size_t i = 0; i < sizeof common / sizeof common[0]; i++) {
        periods[n++] = common[i];
    }
    return n;
}

static void division_by_the_period_is_exact(void **state)
{
    uint64_t periods[256];
    uint64_t random = 1;
    size_t n = periods_to_try(periods);
    for (size_t i = 0; i < n; i++) {
        uint64_t period = min_u64(periods[i], ALGO_LIFE_NS);
        struct algo_params p;
        assert_int_equal(compile(1, 0, period, 2, &p), 0);
        uint64_t most = p.count_mask;
        quotients_are_exact_at(&p, 0);
        quotients_are_exact_at(&p, p.max_time);
        quotients_are_exact_at(&p, UINT64_MAX - period);
        quotients_are_exact_at(&p, mul_wide(most, period));
        quotients_are_exact_at(&p, mul_wide((UINT64_C(1) << 61) - 2, period));
        for (unsigned k = 0; k < 2000; k++) {
            quotients_are_exact_at(&p, next_random(&random) % p.max_time >> k % 60);
            quotients_are_exact_at(&p, mul_wide(next_random(&random) & most >> k % 20,
                                                next_random(&random) % period + 1));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_index_takes_as_many_bits_as_a_century_needs),
        cmocka_unit_test(count_and_debt_share_the_counter),
        cmocka_unit_test(indexes_begin_at_1_and_starts_are_multiples),
        cmocka_unit_test(division_by_the_period_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
