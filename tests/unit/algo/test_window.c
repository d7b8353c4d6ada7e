#include "algo/window.h"
#include "support/unit_cell.h"

static int compile(uint64_t count, uint64_t debt, uint64_t period, unsigned counters,
                   struct algo_params *p)
{
    struct limit_spec spec = unit_spec(WEIR_FIXED_WINDOW, count, period, debt);
    memset(p, 0, sizeof *p);
    p->spec = spec;
    return window_compile(&spec, counters, p, NULL);
}

/* A hundred years of windows, two more, and the counters fit into one word. */
static void the_index_takes_as_many_bits_as_a_century_needs(void **state)
{
    for (uint64_t period = 1000; period <= ALGO_LIFE_NS; period = period * 7 / 3) {
        for (unsigned counters = 1; counters <= 2; counters++) {
            struct algo_params p;
            assert_int_equal(compile(1, 0, period, counters, &p), 0);
            uint64_t last = window_index(&p, p.max_time + period);
            assert_true(bits_for(last) + counters * p.count_bits <= 64);
            assert_true(bits_for(last) + counters * (p.count_bits + 1) > 64);
        }
    }
}

static void count_and_debt_share_the_counter(void **state)
{
    struct algo_params p;
    for (unsigned counters = 1; counters <= 2; counters++) {
        assert_int_equal(compile(1, 0, WEIR_HOUR, counters, &p), 0);
        uint64_t most = (UINT64_C(1) << p.count_bits) - 1;
        assert_int_equal(compile(most, 0, WEIR_HOUR, counters, &p), 0);
        assert_int_equal(p.max_count, most);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_index_takes_as_many_bits_as_a_century_needs),
        cmocka_unit_test(count_and_debt_share_the_counter),
        cmocka_unit_test(indexes_begin_at_1_and_starts_are_multiples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
