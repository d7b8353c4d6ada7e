#include "common/text_map.h"
#include "support/engine/unit_limiter.h"

#include <stdio.h>

static void texts_are_found_by_their_bytes(void **state)
{
    struct arena arena = ARENA_INIT;
    struct text_map *map = text_map_create(&arena, 5);
    assert_non_null(map);
    assert_int_equal(text_map_put(map, TEXT("alice"), 1), -1);
    assert_int_equal(text_map_put(map, TEXT("alic"), 2), -1);
    assert_int_equal(text_map_put(map, TEXT("alice\0"), 3), -1);
    assert_int_equal(text_map_put(map, TEXT(""), 4), -1);
    assert_int_equal(text_map_put(map, TEXT("\xff\0\n"), UINT32_MAX), -1);
    assert_int_equal(text_map_find(map, TEXT("alice")), 1);
    assert_int_equal(text_map_find(map, TEXT("alic")), 2);
    assert_int_equal(text_map_find(map, TEXT("alice\0")), 3);
    assert_int_equal(text_map_find(map, TEXT("")), 4);
    assert_int_equal(text_map_find(map, TEXT("\xff\0\n")), UINT32_MAX);
    assert_int_equal(text_map_find(map, TEXT("Alice")), -1);
    assert_int_equal(text_map_count(map), 5);
    arena_finish(&arena);
}

static void the_first_of_two_equal_texts_stays(void **state)
{
    struct arena arena = ARENA_INIT;
    struct text_map *map = text_map_create(&arena, 2);
    char again[] = "bob";
    assert_int_equal(text_map_put(map, TEXT("bob"), 7), -1);
    assert_int_equal(text_map_put(map, text_of(again), 8), 7);
    assert_int_equal(text_map_find(map, TEXT("bob")), 7);
    assert_int_equal(text_map_count(map), 1);
    arena_finish(&arena);
}

static void more_texts_than_asked_for_are_refused(void **state)
{
    struct arena arena = ARENA_INIT;
    struct text_map *map = text_map_create(&arena, 2);
    assert_int_equal(text_map_put(map, TEXT("a"), 0), -1);
    assert_int_equal(text_map_put(map, TEXT("b"), 1), -1);
    assert_int_equal(text_map_put(map, TEXT("c"), 2), -2);
    assert_int_equal(text_map_put(map, TEXT("a"), 3), 0); /* it is there: no room is needed */
    assert_int_equal(text_map_find(map, TEXT("c")), -1);
    assert_int_equal(text_map_count(map), 2);
    arena_finish(&arena);
}

static void an_empty_map_and_none_at_all_hold_nothing(void **state)
{
    struct arena arena = ARENA_INIT;
    struct text_map *map = text_map_create(&arena, 0);
    assert_non_null(map);
    assert_int_equal(text_map_put(map, TEXT("a"), 0), -2);
    assert_int_equal(text_map_find(map, TEXT("a")), -1);
    assert_int_equal(text_map_find(NULL, TEXT("a")), -1);
    assert_int_equal(text_map_count(map), 0);
    assert_int_equal(text_map_count(NULL), 0);
    arena_finish(&arena);
}

static void a_map_of_every_size_holds_as_many_as_it_was_made_for(void **state)
{
    for (uint32_t n = 1; n < 300; n += 1 + n / 8) {
        struct arena arena = ARENA_INIT;
        struct text_map *map = text_map_create(&arena, n);
        for (uint32_t i = 0; i < n; i++) {
            const char *name = arena_format(&arena, "user-%u", i);
            assert_int_equal(text_map_put(map, text_of(name), i), -1);
        }
        for (uint32_t i = 0; i < 2 * n; i++) {
            char name[32];
            (void)snprintf(name, sizeof name, "user-%u", i);
            assert_int_equal(text_map_find(map, text_of(name)), i < n ? (int64_t)i : -1);
        }
        arena_finish(&arena);
    }
}

static void a_size_that_no_memory_holds_is_refused(void **state)
{
    struct arena arena = ARENA_INIT;
    assert_null(text_map_create(&arena, SIZE_MAX / 64));
    assert_true(arena.failed);
    arena_finish(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_found_by_their_bytes),
        cmocka_unit_test(the_first_of_two_equal_texts_stays),
        cmocka_unit_test(more_texts_than_asked_for_are_refused),
        cmocka_unit_test(an_empty_map_and_none_at_all_hold_nothing),
        cmocka_unit_test(a_map_of_every_size_holds_as_many_as_it_was_made_for),
        cmocka_unit_test(a_size_that_no_memory_holds_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
