/* Layout, lookup and recovery. table.h explains the table. */
#include "table/table.h"

/* max_keys keys fill 25/32 of the slots: 20.48 bytes for each key. */
#define FILL_KEYS 25
#define FILL_SLOTS 32
/* Small tables need slack for uneven lines, and a confusion below 2^-64 needs 16 lines. */
#define LINES_MIN 32
#define LINES_SPARE 16
#define STRIPES_MAX 1024
/* About the cache that a core has to itself. */
#define CACHE_BYTES (UINT64_C(512) << 10)

struct table_shape table_shape(uint64_t max_keys, uint64_t max_blocks, uint64_t record_bytes)
{
    uint64_t slots = mul_div_up(max_keys, FILL_SLOTS, FILL_KEYS);
    uint64_t lines = add_sat(slots, LINE_SLOTS - 1) / LINE_SLOTS + LINES_SPARE;
    lines = max_u64(lines + (lines & 1), LINES_MIN);
    return (struct table_shape){
        .max_keys = max_keys,
        .lines = lines,
        .stripes = UINT64_C(1) << bits_for(min_u64(lines / 8, STRIPES_MAX) - 1), /* rounded up */
        .record_bytes = record_bytes,
        .max_blocks = max_blocks,
        .block_lines = blocks_lines(max_blocks),
    };
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
    assert((uintptr_t)memory % _Alignof(struct line) == 0);
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
    assert(held_tag == 0 || table_holds(t, held_tag));
    return (held_tag != 0 && stripe == table_stripe(t, held_tag)) || lock_try(stripe, t->owner);
}

void table_leave(const struct table *t, uint64_t tag, uint64_t held_tag)
{
    struct lock *stripe = table_stripe(t, tag);
    assert(table_holds(t, tag));
    if (held_tag == 0 || stripe != table_stripe(t, held_tag)) {
        lock_release(stripe);
    }
}

/* Under the stripe no other thread touches a marked slot, so this swap cannot fail. */
static void set_marked(struct pair *slot, struct pair next)
{
    bool done = pair_cas(slot, pair_load(slot), next);
    assert(done); /* G5 */
    (void)done;
}

/* table_find_locked() for a caller that holds the stripe, or has the table for itself. */
static struct pair *find_and_repair(const struct table *t, struct table_key key)
{
    struct pair *seen[TAG_MARKS + 1] = {NULL}; /* by the marks of its tag */
    key.tag &= ~TAG_MARKS;
    struct line *line[2] = {&t->lines[key.line], table_second(t, key)};
    for (unsigned i = 0; i < CANDIDATES; i++) {
        struct pair *slot = &line[i / LINE_SLOTS]->slot[i % LINE_SLOTS];
        uint64_t marks = load_relaxed(&slot->tag) ^ key.tag;
        if (marks <= TAG_MARKS) {
            seen[marks] = slot;
        }
    }
    struct pair *clean = seen[0];
    struct pair *leaving = seen[TAG_LEAVING];
    if (seen[TAG_ARRIVING] != NULL) {
        set_marked(seen[TAG_ARRIVING], (struct pair){0, 0});
    }
    if (leaving == NULL) {
        return clean;
    }
    if (clean != NULL) {
        set_marked(leaving, (struct pair){0, 0});
        return clean;
    }
    set_marked(leaving, (struct pair){key.tag, pair_load(leaving).word});
    return leaving;
}

struct pair *table_find_locked(const struct table *t, struct table_key key)
{
    assert(table_holds(t, key.tag)); /* G2, G5 */
    return find_and_repair(t, key);
}

bool table_remove(const struct table *t, struct pair *slot, struct pair seen)
{
    assert(table_holds(t, seen.tag)); /* G3 */
    /* A kill in between leaves `keys` too low: then claims search a full table for room in vain. */
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

/* No step of a move leaves a word without a tag, or both marks. A damaged file may have them. */
static void repair_slot(const struct table *t, uint64_t i)
{
    struct pair *slot = table_slot(t, i);
    struct pair seen = pair_load(slot);
    if ((seen.tag & ~TAG_MARKS & ~TAG_HASH) != 0 ||
        ((seen.tag & TAG_HASH) == 0 && (seen.tag | seen.word) != 0)) {
        set_marked(slot, (struct pair){0, 0});
    } else if ((seen.tag & TAG_MARKS) == TAG_MARKS) {
        set_marked(slot, (struct pair){seen.tag & ~TAG_ARRIVING, seen.word});
    }
    seen = pair_load(slot);
    if ((seen.tag & TAG_MARKS) != 0) {
        (void)find_and_repair(t, (struct table_key){seen.tag, i / LINE_SLOTS});
    }
}

/*
 * The pages of a copy, or of an image after a power cut, are of different times: a resident may be
 * in its old and in its new place. Words only grow by charges, so the larger one is later. Returns
 * true if this slot stays.
 */
static bool keep_slot(const struct table *t, uint64_t i)
{
    struct pair *slot = table_slot(t, i);
    struct pair seen = pair_load(slot);
    struct table_key key = {seen.tag, i / LINE_SLOTS};
    struct line *line[2] = {&t->lines[key.line], table_second(t, key)};
    for (unsigned j = 0; j < CANDIDATES && seen.tag != 0; j++) {
        struct pair *other = &line[j / LINE_SLOTS]->slot[j % LINE_SLOTS];
        struct pair twin = pair_load(other);
        if (other != slot && twin.tag == seen.tag) {
            bool later = seen.word < twin.word;
            set_marked(later ? slot : other, (struct pair){0, 0});
            seen.tag = later ? 0 : seen.tag;
        }
    }
    return seen.tag != 0;
}

void table_recover(const struct table *t)
{
    uint64_t slots = t->all * LINE_SLOTS;
    for (uint64_t i = 0; i < slots; i++) {
        repair_slot(t, i);
    }
    t->counts->keys = 0;
    for (uint64_t i = 0; i < slots; i++) {
        t->counts->keys += keep_slot(t, i);
    }
    blocks_recover(&t->blocks);
}
