/*
 * Finds a place for a new key: an empty slot, the slot of a key that is fresh, room made
 * by moving residents, or at last what the policy for full tables says.
 */
#include "table/table.h"

/* After so many rounds with others in the way, the caller lets them run. */
#define ROUNDS 8
/* A search reads up to 170 lines, so that it costs less than one line for each call. */
#define SEARCH_PAUSE 256

struct pick {
    struct pair *slot;
    struct pair seen;
    struct debt debt;
};

static struct pair *take_empty(const struct table *t, struct table_key key, uint64_t word)
{
    struct line *line[2] = {&t->lines[key.line], table_second(t, key)};
    for (unsigned i = 0; i < CANDIDATES; i++) {
        struct pair *slot = &line[i / LINE_SLOTS]->slot[i % LINE_SLOTS];
        if (load_relaxed(&slot->tag) == 0 &&
            pair_cas(slot, (struct pair){0, 0}, (struct pair){key.tag, word})) {
            (void)fetch_add(&t->counts->keys, 1);
            return slot;
        }
    }
    return NULL;
}

/*
 * Finds out what the owner owes, and pulls its state down if that is from a far future. Returns
 * false if the state has changed. In wide tables the caller holds the owner's stripe (G6).
 */
static bool ask_debt(const struct table *t, struct pick *pick, uint64_t now)
{
    struct pair seen = pick->seen;
    assert(t->record_bytes == 0 || table_holds(t, seen.tag)); /* G6 */
    t->debt_of(t->debt_arg, seen.tag, seen.word, table_record(t, pick->slot), now, &pick->debt);
    if (pick->debt.word == seen.word) {
        return true;
    }
    /* A clock was set back. The next search must take place, to pull down all states it meets. */
    store_relaxed(&t->counts->search_pause, 0);
    pick->seen.word = pick->debt.word;
    return pair_cas(pick->slot, seen, pick->seen);
}

static bool owes_less(const struct debt *a, const struct debt *b)
{
    return a->owed != b->owed ? a->owed < b->owed : a->fresh_in < b->fresh_in;
}

/*
 * Finds out what the slot's owner owes. Returns false if the slot is empty, its owner has just
 * changed, or another thread is in the way. A marked slot is being moved, unless its mover died and
 * its stripe is free.
 */
static bool appraise(const struct table *t, struct pair *slot, uint64_t now, uint64_t held_tag,
                     struct pick *pick)
{
    pick->slot = slot;
    pick->seen = pair_load(slot);
    uint64_t tag = pick->seen.tag;
    if (tag == 0) {
        return false;
    }
    if ((tag & TAG_MARKS) == 0 && t->record_bytes == 0) {
        return ask_debt(t, pick, now);
    }
    if (!table_enter_try(t, tag, held_tag)) {
        return false;
    }
    (void)table_find_locked(t, (struct table_key){tag, table_slot_number(t, slot) / LINE_SLOTS});
    pick->seen = pair_load(slot); /* it may have changed before we took the stripe */
    bool done = pick->seen.tag == tag && ask_debt(t, pick, now);
    table_leave(t, tag, held_tag);
    return done;
}

/* Returns the candidate that owes least. Notes in *claim when the first will be fresh. */
static struct pick pick_victim(const struct table *t, struct table_key key, uint64_t now,
                               struct claim *claim)
{
    struct pick best = {.slot = NULL};
    claim->full_for = UINT64_MAX;
    claim->contended = false;
    claim->in_way = 0;
    struct line *line[2] = {&t->lines[key.line], table_second(t, key)};
    for (unsigned i = 0; i < CANDIDATES; i++) {
        struct pair *slot = &line[i / LINE_SLOTS]->slot[i % LINE_SLOTS];
        struct pick p;
        if (!appraise(t, slot, now, key.tag, &p)) {
            claim->contended = true; /* just emptied, being moved, or its stripe is taken */
            claim->in_way = p.seen.tag;
            continue;
        }
        claim->full_for = min_u64(claim->full_for, p.debt.fresh_in);
        if (best.slot == NULL || owes_less(&p.debt, &best.debt)) {
            best = p;
        }
    }
    return best;
}

/*
 * Replaces the old owner by `next` in one swap, so that a kill leaves either the one or the other.
 * A narrow word contains a time, so the word of an owner that was used since it was appraised has
 * changed. The word of a log is a count, which may be the same again: so the owner of a log is
 * appraised again under its stripe, and must not owe more.
 */
static bool swap_out(const struct table *t, const struct pick *pick, struct pair next, uint64_t now,
                     uint64_t held_tag)
{
    struct pick again = *pick;
    if (t->record_bytes == 0) {
        return pair_cas(pick->slot, pick->seen, next);
    }
    if (!table_enter_try(t, pick->seen.tag, held_tag)) {
        return false;
    }
    bool done = pair_is(pick->slot, pick->seen) && ask_debt(t, &again, now) &&
                !owes_less(&pick->debt, &again.debt) && pair_cas(pick->slot, again.seen, next);
    table_leave(t, pick->seen.tag, held_tag);
    return done;
}

bool table_reclaim(const struct table *t, struct pair *slot, uint64_t now, uint64_t held_tag)
{
    struct pick p;
    if (!appraise(t, slot, now, held_tag, &p) || p.debt.fresh_in != 0) {
        return false;
    }
    (void)fetch_sub(&t->counts->keys, 1); /* see table_remove() */
    if (!swap_out(t, &p, (struct pair){0, 0}, now, held_tag)) {
        (void)fetch_add(&t->counts->keys, 1);
        return false;
    }
    return true;
}

/*
 * A table with max_keys residents may hold keys that are fresh, so it is searched like
 * any other. But after a search has found nothing, the next ones are left out, so that a flood of
 * new keys costs a few line reads for each call, not a search.
 */
static bool make_room(const struct table *t, struct table_key key, uint64_t now, struct claim *c)
{
    uint64_t pause = load_relaxed(&t->counts->search_pause);
    if (pause != 0 && table_keys(t) >= t->max_keys) {
        store_relaxed(&t->counts->search_pause, pause - 1);
        return false;
    }
    bool made = table_make_room(t, key, now, c);
    if (!made && !c->contended) {
        store_relaxed(&t->counts->search_pause, SEARCH_PAUSE);
    }
    return made;
}

struct claim table_claim(const struct table *t, struct table_key key, uint64_t word, uint64_t now,
                         unsigned how)
{
    struct claim c = {.full_for = UINT64_MAX};
    assert(table_holds(t, key.tag)); /* G2 */
    assert(key.tag != 0 && (key.tag & ~TAG_HASH) == 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        c.slot = take_empty(t, key, word);
        if (c.slot != NULL) {
            return c;
        }
        struct pick victim = pick_victim(t, key, now, &c);
        bool fresh = victim.slot != NULL && victim.debt.fresh_in == 0;
        /* To wait for those in the way costs time; not to wait may cost a resident its state. */
        if (!fresh && (make_room(t, key, now, &c) || (c.contended && (how & CLAIM_HASTY) == 0))) {
            continue;
        }
        if (!fresh && ((how & CLAIM_EVICT) == 0 || victim.slot == NULL)) {
            return c;
        }
        if (swap_out(t, &victim, (struct pair){key.tag, word}, now, key.tag)) {
            c.slot = victim.slot;
            c.reclaimed += fresh;
            c.evicted += !fresh;
            return c;
        }
    }
    c.contended = true;
    return c;
}

static bool sweep_slot(const struct table *t, uint64_t i, uint64_t now)
{
    struct pair *slot = table_slot(t, i);
    uint64_t tag = load_relaxed(&slot->tag);
    struct lock *stripe = table_stripe(t, tag);
    if ((tag & TAG_MARKS) == 0) {
        return tag != 0 && table_reclaim(t, slot, now, 0);
    }
    /* A sweep holds no stripe, so it can wait (G4), which finds out whether the mover is dead. */
    assert(!table_holds_any(t));
    if (lock_take_soon(stripe, t->owner)) {
        (void)table_find_locked(t, (struct table_key){tag, i / LINE_SLOTS});
        lock_release(stripe);
    }
    return false;
}

uint64_t table_sweep(const struct table *t, uint64_t lines, uint64_t now)
{
    uint64_t freed = 0;
    lines = min_u64(lines, t->all);
    uint64_t line = fetch_add(&t->counts->sweep_line, lines) % t->all;
    if (line + lines >= t->all) { /* once a round */
        freed += blocks_sweep(&t->blocks, now);
    }
    for (uint64_t i = 0; i < lines * LINE_SLOTS; i++) {
        freed += sweep_slot(t, (line * LINE_SLOTS + i) % (t->all * LINE_SLOTS), now);
    }
    return freed;
}
