/* The table of blocks: every block is found until it ends, whatever happens to the others. */
#include "support/engine/unit_table.h"

#include <stdlib.h>

#define TAGS 300
#define MAX 100

/* Blocks as a plain list would keep them. */
struct model {
    uint64_t until[TAGS]; /* 0: none */
};

static uint64_t tag_of(uint64_t n)
{
    uint64_t seed = n + 99;
    return unit_random(&seed) | 1;
}

static struct blocks *make(struct unit_table *t, uint64_t max)
{
    struct blocks *b = &t->table.blocks;
    b->max = max;
    b->line_count = blocks_lines(max);
    b->lines = aligned_alloc(64, b->line_count * sizeof *b->lines);
    assert_non_null(b->lines);
    memset(b->lines, 0, b->line_count * sizeof *b->lines);
    return b;
}

static unsigned live(const struct model *m, uint64_t now)
{
    unsigned n = 0;
    for (unsigned i = 0; i < TAGS; i++) {
        n += m->until[i] > now;
    }
    return n;
}

static void assert_same(const struct blocks *b, const struct model *m, uint64_t now)
{
    uint64_t last = 0;
    for (unsigned i = 0; i < TAGS; i++) {
        uint64_t until = blocks_until(b, tag_of(i));
        assert_true(m->until[i] <= now ? until <= now : until == m->until[i]);
        last = m->until[i] > last ? m->until[i] : last;
    }
    assert_true(last <= now || b->counts->last_end >= last); /* late, never early */
}

static void act(const struct blocks *b, struct model *m, uint64_t now, uint64_t *seed)
{
    unsigned i = (unsigned)(unit_random(seed) % TAGS);
    uint64_t until = now + 1 + unit_random(seed) % 400;
    if (unit_random(seed) % 4 == 0) {
        int was = blocks_clear(b, tag_of(i));
        assert_true(was == 1 || m->until[i] <= now);
        m->until[i] = 0;
        return;
    }
    unsigned others = live(m, now) - (m->until[i] > now);
    int e = blocks_set(b, tag_of(i), until, now);
    assert_int_equal(e, others < b->max ? 0 : WEIR_EFULL);
    if (e == 0 && (!block_is_ban(until) || m->until[i] < until)) { /* a ban shortens no block */
        m->until[i] = until;
    }
}

static void blocks_are_found_as_a_list_would_have_them(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct unit_table *t = unit_table_make(10, 0);
        struct blocks *b = make(t, seed % 2 != 0 ? MAX : 8);
        struct model m = {{0}};
        uint64_t random = seed;
        for (uint64_t now = 0; now < 2000; now++) {
            act(b, &m, now, &random);
            if (now % 16 == 0) {
                assert_same(b, &m, now);
            }
        }
        free(b->lines);
        unit_table_free(t);
    }
}

/* Every block in one line: each but the first three lies further on. */
static void blocks_of_one_line_are_all_found(void **state)
{
    struct unit_table *t = unit_table_make(10, 0);
    struct blocks *b = make(t, 64);
    uint64_t tags[64];
    unsigned n = 0;
    for (uint64_t i = 0; n < 64; i++) {
        if (blocks_home(b, tag_of(i)) == b->line_count - 1) { /* the last: they go round */
            tags[n++] = tag_of(i);
        }
    }
    for (unsigned i = 0; i < 64; i++) {
        assert_int_equal(blocks_set(b, tags[i], 10 + i, 0), 0);
    }
    for (unsigned i = 0; i < 64; i += 2) {
        assert_int_equal(blocks_clear(b, tags[i]), 1);
        assert_int_equal(blocks_clear(b, tags[i]), 0);
    }
    for (unsigned i = 0; i < 64; i++) {
        assert_int_equal(blocks_until(b, tags[i]), i % 2 == 0 ? 0 : 10 + i);
    }
    free(b->lines);
    unit_table_free(t);
}

static void the_last_end_falls_when_the_last_block_is_lifted(void **state)
{
    struct unit_table *t = unit_table_make(10, 0);
    struct blocks *b = make(t, 64);
    assert_int_equal(blocks_set(b, 1, 100, 0), 0);
    assert_int_equal(blocks_set(b, 2, UINT64_MAX, 0), 0);
    assert_true(table_has_blocks(&t->table, 1000));
    assert_int_equal(blocks_clear(b, 2), 1);
    assert_true(table_has_blocks(&t->table, 99));
    assert_false(table_has_blocks(&t->table, 100)); /* over: decisions look no more */
    assert_int_equal(blocks_clear(b, 1), 1);
    assert_false(table_has_blocks(&t->table, 0));
    free(b->lines);
    unit_table_free(t);
}

/* A table of pages of different moments: no reach, half a place, a block twice, old counts. */
static void recovery_finds_every_block_again(void **state)
{
    struct unit_table *t = unit_table_make(10, 0);
    struct blocks *b = make(t, MAX);
    for (uint64_t i = 0; i < MAX; i++) {
        assert_int_equal(blocks_set(b, tag_of(i), 1000 + i, 0), 0);
    }
    for (uint64_t i = 0; i < b->line_count; i++) {
        b->lines[i].reach = i % 3 == 0 ? UINT64_MAX : 0;
    }
    assert_int_equal(blocks_until(b, 12345), 0); /* a reach beyond all lines ends as well */
    b->counts->count = 77;
    b->counts->last_end = 0;
    b->counts->lock.word = 99;
    for (unsigned i = 0; i < BLOCK_LINE_PLACES; i++) {
        struct pair *place = &b->lines[blocks_home(b, tag_of(0)) ^ 1].block[i];
        *place = place->tag == 0 ? (struct pair){tag_of(0), 5} : *place;
    }
    blocks_recover(b);
    for (uint64_t i = 1; i < MAX; i++) {
        assert_int_equal(blocks_until(b, tag_of(i)), 1000 + i);
    }
    assert_int_equal(b->counts->count, MAX);
    assert_int_equal(b->counts->last_end, 1000 + MAX - 1);
    assert_int_equal(blocks_clear(b, tag_of(0)), 1);
    assert_int_equal(blocks_until(b, tag_of(0)), 0);
    free(b->lines);
    unit_table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_found_as_a_list_would_have_them),
        cmocka_unit_test(blocks_of_one_line_are_all_found),
        cmocka_unit_test(the_last_end_falls_when_the_last_block_is_lifted),
        cmocka_unit_test(recovery_finds_every_block_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
