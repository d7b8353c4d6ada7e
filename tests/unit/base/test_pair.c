#include "base/pair.h"
#include "support/unit_limiter.h"

#include <pthread.h>

static struct pair cell;

static void this_processor_has_what_is_needed(void **state)
{
    assert_int_equal(pair_init(), 0);
    assert_int_equal(pair_init(), 0);
}

static void a_swap_needs_both_halves_to_agree(void **state)
{
    cell = (struct pair){1, 2};
    assert_false(pair_cas(&cell, (struct pair){1, 3}, (struct pair){9, 9}));
    assert_false(pair_cas(&cell, (struct pair){0, 2}, (struct pair){9, 9}));
    assert_false(pair_cas(&cell, (struct pair){2, 1}, (struct pair){9, 9}));
    assert_int_equal(cell.tag, 1);
    assert_int_equal(cell.word, 2);
    assert_true(pair_cas(&cell, (struct pair){1, 2}, (struct pair){UINT64_MAX, 0}));
    assert_true(cell.tag == UINT64_MAX);
    assert_int_equal(cell.word, 0);
}

static void a_load_returns_both_halves_either_way(void **state)
{
    const struct pair values[] = {{0, 0}, {1, 0}, {0, 1}, {UINT64_MAX, UINT64_MAX}, {7, 9}};
    bool was = pair_vector_load;
    for (int i = 0; i < 10; i++) {
        pair_vector_load = i < 5 ? was : false;
        cell = values[i % 5];
        struct pair seen = pair_load(&cell);
        struct pair by_cas = pair_load_by_cas(&cell);
        assert_memory_equal(&seen, &values[i % 5], sizeof seen);
        assert_memory_equal(&by_cas, &values[i % 5], sizeof seen);
        assert_memory_equal(&cell, &values[i % 5], sizeof seen);
    }
    pair_vector_load = was;
}

/* Writers keep tag == ~word; no reader may ever see anything else. */
#define ROUNDS 100000

static void *write_pairs(void *arg)
{
    uint64_t rounds = unit_scale(ROUNDS);
    for (uint64_t i = 0; i < rounds; i++) {
        struct pair seen = pair_load(&cell);
        (void)pair_cas(&cell, seen, (struct pair){seen.tag + 1, ~(seen.tag + 1)});
    }
    return NULL;
}

static void *read_pairs(void *arg)
{
    uint64_t torn = 0;
    uint64_t rounds = unit_scale(ROUNDS);
    for (uint64_t i = 0; i < rounds; i++) {
        struct pair seen = pair_load(&cell);
        torn += seen.tag != ~seen.word;
    }
    *(uint64_t *)arg = torn;
    return NULL;
}

static void neither_loads_nor_swaps_tear(void **state)
{
    for (int vector = 0; vector < 2; vector++) {
        pthread_t writer[2];
        pthread_t reader;
        uint64_t torn = 1;
        assert_int_equal(pair_init(), 0);
        pair_vector_load = pair_vector_load && vector != 0;
        cell = (struct pair){0, UINT64_MAX};
        for (int i = 0; i < 2; i++) {
            assert_int_equal(pthread_create(&writer[i], NULL, write_pairs, NULL), 0);
        }
        assert_int_equal(pthread_create(&reader, NULL, read_pairs, &torn), 0);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(pthread_join(writer[i], NULL), 0);
        }
        assert_int_equal(pthread_join(reader, NULL), 0);
        assert_int_equal(torn, 0);
    }
    assert_int_equal(pair_init(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(this_processor_has_what_is_needed),
        cmocka_unit_test(a_swap_needs_both_halves_to_agree),
        cmocka_unit_test(a_load_returns_both_halves_either_way),
        cmocka_unit_test(neither_loads_nor_swaps_tear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
