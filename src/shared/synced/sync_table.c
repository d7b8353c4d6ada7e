#include "shared/synced/sync_table.h"

#include <stdlib.h>

#include "base/atomic.h"

#define STRIPE_BITS_MAX 6u
#define STRIPE_KEYS 64u /* fewer keys than this are not worth a stripe */
#define NOWHERE SIZE_MAX

/* ---- the memory ---- */

static int make_stripe(const struct sync_table *t, struct sync_stripe *s)
{
    s->due_ns = UINT64_MAX;
    s->heap = calloc(t->most, sizeof(struct sync_key *));
    s->chains = calloc(t->chain_mask + 1, sizeof(struct sync_key *));
    if (s->heap == NULL || s->chains == NULL) {
        return WEIR_ENOMEM;
    }
    lock_init(&s->lock);
    return 0;
}

int sync_table_init(struct sync_table *t, uint64_t keys)
{
    *t = (struct sync_table){.most = max_u64(keys, 1), .chain_mask = 1};
    while (t->stripe_bits < STRIPE_BITS_MAX && t->most > STRIPE_KEYS) {
        t->stripe_bits++;
        t->most = (t->most + 1) / 2;
    }
    while (t->chain_mask + 1 < t->most) {
        t->chain_mask = t->chain_mask * 2 + 1;
    }
    size_t size = sync_table_stripes(t) * sizeof *t->stripes;
    t->stripes = aligned_alloc(_Alignof(struct sync_stripe), size);
    if (t->stripes == NULL) {
        return WEIR_ENOMEM;
    }
    memset(t->stripes, 0, size);
    int e = 0;
    for (size_t i = 0; i < sync_table_stripes(t) && e == 0; i++) {
        e = make_stripe(t, &t->stripes[i]);
    }
    if (e != 0) {
        sync_table_finish(t);
    }
    return e;
}

static void finish_stripe(const struct sync_table *t, struct sync_stripe *s)
{
    for (size_t i = 0; s->chains != NULL && i <= t->chain_mask; i++) {
        while (s->chains[i] != NULL) {
            struct sync_key *k = s->chains[i];
            s->chains[i] = k->chain;
            store_limit_drop_key(k->limit);
            free(k);
        }
    }
    free(s->heap);
    free(s->chains);
}

void sync_table_finish(struct sync_table *t)
{
    for (size_t i = 0; t->stripes != NULL && i < sync_table_stripes(t); i++) {
        finish_stripe(t, &t->stripes[i]);
    }
    free(t->stripes);
    t->stripes = NULL;
}

/* ---- chains ---- */

struct sync_stripe *sync_stripe_of(struct sync_table *t, struct hash hash)
{
    return &t->stripes[hash.high & (sync_table_stripes(t) - 1)];
}

static struct sync_key **chain_of(const struct sync_table *t, struct sync_stripe *s,
                                  struct hash hash)
{
    return &s->chains[hash.low & t->chain_mask];
}

struct sync_key *sync_stripe_find(const struct sync_table *t, struct sync_stripe *s,
                                  struct hash hash)
{
    struct sync_key *k = *chain_of(t, s, hash);
    while (k != NULL && (k->hash.low != hash.low || k->hash.high != hash.high)) {
        k = k->chain;
    }
    return k;
}

struct sync_key *sync_stripe_add(const struct sync_table *t, struct sync_stripe *s,
                                 struct hash hash, struct text tail)
{
    if (s->keys == t->most) {
        return NULL;
    }
    struct sync_key *k = calloc(1, sizeof *k + tail.len);
    if (k == NULL) {
        return NULL;
    }
    struct sync_key **chain = chain_of(t, s, hash);
    k->hash = hash;
    k->place = NOWHERE;
    k->tail_len = tail.len;
    memcpy(k->tail, tail.at, tail.len);
    k->chain = *chain;
    *chain = k;
    count_own(&s->keys, 1);
    return k;
}

void sync_stripe_remove(const struct sync_table *t, struct sync_stripe *s, struct sync_key *k)
{
    struct sync_key **at = chain_of(t, s, k->hash);
    sync_stripe_unschedule(s, k);
    while (*at != k) {
        at = &(*at)->chain;
    }
    *at = k->chain;
    store_relaxed(&s->keys, s->keys - 1);
}

/* ---- the heap ---- */

static void put_at(struct sync_stripe *s, size_t place, struct sync_key *k)
{
    s->heap[place] = k;
    k->place = place;
}

static void rise(struct sync_stripe *s, size_t place, struct sync_key *k)
{
    while (place > 0 && s->heap[(place - 1) / 2]->due_ns > k->due_ns) {
        put_at(s, place, s->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put_at(s, place, k);
}

static void sink(struct sync_stripe *s, size_t place, struct sync_key *k)
{
    for (;;) {
        size_t child = 2 * place + 1;
        if (child + 1 < s->in_heap && s->heap[child + 1]->due_ns < s->heap[child]->due_ns) {
            child++;
        }
        if (child >= s->in_heap || s->heap[child]->due_ns >= k->due_ns) {
            break;
        }
        put_at(s, place, s->heap[child]);
        place = child;
    }
    put_at(s, place, k);
}

/* Moves a key up or down from `place` to where its due time belongs. */
static void settle(struct sync_stripe *s, size_t place, struct sync_key *k)
{
    rise(s, place, k);
    sink(s, k->place, k);
}

static void publish(struct sync_stripe *s)
{
    store_relaxed(&s->due_ns, s->in_heap > 0 ? s->heap[0]->due_ns : UINT64_MAX);
}

void sync_stripe_schedule(struct sync_stripe *s, struct sync_key *k, uint64_t due_ns)
{
    k->due_ns = due_ns;
    settle(s, k->place == NOWHERE ? s->in_heap++ : k->place, k);
    publish(s);
}

void sync_stripe_unschedule(struct sync_stripe *s, struct sync_key *k)
{
    if (k->place == NOWHERE) {
        return;
    }
    struct sync_key *last = s->heap[--s->in_heap];
    if (last != k) {
        settle(s, k->place, last);
    }
    k->place = NOWHERE;
    publish(s);
}
