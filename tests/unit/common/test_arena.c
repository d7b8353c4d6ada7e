#include "common/arena.h"
#include "support/engine/unit_limiter.h"

#include <stdlib.h>

static bool is_zero(const void *p, size_t n)
{
    const unsigned char *bytes = p;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

static void every_piece_is_zeroed_aligned_and_its_own(void **state)
{
    struct arena arena = ARENA_INIT;
    unsigned char *pieces[400];
    for (size_t i = 0; i < 400; i++) {
        pieces[i] = arena_take(&arena, i * 7 % 900);
        assert_non_null(pieces[i]);
        assert_int_equal((uintptr_t)pieces[i] % _Alignof(max_align_t), 0);
        assert_true(is_zero(pieces[i], i * 7 % 900));
        memset(pieces[i], (int)(i % 255 + 1), i * 7 % 900);
    }
    for (size_t i = 0; i < 400; i++) {
        for (size_t j = 0; j < i * 7 % 900; j++) {
            assert_int_equal(pieces[i][j], i % 255 + 1);
        }
    }
    assert_false(arena.failed);
    arena_finish(&arena);
}

static void a_piece_of_no_bytes_is_a_piece_also_of_an_empty_arena(void **state)
{
    struct arena arena = ARENA_INIT;
    assert_non_null(arena_take(&arena, 0));
    assert_non_null(arena_array(&arena, 0, 100));
    assert_false(arena.failed);
    arena_finish(&arena);
}

static void large_pieces_leave_the_rest_of_a_block_usable(void **state)
{
    struct arena arena = ARENA_INIT;
    char *large = arena_take(&arena, 1 << 20);
    char *small = arena_take(&arena, 16);
    size_t left = arena.left;
    char *larger = arena_take(&arena, 3 << 20);
    assert_non_null(large);
    assert_non_null(small);
    assert_non_null(larger);
    assert_true(is_zero(large, 1 << 20) && is_zero(larger, 3 << 20));
    assert_int_equal(arena.left, left);
    assert_ptr_equal((char *)arena_take(&arena, 16), small + 16);
    arena_finish(&arena);
}

static void what_does_not_fit_is_null_and_remembered(void **state)
{
    struct arena arena = ARENA_INIT;
    assert_null(arena_take(&arena, SIZE_MAX));
    assert_true(arena.failed);
    assert_non_null(arena_take(&arena, 8));
    assert_true(arena.failed); /* one check at the end of a long chain is enough */
    arena_finish(&arena);
    assert_false(arena.failed);
}

static void an_array_that_overflows_is_null(void **state)
{
    struct arena arena = ARENA_INIT;
    assert_null(arena_array(&arena, SIZE_MAX / 2, 3));
    assert_true(arena.failed);
    arena_finish(&arena);
    assert_null(arena_array(&arena, SIZE_MAX / 8, 8));
    assert_true(arena.failed);
    arena_finish(&arena);
}

static void a_text_is_copied_and_terminated_behind_its_length(void **state)
{
    struct arena arena = ARENA_INIT;
    char from[] = "abc\0def";
    struct weir_text copy = arena_text(&arena, (struct weir_text){from, 7});
    memset(from, 'x', sizeof from);
    assert_int_equal(copy.len, 7);
    assert_memory_equal(copy.at, "abc\0def", 8);
    struct weir_text none = arena_text(&arena, (struct weir_text){NULL, 0});
    assert_non_null(none.at);
    assert_int_equal(none.at[0], 0);
    arena_finish(&arena);
}

static void a_format_is_as_long_as_it_needs(void **state)
{
    struct arena arena = ARENA_INIT;
    const char *text = arena_format(&arena, "%0*d:%s", 20000, 7, "end");
    assert_non_null(text);
    assert_int_equal(strlen(text), 20004);
    assert_string_equal(text + 19999, "7:end");
    arena_finish(&arena);
}

static void appending_keeps_what_was_there(void **state)
{
    struct arena arena = ARENA_INIT;
    uint32_t *array = NULL;
    size_t count = 0;
    for (uint32_t i = 1; i <= 5000; i++) {
        assert_true(arena_append(&arena, &array, &count, sizeof i, &i));
        assert_int_equal(count, i);
        (void)arena_take(&arena, 1); /* so that it cannot grow in place */
    }
    for (uint32_t i = 0; i < 5000; i++) {
        assert_int_equal(array[i], i + 1);
    }
    arena_finish(&arena);
}

static void a_finished_arena_is_empty_and_can_be_used_again(void **state)
{
    struct arena arena = ARENA_INIT;
    arena_finish(&arena);
    assert_non_null(arena_take(&arena, 100));
    arena_finish(&arena);
    arena_finish(&arena);
    assert_null(arena.blocks);
    assert_int_equal(arena.left, 0);
    assert_non_null(arena_take(&arena, 100));
    arena_finish(&arena);
}

static void a_rewound_arena_has_what_it_had_at_the_mark_and_zeroes_the_rest(void **state)
{
    struct arena arena = {.block_bytes = 256};
    char *kept = arena_take(&arena, 16);
    memset(kept, 1, 16);
    struct arena_mark mark = arena_mark(&arena);
    const size_t sizes[] = {16, 200, 60, 100000}; /* in the block, beyond it, a large one */
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i <= round; i++) {
            char *piece = arena_take(&arena, sizes[i]);
            assert_non_null(piece);
            for (size_t k = 0; k < sizes[i]; k++) {
                assert_int_equal(piece[k], 0);
            }
            memset(piece, 2, sizes[i]);
        }
        arena_rewind(&arena, mark);
        assert_ptr_equal(arena.blocks, mark.block);
        assert_int_equal(arena.left, mark.left);
        assert_int_equal(kept[15], 1);
    }
    assert_null(arena_take(&arena, SIZE_MAX / 2));
    assert_true(arena.failed);
    arena_rewind(&arena, mark);
    assert_false(arena.failed);
    arena_finish(&arena);
}

static void a_first_piece_larger_than_a_block_is_a_block(void **state)
{
    struct arena arena = {.block_bytes = 64};
    struct arena_mark mark;
    assert_non_null(arena_take(&arena, 1000));
    mark = arena_mark(&arena);
    assert_int_equal(mark.left, arena.left);
    assert_non_null(arena_take(&arena, 10));
    arena_rewind(&arena, mark);
    arena_finish(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_piece_is_zeroed_aligned_and_its_own),
        cmocka_unit_test(a_piece_of_no_bytes_is_a_piece_also_of_an_empty_arena),
        cmocka_unit_test(large_pieces_leave_the_rest_of_a_block_usable),
        cmocka_unit_test(what_does_not_fit_is_null_and_remembered),
        cmocka_unit_test(an_array_that_overflows_is_null),
        cmocka_unit_test(a_text_is_copied_and_terminated_behind_its_length),
        cmocka_unit_test(a_format_is_as_long_as_it_needs),
        cmocka_unit_test(appending_keeps_what_was_there),
        cmocka_unit_test(a_finished_arena_is_empty_and_can_be_used_again),
        cmocka_unit_test(a_rewound_arena_has_what_it_had_at_the_mark_and_zeroes_the_rest),
        cmocka_unit_test(a_first_piece_larger_than_a_block_is_a_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
