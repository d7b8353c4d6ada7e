#include "shared/core/node_keys.h"

#include <assert.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/maths.h"

#define STRIPE_KEYS 64u /* fewer keys of each kind than this are not worth a stripe */
#define LOOKS 32u       /* entries that K2 examines */
#define GOLDEN UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / 1.618...: its multiples are spread evenly */
#define RETRY_LEAST WEIR_MICROSECOND

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
    s->table = t;
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
    return s->count[kind] < s->table->most[kind];
}

static void set_kind(struct key_stripe *s, struct node_key *k, enum key_kind kind)
{
    assert(s->count[k->kind] > 0);
    store_relaxed(&s->count[k->kind], s->count[k->kind] - 1);
    store_relaxed(&s->count[kind], s->count[kind] + 1);
    k->kind = (uint16_t)kind;
    assert(kind == KEY_FREE || s->count[kind] <= s->table->most[kind]); /* K1 */
}

/* Adds an entry. There is a place for it, because the kind has room. */
static struct node_key *add(struct key_stripe *s, struct hash hash, enum key_kind kind)
{
    uint32_t *chain = chain_of(s, hash);
    assert(has_room(s, kind) && s->count[KEY_FREE] > 0);
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
    assert(k->part == NULL); /* K3: only notes may be forgotten */
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
    assert(least == NULL || least_ns != UINT64_MAX); /* K2: a part that must stay never gives way */
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
    struct weir_text tail = text_after(store_key_text(&name), limit->head.len);
    struct key_part *part = has_room(s, kind) ? calloc(1, size + tail.len) : NULL;
    if (part == NULL) {
        return NULL;
    }
    struct node_key *k = node_key_find(s, hash);
    if (k == NULL) {
        k = add(s, hash, kind);
    } else {
        assert(k->kind == KEY_NOTED); /* each key has at most one part */
        set_kind(s, k, kind);
    }
    k->part = part;
    char *copy = (char *)part + size;
    memcpy(copy, tail.at, tail.len);
    *part =
        (struct key_part){.key = k, .limit = limit, .place = KEY_NOWHERE, .tail = {copy, tail.len}};
    store_limit_keep_key(limit);
    return part;
}

void node_key_end(struct key_stripe *s, struct key_part *part)
{
    struct node_key *k = part->key;
    assert(k->part == part);
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
    const struct store_key *head = &part->limit->head;
    name->len = head->len + part->tail.len;
    memcpy(name->at, head->at, head->len);
    memcpy(name->at + head->len, part->tail.at, part->tail.len);
}

/* ---- notes: what the store last said of a key ---- */

/* Sets *ns to how much later a cost that is higher by `more` would be allowed. Returns false if
 * that is not known. */
static bool later(const struct store_params *p, uint64_t more, uint64_t *ns)
{
    *ns = 0;
    if (more == 0 || algorithm_has(p->algorithm, IS_FIXED_WINDOW)) {
        return true;
    }
    if (!algorithm_has(p->algorithm, IS_BUCKET)) {
        return false;
    }
    u128 parts = ((u128)p->a * STORE_PARTS + p->b) * more;
    u128 us = parts / STORE_PARTS + (parts % STORE_PARTS != 0);
    *ns = us > STORE_MOST / WEIR_MICROSECOND ? STORE_MOST : (uint64_t)us * WEIR_MICROSECOND;
    return true;
}

bool node_key_denies(struct node_key *k, const struct store_params *params, uint64_t cost,
                     uint64_t linger_ns, uint64_t now_ns, struct weir_answer *answer)
{
    uint64_t more_ns;
    if (k->denied_cost == 0 || now_ns >= add_sat(k->denied_until_ns, linger_ns) ||
        cost < k->denied_cost || cost > params->quota ||
        !later(params, cost - k->denied_cost, &more_ns)) {
        return false;
    }
    *answer = (struct weir_answer){
        .verdict = WEIR_DENY,
        .flags = k->denied_flags,
        .quota = params->quota,
        .remaining = k->remaining,
        .retry_after_ns =
            add_sat(max_u64(node_key_until(k->retry_at_ns, now_ns), RETRY_LEAST), more_ns),
        .reset_after_ns = node_key_until(k->reset_at_ns, now_ns),
    };
    return true;
}

void node_key_note(struct node_key *k, uint64_t cost, const struct weir_answer *answer,
                   uint64_t keep_ns, uint64_t now_ns)
{
    k->remaining = answer->remaining;
    k->reset_at_ns = add_sat(now_ns, answer->reset_after_ns);
    k->noted_ns = max_u64(now_ns, 1);
    k->round = 0; /* the store's number replaces that of a fallback used in between */
    if (keep_ns != 0) {
        k->denied_cost = cost;
        k->denied_flags = (uint16_t)answer->flags;
        k->denied_until_ns = add_sat(now_ns, keep_ns);
        k->retry_at_ns = add_sat(now_ns, max_u64(answer->retry_after_ns, keep_ns));
    } else if (max_u64(cost, answer->remaining) >= k->denied_cost) {
        k->denied_cost = 0;
    }
}

bool node_keys_deny(struct node_keys *t, struct hash hash, const struct store_params *params,
                    uint64_t cost, uint64_t now_ns, struct weir_answer *answer)
{
    struct key_stripe *s = node_keys_lock(t, hash, &now_ns);
    struct node_key *k = node_key_find(s, hash);
    bool denied = k != NULL && node_key_denies(k, params, cost, 0, now_ns, answer);
    if (denied) {
        k->used_ns = now_ns;
    }
    node_keys_unlock(s);
    return denied;
}

void node_keys_note(struct node_keys *t, struct hash hash, uint64_t cost,
                    const struct weir_answer *answer, uint64_t keep_ns, uint64_t now_ns)
{
    struct key_stripe *s = node_keys_lock(t, hash, &now_ns);
    struct node_key *k = node_key_make(s, hash, now_ns);
    if (k != NULL) {
        node_key_note(k, cost, answer, keep_ns, now_ns);
    }
    node_keys_unlock(s);
}

void node_keys_forget(struct node_keys *t, struct hash hash)
{
    uint64_t now_ns = 0;
    struct key_stripe *s = node_keys_lock(t, hash, &now_ns);
    struct node_key *k = node_key_find(s, hash);
    if (k != NULL) {
        k->denied_cost = 0;
        k->remaining = 0;
        k->noted_ns = 0;
        k->round = 0;
    }
    node_keys_unlock(s);
}

void node_keys_once(struct node_keys *t, struct hash hash, uint64_t round, uint64_t now_ns,
                    void (*fn)(void *arg, const struct node_key *key), void *arg)
{
    struct key_stripe *s = node_keys_lock(t, hash, &now_ns);
    struct node_key *k = node_key_make(s, hash, now_ns);
    if (k == NULL || k->round != round) {
        fn(arg, k != NULL && k->noted_ns != 0 ? k : NULL);
    }
    if (k != NULL) {
        k->round = round;
    }
    node_keys_unlock(s);
}
