/*
 * Finding a place for a new key: an empty slot, the slot of a key as good as
 * fresh, room made by moving residents, and at last the policy for full tables.
 */
#include "table/table.h"

#include <weir.h>

/* Rounds before giving up because others keep taking what we found. */
#define ROUNDS 64

struct pick {
    struct pair *slot;
    struct pair seen;
    uint64_t fresh_in; /* UINT64_MAX: nothing to pick */
};

static struct pair *take_empty(const struct table *t, struct line *line, struct pair next)
{
    for (unsigned i = 0; i < LINE_SLOTS; i++) {
        struct pair *slot = &line->slot[i];
        if (load_relaxed(&slot->tag) == 0 && pair_cas(slot, (struct pair){0, 0}, next)) {
            (void)fetch_add(&t->counts->keys, 1);
            return slot;
        }
    }
    return NULL;
}

/* A marked slot is on the move, unless its mover died: then its stripe can be had. */
static void repair_dead(const struct table *t, const struct pair *slot, uint64_t tag,
                        uint64_t held_tag)
{
    if (table_enter_try(t, tag, held_tag)) {
        table_repair(t, tag, (uint64_t)(slot - &t->lines[0].slot[0]) / LINE_SLOTS);
        table_leave(t, tag, held_tag);
    }
}

/*
 * Asks how far the slot's owner is from fresh. Wide: the record may only be read
 * under the owner's stripe; somebody who holds it makes this slot no candidate.
 */
static bool appraise(const struct table *t, struct pair *slot, uint64_t now, uint64_t held_tag,
                     struct pick *pick)
{
    struct pair seen = pair_load(slot);
    bool wide = t->record_bytes != 0;
    if ((seen.tag & TAG_MARKS) != 0) {
        repair_dead(t, slot, seen.tag, held_tag);
        return false;
    }
    if (seen.tag == 0) {
        return false;
    }
    if (wide && !table_enter_try(t, seen.tag, held_tag)) {
        return false;
    }
    pick->slot = slot;
    pick->seen = seen;
    pick->fresh_in = t->fresh_in(t->fresh_arg, seen.tag, seen.word, table_record(t, slot), now);
    if (wide) {
        table_leave(t, seen.tag, held_tag);
    }
    return true;
}

/* The candidate nearest to fresh; a live block is none. Notes when the first of all will be. */
static struct pick pick_victim(const struct table *t, struct table_key key, uint64_t now,
                               struct claim *claim)
{
    struct pick best = {NULL, {0, 0}, UINT64_MAX};
    uint64_t lines[2] = {key.line, table_other_line(t, key.line, key.tag)};
    claim->full_for = UINT64_MAX;
    claim->contended = false;
    for (unsigned i = 0; i < 2 * LINE_SLOTS; i++) {
        struct pick p;
        if (!appraise(t, &t->lines[lines[i / LINE_SLOTS]].slot[i % LINE_SLOTS], now, key.tag, &p)) {
            claim->contended = true; /* emptied just now, on the move, or its stripe is taken */
            continue;
        }
        claim->full_for = min_u64(claim->full_for, p.fresh_in);
        bool live_block = (p.seen.tag & TAG_BLOCK) != 0 && p.fresh_in != 0;
        if (!live_block && p.fresh_in < best.fresh_in) {
            best = p;
        }
    }
    return best;
}

/* One swap from the old owner to the new: a kill leaves either the one or the other. */
static bool replace(const struct table *t, const struct pick *pick, struct pair next)
{
    bool wide = t->record_bytes != 0;
    if (wide && !table_enter_try(t, pick->seen.tag, next.tag)) {
        return false;
    }
    bool done = pair_cas(pick->slot, pick->seen, next);
    if (wide) {
        table_leave(t, pick->seen.tag, next.tag);
    }
    if (done && (pick->seen.tag & TAG_BLOCK) != 0) {
        (void)fetch_sub(&t->counts->blocks, 1);
    }
    return done;
}

bool table_reclaim(const struct table *t, struct pair *slot, uint64_t now, uint64_t held_tag)
{
    struct pick p;
    if (!appraise(t, slot, now, held_tag, &p) || p.fresh_in != 0) {
        return false;
    }
    if (t->record_bytes == 0) {
        return table_remove(t, slot, p.seen);
    }
    if (!table_enter_try(t, p.seen.tag, held_tag)) {
        return false;
    }
    bool done = table_remove(t, slot, p.seen);
    table_leave(t, p.seen.tag, held_tag);
    return done;
}

struct claim table_claim(const struct table *t, struct table_key key, uint64_t word, uint64_t now,
                         bool evict)
{
    struct claim c = {NULL, 0, 0, 0, UINT64_MAX, false};
    struct pair next = {key.tag, word};
    struct line *first = &t->lines[key.line];
    struct line *second = &t->lines[table_other_line(t, key.line, key.tag)];
    bool may_move = true;
    for (unsigned round = 0; round < ROUNDS; round++) {
        c.slot = take_empty(t, first, next);
        if (c.slot == NULL) {
            c.slot = take_empty(t, second, next);
        }
        if (c.slot != NULL) {
            return c;
        }
        struct pick victim = pick_victim(t, key, now, &c);
        if (victim.fresh_in != 0 && may_move) {
            /* A full table is not searched: a flood must not cost more than a few line reads. */
            may_move =
                load_relaxed(&t->counts->keys) < t->max_keys && table_make_room(t, key, now, &c);
            if (may_move) {
                continue;
            }
        }
        bool fresh = victim.fresh_in == 0;
        if (!fresh && (!evict || victim.slot == NULL)) {
            if (c.contended) {
                continue; /* a candidate that could not be looked at may be the place */
            }
            return c;
        }
        if (replace(t, &victim, next)) {
            c.slot = victim.slot;
            c.reclaimed += fresh;
            c.evicted += !fresh;
            return c;
        }
    }
    c.contended = true;
    return c;
}

static void sweep_line(const struct table *t, uint64_t line, uint64_t now, uint64_t *freed)
{
    for (unsigned i = 0; i < LINE_SLOTS; i++) {
        struct pair *slot = &t->lines[line].slot[i];
        *freed += load_relaxed(&slot->tag) != 0 && table_reclaim(t, slot, now, 0);
    }
}

uint64_t table_sweep(const struct table *t, uint64_t lines, uint64_t now)
{
    uint64_t all = 2 * t->half;
    uint64_t freed = 0;
    lines = min_u64(lines, all);
    uint64_t line = fetch_add(&t->counts->sweep_line, lines);
    for (uint64_t i = 0; i < lines; i++) {
        sweep_line(t, (line + i) % all, now, &freed);
    }
    return freed;
}
