/* Layout, addressing, lookup, removal, repair and recovery. */
#include "support/engine/unit_table.h"

static void shapes_are_even_padded_and_about_20_bytes_a_key(void **state)
{
    for (uint64_t keys = 1; keys < UINT64_C(1) << 34; keys = keys * 3 + 1) {
        uint64_t blocks = keys / 128 > 64 ? keys / 128 : 64; /* as by default */
        struct table_shape s = table_shape(keys, blocks, 0);
        assert_int_equal(s.lines % 2, 0);
        assert_true(s.lines * LINE_SLOTS * 25 >= keys * 32);
        assert_int_equal(s.stripes & (s.stripes - 1), 0);
        assert_in_range(s.stripes, 1, 1024);
        if (keys > 1000000) {
            assert_true(table_bytes(&s) <= keys * 21);
        }
        struct table_shape wide = table_shape(keys, blocks, 80);
        assert_int_equal(table_bytes(&wide), table_bytes(&s) + s.lines * LINE_SLOTS * 80);
    }
}

static void a_shape_beyond_all_memory_saturates(void **state)
{
    struct table_shape s = table_shape(UINT64_C(1) << 40, 64, UINT64_C(1) << 40);
    assert_true(table_bytes(&s) == UINT64_MAX);
    s = table_shape(UINT64_MAX, UINT64_MAX, 0);
    assert_true(table_bytes(&s) > UINT64_C(1) << 60);
}

static void the_two_lines_of_a_key_lie_in_different_halves_and_name_each_other(void **state)
{
    const uint64_t sizes[] = {1, 100, 1000, 77777};
    for (int i = 0; i < 4; i++) {
        struct unit_table *t = unit_table_make(sizes[i], 0);
        for (uint64_t n = 0; n < 20000; n++) {
            struct table_key key = unit_table_key(t, n);
            uint64_t other = table_other_line(&t->table, key.line, key.tag);
            assert_true(key.line < t->shape.lines && other < t->shape.lines);
            assert_int_not_equal(key.line < t->table.half, other < t->table.half);
            assert_int_equal(table_other_line(&t->table, other, key.tag), key.line);
            assert_int_equal(table_other_line(&t->table, other, key.tag | TAG_LEAVING), key.line);
        }
        unit_table_free(t);
    }
}

static void keys_spread_evenly_over_the_lines(void **state)
{
    struct unit_table *t = unit_table_make(1000, 0);
    unsigned first[2000] = {0};
    unsigned second[2000] = {0};
    assert_true(t->shape.lines <= 2000);
    uint64_t n = t->shape.lines * 100;
    for (uint64_t i = 0; i < n; i++) {
        struct table_key key = unit_table_key(t, i);
        first[key.line]++;
        second[table_other_line(&t->table, key.line, key.tag)]++;
    }
    for (uint64_t i = 0; i < t->shape.lines; i++) {
        assert_in_range(first[i], 40, 180);
        assert_in_range(second[i], 40, 180);
    }
    unit_table_free(t);
}

static void no_hash_makes_an_empty_tag(void **state)
{
    struct unit_table *t = unit_table_make(100, 0);
    const struct hash odd[] = {{0, 0}, {1, 7}, {UINT64_MAX, UINT64_MAX}, {UINT64_MAX, 0}};
    for (int i = 0; i < 4; i++) {
        struct table_key key = table_key(&t->table, odd[i]);
        assert_int_not_equal(key.tag, 0);
        assert_int_equal(key.tag & 7, 0);
        assert_true(key.line < t->shape.lines);
        assert_int_not_equal(table_block_tag(&t->table, odd[i]), 0);
    }
    unit_table_free(t);
}

static void what_was_claimed_is_found_with_and_without_the_lock(void **state)
{
    for (uint64_t record = 0; record <= 24; record += 24) {
        struct unit_table *t = unit_table_make(500, record);
        for (uint64_t n = 0; n < 500; n++) {
            assert_non_null(unit_table_claim(t, unit_table_key(t, n), 1000 + n, 0, false).slot);
        }
        for (uint64_t n = 0; n < 1000; n++) {
            struct table_key key = unit_table_key(t, n);
            uint64_t word = 0;
            assert_int_equal(unit_table_word(t, key, &word), n < 500);
            assert_int_equal(table_find(&t->table, key) != NULL, n < 500);
            assert_int_equal(word, n < 500 ? 1000 + n : 0);
            assert_int_equal(unit_table_copies(t, key), n < 500);
        }
        assert_int_equal(table_keys(&t->table), 500);
        unit_table_free(t);
    }
}

static void records_of_different_slots_do_not_overlap(void **state)
{
    struct unit_table *t = unit_table_make(50, 24);
    uint64_t slots = t->shape.lines * LINE_SLOTS;
    for (uint64_t i = 0; i < slots; i++) {
        uint64_t *record =
            table_record(&t->table, &t->table.lines[i / LINE_SLOTS].slot[i % LINE_SLOTS]);
        for (int j = 0; j < 3; j++) {
            record[j] = i;
        }
    }
    for (uint64_t i = 0; i < slots; i++) {
        uint64_t *record =
            table_record(&t->table, &t->table.lines[i / LINE_SLOTS].slot[i % LINE_SLOTS]);
        assert_true(record[0] == i && record[1] == i && record[2] == i);
    }
    unit_table_free(t);
    t = unit_table_make(50, 0);
    assert_null(table_record(&t->table, &t->table.lines[0].slot[0]));
    unit_table_free(t);
}

static void a_key_is_removed_only_if_it_is_as_it_was_seen(void **state)
{
    struct unit_table *t = unit_table_make(50, 0);
    struct table_key key = unit_table_key(t, 1);
    struct pair *slot = unit_table_claim(t, key, 77, 0, false).slot;
    lock_take(table_stripe(&t->table, key.tag), t->table.owner);
    assert_false(table_remove(&t->table, slot, (struct pair){key.tag, 78}));
    assert_int_equal(table_keys(&t->table), 1);
    assert_true(table_remove(&t->table, slot, (struct pair){key.tag, 77}));
    lock_release(table_stripe(&t->table, key.tag));
    assert_int_equal(table_keys(&t->table), 0);
    assert_int_equal(unit_table_copies(t, key), 0);
    unit_table_free(t);
}

/* ---- what dead movers leave ---- */

/* Puts the key into its two lines by hand, with marks. A tag of 0: nothing there. */
static void plant(struct unit_table *t, struct table_key key, uint64_t first, uint64_t second)
{
    uint64_t other = table_other_line(&t->table, key.line, key.tag);
    t->table.lines[key.line].slot[2] = (struct pair){first, first != 0 ? 55 : 0};
    t->table.lines[other].slot[1] = (struct pair){second, second != 0 ? 55 : 0};
}

/* After the n-th swap of a move: nothing, M1, M2 (and M3), M4. */
static void kill_after(unsigned step, bool backwards, bool recover)
{
    struct unit_table *t = unit_table_make(50, 16);
    struct table_key key = unit_table_key(t, step);
    const uint64_t marks[4][2] = {
        {key.tag, 0},
        {key.tag | TAG_LEAVING, 0},
        {key.tag | TAG_LEAVING, key.tag | TAG_ARRIVING},
        {key.tag | TAG_LEAVING, key.tag},
    };
    uint64_t word = 0;
    plant(t, key, marks[step][backwards], marks[step][!backwards]);
    if (recover) {
        table_recover(&t->table);
        assert_int_equal(unit_table_copies(t, key), 1);
        assert_int_equal(table_keys(&t->table), 1);
    }
    assert_true(unit_table_word(t, key, &word));
    assert_int_equal(word, 55);
    assert_int_equal(unit_table_copies(t, key), 1);
    assert_non_null(table_find(&t->table, key));
    unit_table_free(t);
}

static void every_step_of_a_dead_move_is_repaired_to_exactly_one(void **state)
{
    for (unsigned i = 0; i < 16; i++) {
        kill_after(i / 4, (i & 1) != 0, (i & 2) != 0);
    }
}

/* Pages of a copy may be of different moments: the key is in its old and in its new place. */
static void recovery_keeps_the_later_of_two_copies(void **state)
{
    for (int swap = 0; swap < 2; swap++) {
        struct unit_table *t = unit_table_make(50, 0);
        struct table_key key = unit_table_key(t, 3);
        uint64_t other = table_other_line(&t->table, key.line, key.tag);
        uint64_t word = 0;
        t->table.lines[key.line].slot[0] = (struct pair){key.tag, swap != 0 ? 70 : 80};
        t->table.lines[other].slot[3] = (struct pair){key.tag, swap != 0 ? 80 : 70};
        table_recover(&t->table);
        assert_int_equal(unit_table_copies(t, key), 1);
        assert_true(unit_table_word(t, key, &word));
        assert_int_equal(word, 80);
        assert_int_equal(table_keys(&t->table), 1);
        unit_table_free(t);
    }
}

static void recovery_counts_keys_again(void **state)
{
    struct unit_table *t = unit_table_make(50, 0);
    for (uint64_t n = 0; n < 20; n++) {
        struct table_key key = unit_table_key(t, n);
        assert_non_null(unit_table_claim(t, key, 1000, 0, false).slot);
    }
    t->counts.keys = UINT64_MAX;
    assert_true(table_keys(&t->table) <= t->shape.lines * LINE_SLOTS); /* never taken for huge */
    table_recover(&t->table);
    assert_int_equal(table_keys(&t->table), 20);
    unit_table_free(t);
}

/* No step of a move leaves these; a damaged file may have them. */
static void recovery_heals_slots_that_no_move_leaves(void **state)
{
    struct unit_table *t = unit_table_make(50, 0);
    struct table_key key = unit_table_key(t, 1);
    uint64_t word;
    t->table.lines[key.line].slot[0] = (struct pair){key.tag | TAG_MARKS, 77};
    t->table.lines[key.line].slot[1] = (struct pair){0, 5};
    t->table.lines[key.line].slot[2] = (struct pair){TAG_LEAVING, 5};
    t->table.lines[key.line].slot[3] = (struct pair){unit_table_key(t, 2).tag | 4, 5};
    table_recover(&t->table);
    assert_true(unit_table_word(t, key, &word));
    assert_int_equal(word, 77);
    assert_int_equal(table_keys(&t->table), 1);
    for (int i = 1; i < LINE_SLOTS; i++) {
        assert_int_equal(t->table.lines[key.line].slot[i].tag, 0);
        assert_int_equal(t->table.lines[key.line].slot[i].word, 0);
    }
    unit_table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes_are_even_padded_and_about_20_bytes_a_key),
        cmocka_unit_test(a_shape_beyond_all_memory_saturates),
        cmocka_unit_test(the_two_lines_of_a_key_lie_in_different_halves_and_name_each_other),
        cmocka_unit_test(keys_spread_evenly_over_the_lines),
        cmocka_unit_test(no_hash_makes_an_empty_tag),
        cmocka_unit_test(what_was_claimed_is_found_with_and_without_the_lock),
        cmocka_unit_test(records_of_different_slots_do_not_overlap),
        cmocka_unit_test(a_key_is_removed_only_if_it_is_as_it_was_seen),
        cmocka_unit_test(every_step_of_a_dead_move_is_repaired_to_exactly_one),
        cmocka_unit_test(recovery_keeps_the_later_of_two_copies),
        cmocka_unit_test(recovery_counts_keys_again),
        cmocka_unit_test(recovery_heals_slots_that_no_move_leaves),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
