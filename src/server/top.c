#include "server/top.h"

#include <stdlib.h>

#include <weir.h>

#include "base/atomic.h"

#define SLOTS 1024 /* of the index: a power of two, sparse */
#define NAME_WORDS (TOP_NAME_BYTES / 8)
#define KEY_WORDS (TOP_KEY_BYTES / 8)

/* What a place holds besides its count, as words. */
struct label {
    uint64_t low, high; /* of the limit and the key */
    uint64_t error;
    uint64_t key_len;
    uint64_t limit[NAME_WORDS];
    uint64_t key[KEY_WORDS];
};

#define LABEL_WORDS (sizeof(struct label) / sizeof(uint64_t))

struct place {
    uint64_t number; /* odd while the label changes */
    uint64_t count;
    struct label label;
};

struct top {
    struct place places[TOP_KEYS];
    uint64_t used;
    uint64_t secret[2];
    /* The writer's own: */
    uint16_t heap[TOP_KEYS];  /* places, the lowest count first */
    uint16_t where[TOP_KEYS]; /* of each place in the heap */
    uint16_t index[SLOTS];    /* place + 1, by hash, linear probing; 0: free */
};

struct top *top_create(const struct hash_secret *secret)
{
    struct top *t = calloc(1, sizeof *t);
    if (t != NULL) {
        memcpy(t->secret, secret->sip, sizeof t->secret);
    }
    return t;
}

void top_destroy(struct top *top)
{
    free(top);
}

/* ---- the index ---- */

static unsigned slot_of(uint64_t low)
{
    return (unsigned)low & (SLOTS - 1);
}

/* The slot of the place with this id, or the free one where it belongs. */
static unsigned find(const struct top *t, struct hash id)
{
    unsigned i = slot_of(id.low);
    while (t->index[i] != 0) {
        const struct label *l = &t->places[t->index[i] - 1].label;
        if (l->low == id.low && l->high == id.high) {
            break;
        }
        i = (i + 1) & (SLOTS - 1);
    }
    return i;
}

/* Closes the gap that would hide what stands behind it. */
static void forget(struct top *t, unsigned gap)
{
    for (unsigned i = (gap + 1) & (SLOTS - 1); t->index[i] != 0; i = (i + 1) & (SLOTS - 1)) {
        unsigned home = slot_of(t->places[t->index[i] - 1].label.low);
        if (((i - home) & (SLOTS - 1)) >= ((i - gap) & (SLOTS - 1))) {
            t->index[gap] = t->index[i];
            gap = i;
        }
    }
    t->index[gap] = 0;
}

/* ---- the heap ---- */

static uint64_t count_at(const struct top *t, unsigned i)
{
    return t->places[t->heap[i]].count;
}

static void put_at(struct top *t, unsigned i, uint16_t place)
{
    t->heap[i] = place;
    t->where[place] = (uint16_t)i;
}

/* A count has grown. */
static void sink(struct top *t, unsigned i)
{
    uint16_t place = t->heap[i];
    uint64_t count = t->places[place].count;
    for (;;) {
        unsigned child = 2 * i + 1;
        if (child + 1 < t->used && count_at(t, child + 1) < count_at(t, child)) {
            child++;
        }
        if (child >= t->used || count_at(t, child) >= count) {
            break;
        }
        put_at(t, i, t->heap[child]);
        i = child;
    }
    put_at(t, i, place);
}

/* ---- counting ---- */

/* A limit's name is an operator's: a plain hash will do. The key is a stranger's. */
static struct hash id_of(const struct top *t, const char *limit, const void *key, size_t len)
{
    struct hash id = siphash128(t->secret, key, len, 1, 3);
    uint64_t name = 0;
    for (; *limit != 0; limit++) {
        name = (name + (unsigned char)*limit) * UINT64_C(0x9e3779b97f4a7c15);
    }
    id.low ^= name;
    id.high += name;
    return id;
}

/* G1, G2 */
static void write_label(struct place *p, const struct label *label, uint64_t count)
{
    const uint64_t *from = (const uint64_t *)(const void *)label;
    uint64_t *to = (uint64_t *)(void *)&p->label;
    uint64_t number = p->number;
    store_relaxed(&p->number, number + 1);
    for (size_t i = 0; i < LABEL_WORDS; i++) {
        store_release(&to[i], from[i]);
    }
    store_release(&p->count, count);
    store_release(&p->number, number + 2);
}

/* The place of a key that is not here yet: a new one, or that of the lowest count. */
static unsigned choose(struct top *t, uint64_t *lowest)
{
    if (t->used < TOP_KEYS) {
        unsigned i = (unsigned)t->used;
        put_at(t, i, (uint16_t)i); /* 1 is as low as any: it may stay the last */
        *lowest = 0;
        return i;
    }
    unsigned i = t->heap[0];
    struct hash old = {t->places[i].label.low, t->places[i].label.high};
    forget(t, find(t, old));
    *lowest = t->places[i].count;
    return i;
}

static void take_place(struct top *t, struct hash id, const char *limit, struct text key)
{
    uint64_t lowest;
    struct label label = {.low = id.low, .high = id.high, .key_len = key.len};
    unsigned i = choose(t, &lowest);
    label.error = lowest;
    memcpy(label.limit, limit, strnlen(limit, TOP_NAME_BYTES - 1));
    memcpy(label.key, key.at, key.len < TOP_KEY_BYTES ? key.len : TOP_KEY_BYTES);
    write_label(&t->places[i], &label, lowest + 1);
    t->index[find(t, id)] = (uint16_t)(i + 1);
    if (lowest == 0) {
        store_release(&t->used, t->used + 1);
    }
    sink(t, t->where[i]);
}

void top_add(struct top *t, const char *limit, const void *key, size_t key_len)
{
    struct hash id = id_of(t, limit, key, key_len);
    unsigned slot = find(t, id);
    if (t->index[slot] == 0) {
        take_place(t, id, limit, (struct text){key, key_len});
        return;
    }
    unsigned i = t->index[slot] - 1u;
    count_own(&t->places[i].count, 1);
    sink(t, t->where[i]);
}

static __thread struct top *own;

void top_use(struct top *top)
{
    own = top;
}

void top_denied(void *arg, const char *limit, const void *key, size_t key_len)
{
    (void)arg;
    if (own != NULL) {
        top_add(own, limit, key, key_len);
    }
}

/* ---- reading ---- */

/* G1, G2. A count that grows meanwhile is no harm. */
static void read_place(const struct place *p, struct top_item *item)
{
    struct label label;
    uint64_t *to = (uint64_t *)(void *)&label;
    const uint64_t *from = (const uint64_t *)(const void *)&p->label;
    uint64_t before;
    do {
        before = load_acquire(&p->number);
        for (size_t i = 0; i < LABEL_WORDS; i++) {
            to[i] = load_acquire(&from[i]);
        }
        item->count = load_acquire(&p->count);
    } while ((before & 1) != 0 || load_acquire(&p->number) != before);
    item->id = (struct hash){label.low, label.high};
    item->error = label.error;
    item->key_len = label.key_len;
    memcpy(item->limit, label.limit, sizeof item->limit);
    memcpy(item->key, label.key, sizeof item->key);
}

/* One sketch: its items, and what a key that is not among them may have been counted at most. */
static size_t read_one(const struct top *t, struct top_item *items, uint64_t *lost)
{
    size_t n = load_acquire(&t->used);
    *lost = n == TOP_KEYS ? UINT64_MAX : 0;
    for (size_t i = 0; i < n; i++) {
        read_place(&t->places[i], &items[i]);
        *lost = items[i].count < *lost ? items[i].count : *lost;
    }
    return n;
}

static int by_id(const void *a, const void *b)
{
    const struct top_item *x = a;
    const struct top_item *y = b;
    if (x->id.low != y->id.low) {
        return x->id.low < y->id.low ? -1 : 1;
    }
    return x->id.high < y->id.high ? -1 : x->id.high > y->id.high;
}

static int by_count(const void *a, const void *b)
{
    const struct top_item *x = a;
    const struct top_item *y = b;
    if (x->count != y->count) {
        return x->count > y->count ? -1 : 1;
    }
    return x->error != y->error ? (x->error < y->error ? -1 : 1) : by_id(a, b);
}

/*
 * The sketch of each item is remembered in key_len's upper half while they are sorted: a key that
 * moved while its sketch was read may be there twice, and its higher count is the newer one.
 */
#define SKETCH_SHIFT 32

static unsigned sketch_of(const struct top_item *item)
{
    return (unsigned)(item->key_len >> SKETCH_SHIFT);
}

/* items[0..n) are one key's. To `sum`: every sketch that has lost it may have counted it. */
static void merge_key(const struct top_item *items, size_t n, const uint64_t *lost, size_t sketches,
                      struct top_item *sum)
{
    uint64_t count = 0;
    uint64_t error = 0;
    for (unsigned s = 0; s < sketches; s++) {
        const struct top_item *here = NULL;
        for (size_t i = 0; i < n; i++) {
            if (sketch_of(&items[i]) == s && (here == NULL || items[i].count > here->count)) {
                here = &items[i];
            }
        }
        count += here != NULL ? here->count : lost[s];
        error += here != NULL ? here->error : lost[s];
    }
    *sum = items[0];
    sum->count = count;
    sum->error = error;
    sum->key_len &= (UINT64_C(1) << SKETCH_SHIFT) - 1;
}

static size_t merge(struct top_item *items, size_t n, const uint64_t *lost, size_t sketches)
{
    size_t merged = 0;
    qsort(items, n, sizeof *items, by_id);
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && by_id(&items[i], &items[end]) == 0) {
            end++;
        }
        struct top_item sum;
        merge_key(items + i, end - i, lost, sketches, &sum);
        items[merged++] = sum;
        i = end;
    }
    qsort(items, merged, sizeof *items, by_count);
    return merged;
}

int64_t top_read(struct top *const *tops, size_t count, struct top_item **out)
{
    struct top_item *items = calloc(count * TOP_KEYS + 1, sizeof *items);
    uint64_t *lost = calloc(count + 1, sizeof *lost);
    size_t n = 0;
    *out = NULL;
    if (items == NULL || lost == NULL) {
        free(items);
        free(lost);
        return WEIR_ENOMEM;
    }
    for (size_t s = 0; s < count; s++) {
        size_t more = read_one(tops[s], items + n, &lost[s]);
        for (size_t i = 0; i < more; i++) {
            items[n + i].key_len |= (uint64_t)s << SKETCH_SHIFT;
        }
        n += more;
    }
    n = merge(items, n, lost, count);
    free(lost);
    *out = items;
    return (int64_t)n;
}
