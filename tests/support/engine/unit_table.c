#include "support/engine/unit_table.h"

#include <stdlib.h>

static void debt_of(const void *arg, uint64_t tag, uint64_t word, uint64_t *record, uint64_t now,
                    struct debt *debt)
{
    (void)arg;
    (void)tag;
    (void)record;
    *debt = (struct debt){sub_floor0(word, now), sub_floor0(word, now), word};
}

struct unit_table *unit_table_make(uint64_t max_keys, uint64_t record_bytes)
{
    struct unit_table *t = aligned_alloc(64, (sizeof *t + 63) / 64 * 64);
    assert_non_null(t);
    memset(t, 0, sizeof *t);
    t->shape = table_shape(max_keys, 64, record_bytes);
    size_t bytes = (table_bytes(&t->shape) + 63) / 64 * 64;
    t->memory = aligned_alloc(64, bytes);
    assert_non_null(t->memory);
    memset(t->memory, 0, bytes);
    table_attach(&t->table, &t->shape, t->memory, &t->counts, &lock_private, debt_of, NULL);
    return t;
}

void unit_table_free(struct unit_table *t)
{
    free(t->memory);
    free(t);
}

struct table_key unit_table_key(const struct unit_table *t, uint64_t n)
{
    uint64_t seed = n * 0x9e3779b97f4a7c15 + 12345;
    struct hash h;
    h.low = unit_random(&seed);
    h.high = unit_random(&seed);
    return table_key(&t->table, h);
}

struct claim unit_table_claim(struct unit_table *t, struct table_key key, uint64_t word,
                              uint64_t now, bool evict)
{
    struct lock *stripe = table_stripe(&t->table, key.tag);
    lock_take(stripe, t->table.owner);
    assert_null(table_find_locked(&t->table, key));
    struct claim c = table_claim(&t->table, key, word, now, evict);
    lock_release(stripe);
    return c;
}

bool unit_table_word(struct unit_table *t, struct table_key key, uint64_t *word)
{
    struct lock *stripe = table_stripe(&t->table, key.tag);
    lock_take(stripe, t->table.owner);
    struct pair *slot = table_find_locked(&t->table, key);
    if (slot != NULL) {
        *word = slot->word;
    }
    lock_release(stripe);
    return slot != NULL;
}

unsigned unit_table_copies(const struct unit_table *t, struct table_key key)
{
    unsigned copies = 0;
    for (uint64_t i = 0; i < t->shape.lines; i++) {
        for (int j = 0; j < LINE_SLOTS; j++) {
            copies += (t->table.lines[i].slot[j].tag & ~TAG_MARKS) == key.tag;
        }
    }
    return copies;
}

uint64_t unit_table_used(const struct unit_table *t)
{
    uint64_t used = 0;
    for (uint64_t i = 0; i < t->shape.lines; i++) {
        for (int j = 0; j < LINE_SLOTS; j++) {
            used += t->table.lines[i].slot[j].tag != 0;
        }
    }
    return used;
}
