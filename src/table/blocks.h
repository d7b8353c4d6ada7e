/*
 * Blocks: keys that are denied until a time, whatever their quota. They have a table of their own,
 * so that blocks and keys never compete for a place.
 *
 * A line is 64 bytes: its reach and three blocks, each a tag and the time at which it ends. The
 * home of a block is one line; if that is full, the block goes to the next line with a free place.
 * The reach of a line says how many lines further any of its blocks has ever gone, so a lookup
 * reads the home line and as many after it. Blocks take at most two thirds of the places: a free
 * one is near.
 *
 *   B1. A block stays in its place until it is removed or over. So a lookup without a lock cannot
 *       miss it.
 *   B2. The reach of the home line and the end of the last block cover a block before it is
 *       written.
 *   B3. Blocks are changed under `lock`, by one compare-and-swap each. A kill in between leaves a
 *       reach, an end or a count that is too large, which costs time and changes no answer.
 */
#ifndef WEIR_TABLE_BLOCKS_H
#define WEIR_TABLE_BLOCKS_H

#include "base/lock.h"
#include "base/pair.h"

#define BLOCK_LINE_PLACES 3

/*
 * The lowest bit of an end says what made the block: 1 a ban, 0 any other. The end of a block
 * without end, UINT64_MAX, is never that of a ban. block_end() rounds an end that is after `now`
 * down to such a number, which is a nanosecond at most, or up if it would not be after `now`.
 */
static inline uint64_t block_end(uint64_t until, bool ban, uint64_t now)
{
    uint64_t end = until - ((until & 1) != ban);
    return until == UINT64_MAX ? until : end > now ? end : end + 2;
}

static inline bool block_is_ban(uint64_t end)
{
    return (end & 1) != 0 && end != UINT64_MAX;
}

struct block_line {
    uint64_t reach;
    uint64_t unused;
    struct pair block[BLOCK_LINE_PLACES]; /* tag and end; a tag of 0 is a free place */
} __attribute__((aligned(64)));

struct block_counts {
    /* No block is in force from this time on. May be too late, never too early. */
    uint64_t last_end __attribute__((aligned(64)));
    struct lock lock;
    uint64_t count; /* places in use, including those of blocks that are over */
};

/* The blocks of a table as one process sees them. */
struct blocks {
    struct block_line *lines;
    uint64_t line_count;
    uint64_t max;
    struct block_counts *counts;
    struct lock_owner *owner;
};

/* Returns how many lines max_blocks blocks need. */
uint64_t blocks_lines(uint64_t max_blocks);

/* Returns the line in which the search for a block begins. */
uint64_t blocks_home(const struct blocks *b, uint64_t tag);

/* Returns when the block with this table_block_tag() ends, or 0. Takes no lock. */
uint64_t blocks_until(const struct blocks *b, uint64_t tag);

/*
 * Blocks a key until `until`, a block_end() after `now`. A ban does not replace a block that ends
 * later. WEIR_EFULL if max_blocks are in force.
 */
int blocks_set(const struct blocks *b, uint64_t tag, uint64_t until, uint64_t now);

/* Removes a key's block. Returns 1 if there was one, even one that is over, otherwise 0. */
int blocks_clear(const struct blocks *b, uint64_t tag);

/* Frees the places of blocks that are over. Returns how many there were. */
uint64_t blocks_sweep(const struct blocks *b, uint64_t now);

/* Repairs what a dead process or a torn copy left. No other process may be using the table. */
void blocks_recover(const struct blocks *b);

#endif
