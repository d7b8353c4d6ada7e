/*
 * The key table: a fixed number of slots, found by a keyed hash, changed by one 16-byte
 * compare-and-swap each. It has no pointers inside and allocates nothing after its creation, so the
 * same bytes serve in private memory, shared memory and a file.
 *
 * SLOTS. A line is 64 bytes, four slots of 16: a tag and a word. The tag is 61 bits of the key's
 * hash and three marks; 0 is an empty slot. The word is the algorithm's. A key may be in one of two
 * lines, one in each half of the table. Either line can be computed from the other and the tag, so
 * residents can be moved without knowing their keys. Two keys are confused only if tag and line
 * agree: below 2^-64 per resident key.
 *
 * STATES OF A KEY r (as marks on its tag, in the one or two slots it is in):
 *
 *     absent        no slot
 *     r             one slot; the only state between calls
 *     r*            being moved away from this slot
 *     r* and r^     ... r^ is the copy, not yet complete
 *     r* and r      ... the copy is complete
 *
 * WHO MAY DO WHAT.
 *   G1. Any thread, without a lock, may change the word of a slot that holds r unmarked, by a
 *       compare-and-swap of tag and word together. A slot that changed hands is therefore never
 *       charged for its former owner. (Wide tables, whose keys have records, change words only
 *       under r's stripe.) Calls on r do so, and claims and sweeps that pull r down from a far
 *       future.
 *   G2. r appears, and is moved, only under the lock of r's stripe. A miss counts only under that
 *       lock; so a key never exists twice.
 *   G3. r disappears under r's stripe lock, or, in narrow tables, by one compare-and-swap from its
 *       unmarked state when another key replaces it. A thread that believed to know r's slot then
 *       fails its own compare-and-swap.
 *   G4. A thread waits for at most one stripe lock, its own key's, and holds no other while it
 *       waits. Further stripes are only tried: no lock order, no deadlock.
 *   G5. Under r's lock a marked r belongs to a dead thread. Repair: with r* and r present, clear
 *       r*; else clear r^ and unmark r*. A kill at any point of a move leaves neither two of r nor
 *       none.
 *   G6. The record of slot i is guarded by the stripe of the key in slot i.
 *
 * Ordering: every slot change is a sequentially consistent compare-and-swap, and slot reads are
 * acquire; nothing else is published through memory.
 */
#ifndef WEIR_TABLE_TABLE_H
#define WEIR_TABLE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/debt.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/pair.h"
#include "table/blocks.h"

#define LINE_SLOTS 4

struct line {
    struct pair slot[LINE_SLOTS];
} __attribute__((aligned(64)));

/* Marks, in the low bits of a tag. */
#define TAG_LEAVING UINT64_C(1)  /* r* */
#define TAG_ARRIVING UINT64_C(2) /* r^ */
#define TAG_MARKS (TAG_LEAVING | TAG_ARRIVING)
#define TAG_HASH (~UINT64_C(7))

/* Counters of the table itself; each on a line of its own, away from what decisions read. */
struct table_counts {
    struct block_counts blocks;
    uint64_t keys __attribute__((aligned(64)));
    uint64_t sweep_line __attribute__((aligned(64)));
    uint64_t search_pause; /* claims for which a full table is not searched for room */
};

/* How many of what; all that is needed to lay a table out. */
struct table_shape {
    uint64_t max_keys;
    uint64_t lines;        /* even */
    uint64_t stripes;      /* a power of two */
    uint64_t record_bytes; /* beside each slot; 0: narrow */
    uint64_t max_blocks;
    uint64_t block_lines;
};

/* Fills *debt with what a slot's owner owes at the caller's time. */
typedef void (*table_debt_fn)(const void *arg, uint64_t tag, uint64_t word, uint64_t *record,
                              uint64_t now, struct debt *debt);

/* A table as one process sees it. Made by table_attach(); read-only afterwards. */
struct table {
    struct line *lines;
    uint64_t half; /* lines in each half ... */
    uint64_t all;  /* ... and in both */
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
    bool far; /* larger than a core's cache: fetching a line ahead pays */
};

/* Where a key lives. */
struct table_key {
    uint64_t tag;
    uint64_t line; /* the first of its two lines */
};

/* The shape for max_keys keys and max_blocks blocks, and the bytes that such a table takes. */
struct table_shape table_shape(uint64_t max_keys, uint64_t max_blocks, uint64_t record_bytes);
uint64_t table_bytes(const struct table_shape *shape); /* UINT64_MAX: more than there can be */

/* Resident entries. A kill can leave the counter one too low; it is never taken for huge. */
uint64_t table_keys(const struct table *t);

/* Lays the table over memory, aligned to 64, without touching it. Zeroes are an empty table. */
void table_attach(struct table *t, const struct table_shape *shape, void *memory,
                  struct table_counts *counts, struct lock_owner *owner, table_debt_fn debt_of,
                  const void *debt_arg);

/* Frees all locks. Nobody else may be using the table. */
void table_init_locks(const struct table *t);

/* Puts right what dead processes left, and counts again. Nobody else may be using it. */
void table_recover(const struct table *t);

static inline uint64_t table_other_line(const struct table *t, uint64_t line, uint64_t tag)
{
    /* In each half the two places add up to g modulo half; g is a function of the tag alone. */
    uint64_t g = mul_high((tag & TAG_HASH) * UINT64_C(0x9e3779b97f4a7c15), t->half);
    uint64_t base = line < t->half ? t->half : 0;
    uint64_t place = line < t->half ? line : line - t->half;
    return base + (g >= place ? g - place : g + t->half - place);
}

static inline struct table_key table_key(const struct table *t, struct hash h)
{
    uint64_t tag = h.high & TAG_HASH;
    return (struct table_key){tag != 0 ? tag : TAG_HASH, mul_high(h.low, t->all)};
}

/*
 * A block's tag: the hash bits of a key's tag, and three of the lower one of its two lines. A file
 * of format 1 has blocks in the key table, and knows no more of them than that.
 */
static inline uint64_t table_block_tag_at(const struct table *t, uint64_t tag, uint64_t line)
{
    uint64_t other = table_other_line(t, line, tag);
    uint64_t low = min_u64(line, other) * UINT64_C(0x9e3779b97f4a7c15) >> 61;
    return (tag & TAG_HASH) | low; /* not 0: the hash bits of a tag are not */
}

/* The tag of the block of a key with this hash, made from a hash of its own. */
static inline uint64_t table_block_tag(const struct table *t, struct hash h)
{
    struct hash b = {h.high * UINT64_C(0xd6e8feb86659fd93) + 1,
                     h.low * UINT64_C(0xa0761d6478bd642f) ^ h.high};
    struct table_key key = table_key(t, b);
    return table_block_tag_at(t, key.tag, key.line);
}

/* True if a block may be in force at `now`. */
static inline bool table_has_blocks(const struct table *t, uint64_t now)
{
    return __builtin_expect(now < load_relaxed(&t->counts->blocks.last_end), 0);
}

static inline struct lock *table_stripe(const struct table *t, uint64_t tag)
{
    return &t->stripes[tag >> 8 & t->stripe_mask];
}

static inline struct pair *table_slot(const struct table *t, uint64_t i)
{
    return &t->lines[i / LINE_SLOTS].slot[i % LINE_SLOTS];
}

/* The number of a slot: the inverse of table_slot(). */
static inline uint64_t table_slot_number(const struct table *t, const struct pair *slot)
{
    return (uint64_t)(slot - &t->lines[0].slot[0]);
}

static inline uint64_t *table_record(const struct table *t, const struct pair *slot)
{
    unsigned char *record = t->records + table_slot_number(t, slot) * t->record_bytes;
    return t->record_bytes == 0 ? NULL : (uint64_t *)(void *)record;
}

/*
 * The slot with this very tag in a line, or NULL. Branches, not arithmetic: the processor foresees
 * the slot of a key that is asked often, and goes on before the line has been compared.
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

/* The same by arithmetic: for random keys a wrong guess costs more than four compares. */
static inline struct pair *line_pick(struct line *line, uint64_t tag)
{
    unsigned hits = 0;
#pragma GCC unroll 4
    for (unsigned i = 0; i < LINE_SLOTS; i++) {
        hits |= (unsigned)(load_relaxed(&line->slot[i].tag) == tag) << i;
    }
    return hits != 0 ? &line->slot[__builtin_ctz(hits)] : NULL;
}

/* The slot of an unmarked key, without a lock. NULL proves nothing: it may be on the move. */
static inline struct pair *table_find(const struct table *t, struct table_key key)
{
    struct line *first = &t->lines[key.line];
    if (t->far) {
        /* One key in seven is in its second line: do not wait twice. */
        struct line *second = &t->lines[table_other_line(t, key.line, key.tag)];
        __builtin_prefetch(second);
        struct pair *slot = line_pick(first, key.tag);
        return slot != NULL ? slot : line_pick(second, key.tag);
    }
    struct pair *slot = line_find(first, key.tag);
    return slot != NULL ? slot
                        : line_find(&t->lines[table_other_line(t, key.line, key.tag)], key.tag);
}

/*
 * The same under the key's stripe lock. Repairs what a dead thread left (G5); key.tag may have its
 * marks. NULL: absent.
 */
struct pair *table_find_locked(const struct table *t, struct table_key key);

/* How table_claim() is to find a place. */
#define CLAIM_EVICT 1u
#define CLAIM_HASTY 2u

/* What table_claim() did. */
struct claim {
    struct pair *slot;  /* NULL: there was no place */
    uint64_t reclaimed; /* slots of keys as good as fresh that were used again */
    uint64_t evicted;   /* 1 if a key in use was forgotten */
    uint64_t moved;     /* residents moved to make room */
    uint64_t full_for;  /* slot NULL: ns until the first of the candidates will be fresh */
    bool contended;  /* others were in the way; slot NULL: release the stripe and try again ... */
    uint64_t in_way; /* ... when this tag's stripe is free; 0: nobody's in particular */
};

/*
 * Puts an absent key into the table with `word`. Call under the key's stripe lock, after
 * table_find_locked() said NULL. `how`: CLAIM_EVICT, forget the candidate that owes least rather
 * than fail; CLAIM_HASTY, do not wait for others who are in the way, who may be stopped for good.
 * Candidates that are from a far future are pulled down. The caller fills the slot's record.
 */
struct claim table_claim(const struct table *t, struct table_key key, uint64_t word, uint64_t now,
                         unsigned how);

/* Takes a key out of its slot, under its stripe lock. False if it is not as `seen` any more. */
bool table_remove(const struct table *t, struct pair *slot, struct pair seen);

/*
 * Frees slots that are as good as fresh in up to `lines` lines, from where the last sweep ended,
 * and pulls down states that are from a far future; after the last line, frees blocks that are
 * over. Returns how many were freed.
 */
uint64_t table_sweep(const struct table *t, uint64_t lines, uint64_t now);

/* ---- between the table's own files ---- */

/*
 * Moves residents until one of the key's lines has an empty slot (which another thread may take).
 * False if that failed. Adds to claim->moved and ->reclaimed; sets ->contended and ->in_way.
 */
bool table_make_room(const struct table *t, struct table_key key, uint64_t now,
                     struct claim *claim);

/* True if the slot's owner is as good as fresh and was taken out; the slot is now empty. */
bool table_reclaim(const struct table *t, struct pair *slot, uint64_t now, uint64_t held_tag);

/* The two lines in which a key may be, and the i-th of their CANDIDATES slots. */
#define CANDIDATES (2 * LINE_SLOTS)
struct key_lines {
    struct line *line[2];
};

static inline struct key_lines table_key_lines(const struct table *t, struct table_key key)
{
    uint64_t other = table_other_line(t, key.line, key.tag);
    return (struct key_lines){{&t->lines[key.line], &t->lines[other]}};
}

static inline struct pair *key_slot(const struct key_lines *c, unsigned i)
{
    return &c->line[i / LINE_SLOTS]->slot[i % LINE_SLOTS];
}

/* Tries to lock the stripe of `tag`, unless the caller holds it for `held_tag` already. */
bool table_enter_try(const struct table *t, uint64_t tag, uint64_t held_tag);
void table_leave(const struct table *t, uint64_t tag, uint64_t held_tag);

#endif
