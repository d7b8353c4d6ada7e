/* Skewed keys: each rank has the share that Zipf's law gives it, in an order that is none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "load/load_zipf.h"

#define DRAWS 100000
#define RANKS 5

static void each_rank_has_its_share(void **state)
{
    /* 100,000 * k^-0.99 / (1 + 2^-0.99 + ... + 5^-0.99) */
    static const unsigned shares[RANKS] = {43531, 21917, 14671, 11035, 8847};
    unsigned found[RANKS] = {0};
    (void)state;
    uint32_t *list = zipf_list(DRAWS, RANKS);
    assert_non_null(list);
    for (size_t i = 0; i < DRAWS; i++) {
        assert_in_range(list[i], 0, RANKS - 1);
        found[list[i]]++;
    }
    for (size_t k = 0; k < RANKS; k++) {
        assert_in_range(found[k], shares[k] - 1, shares[k] + 1);
    }
    free(list);
}

static void ranks_are_mixed(void **state)
{
    unsigned first_half = 0;
    (void)state;
    uint32_t *list = zipf_list(DRAWS, RANKS);
    assert_non_null(list);
    for (size_t i = 0; i < DRAWS / 2; i++) {
        first_half += list[i] == 0;
    }
    assert_in_range(first_half, 20000, 23500); /* about half of 43,531 */
    free(list);
}

static void a_single_rank_is_always_drawn(void **state)
{
    (void)state;
    uint32_t *list = zipf_list(10, 1);
    assert_non_null(list);
    for (size_t i = 0; i < 10; i++) {
        assert_int_equal(list[i], 0);
    }
    free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rank_has_its_share),
        cmocka_unit_test(ranks_are_mixed),
        cmocka_unit_test(a_single_rank_is_always_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
