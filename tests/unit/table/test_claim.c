/* Finding a place for a new key. */
#include "support/engine/unit_table.h"

#define LATER 1000000 /* words above the present are keys in debt */

static void fill(struct unit_table *t, uint64_t from, uint64_t to, uint64_t word)
{
    for (uint64_t n = from; n < to; n++) {
        (void)unit_table_claim(t, unit_table_key(t, n), word, 0, false);
    }
}

static void an_empty_slot_costs_nobody_anything(void **state)
{
    struct unit_table *t = unit_table_make(100, 0);
    for (uint64_t n = 0; n < 100; n++) {
        struct claim c = unit_table_claim(t, unit_table_key(t, n), LATER, 0, true);
        assert_non_null(c.slot);
        assert_int_equal(c.reclaimed + c.evicted, 0);
    }
    assert_int_equal(unit_table_used(t), 100);
    unit_table_free(t);
}

/* A table filled with keys that will be fresh at 500. */
static void a_fresh_resident_is_replaced_and_counted_as_reclaimed(void **state)
{
    for (uint64_t record = 0; record <= 16; record += 16) {
        struct unit_table *t = unit_table_make(10, record);
        fill(t, 0, 5000, 500);
        uint64_t used = unit_table_used(t);
        struct table_key key = unit_table_key(t, 9000);
        struct claim c = unit_table_claim(t, key, LATER, 499, false);
        assert_null(c.slot);
        assert_int_equal(c.full_for, 1);
        assert_false(c.contended);
        c = unit_table_claim(t, key, LATER, 500, false);
        assert_non_null(c.slot);
        assert_int_equal(c.reclaimed, 1);
        assert_int_equal(c.evicted, 0);
        assert_int_equal(unit_table_used(t), used);
        assert_int_equal(table_keys(&t->table), used);
        unit_table_free(t);
    }
}

static void eviction_takes_the_candidate_nearest_to_fresh(void **state)
{
    for (uint64_t record = 0; record <= 16; record += 16) {
        struct unit_table *t = unit_table_make(10, record);
        for (uint64_t n = 0; n < 5000; n++) {
            (void)unit_table_claim(t, unit_table_key(t, n), LATER + n * 7 % 1000, 0, false);
        }
        for (uint64_t n = 9000; n < 9100; n++) {
            struct table_key key = unit_table_key(t, n);
            uint64_t lines[2] = {key.line, table_other_line(&t->table, key.line, key.tag)};
            uint64_t least = UINT64_MAX;
            for (int i = 0; i < 8; i++) {
                uint64_t word = t->table.lines[lines[i / 4]].slot[i % 4].word;
                least = word < least ? word : least;
            }
            struct pair before[8];
            memcpy(before, &t->table.lines[lines[0]], 64);
            memcpy(before + 4, &t->table.lines[lines[1]], 64);
            struct claim c = unit_table_claim(t, key, 2 * LATER, 0, true);
            assert_int_equal(c.evicted, 1);
            for (int i = 0; i < 8; i++) {
                if (c.slot == &t->table.lines[lines[i / 4]].slot[i % 4]) {
                    assert_int_equal(before[i].word, least);
                }
            }
        }
        unit_table_free(t);
    }
}

/* Somebody holds the stripes of all residents, for good: the claim gives up and says why. */
static void a_claim_in_everybodys_way_says_contended(void **state)
{
    struct unit_table *t = unit_table_make(10, 16); /* wide: records need the stripes */
    fill(t, 0, 5000, LATER);
    struct table_key key = unit_table_key(t, 9000);
    struct lock *own = table_stripe(&t->table, key.tag);
    lock_take(own, t->table.owner);
    unsigned held = 0;
    for (uint64_t i = 0; i <= t->table.stripe_mask; i++) {
        if (&t->table.stripes[i] != own) {
            lock_take(&t->table.stripes[i], t->table.owner);
            held++;
        }
    }
    uint64_t now = 0;
    struct claim c = table_claim(&t->table, key, LATER, now, false);
    for (uint64_t i = 0; i <= t->table.stripe_mask; i++) {
        lock_release(&t->table.stripes[i]);
    }
    if (held > 0) {
        assert_null(c.slot);
        assert_true(c.contended);
    }
    unit_table_free(t);
}

static void marks_of_the_dead_do_not_cost_slots(void **state)
{
    struct unit_table *t = unit_table_make(10, 0);
    struct table_key key = unit_table_key(t, 1);
    struct line *line = &t->table.lines[key.line];
    uint64_t other = table_other_line(&t->table, key.line, key.tag);
    /* Both lines are full of copies that dead movers did not complete. */
    for (uint64_t n = 100, i = 0; i < 8; n++) {
        struct table_key k = unit_table_key(t, n);
        bool here = k.line == key.line || table_other_line(&t->table, k.line, k.tag) == key.line;
        bool there = k.line == other || table_other_line(&t->table, k.line, k.tag) == other;
        if ((i < 4 && here) || (i >= 4 && there)) {
            struct line *at = i < 4 ? line : &t->table.lines[other];
            at->slot[i % 4] = (struct pair){k.tag | TAG_ARRIVING, 7};
            i++;
        }
    }
    struct claim c = unit_table_claim(t, key, LATER, 0, false);
    assert_non_null(c.slot);
    assert_int_equal(c.evicted, 0);
    unit_table_free(t);
}

static void a_sweep_frees_the_fresh_and_goes_round(void **state)
{
    for (uint64_t record = 0; record <= 16; record += 16) {
        struct unit_table *t = unit_table_make(300, record);
        fill(t, 0, 100, 500);
        fill(t, 100, 300, LATER);
        assert_int_equal(table_sweep(&t->table, UINT64_MAX, 499), 0);
        uint64_t freed = 0;
        for (uint64_t i = 0; i < t->shape.lines; i++) {
            freed += table_sweep(&t->table, 1, 500);
        }
        assert_int_equal(freed, 100);
        assert_int_equal(table_keys(&t->table), 200);
        assert_int_equal(unit_table_used(t), 200);
        unit_table_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_slot_costs_nobody_anything),
        cmocka_unit_test(a_fresh_resident_is_replaced_and_counted_as_reclaimed),
        cmocka_unit_test(eviction_takes_the_candidate_nearest_to_fresh),
        cmocka_unit_test(a_claim_in_everybodys_way_says_contended),
        cmocka_unit_test(marks_of_the_dead_do_not_cost_slots),
        cmocka_unit_test(a_sweep_frees_the_fresh_and_goes_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
