/*
 * Makes room by moving residents to their other lines: a breadth-first search for at most MOVES_MAX
 * moves in a row. Tables of four-slot lines with two choices can be filled to 90 % this way; ours
 * are filled to 78 %.
 *
 * A move, under the resident's stripe (G2), consists of these steps, each but M3 one swap:
 *
 *     M1  from  (r, s)   -> (r*, s)    the fast path no longer finds r
 *     M2  to    (0, 0)   -> (r^, s)    the place is reserved; its record may be written
 *     M3  record of from -> record of to
 *     M4  to    (r^, s)  -> (r, s)     r is found again, in its new place
 *     M5  from  (r*, s)  -> (0, 0)
 *
 * After a kill after M1, M2 or M3, the repair unmarks r* and clears r^; after M4, it clears r*.
 */
#include "table/table.h"

#define MOVES_MAX 3
/* 2 lines, the other lines of their 8 residents, and so on. */
#define NODES_MAX (2 + 8 + 32 + 128)

struct move_node {
    uint64_t line;
    uint64_t tag;  /* the resident that would move into `line` */
    unsigned from; /* the node from whose line it would move */
    unsigned slot; /* its slot in that line */
    unsigned depth;
};

struct search {
    struct move_node node[NODES_MAX];
    unsigned count;
};

static void add_node(struct search *s, uint64_t line, uint64_t tag, unsigned from, unsigned slot)
{
    if (s->count < NODES_MAX) {
        unsigned depth = tag == 0 ? 0 : s->node[from].depth + 1;
        assert(depth <= MOVES_MAX);
        s->node[s->count++] = (struct move_node){line, tag, from, slot, depth};
    }
}

/* Changes a slot that this thread has marked, under the stripe: no other thread touches it. */
static void change_marked(struct pair *slot, struct pair seen, struct pair next)
{
    bool done = pair_cas(slot, seen, next);
    assert(done); /* G2 */
    (void)done;
}

/* Moves the resident `tag` from its slot into some empty slot of `to`, under its stripe. */
static bool move_locked(const struct table *t, struct pair *from, uint64_t tag, struct line *to)
{
    struct pair was = pair_load(from);
    assert(table_holds(t, tag)); /* G2 */
    struct pair leaving = {tag | TAG_LEAVING, was.word};
    struct pair arriving = {tag | TAG_ARRIVING, was.word};
    if (was.tag != tag || !pair_cas(from, was, leaving)) { /* M1 */
        return false;
    }
    for (unsigned i = 0; i < LINE_SLOTS; i++) {
        struct pair *slot = &to->slot[i];
        if (load_relaxed(&slot->tag) == 0 &&
            pair_cas(slot, (struct pair){0, 0}, arriving)) { /* M2 */
            if (t->record_bytes != 0) {
                memcpy(table_record(t, slot), table_record(t, from), t->record_bytes); /* M3 */
            }
            change_marked(slot, arriving, was);                /* M4 */
            change_marked(from, leaving, (struct pair){0, 0}); /* M5 */
            return true;
        }
    }
    change_marked(from, leaving, was);
    return false;
}

static bool move(const struct table *t, struct pair *from, uint64_t tag, struct line *to,
                 uint64_t held_tag)
{
    if (!table_enter_try(t, tag, held_tag)) {
        return false;
    }
    /* First repairs what a dead mover left: of two r*, nobody could tell which is current. */
    (void)table_find_locked(t, (struct table_key){tag, (uint64_t)(to - t->lines)});
    bool done = move_locked(t, from, tag, to);
    table_leave(t, tag, held_tag);
    return done;
}

/* Walks from the node whose line has an empty slot back to one of the key's own lines. */
static bool follow(const struct table *t, const struct search *s, unsigned end, uint64_t held_tag,
                   struct claim *claim)
{
    while (s->node[end].tag != 0) {
        const struct move_node *n = &s->node[end];
        assert(n->from < end);
        struct pair *from = &t->lines[s->node[n->from].line].slot[n->slot];
        if (!move(t, from, n->tag, &t->lines[n->line], held_tag)) {
            /* Another thread was faster. The residents that were moved are in valid places. */
            claim->contended = true;
            claim->in_way = n->tag;
            return false;
        }
        claim->moved++;
        end = n->from;
    }
    return true;
}

/* Returns whether the line has an empty slot, or one was emptied. If not, queues its residents. */
static bool visit(const struct table *t, struct search *s, unsigned at, uint64_t now,
                  uint64_t held_tag, struct claim *claim)
{
    uint64_t line = s->node[at].line;
    for (unsigned i = 0; i < LINE_SLOTS; i++) {
        struct pair *slot = &t->lines[line].slot[i];
        uint64_t tag = load_relaxed(&slot->tag);
        if (tag == 0) {
            return true;
        }
        if (table_reclaim(t, slot, now, held_tag)) {
            claim->reclaimed++;
            return true;
        }
        if ((tag & TAG_MARKS) != 0) {
            claim->contended = true;
            claim->in_way = tag;
        } else if (s->node[at].depth < MOVES_MAX) {
            add_node(s, table_other_line(t, line, tag), tag, at, i);
        }
    }
    return false;
}

bool table_make_room(const struct table *t, struct table_key key, uint64_t now, struct claim *claim)
{
    struct search s;
    s.count = 0;
    assert(table_holds(t, key.tag)); /* G4: all other stripes are only tried */
    add_node(&s, key.line, 0, 0, 0);
    add_node(&s, table_other_line(t, key.line, key.tag), 0, 0, 0);
    for (unsigned at = 0; at < s.count; at++) {
        if (visit(t, &s, at, now, key.tag, claim)) {
            return follow(t, &s, at, key.tag, claim);
        }
    }
    return false;
}
