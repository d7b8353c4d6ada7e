#include "shared/leased/lease_table.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/maths.h"

enum { KEYS_USUAL = 65536, EVICT_TRIES = 8 };

/* ---- creating and destroying ---- */

static uint64_t power_of_two(uint64_t least)
{
    return least <= 1 ? 1 : UINT64_C(1) << bits_for(least - 1);
}

static int stripe_init(struct lease_stripe *s, uint64_t most)
{
    uint64_t chains = power_of_two(most);
    s->chains = calloc(chains, sizeof(struct lease_entry *));
    s->mask = chains - 1;
    s->most = most;
    s->due_ns = UINT64_MAX;
    list_init(&s->look);
    list_init(&s->ready);
    (void)pthread_mutex_init(&s->lock, NULL);
    return s->chains != NULL ? 0 : WEIR_ENOMEM;
}

int leases_create(struct leases **out, uint64_t keys)
{
    uint64_t most = (keys != 0 ? keys : KEYS_USUAL) / LEASE_STRIPES;
    struct leases *l = aligned_alloc(64, sizeof *l);
    if (l == NULL) {
        return WEIR_ENOMEM;
    }
    memset(l, 0, sizeof *l);
    int e = hash_secret_init(&l->secret);
    for (unsigned i = 0; i < LEASE_STRIPES; i++) {
        int bad = stripe_init(&l->stripe[i], max_u64(most, 1));
        e = e != 0 ? e : bad;
    }
    if (e != 0) {
        leases_destroy(l);
        return e;
    }
    *out = l;
    return 0;
}

static void end_gone(struct lease_entry *e)
{
    while (e != NULL) {
        struct lease_entry *next = e->next;
        store_limit_drop_key(e->limit);
        free(e);
        e = next;
    }
}

static void stripe_finish(struct lease_stripe *s)
{
    for (uint64_t i = 0; s->chains != NULL && i <= s->mask; i++) {
        end_gone(s->chains[i]);
    }
    free((void *)s->chains);
    (void)pthread_mutex_destroy(&s->lock);
}

void leases_destroy(struct leases *l)
{
    for (unsigned i = 0; l != NULL && i < LEASE_STRIPES; i++) {
        stripe_finish(&l->stripe[i]);
    }
    free(l);
}

/* ---- finding ---- */

struct hash lease_hash(const struct leases *l, uint64_t limit, struct text shard, struct text key)
{
    struct hash h = hash_sip(&l->secret, key.at, key.len);
    if (shard.at != NULL) {
        struct hash also = hash_sip(&l->secret, shard.at, shard.len);
        h.low += 3 * also.high; /* another hash if shard and key are exchanged */
        h.high += 5 * also.low + 1;
    }
    h.low += limit * UINT64_C(0x9e3779b97f4a7c15); /* keeps equal keys of limits apart */
    return h;
}

struct lease_stripe *lease_lock(struct leases *l, const uint64_t hash[2], uint64_t *now_ns)
{
    struct lease_stripe *s = &l->stripe[hash[0] >> 58];
    (void)pthread_mutex_lock(&s->lock);
    s->now_ns = max_u64(s->now_ns, *now_ns);
    *now_ns = s->now_ns;
    return s;
}

_Static_assert(LEASE_STRIPES == 1 << (64 - 58), "the upper six bits choose the stripe");

static void note_due(struct lease_stripe *s)
{
    uint64_t due = !list_is_empty(&s->ready) ? 0
                   : list_is_empty(&s->look)
                       ? UINT64_MAX
                       : LIST_OF(s->look.next, struct lease_entry, look)->look_ns;
    if (due != s->due_ns) {
        store_relaxed(&s->due_ns, due); /* lease_due(): a hint */
    }
}

void lease_unlock(struct lease_stripe *s)
{
    struct lease_entry *gone = s->gone;
    s->gone = NULL;
    note_due(s);
    (void)pthread_mutex_unlock(&s->lock);
    end_gone(gone);
}

struct lease_entry *lease_find(const struct lease_stripe *s, const uint64_t hash[2])
{
    struct lease_entry *e = s->chains[hash[0] & s->mask];
    while (e != NULL && (e->hash[0] != hash[0] || e->hash[1] != hash[1])) {
        e = e->next;
    }
    return e;
}

/* ---- adding and removing ---- */

void lease_remove(struct lease_stripe *s, struct lease_entry *e)
{
    struct lease_entry **at = &s->chains[e->hash[0] & s->mask];
    while (*at != e) {
        at = &(*at)->next;
    }
    *at = e->next;
    list_take(&e->look);
    list_take(&e->ready);
    s->count--;
    e->next = s->gone;
    s->gone = e;
}

/* Removes one entry of which nothing is outstanding: the first such of the EVICT_TRIES that have
 * waited longest for a look. Returns false if there is none. */
static bool make_room(struct lease_stripe *s)
{
    struct list *at = s->look.next;
    for (unsigned i = 0; i < EVICT_TRIES && at != &s->look; i++, at = at->next) {
        struct lease_entry *e = LIST_OF(at, struct lease_entry, look);
        if (!lease_is_out(e)) {
            lease_remove(s, e);
            return true;
        }
    }
    return false;
}

struct lease_entry *lease_make(struct lease_stripe *s, const uint64_t hash[2],
                               struct store_limit *limit, struct text shard, struct text key,
                               uint64_t now_ns)
{
    struct store_key full;
    if (s->count >= s->most && !make_room(s)) {
        return NULL;
    }
    store_key(&limit->head, shard, key, &full);
    struct lease_entry *e = calloc(1, sizeof *e + full.len);
    if (e == NULL) {
        return NULL;
    }
    memcpy(e->hash, hash, sizeof e->hash);
    memcpy(e->key, full.at, full.len);
    e->key_len = full.len;
    e->limit = limit;
    e->since_ns = now_ns;
    e->renew_ns = UINT64_MAX;
    store_limit_keep_key(limit);
    list_init(&e->ready);
    list_init(&e->look);
    lease_look_later(s, e, now_ns);
    struct lease_entry **chain = &s->chains[hash[0] & s->mask];
    e->next = *chain;
    *chain = e;
    s->count++;
    return e;
}

/* ---- lists ---- */

void lease_look_later(struct lease_stripe *s, struct lease_entry *e, uint64_t now_ns)
{
    e->look_ns = now_ns + LEASE_LOOK_NS;
    list_take(&e->look);
    list_put(s->look.prev, &e->look);
}

void lease_make_ready(struct lease_stripe *s, struct lease_entry *e)
{
    list_take(&e->ready);
    list_put(s->ready.prev, &e->ready);
}

uint64_t lease_due(const struct leases *l)
{
    uint64_t due = UINT64_MAX;
    for (unsigned i = 0; i < LEASE_STRIPES; i++) {
        due = min_u64(due, load_relaxed(&l->stripe[i].due_ns)); /* note_due() */
    }
    return due;
}
