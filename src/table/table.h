/*
 * The key table: a fixed number of slots, found by a keyed hash, each changed by one 16-byte
 * compare-and-swap. It has no pointers inside and allocates nothing after it was made, so the same
 * bytes serve in private memory, in shared memory and in a file.
 *
 * SLOTS. A line is 64 bytes, four slots of 16: a tag and a word. The tag is 61 bits of the key's
 * hash and three marks; a tag of 0 is an empty slot. The word belongs to the algorithm. A key may
 * be in one of two lines, one in each half of the table. Either line can be computed from the other
 * and the tag, so residents can be moved without knowing their keys. Two keys are confused only if
 * tag and line agree: the chance is below 2^-64 for each resident key.
 *
 * STATES OF A KEY r (as marks on its tag, in the one or two slots that hold it):
 *
 *     absent        no slot
 *     r             one slot; the only state between calls
 *     r*            being moved away from this slot
 *     r* and r^     the same; r^ is the copy, which is not yet complete
 *     r* and r      the same; the copy is complete
 *
 * GUARANTEES.
 *   G1. Any thread, without a lock, may change the word of a slot that holds r unmarked, by a
 *       compare-and-swap of tag and word together. So a slot that has a new owner is never charged
 *       for its former one. Calls on r do so, and claims and sweeps that pull r down from a far
 *       future. (In wide tables, whose keys have records, words change only under r's stripe.)
 *   G2. r appears, and is moved, only under the lock of r's stripe. A miss counts only under that
 *       lock. So a key never exists twice.
 *   G3. r disappears under the lock of r's stripe or, in narrow tables, by one compare-and-swap
 *       from its unmarked state when another key replaces it. The compare-and-swap of a thread that
 *       still takes the slot for r's then fails.
 *   G4. A thread waits for at most one stripe lock, that of its own key, and holds no other while
 *       it waits. Further stripes are only tried. So there is no lock order and no deadlock.
 *   G5. Under r's lock a marked r belongs to a dead thread. Repair: if r* and r are present, clear
 *       r*; otherwise clear r^ and unmark r*. A kill at any point of a move leaves exactly one r.
 *   G6. The record of a slot is guarded by the stripe of the key in it.
 *
 * ORDER. Every change of a slot is a sequentially consistent compare-and-swap, and reads of slots
 * are acquire. Nothing else is published through memory.
 */
#ifndef WEIR_TABLE_TABLE_H
#define WEIR_TABLE_TABLE_H

#include <assert.h>

#include "base/debt.h"
#include "base/hash.h"
#include "table/blocks.h"

#define LINE_SLOTS 4

struct line {
    struct pair slot[LINE_SLOTS];
} __attribute__((aligned(64)));

/* The marks are the low bits of a tag. */
#define TAG_LEAVING UINT64_C(1)  /* r* */
#define TAG_ARRIVING UINT64_C(2) /* r^ */
#define TAG_MARKS (TAG_LEAVING | TAG_ARRIVING)
#define TAG_HASH (~UINT64_C(7))

/* Counters of the table, on cache lines of their own, away from what decisions read. */
struct table_counts {
    struct block_counts blocks;
    uint64_t keys __attribute__((aligned(64)));
    uint64_t sweep_line __attribute__((aligned(64)));
    uint64_t search_pause; /* how many claims will not search a full table for room */
};

/* All that is needed to lay a table out. */
struct table_shape {
    uint64_t max_keys;
    uint64_t lines;        /* even */
    uint64_t stripes;      /* a power of two */
    uint64_t record_bytes; /* beside each slot; 0 in a narrow table */
    uint64_t max_blocks;
    uint64_t block_lines;
};

/* Fills *debt with what the owner of a slot owes at `now`. */
typedef void (*table_debt_fn)(const void *arg, uint64_t tag, uint64_t word, uint64_t *record,
                              uint64_t now, struct debt *debt);

/* A table as one process sees it. table_attach() makes it; it does not change afterwards. */
struct table {
    struct line *lines;
    uint64_t half; /* lines in each half */
    uint64_t all;  /* lines in both halves */
    struct lock *stripes;
    uint64_t stripe_mask;
    unsigned char *records;
    uint64_t record_bytes;
    struct table_counts *counts;
    struct lock_owner *owner;
    struct blocks blocks;
    uint64_t max_keys;
    table_debt_fn debt_of;
    const void *debt_arg;
    bool far; /* larger than the cache of a core, so that it pays to prefetch */
};

/* Where a key lives. */
struct table_key {
    uint64_t tag;
    uint64_t line; /* the first of its two lines */
};

/* Return the shape for so many keys and blocks, and the bytes that such a table takes. */
struct table_shape table_shape(uint64_t max_keys, uint64_t max_blocks, uint64_t record_bytes);
uint64_t table_bytes(const struct table_shape *shape); /* UINT64_MAX if they are too many */

/* Returns the number of resident keys. Each kill may leave it one too low, but not below 0. */
uint64_t table_keys(const struct table *t);

/* Lays the table over memory that is aligned to 64. Memory of zeroes is an empty table. */
void table_attach(struct table *t, const struct table_shape *shape, void *memory,
                  struct table_counts *counts, struct lock_owner *owner, table_debt_fn debt_of,
                  const void *debt_arg);

/* Frees all locks. No other process may be using the table. */
void table_init_locks(const struct table *t);

/* Repairs what dead processes left, and counts the keys. No other process may be using it. */
void table_recover(const struct table *t);

static inline uint64_t table_other_line(const struct table *t, uint64_t line, uint64_t tag)
{
    /* The places in the two halves add up to g modulo half, and g depends on the tag alone. */
    assert(line < t->all);
    uint64_t g = mul_high((tag & TAG_HASH) * UINT64_C(0x9e3779b97f4a7c15), t->half);
    uint64_t base = line < t->half ? t->half : 0;
    uint64_t place = line < t->half ? line : line - t->half;
    return base + (g >= place ? g - place : g + t->half - place);
}

/* Returns the second of the key's lines. */
static inline struct line *table_second(const struct table *t, struct table_key key)
{
    return &t->lines[table_other_line(t, key.line, key.tag)];
}

static inline struct table_key table_key(const struct table *t, struct hash h)
{
    uint64_t tag = h.high & TAG_HASH;
    return (struct table_key){tag != 0 ? tag : TAG_HASH, mul_high(h.low, t->all)};
}

/*
 * Returns the tag of the block of a key with this hash. It is made from another hash: of its tag
 * the hash bits, and three bits made from the lower of its two lines.
 */
static inline uint64_t table_block_tag(const struct table *t, struct hash h)
{
    struct hash b = {h.high * UINT64_C(0xd6e8feb86659fd93) + 1,
                     h.low * UINT64_C(0xa0761d6478bd642f) ^ h.high};
    struct table_key key = table_key(t, b);
    uint64_t low = min_u64(key.line, table_other_line(t, key.line, key.tag));
    /* Not 0, because the hash bits of a tag are not 0. */
    return (key.tag & TAG_HASH) | low * UINT64_C(0x9e3779b97f4a7c15) >> 61;
}

/* Returns whether a block may be in force at `now`. */
static inline bool table_has_blocks(const struct table *t, uint64_t now)
{
    return __builtin_expect(now < load_relaxed(&t->counts->blocks.last_end), 0);
}

static inline struct lock *table_stripe(const struct table *t, uint64_t tag)
{
    return &t->stripes[tag >> 8 & t->stripe_mask];
}

/* For asserts: return whether this thread holds the stripe of a tag, or any stripe. */
static inline bool table_holds(const struct table *t, uint64_t tag)
{
    return lock_held(table_stripe(t, tag), 1);
}

static inline bool table_holds_any(const struct table *t)
{
    return lock_held(t->stripes, t->stripe_mask + 1);
}

static inline struct pair *table_slot(const struct table *t, uint64_t i)
{
    return &t->lines[i / LINE_SLOTS].slot[i % LINE_SLOTS];
}

/* Returns the number of a slot: the inverse of table_slot(). */
static inline uint64_t table_slot_number(const struct table *t, const struct pair *slot)
{
    assert(slot >= t->lines[0].slot && slot < t->lines[t->all - 1].slot + LINE_SLOTS);
    return (uint64_t)(slot - &t->lines[0].slot[0]);
}

static inline uint64_t *table_record(const struct table *t, const struct pair *slot)
{
    unsigned char *record = t->records + table_slot_number(t, slot) * t->record_bytes;
    return t->record_bytes == 0 ? NULL : (uint64_t *)(void *)record;
}

/*
 * Returns the slot of a line with exactly this tag, or NULL. It branches for each slot, because the
 * processor predicts the slot of a key that is asked often and goes on before the line is compared.
 */
static inline struct pair *line_find(struct line *line, uint64_t tag)
{
#pragma GCC unroll 4
    for (unsigned i = 0; i < LINE_SLOTS; i++) {
        if (load_relaxed(&line->slot[i].tag) == tag) {
            return &line->slot[i];
        }
    }
    return NULL;
}

/* Does the same by arithmetic: for random keys a wrong prediction costs more than four compares. */
static inline struct pair *line_pick(struct line *line, uint64_t tag)
{
    unsigned hits = 0;
#pragma GCC unroll 4
    for (unsigned i = 0; i < LINE_SLOTS; i++) {
        hits |= (unsigned)(load_relaxed(&line->slot[i].tag) == tag) << i;
    }
    return hits != 0 ? &line->slot[__builtin_ctz(hits)] : NULL;
}

/* Returns the slot of an unmarked key, without a lock. NULL proves nothing: it may be moving. */
static inline struct pair *table_find(const struct table *t, struct table_key key)
{
    struct line *first = &t->lines[key.line];
    if (t->far) {
        /* One key in seven is in its second line. The prefetch avoids waiting twice. */
        struct line *second = table_second(t, key);
        __builtin_prefetch(second);
        struct pair *slot = line_pick(first, key.tag);
        return slot != NULL ? slot : line_pick(second, key.tag);
    }
    struct pair *slot = line_find(first, key.tag);
    return slot != NULL ? slot : line_find(table_second(t, key), key.tag);
}

/*
 * Does the same under the lock of the key's stripe, so that NULL means absent. Repairs what a dead
 * thread left (G5). key.tag may have marks.
 */
struct pair *table_find_locked(const struct table *t, struct table_key key);

/* How table_claim() is to find a place. */
#define CLAIM_EVICT 1u /* rather than fail, forget the candidate that owes least */
#define CLAIM_HASTY 2u /* do not wait for threads that are in the way: they may be stopped */

/* What table_claim() did. */
struct claim {
    struct pair *slot;  /* NULL if there was no place */
    uint64_t reclaimed; /* slots of fresh keys that were used again */
    uint64_t evicted;   /* 1 if a key in use was forgotten */
    uint64_t moved;     /* residents that were moved to make room */
    uint64_t full_for;  /* without a slot: ns until the first of the candidates will be fresh */
    bool contended;  /* others were in the way; without a slot: release the stripe and try again */
    uint64_t in_way; /* the tag that was in the way, or 0: wait until its stripe is free */
};

/*
 * Puts an absent key into the table with `word`, and pulls down candidates that are from a far
 * future. The caller holds the key's stripe, has had NULL from table_find_locked(), and fills the
 * slot's record. `how`: CLAIM_EVICT, CLAIM_HASTY.
 */
struct claim table_claim(const struct table *t, struct table_key key, uint64_t word, uint64_t now,
                         unsigned how);

/* Takes a key out of its slot, under its stripe. Returns false if it is no longer as `seen`. */
bool table_remove(const struct table *t, struct pair *slot, struct pair seen);

/*
 * Sweeps up to `lines` lines, from where the last sweep ended: frees slots whose keys are as good
 * as fresh, and pulls down states that are from a far future. After the last line of the table,
 * frees blocks that are over. Returns how many slots and blocks were freed.
 */
uint64_t table_sweep(const struct table *t, uint64_t lines, uint64_t now);

/* ---- between the table's own files ---- */

/*
 * Moves residents until one of the key's lines has an empty slot, which another thread may take.
 * Returns false if that failed. Changes all of *claim but slot, evicted and full_for.
 */
bool table_make_room(const struct table *t, struct table_key key, uint64_t now,
                     struct claim *claim);

/* Empties the slot if its owner is fresh. Returns whether it did. */
bool table_reclaim(const struct table *t, struct pair *slot, uint64_t now, uint64_t held_tag);

/* The slots in which a key may be: those of its two lines. */
#define CANDIDATES (2 * LINE_SLOTS)

/* Tries to lock the stripe of `tag`, unless the caller holds it for `held_tag` already. */
bool table_enter_try(const struct table *t, uint64_t tag, uint64_t held_tag);
void table_leave(const struct table *t, uint64_t tag, uint64_t held_tag);

#endif
