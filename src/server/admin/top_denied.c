#include "server/admin/top_denied.h"

#include <stdlib.h>
#include <string.h>

#include <weir.h>

#include "base/atomic.h"

#define NAME_WORDS (TOP_NAME_BYTES / 8)
#define KEY_WORDS (TOP_KEY_BYTES / 8)

/* What a place holds besides its key's id and count. Only the words that name and
 * key need are written. */
struct label {
    uint64_t number; /* odd while the place changes */
    uint64_t error;
    uint64_t name_len;
    uint64_t key_len;
    uint64_t name[NAME_WORDS];
    uint64_t key[KEY_WORDS];
};

struct set {
    uint64_t ids[TOP_WAYS]; /* hash of a limit and a key; 0: the place is free */
    uint64_t counts[TOP_WAYS];
    struct label labels[TOP_WAYS];
};

struct top {
    struct set sets[TOP_SETS];
    struct hash_secret secret;
};

struct top *top_create(const struct hash_secret *secret)
{
    struct top *t = aligned_alloc(64, (sizeof *t + 63) / 64 * 64);
    if (t != NULL) {
        memset(t, 0, sizeof *t);
        t->secret = *secret;
    }
    return t;
}

void top_destroy(struct top *top)
{
    free(top);
}

static unsigned set_of(uint64_t id)
{
    return (unsigned)(id >> 32) % TOP_SETS;
}

/* ---- counting ---- */

/* Hashes a limit's name and a key; never 0. Operators choose the names, so a plain hash is enough
 * for them; clients choose the keys, so theirs is keyed. */
static uint64_t id_of(const struct top *t, const char *limit, size_t limit_len, const void *key,
                      size_t key_len)
{
    uint64_t name = limit_len;
    for (size_t i = 0; i < limit_len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, limit + i, limit_len - i < 8 ? limit_len - i : 8);
        name = (name ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        name ^= name >> 32;
    }
    uint64_t id = hash_xxh3(&t->secret, key, key_len).low ^ name;
    return id != 0 ? id : 1;
}

/* Stores len bytes as words; the last word is filled up with zeros. */
static void put_words(uint64_t *to, const void *from, size_t len)
{
    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, (const char *)from + i, len - i < 8 ? len - i : 8);
        store_release(to++, word);
    }
}

static unsigned lowest_of(const struct set *s)
{
    unsigned lowest = 0;
    for (unsigned i = 1; i < TOP_WAYS; i++) {
        lowest = s->counts[i] < s->counts[lowest] ? i : lowest;
    }
    return lowest;
}

struct denied {
    uint64_t id;
    const char *limit;
    size_t limit_len;
    const void *key;
    size_t key_len;
};

/* Gives the place with the lowest count to another key (G1, G2). A free place has a count of 0. */
static void take_place(struct set *s, const struct denied *d)
{
    unsigned i = lowest_of(s);
    struct label *l = &s->labels[i];
    uint64_t lowest = s->counts[i];
    uint64_t number = l->number;
    store_relaxed(&l->number, number + 1);
    store_release(&s->ids[i], d->id);
    store_release(&l->error, lowest);
    store_release(&l->name_len, d->limit_len);
    store_release(&l->key_len, d->key_len);
    put_words(l->name, d->limit, d->limit_len);
    put_words(l->key, d->key, d->key_len < TOP_KEY_BYTES ? d->key_len : TOP_KEY_BYTES);
    store_release(&s->counts[i], lowest + 1);
    store_release(&l->number, number + 2);
}

void top_add(struct top *t, const char *limit, const void *key, size_t key_len)
{
    size_t limit_len = strnlen(limit, TOP_NAME_BYTES - 1);
    struct denied d = {id_of(t, limit, limit_len, key, key_len), limit, limit_len, key, key_len};
    struct set *s = &t->sets[set_of(d.id)];
    for (unsigned i = 0; i < TOP_WAYS; i++) {
        if (s->ids[i] == d.id) {
            count_own(&s->counts[i], 1);
            return;
        }
    }
    take_place(s, &d);
}

static __thread struct top *own;

void top_use(struct top *top)
{
    own = top;
}

void top_denied(const char *limit, const void *key, size_t key_len)
{
    if (own != NULL) {
        top_add(own, limit, key, key_len);
    }
}

/* ---- reading ---- */

static void take_words(const uint64_t *from, uint64_t *to, size_t words)
{
    for (size_t i = 0; i < words; i++) {
        to[i] = load_acquire(&from[i]);
    }
}

/* Reads a place (G1, G2). It does no harm if the count grows meanwhile. */
static void read_place(const struct set *s, unsigned way, struct top_item *item)
{
    const struct label *l = &s->labels[way];
    uint64_t name[NAME_WORDS];
    uint64_t key[KEY_WORDS];
    uint64_t name_len;
    uint64_t before;
    do {
        before = load_acquire(&l->number);
        item->id = load_acquire(&s->ids[way]);
        item->error = load_acquire(&l->error);
        item->key_len = load_acquire(&l->key_len);
        name_len = load_acquire(&l->name_len);
        take_words(l->name, name, NAME_WORDS);
        take_words(l->key, key, KEY_WORDS);
        item->count = load_acquire(&s->counts[way]);
    } while ((before & 1) != 0 || load_acquire(&l->number) != before);
    memset(item->limit, 0, sizeof item->limit);
    memcpy(item->limit, name, name_len);
    memset(item->key, 0, sizeof item->key); /* words after the key may be of an older key */
    memcpy(item->key, key, item->key_len < TOP_KEY_BYTES ? item->key_len : TOP_KEY_BYTES);
}

/* An item before merging, and the number of its sketch. */
struct found {
    struct top_item item;
    size_t sketch;
};

/* For each set of a sketch: at most how often a key that is not in it may have been denied. */
struct lost {
    uint64_t sets[TOP_SETS];
};

/* Reads a sketch into found[], which has room for TOP_KEYS items. Returns how many there are. */
static size_t read_one(const struct top *t, size_t sketch, struct found *found, struct lost *lost)
{
    size_t n = 0;
    for (unsigned s = 0; s < TOP_SETS; s++) {
        lost->sets[s] = UINT64_MAX;
        for (unsigned way = 0; way < TOP_WAYS; way++) {
            struct found *f = &found[n];
            read_place(&t->sets[s], way, &f->item);
            f->sketch = sketch;
            n += f->item.id != 0;
            lost->sets[s] = f->item.count < lost->sets[s] ? f->item.count : lost->sets[s];
        }
    }
    return n;
}

/* Orders by id, then by sketch, then by falling count. A key may have moved while its sketch was
 * read, and be there twice; the higher count is newer, and merge_key() uses the first. */
static int by_id(const void *a, const void *b)
{
    const struct found *x = a;
    const struct found *y = b;
    if (x->item.id != y->item.id) {
        return x->item.id < y->item.id ? -1 : 1;
    }
    if (x->sketch != y->sketch) {
        return x->sketch < y->sketch ? -1 : 1;
    }
    return x->item.count > y->item.count ? -1 : x->item.count < y->item.count;
}

static int by_count(const void *a, const void *b)
{
    const struct top_item *x = a;
    const struct top_item *y = b;
    if (x->count != y->count) {
        return x->count > y->count ? -1 : 1;
    }
    if (x->error != y->error) {
        return x->error < y->error ? -1 : 1;
    }
    int order = strcmp(x->limit, y->limit);
    return order != 0 ? order : memcmp(x->key, y->key, sizeof x->key);
}

/* Adds up the items of one key, found[0..n). A sketch without the key may have counted it up to the
 * lowest count of its set; that much is added to both count and error. */
static void merge_key(const struct found *found, size_t n, const struct lost *lost, size_t sketches,
                      struct top_item *sum)
{
    size_t next = 0;
    unsigned set = set_of(found->item.id);
    *sum = found->item;
    sum->count = 0;
    sum->error = 0;
    for (size_t s = 0; s < sketches; s++) {
        if (next < n && found[next].sketch == s) {
            sum->count += found[next].item.count;
            sum->error += found[next].item.error;
            while (next < n && found[next].sketch == s) {
                next++;
            }
        } else {
            sum->count += lost[s].sets[set];
            sum->error += lost[s].sets[set];
        }
    }
}

static size_t merge(struct found *found, size_t n, const struct lost *lost, size_t sketches,
                    struct top_item *items)
{
    size_t merged = 0;
    qsort(found, n, sizeof *found, by_id);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && found[end].item.id == found[i].item.id;) {
            end++;
        }
        merge_key(found + i, end - i, lost, sketches, &items[merged++]);
    }
    qsort(items, merged, sizeof *items, by_count);
    return merged;
}

int64_t top_read(struct top *const *tops, size_t count, struct top_item **items)
{
    struct found *found = calloc(count * TOP_KEYS + 1, sizeof *found); /* + 1: never of size 0 */
    struct lost *lost = calloc(count + 1, sizeof *lost);
    size_t n = 0;
    *items = calloc(count * TOP_KEYS + 1, sizeof **items);
    bool good = found != NULL && lost != NULL && *items != NULL;
    for (size_t s = 0; good && s < count; s++) {
        n += read_one(tops[s], s, found + n, &lost[s]);
    }
    int64_t merged = good ? (int64_t)merge(found, n, lost, count, *items) : WEIR_ENOMEM;
    free(found);
    free(lost);
    if (!good) {
        free(*items);
        *items = NULL;
    }
    return merged;
}
