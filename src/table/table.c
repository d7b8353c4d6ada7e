/* Layout, lookup, recovery. table.h has the essay. */
#include "table/table.h"

#include <string.h>

#include <weir.h>

/* 25/32 of the slots for max_keys keys: 20.48 bytes a key. */
#define FILL_KEYS 25
#define FILL_SLOTS 32
/* Small tables need slack for uneven lines, and 2^-64 needs 16 of them. */
#define LINES_MIN 32
#define LINES_SPARE 16
#define STRIPES_MAX 1024
/* About what a core has to itself. */
#define CACHE_BYTES (UINT64_C(512) << 10)

static uint64_t power_of_two_up(uint64_t x)
{
    return x <= 1 ? 1 : UINT64_C(1) << bits_for(x - 1);
}

struct table_shape table_shape(uint64_t max_keys, uint64_t max_blocks, uint64_t record_bytes)
{
    struct table_shape shape;
    uint64_t slots = mul_div_up(max_keys, FILL_SLOTS, FILL_KEYS);
    uint64_t lines = add_sat(slots, LINE_SLOTS - 1) / LINE_SLOTS + LINES_SPARE;
    lines = max_u64(lines, LINES_MIN);
    shape.max_keys = max_keys;
    shape.lines = lines + (lines & 1);
    shape.stripes = power_of_two_up(min_u64(shape.lines / 8, STRIPES_MAX));
    shape.record_bytes = record_bytes;
    shape.max_blocks = max_blocks;
    shape.block_lines = blocks_lines(max_blocks);
    return shape;
}

uint64_t table_bytes(const struct table_shape *shape)
{
    u128 slot_bytes = (u128)sizeof(struct pair) + shape->record_bytes;
    u128 bytes = (u128)shape->lines * LINE_SLOTS * slot_bytes +
                 shape->stripes * sizeof(struct lock) +
                 (u128)shape->block_lines * sizeof(struct block_line);
    return bytes > UINT64_MAX ? UINT64_MAX : (uint64_t)bytes;
}

void table_attach(struct table *t, const struct table_shape *shape, void *memory,
                  struct table_counts *counts, struct lock_owner *owner, table_debt_fn debt_of,
                  const void *debt_arg)
{
    unsigned char *p = memory;
    t->lines = (struct line *)(void *)p;
    t->half = shape->lines / 2;
    t->all = shape->lines;
    p += shape->lines * sizeof(struct line);
    t->stripes = (struct lock *)(void *)p;
    t->stripe_mask = shape->stripes - 1;
    p += shape->stripes * sizeof(struct lock);
    t->blocks = (struct blocks){(struct block_line *)(void *)p, shape->block_lines,
                                shape->max_blocks, &counts->blocks, owner};
    p += shape->block_lines * sizeof(struct block_line);
    t->records = p;
    t->record_bytes = shape->record_bytes;
    t->counts = counts;
    t->owner = owner;
    t->max_keys = shape->max_keys;
    t->debt_of = debt_of;
    t->debt_arg = debt_arg;
    t->far = shape->lines * sizeof(struct line) > CACHE_BYTES;
}

void table_init_locks(const struct table *t)
{
    for (uint64_t i = 0; i <= t->stripe_mask; i++) {
        lock_init(&t->stripes[i]);
    }
    lock_init(&t->counts->blocks.lock);
}

bool table_enter_try(const struct table *t, uint64_t tag, uint64_t held_tag)
{
    struct lock *stripe = table_stripe(t, tag);
    return (held_tag != 0 && stripe == table_stripe(t, held_tag)) || lock_try(stripe, t->owner);
}

void table_leave(const struct table *t, uint64_t tag, uint64_t held_tag)
{
    struct lock *stripe = table_stripe(t, tag);
    if (held_tag == 0 || stripe != table_stripe(t, held_tag)) {
        lock_release(stripe);
    }
}

/* All slots of a key, by mark. */
struct sightings {
    struct pair *clean;
    struct pair *leaving;
    struct pair *arriving;
};

static void look(struct line *line, uint64_t clean, struct sightings *seen)
{
    for (unsigned i = 0; i < LINE_SLOTS; i++) {
        struct pair *slot = &line->slot[i];
        uint64_t tag = load_relaxed(&slot->tag);
        if (tag == clean) {
            seen->clean = slot;
        } else if (tag == (clean | TAG_LEAVING)) {
            seen->leaving = slot;
        } else if (tag == (clean | TAG_ARRIVING)) {
            seen->arriving = slot;
        }
    }
}

/* Under the stripe lock nobody else touches a marked slot: this swap cannot fail. */
static void set_marked(struct pair *slot, struct pair next)
{
    (void)pair_cas(slot, pair_load(slot), next);
}

static struct pair *look_and_repair(const struct table *t, uint64_t clean, uint64_t line)
{
    struct sightings seen = {NULL, NULL, NULL};
    look(&t->lines[line], clean, &seen);
    look(&t->lines[table_other_line(t, line, clean)], clean, &seen);
    if (seen.arriving != NULL) {
        set_marked(seen.arriving, (struct pair){0, 0});
    }
    if (seen.leaving == NULL) {
        return seen.clean;
    }
    if (seen.clean != NULL) {
        set_marked(seen.leaving, (struct pair){0, 0});
        return seen.clean;
    }
    set_marked(seen.leaving, (struct pair){clean, pair_load(seen.leaving).word});
    return seen.leaving;
}

void table_repair(const struct table *t, uint64_t tag, uint64_t line)
{
    (void)look_and_repair(t, tag & ~TAG_MARKS, line);
}

struct pair *table_find_locked(const struct table *t, struct table_key key)
{
    return look_and_repair(t, key.tag, key.line);
}

bool table_remove(const struct table *t, struct pair *slot, struct pair seen)
{
    /*
     * A kill between the two may leave `keys` too low: then a claim searches a full table for room in vain.
     * table_recover() counts again.
     */
    (void)fetch_sub(&t->counts->keys, 1);
    if (!pair_cas(slot, seen, (struct pair){0, 0})) {
        (void)fetch_add(&t->counts->keys, 1);
        return false;
    }
    return true;
}

uint64_t table_keys(const struct table *t)
{
    uint64_t keys = load_relaxed(&t->counts->keys);
    return keys > INT64_MAX ? 0 : keys;
}

typedef void (*slot_fn)(const struct table *t, uint64_t line, struct pair *slot);

static void for_each_slot(const struct table *t, slot_fn act)
{
    for (uint64_t i = 0; i < t->all; i++) {
        for (unsigned j = 0; j < LINE_SLOTS; j++) {
            act(t, i, &t->lines[i].slot[j]);
        }
    }
}

/* No step of a move leaves a word without a tag, or both marks; a damaged file may have them. */
static void repair_slot(const struct table *t, uint64_t line, struct pair *slot)
{
    struct pair seen = pair_load(slot);
    if ((seen.tag & ~TAG_MARKS & ~TAG_HASH) != 0 ||
        ((seen.tag & TAG_HASH) == 0 && (seen.tag | seen.word) != 0)) {
        set_marked(slot, (struct pair){0, 0});
    } else if ((seen.tag & TAG_MARKS) == TAG_MARKS) {
        set_marked(slot, (struct pair){seen.tag & ~TAG_ARRIVING, seen.word});
    }
    seen = pair_load(slot);
    if ((seen.tag & TAG_MARKS) != 0) {
        table_repair(t, seen.tag, line);
    }
}

/*
 * The pages of a copy, or of an image after a power cut, are of different moments: a resident may be
 * in its old and in its new place. Words only grow by charges, so the larger is the later. Counts
 * the slot if it stays; if another one does, that one comes later.
 */
static void single_slot(const struct table *t, uint64_t line, struct pair *slot)
{
    struct pair seen = pair_load(slot);
    uint64_t lines[2] = {line, table_other_line(t, line, seen.tag)};
    for (unsigned i = 0; i < 2 * LINE_SLOTS && seen.tag != 0; i++) {
        struct pair *other = &t->lines[lines[i / LINE_SLOTS]].slot[i % LINE_SLOTS];
        struct pair twin = pair_load(other);
        if (other != slot && twin.tag == seen.tag) {
            bool later = seen.word < twin.word;
            set_marked(later ? slot : other, (struct pair){0, 0});
            seen.tag = later ? 0 : seen.tag;
        }
    }
    t->counts->keys += seen.tag != 0;
}

void table_recover(const struct table *t)
{
    for_each_slot(t, repair_slot);
    t->counts->keys = 0;
    for_each_slot(t, single_slot);
    blocks_recover(&t->blocks);
}
