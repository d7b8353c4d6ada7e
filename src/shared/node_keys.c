#include "shared/node_keys.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/maths.h"

#define STRIPE_KEYS 64u /* fewer keys of each kind than this are not worth a stripe */
#define LOOKS 32u       /* entries that K2 examines */
#define GOLDEN UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / 1.618...: its multiples are spread evenly */
#define NOWHERE SIZE_MAX

/* ---- creating and destroying ---- */

static uint64_t power_of_two(uint64_t least)
{
    return least <= 1 ? 1 : UINT64_C(1) << bits_for(least - 1);
}

/* Sets the number of stripes and the bounds of each. Returns the sum of these bounds. */
static uint64_t divide(struct node_keys *t, const uint64_t most[KEY_KINDS])
{
    uint64_t sum = 0;
    uint64_t largest = max_u64(max_u64(most[KEY_NOTED], most[KEY_LEASED]), most[KEY_SYNCED]);
    t->stripes = 1;
    while (t->stripes < KEY_STRIPES_MAX && largest / t->stripes > STRIPE_KEYS) {
        t->stripes *= 2;
    }
    for (unsigned kind = KEY_NOTED; kind < KEY_KINDS; kind++) {
        t->most[kind] = max_u64((most[kind] + t->stripes - 1) / t->stripes, 1);
        sum += t->most[kind];
    }
    return sum;
}

static void stripe_init(struct node_keys *t, uint64_t i, uint64_t size, uint64_t chains)
{
    struct key_stripe *s = &t->stripe[i];
    (void)pthread_mutex_init(&s->lock, NULL);
    s->most = t->most;
    s->count[KEY_FREE] = size;
    s->keys = t->keys + i * size;
    s->chains = t->chains + i * chains;
    s->chain_mask = (uint32_t)(chains - 1);
    struct key_part **heaps = t->heaps + i * size;
    for (unsigned kind = KEY_NOTED; kind < KEY_KINDS; kind++) {
        s->heap[kind] = (struct key_heap){.due_ns = UINT64_MAX, .at = heaps};
        heaps += t->most[kind];
    }
}

int node_keys_create(struct node_keys **out, const uint64_t most[KEY_KINDS])
{
    struct node_keys *t = aligned_alloc(_Alignof(struct node_keys), sizeof *t);
    if (t == NULL) {
        return WEIR_ENOMEM;
    }
    memset(t, 0, sizeof *t);
    uint64_t size = divide(t, most);
    uint64_t chains = power_of_two(size);
    t->keys = calloc(t->stripes * size, sizeof *t->keys);
    t->heaps = calloc(t->stripes * size, sizeof(struct key_part *));
    t->chains = calloc(t->stripes * chains, sizeof *t->chains);
    bool made = t->keys != NULL && t->heaps != NULL && t->chains != NULL;
    int e = made ? hash_secret_init(&t->secret) : WEIR_ENOMEM;
    for (uint64_t i = 0; i < t->stripes && made; i++) {
        stripe_init(t, i, size, chains);
    }
    if (e != 0) {
        t->stripes = made ? t->stripes : 0;
        node_keys_destroy(t);
        return e;
    }
    *out = t;
    return 0;
}

static void free_parts(struct key_part *part)
{
    while (part != NULL) {
        struct key_part *next = part->gone;
        store_limit_drop_key(part->limit);
        free(part);
        part = next;
    }
}

void node_keys_destroy(struct node_keys *t)
{
    for (uint64_t i = 0; t != NULL && i < t->stripes; i++) {
        struct key_stripe *s = &t->stripe[i];
        for (uint64_t k = 0; k < s->begun; k++) {
            free_parts(s->keys[k].part);
        }
        (void)pthread_mutex_destroy(&s->lock);
    }
    if (t != NULL) {
        free(t->keys);
        free((void *)t->heaps);
        free(t->chains);
        free(t);
    }
}

/* ---- finding ---- */

struct hash node_key_hash(const struct node_keys *t, const struct remote_part *of)
{
    const struct store_limit *limit = of->limit;
    struct hash h = hash_sip(&t->secret, of->key.at, of->key.len);
    if (of->shard.at != NULL) {
        struct hash also = hash_sip(&t->secret, of->shard.at, of->shard.len);
        h.low += 3 * also.high; /* another hash if shard and key are exchanged */
        h.high += 5 * also.low + 1;
    }
    h.low += limit->id * GOLDEN; /* keeps equal keys of limits apart */
    return h;
}

void node_keys_unlock(struct key_stripe *s)
{
    struct key_part *gone = s->gone;
    s->gone = NULL;
    (void)pthread_mutex_unlock(&s->lock);
    free_parts(gone); /* without the lock: the last release destroys a limit */
}

uint64_t node_keys_count(const struct node_keys *t, enum key_kind kind)
{
    uint64_t count = 0;
    for (uint64_t i = 0; i < t->stripes; i++) {
        count += load_relaxed(&t->stripe[i].count[kind]);
    }
    return count;
}

/* ---- adding and removing ---- */

static uint32_t *chain_of(const struct key_stripe *s, struct hash hash)
{
    return &s->chains[hash.low & s->chain_mask];
}

static bool has_room(const struct key_stripe *s, enum key_kind kind)
{
    return s->count[kind] < s->most[kind];
}

static void set_kind(struct key_stripe *s, struct node_key *k, enum key_kind kind)
{
    store_relaxed(&s->count[k->kind], s->count[k->kind] - 1);
    store_relaxed(&s->count[kind], s->count[kind] + 1);
    k->kind = (uint16_t)kind;
}

/* Adds an entry. There is a place for it, because the kind has room. */
static struct node_key *add(struct key_stripe *s, struct hash hash, enum key_kind kind)
{
    uint32_t *chain = chain_of(s, hash);
    if (s->free == 0) {
        s->free = (uint32_t)++s->begun;
    }
    uint32_t at = s->free;
    struct node_key *k = &s->keys[at - 1];
    s->free = k->next;
    *k = (struct node_key){.hash = hash, .next = *chain};
    *chain = at;
    set_kind(s, k, kind);
    return k;
}

static void remove_key(struct key_stripe *s, struct node_key *k)
{
    uint32_t number = (uint32_t)(k - s->keys) + 1;
    uint32_t *at = chain_of(s, k->hash);
    while (*at != number) {
        at = &s->keys[*at - 1].next;
    }
    *at = k->next;
    set_kind(s, k, KEY_FREE);
    k->next = s->free;
    s->free = number;
}

/* Returns the least useful of LOOKS entries, as far as they are of this kind (K2). NULL: none. */
static struct node_key *least_of(struct key_stripe *s, enum key_kind kind, key_matters_fn matters,
                                 uint64_t now_ns)
{
    struct node_key *least = NULL;
    uint64_t least_ns = UINT64_MAX;
    for (unsigned i = 0; i < LOOKS; i++) {
        s->hand += GOLDEN;
        struct node_key *k = &s->keys[mul_high(s->hand, s->begun)];
        if (k->kind != kind) {
            continue;
        }
        uint64_t ns = matters != NULL ? matters(k->part, now_ns) : 0;
        bool older = least != NULL && k->used_ns < least->used_ns;
        if (ns < least_ns || (ns == least_ns && older)) {
            least = k;
            least_ns = ns;
        }
    }
    return least;
}

struct key_part *node_key_least(struct key_stripe *s, enum key_kind kind, key_matters_fn matters,
                                uint64_t now_ns)
{
    struct node_key *k = has_room(s, kind) ? NULL : least_of(s, kind, matters, now_ns);
    return k != NULL ? k->part : NULL;
}

/* Makes room for an entry that has only notes. Returns false if there is none. */
static bool make_room(struct key_stripe *s)
{
    if (has_room(s, KEY_NOTED)) {
        return true;
    }
    struct node_key *k = least_of(s, KEY_NOTED, NULL, 0);
    if (k != NULL) {
        remove_key(s, k);
    }
    return k != NULL;
}

struct node_key *node_key_make(struct key_stripe *s, struct hash hash, uint64_t now_ns)
{
    struct node_key *k = node_key_find(s, hash);
    if (k == NULL && make_room(s)) {
        k = add(s, hash, KEY_NOTED);
    }
    if (k != NULL && k->part == NULL) {
        k->used_ns = now_ns;
    }
    return k;
}

void *node_key_begin(struct key_stripe *s, struct hash hash, const struct remote_part *of,
                     enum key_kind kind, size_t size)
{
    struct store_limit *limit = of->limit;
    struct store_key name;
    store_key(&limit->head, of->shard, of->key, &name);
    struct text tail = text_after(store_key_text(&name), limit->head.len);
    struct key_part *part = has_room(s, kind) ? calloc(1, size + tail.len) : NULL;
    if (part == NULL) {
        return NULL;
    }
    struct node_key *k = node_key_find(s, hash);
    if (k == NULL) {
        k = add(s, hash, kind);
    } else {
        set_kind(s, k, kind);
    }
    k->part = part;
    char *copy = (char *)part + size;
    memcpy(copy, tail.at, tail.len);
    *part = (struct key_part){.key = k, .limit = limit, .place = NOWHERE, .tail = {copy, tail.len}};
    store_limit_keep_key(limit);
    return part;
}

void node_key_end(struct key_stripe *s, struct key_part *part)
{
    struct node_key *k = part->key;
    node_key_unschedule(s, part);
    k->part = NULL;
    part->gone = s->gone;
    s->gone = part;
    if (make_room(s)) {
        set_kind(s, k, KEY_NOTED);
    } else {
        remove_key(s, k);
    }
}

void node_key_name(const struct key_part *part, struct store_key *name)
{
    const struct store_key_head *head = &part->limit->head;
    name->len = head->len + part->tail.len;
    memcpy(name->at, head->at, head->len);
    memcpy(name->at + head->len, part->tail.at, part->tail.len);
}

/* ---- the heaps ---- */

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
    settle(h, part->place == NOWHERE ? h->count++ : part->place, part);
    publish(h);
}

void node_key_unschedule(struct key_stripe *s, struct key_part *part)
{
    struct key_heap *h = &s->heap[part->key->kind];
    if (part->place == NOWHERE) {
        return;
    }
    struct key_part *last = h->at[--h->count];
    if (last != part) {
        settle(h, part->place, last);
    }
    part->place = NOWHERE;
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
