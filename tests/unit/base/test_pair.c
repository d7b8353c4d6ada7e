#include "base/pair.h"
#include "support/engine/unit_limiter.h"

#include <pthread.h>

static struct pair cell;

static void this_processor_has_what_is_needed(void **state)
{
    assert_int_equal(pair_init(), 0);
    assert_int_equal(pair_init(), 0);
}

/* Way 0 to 3: each combination of load and swap that this processor has. */
#define WAYS 4

static void choose_way(int way)
{
    assert_int_equal(pair_init(), 0);
    pair_single_load = pair_single_load && (way & 1) == 0;
    pair_single_swap = pair_single_swap && (way & 2) == 0;
}

static int choose_best(void **state)
{
    choose_way(0);
    return 0;
}

static void a_swap_needs_both_halves_to_agree(void **state)
{
    for (int way = 0; way < WAYS; way++) {
        choose_way(way);
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
}

static void a_load_returns_both_halves_each_way(void **state)
{
    const struct pair values[] = {{0, 0}, {1, 0}, {0, 1}, {UINT64_MAX, UINT64_MAX}, {7, 9}};
    for (int i = 0; i < 5 * WAYS; i++) {
        choose_way(i / 5);
        cell = values[i % 5];
        struct pair seen = pair_load(&cell);
        struct pair single = pair_load_single(&cell); /* one thread: even if it may tear */
        struct pair by_swap = pair_load_by_swap(&cell);
        assert_memory_equal(&seen, &values[i % 5], sizeof seen);
        assert_memory_equal(&single, &values[i % 5], sizeof seen);
        assert_memory_equal(&by_swap, &values[i % 5], sizeof seen);
        assert_memory_equal(&cell, &values[i % 5], sizeof seen);
    }
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
    for (int way = 0; way < WAYS; way++) {
        pthread_t writer[2];
        pthread_t reader;
        uint64_t torn = 1;
        choose_way(way);
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
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(this_processor_has_what_is_needed),
        cmocka_unit_test_teardown(a_swap_needs_both_halves_to_agree, choose_best),
        cmocka_unit_test_teardown(a_load_returns_both_halves_each_way, choose_best),
        cmocka_unit_test_teardown(neither_loads_nor_swaps_tear, choose_best),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
