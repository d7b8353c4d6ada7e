/* Making room by moving residents to their other lines. */
#include "support/engine/unit_table.h"

#define LATER 1000000

static uint64_t word_of(uint64_t n)
{
    return LATER + n;
}

/* Fills to max_keys; every key must be there, once, with its word and record. */
static void fill_to_the_brim(uint64_t max_keys, uint64_t record_bytes)
{
    struct unit_table *t = unit_table_make(max_keys, record_bytes);
    uint64_t moved = 0;
    for (uint64_t n = 0; n < max_keys; n++) {
        struct claim c = unit_table_claim(t, unit_table_key(t, n), word_of(n), 0, false);
        assert_non_null(c.slot);
        assert_int_equal(c.evicted + c.reclaimed, 0);
        moved += c.moved;
        if (record_bytes != 0) {
            table_record(&t->table, c.slot)[1] = n;
        }
    }
    assert_true(max_keys < 1000 || moved > 0);
    for (uint64_t n = 0; n < max_keys; n++) {
        struct table_key key = unit_table_key(t, n);
        struct pair *slot = table_find(&t->table, key);
        assert_non_null(slot);
        assert_int_equal(slot->word, word_of(n));
        assert_true(record_bytes == 0 || table_record(&t->table, slot)[1] == n);
    }
    assert_int_equal(unit_table_used(t), max_keys);
    assert_int_equal(table_keys(&t->table), max_keys);
    unit_table_free(t);
}

static void max_keys_fit_and_nobody_is_lost_or_doubled_by_moves(void **state)
{
    const uint64_t sizes[] = {1, 2, 10, 64, 100, 1000, 10000};
    for (int i = 0; i < 7; i++) {
        fill_to_the_brim(sizes[i], 0);
        fill_to_the_brim(sizes[i], 16);
    }
}

static void max_keys_fit_for_a_hundred_thousand(void **state)
{
    fill_to_the_brim(100000, 0);
}

/* Until nothing more can be moved: what was there stays there. */
static void nobody_is_lost_beyond_max_keys_either(void **state)
{
    struct unit_table *t = unit_table_make(1000, 16);
    bool in[3000];
    for (uint64_t n = 0; n < 3000; n++) {
        struct claim c = unit_table_claim(t, unit_table_key(t, n), word_of(n), 0, false);
        in[n] = c.slot != NULL;
        assert_true(in[n] || n >= 1000);
    }
    for (uint64_t n = 0; n < 3000; n++) {
        uint64_t word = 0;
        assert_int_equal(unit_table_word(t, unit_table_key(t, n), &word), in[n]);
        assert_int_equal(word, in[n] ? word_of(n) : 0);
        assert_int_equal(unit_table_copies(t, unit_table_key(t, n)), in[n]);
    }
    unit_table_free(t);
}

/* The lines of a key, filled with residents of which one kind may move. */
static unsigned occupy(struct unit_table *t, struct table_key key, uint64_t marks)
{
    uint64_t lines[2] = {key.line, table_other_line(&t->table, key.line, key.tag)};
    unsigned placed = 0;
    for (uint64_t n = 1000; placed < 8; n++) {
        struct table_key k = unit_table_key(t, n);
        k.tag |= marks;
        uint64_t l = lines[placed / 4];
        if (k.line == l || table_other_line(&t->table, k.line, k.tag) == l) {
            t->table.lines[l].slot[placed % 4] = (struct pair){k.tag, LATER};
            placed++;
        }
    }
    t->counts.keys = placed;
    return placed;
}

static void residents_move_out_of_the_way(void **state)
{
    struct unit_table *t = unit_table_make(50, 0);
    struct table_key key = unit_table_key(t, 1);
    (void)occupy(t, key, 0);
    struct claim c = unit_table_claim(t, key, LATER, 0, false);
    assert_non_null(c.slot);
    assert_int_equal(c.moved, 1);
    assert_int_equal(unit_table_used(t), 9);
    unit_table_free(t);
}

static void a_resident_whose_stripe_is_taken_is_not_moved(void **state)
{
    struct unit_table *t = unit_table_make(300, 0);
    struct table_key key = unit_table_key(t, 1);
    struct lock *own = table_stripe(&t->table, key.tag);
    (void)occupy(t, key, 0);
    lock_take(own, t->table.owner);
    for (uint64_t i = 0; i <= t->table.stripe_mask; i++) {
        if (&t->table.stripes[i] != own) {
            lock_take(&t->table.stripes[i], t->table.owner);
        }
    }
    struct claim c = {.slot = NULL, .full_for = UINT64_MAX};
    bool made = table_make_room(&t->table, key, 0, &c);
    for (uint64_t i = 0; i <= t->table.stripe_mask; i++) {
        lock_release(&t->table.stripes[i]);
    }
    assert_true(!made || c.moved > 0); /* one of them may share the key's own stripe */
    assert_int_equal(unit_table_used(t), 8);
    unit_table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(max_keys_fit_and_nobody_is_lost_or_doubled_by_moves),
        cmocka_unit_test(max_keys_fit_for_a_hundred_thousand),
        cmocka_unit_test(nobody_is_lost_beyond_max_keys_either),
        cmocka_unit_test(residents_move_out_of_the_way),
        cmocka_unit_test(a_resident_whose_stripe_is_taken_is_not_moved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
