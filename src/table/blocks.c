#include "table/blocks.h"

#include <assert.h>
#include <weir.h>

/* Two of three places are used, and there are enough lines to keep equal tags apart. */
#define BLOCKS_PER_LINE 2
#define LINES_MIN 32

uint64_t blocks_lines(uint64_t max_blocks)
{
    return max_u64(max_blocks / BLOCKS_PER_LINE + max_blocks % BLOCKS_PER_LINE, LINES_MIN);
}

uint64_t blocks_home(const struct blocks *b, uint64_t tag)
{
    return mul_high(tag * UINT64_C(0xd6e8feb86659fd93), b->line_count);
}

/*
 * Returns the first place with this tag in line `home` and `reach` lines after it, or NULL. A free
 * place has the tag 0.
 */
static struct pair *search(const struct blocks *b, uint64_t home, uint64_t reach, uint64_t tag)
{
    for (uint64_t line = home; line <= home + reach; line++) {
        struct pair *block = b->lines[line < b->line_count ? line : line - b->line_count].block;
        for (unsigned i = 0; i < BLOCK_LINE_PLACES; i++) {
            if (load_relaxed(&block[i].tag) == tag) {
                return &block[i];
            }
        }
    }
    return NULL;
}

static struct pair *find(const struct blocks *b, uint64_t tag)
{
    uint64_t home = blocks_home(b, tag);
    uint64_t reach = load_acquire(&b->lines[home].reach);
    return search(b, home, min_u64(reach, b->line_count - 1), tag);
}

uint64_t blocks_until(const struct blocks *b, uint64_t tag)
{
    struct pair *place = find(b, tag);
    struct pair seen = place != NULL ? pair_load(place) : (struct pair){0, 0};
    return seen.tag == tag ? seen.word : 0;
}

/* ---- under the lock ---- */

static void write_place(struct pair *place, struct pair next)
{
    (void)pair_cas(place, pair_load(place), next); /* no other thread writes (B3) */
}

static struct pair *place_at(const struct blocks *b, uint64_t i)
{
    return &b->lines[i / BLOCK_LINE_PLACES].block[i % BLOCK_LINE_PLACES];
}

/* Frees the places of blocks that are over, and counts the rest. Returns how many were freed. */
static uint64_t drop_over(const struct blocks *b, uint64_t now)
{
    uint64_t left = 0;
    uint64_t freed = 0;
    for (uint64_t i = 0; i < b->line_count * BLOCK_LINE_PLACES; i++) {
        struct pair *place = place_at(b, i);
        if (load_relaxed(&place->tag) != 0 && load_relaxed(&place->word) <= now) {
            write_place(place, (struct pair){0, 0});
            freed++;
        }
        left += load_relaxed(&place->tag) != 0;
    }
    store_relaxed(&b->counts->count, left);
    return freed;
}

static void raise(uint64_t *word, uint64_t least)
{
    store_ordered(word, max_u64(load_relaxed(word), least));
}

/* Returns how many lines after the home line of the tag the place is. */
static uint64_t distance(const struct blocks *b, uint64_t tag, const struct pair *place)
{
    uint64_t home = blocks_home(b, tag);
    size_t offset = (size_t)((const char *)place - (const char *)b->lines);
    uint64_t line = offset / sizeof(struct block_line);
    return line >= home ? line - home : line + b->line_count - home;
}

/* Makes the reach of the tag's home line cover the place. */
static void cover(const struct blocks *b, uint64_t tag, const struct pair *place)
{
    raise(&b->lines[blocks_home(b, tag)].reach, distance(b, tag, place));
}

/* Counts and covers (B2) a place for a new block. Returns NULL if max_blocks are in force. */
static struct pair *claim_place(const struct blocks *b, uint64_t tag, uint64_t now)
{
    uint64_t *count = &b->counts->count;
    assert(lock_held(&b->counts->lock, 1)); /* B3 */
    if (load_relaxed(count) >= b->max) {
        (void)drop_over(b, now);
    }
    if (load_relaxed(count) >= b->max) {
        return NULL;
    }
    struct pair *place = search(b, blocks_home(b, tag), b->line_count - 1, 0);
    if (place != NULL) { /* always, because a third of the places is free */
        store_relaxed(count, load_relaxed(count) + 1);
        cover(b, tag, place);
    }
    return place;
}

int blocks_set(const struct blocks *b, uint64_t tag, uint64_t until, uint64_t now)
{
    lock_take(&b->counts->lock, b->owner);
    struct pair *old = find(b, tag);
    struct pair *place = old != NULL ? old : claim_place(b, tag, now);
    bool longer = old != NULL && block_is_ban(until) && load_relaxed(&old->word) >= until;
    if (place != NULL && !longer) {
        raise(&b->counts->last_end, until); /* B2 */
        assert(distance(b, tag, place) <= load_relaxed(&b->lines[blocks_home(b, tag)].reach));
        write_place(place, (struct pair){tag, until});
    }
    lock_release(&b->counts->lock);
    return place != NULL ? 0 : WEIR_EFULL;
}

uint64_t blocks_sweep(const struct blocks *b, uint64_t now)
{
    if (load_relaxed(&b->counts->count) == 0) {
        return 0;
    }
    lock_take(&b->counts->lock, b->owner);
    uint64_t freed = drop_over(b, now);
    lock_release(&b->counts->lock);
    return freed;
}

/* Returns the end of the last block. The search ends when it has found `most`. */
static uint64_t find_last_end(const struct blocks *b, uint64_t most)
{
    uint64_t last = 0;
    for (uint64_t i = 0; i < b->line_count * BLOCK_LINE_PLACES && last < most; i++) {
        last = max_u64(last, load_relaxed(&place_at(b, i)->word));
    }
    return last;
}

int blocks_clear(const struct blocks *b, uint64_t tag)
{
    lock_take(&b->counts->lock, b->owner);
    struct pair *place = find(b, tag);
    if (place != NULL) {
        uint64_t end = load_relaxed(&place->word);
        uint64_t count = load_relaxed(&b->counts->count);
        write_place(place, (struct pair){0, 0});
        store_relaxed(&b->counts->count, sub_floor0(count, 1));
        if (end >= load_relaxed(&b->counts->last_end)) {
            store_ordered(&b->counts->last_end, find_last_end(b, end));
        }
    }
    lock_release(&b->counts->lock);
    return place != NULL;
}

/* ---- recovery ---- */

/* The pages of a copy may be of different times: a place is half written, a reach is too small. */
static void repair_place(const struct blocks *b, struct pair *place)
{
    struct pair seen = pair_load(place);
    if (seen.tag == 0 || seen.word == 0) {
        write_place(place, (struct pair){0, 0});
    } else {
        cover(b, seen.tag, place);
    }
}

void blocks_recover(const struct blocks *b)
{
    uint64_t places = b->line_count * BLOCK_LINE_PLACES;
    lock_init(&b->counts->lock);
    for (uint64_t i = 0; i < b->line_count; i++) {
        store_relaxed(&b->lines[i].reach, 0);
    }
    for (uint64_t i = 0; i < places; i++) {
        repair_place(b, place_at(b, i));
    }
    for (uint64_t i = 0; i < places; i++) {
        uint64_t tag = load_relaxed(&place_at(b, i)->tag);
        if (tag != 0 && find(b, tag) != place_at(b, i)) { /* the first of two equal tags stays */
            write_place(place_at(b, i), (struct pair){0, 0});
        }
    }
    (void)drop_over(b, 0);
    store_relaxed(&b->counts->last_end, find_last_end(b, UINT64_MAX));
}
