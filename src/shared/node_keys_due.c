/* The parts of keys that must be looked at: a heap by time for each stripe and kind. */
#include "base/atomic.h"
#include "shared/node_keys.h"

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

static void publish(struct key_heap *h)
{
    store_relaxed(&h->due_ns, h->count > 0 ? h->at[0]->due_ns : UINT64_MAX);
}

void node_key_schedule(struct key_stripe *s, struct key_part *part, uint64_t due_ns)
{
    struct key_heap *h = &s->heap[part->key->kind];
    part->due_ns = due_ns;
    settle(h, part->place == KEY_NOWHERE ? h->count++ : part->place, part);
    publish(h);
}

void node_key_unschedule(struct key_stripe *s, struct key_part *part)
{
    struct key_heap *h = &s->heap[part->key->kind];
    if (part->place == KEY_NOWHERE) {
        return;
    }
    struct key_part *last = h->at[--h->count];
    if (last != part) {
        settle(h, part->place, last);
    }
    part->place = KEY_NOWHERE;
    publish(h);
}

/* Returns a hash that belongs to the stripe. */
static struct hash of_stripe(uint64_t i)
{
    return (struct hash){.low = i << 32};
}

bool node_keys_next(struct node_keys *t, enum key_kind kind, uint64_t now_ns, key_look_fn look,
                    void *call)
{
    uint64_t from = load_relaxed(&t->turn[kind]); /* a hint, which any thread may change */
    for (uint64_t i = 0; i < t->stripes; i++) {
        uint64_t at = (from + i) & (t->stripes - 1);
        struct key_heap *h = &t->stripe[at].heap[kind];
        if (load_relaxed(&h->due_ns) > now_ns) {
            continue;
        }
        uint64_t its_now = now_ns;
        bool found = false;
        struct key_stripe *s = node_keys_lock(t, of_stripe(at), &its_now);
        while (!found && h->due_ns <= its_now) {
            found = look(t, s, h->at[0], its_now, call);
        }
        node_keys_unlock(s);
        if (found) {
            store_relaxed(&t->turn[kind], at + 1);
            return true;
        }
    }
    return false;
}

uint64_t node_keys_due(const struct node_keys *t)
{
    uint64_t due_ns = UINT64_MAX;
    for (uint64_t i = 0; i < t->stripes; i++) {
        const struct key_heap *h = t->stripe[i].heap;
        due_ns = min_u64(due_ns, load_relaxed(&h[KEY_LEASED].due_ns));
        due_ns = min_u64(due_ns, load_relaxed(&h[KEY_SYNCED].due_ns));
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
            publish(&s->heap[kind]);
        }
        node_keys_unlock(s);
    }
}
