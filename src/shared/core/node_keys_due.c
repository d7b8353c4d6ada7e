/* The parts of keys that must be looked at: a heap by time for each stripe and kind. */
#include <assert.h>

#include "base/atomic.h"
#include "shared/core/node_keys.h"

static void put_at(struct key_heap *h, size_t place, struct key_part *part)
{
    h->at[place] = part;
    part->place = place;
}

static void rise(struct key_heap *h, size_t place, struct key_part *part)
{
    while (place > 0 && h->at[(place - 1) / 2]->due_ns > part->due_ns) {
        put_at(h, place, h->at[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put_at(h, place, part);
}

static void sink(struct key_heap *h, size_t place, struct key_part *part)
{
    for (;;) {
        size_t child = 2 * place + 1;
        if (child + 1 < h->count && h->at[child + 1]->due_ns < h->at[child]->due_ns) {
            child++;
        }
        if (child >= h->count || h->at[child]->due_ns >= part->due_ns) {
            break;
        }
        put_at(h, place, h->at[child]);
        place = child;
    }
    put_at(h, place, part);
}

/* Moves a part up or down from `place` to where its due time belongs. */
static void settle(struct key_heap *h, size_t place, struct key_part *part)
{
    rise(h, place, part);
    sink(h, part->place, part);
}

/* Tells other threads when the stripe's first part is due, and whether it has parts. */
static void publish(struct key_stripe *s, unsigned kind)
{
    struct key_heap *h = &s->heap[kind];
    uint64_t *scheduled = &s->table->scheduled[kind];
    uint64_t bit = UINT64_C(1) << (s - s->table->stripe);
    store_relaxed(&h->due_ns, h->count > 0 ? h->at[0]->due_ns : UINT64_MAX);
    if (((load_relaxed(scheduled) & bit) != 0) != (h->count > 0)) {
        flip_relaxed(scheduled, bit);
    }
}

void node_key_schedule(struct key_stripe *s, struct key_part *part, uint64_t due_ns)
{
    struct key_heap *h = &s->heap[part->key->kind];
    part->due_ns = due_ns;
    assert(part->key->part == part);
    settle(h, part->place == KEY_NOWHERE ? h->count++ : part->place, part);
    assert(h->count <= s->table->most[part->key->kind]); /* K1 */
    publish(s, part->key->kind);
}

void node_key_unschedule(struct key_stripe *s, struct key_part *part)
{
    struct key_heap *h = &s->heap[part->key->kind];
    if (part->place == KEY_NOWHERE) {
        return;
    }
    assert(h->at[part->place] == part);
    struct key_part *last = h->at[--h->count];
    if (last != part) {
        settle(h, part->place, last);
    }
    part->place = KEY_NOWHERE;
    publish(s, part->key->kind);
}

/* Returns a hash that belongs to the stripe. */
static struct hash of_stripe(uint64_t i)
{
    return (struct hash){.low = i << 32};
}

/* Looks at the stripe's parts that are due, until a call is made. */
static bool next_of_stripe(struct node_keys *t, unsigned at, enum key_kind kind, uint64_t now_ns,
                           key_look_fn look, void *call)
{
    struct key_heap *h = &t->stripe[at].heap[kind];
    bool found = false;
    if (load_relaxed(&h->due_ns) > now_ns) {
        return false;
    }
    struct key_stripe *s = node_keys_lock(t, of_stripe(at), &now_ns);
    while (!found && h->due_ns <= now_ns) {
        const struct key_part *part = h->at[0];
        found = look(t, s, h->at[0], now_ns, call);
        assert(found || h->due_ns > now_ns || h->at[0] != part); /* otherwise this never ends */
        (void)part;
    }
    node_keys_unlock(s);
    return found;
}

bool node_keys_next(struct node_keys *t, enum key_kind kind, uint64_t now_ns, key_look_fn look,
                    void *call)
{
    uint64_t all = load_relaxed(&t->scheduled[kind]);
    uint64_t turn = load_relaxed(&t->turn[kind]); /* a hint, which any thread may change */
    uint64_t later = all & (UINT64_MAX << (turn & (t->stripes - 1)));
    uint64_t rounds[] = {later, all & ~later};
    for (unsigned i = 0; i < 2; i++) {
        for (uint64_t left = rounds[i]; left != 0; left &= left - 1) {
            unsigned at = (unsigned)__builtin_ctzll(left);
            if (next_of_stripe(t, at, kind, now_ns, look, call)) {
                store_relaxed(&t->turn[kind], at + 1);
                return true;
            }
        }
    }
    return false;
}

uint64_t node_keys_due(const struct node_keys *t)
{
    uint64_t due_ns = UINT64_MAX;
    for (unsigned kind = KEY_LEASED; kind < KEY_KINDS; kind++) {
        uint64_t left = load_relaxed(&t->scheduled[kind]);
        for (; left != 0; left &= left - 1) {
            const struct key_stripe *s = &t->stripe[__builtin_ctzll(left)];
            due_ns = min_u64(due_ns, load_relaxed(&s->heap[kind].due_ns));
        }
    }
    return due_ns;
}

void node_keys_stop(struct node_keys *t)
{
    store_relaxed(&t->stopping, 1);
    for (uint64_t i = 0; i < t->stripes; i++) {
        uint64_t now_ns = 0;
        struct key_stripe *s = node_keys_lock(t, of_stripe(i), &now_ns);
        for (unsigned kind = KEY_LEASED; kind < KEY_KINDS; kind++) {
            for (size_t p = 0; p < s->heap[kind].count; p++) {
                s->heap[kind].at[p]->due_ns = 0;
            }
            publish(s, kind);
        }
        node_keys_unlock(s);
    }
}
