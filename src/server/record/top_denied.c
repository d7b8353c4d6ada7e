#include "server/record/top_denied.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"

#define NAME_WORDS (TOP_NAME_BYTES / 8)
#define KEY_WORDS (TOP_KEY_BYTES / 8)

/* What a place holds besides its row's id and count. Only the words that name and key need are
 * written. */
struct label {
    uint64_t number; /* odd while the place changes */
    uint64_t error;
    uint64_t lengths; /* of name and key, and the reason: lengths_of() */
    uint64_t name[NAME_WORDS];
    uint64_t key[KEY_WORDS];
};

struct set {
    uint64_t ids[TOP_WAYS]; /* 0: the place is free */
    uint64_t counts[TOP_WAYS];
    uint64_t turn; /* in which they were counted (G3) */
    struct label labels[TOP_WAYS];
} __attribute__((aligned(64)));

struct top {
    struct set sets[2][TOP_SETS]; /* of even and of odd turns */
    const uint64_t *turn;
    struct hash_secret secret;
};

_Static_assert(sizeof(struct top) <= TOP_THREAD, "the sketches of a thread are too large");

struct top *top_create(const struct hash_secret *secret, const uint64_t *turn)
{
    struct top *t = aligned_alloc(_Alignof(struct top), sizeof *t);
    if (t != NULL) {
        memset(t, 0, sizeof *t);
        t->turn = turn;
        t->secret = *secret;
    }
    return t;
}

void top_destroy(struct top *top)
{
    free(top);
}

size_t top_bytes(void)
{
    return sizeof(struct top);
}

static unsigned set_of(uint64_t id)
{
    return (unsigned)(id >> 32) % TOP_SETS;
}

/* ---- counting ---- */

/* Hashes a limit's name, a key and a reason; never 0. Operators choose the names, so a plain hash
 * is enough for them; clients choose the keys, so theirs is keyed. */
static uint64_t id_of(const struct top *t, const char *limit, size_t limit_len, const void *key,
                      size_t key_len, unsigned reason)
{
    uint64_t name = limit_len + ((uint64_t)reason << 32);
    for (size_t i = 0; i < limit_len; i += 8) {
        uint64_t word = 0;
        memcpy(&word, limit + i, limit_len - i < 8 ? limit_len - i : 8);
        name = (name ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        name ^= name >> 32;
    }
    uint64_t id = hash_xxh3(&t->secret, key, key_len).low ^ name;
    return id != 0 ? id : 1;
}

/* A name has less than 2^8 bytes, a reason is less than 2^8, and a key is less than 2^32 long. */
static uint64_t lengths_of(size_t name_len, size_t key_len, unsigned reason)
{
    return (uint64_t)key_len << 16 | (uint64_t)reason << 8 | name_len;
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
    unsigned reason;
};

/* Gives the place with the lowest count to another row (G1, G2). A free place has a count of 0. */
static void take_place(struct set *s, const struct denied *d)
{
    unsigned i = lowest_of(s);
    struct label *l = &s->labels[i];
    uint64_t lowest = s->counts[i];
    uint64_t number = l->number;
    store_relaxed(&l->number, number + 1);
    store_release(&s->ids[i], d->id);
    store_release(&l->error, lowest);
    store_release(&l->lengths, lengths_of(d->limit_len, d->key_len, d->reason));
    put_words(l->name, d->limit, d->limit_len);
    put_words(l->key, d->key, d->key_len < TOP_KEY_BYTES ? d->key_len : TOP_KEY_BYTES);
    store_release(&s->counts[i], lowest + 1);
    store_release(&l->number, number + 2);
}

/* Empties a set for another turn (G3). */
static __attribute__((noinline)) void begin_turn(struct set *s, uint64_t turn)
{
    for (unsigned i = 0; i < TOP_WAYS; i++) {
        store_relaxed(&s->ids[i], 0);
        store_relaxed(&s->counts[i], 0);
    }
    store_release(&s->turn, turn);
}

void top_add(struct top *t, const char *limit, const void *key, size_t key_len, int reason)
{
    size_t limit_len = strnlen(limit, TOP_NAME_BYTES - 1);
    struct denied d = {.limit = limit,
                       .limit_len = limit_len,
                       .key = key,
                       .key_len = key_len,
                       .reason = (unsigned)reason & 0xff};
    d.id = id_of(t, limit, limit_len, key, key_len, d.reason);
    uint64_t turn = load_relaxed(t->turn);
    struct set *s = &t->sets[turn % 2][set_of(d.id)];
    if (s->turn != turn) {
        begin_turn(s, turn);
    }
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

void top_denied(const char *limit, const void *key, size_t key_len, int reason)
{
    if (own != NULL) {
        top_add(own, limit, key, key_len, reason);
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
static void read_place(const struct set *s, unsigned way, struct top_row *row)
{
    const struct label *l = &s->labels[way];
    uint64_t name[NAME_WORDS];
    uint64_t key[KEY_WORDS];
    uint64_t lengths;
    uint64_t error;
    uint64_t before;
    do {
        before = load_acquire(&l->number);
        row->id = load_acquire(&s->ids[way]);
        error = load_acquire(&l->error);
        lengths = load_acquire(&l->lengths);
        take_words(l->name, name, NAME_WORDS);
        take_words(l->key, key, KEY_WORDS);
        row->high = load_acquire(&s->counts[way]);
    } while ((before & 1) != 0 || load_acquire(&l->number) != before);
    row->low = row->high - error;
    row->key_len = (uint32_t)(lengths >> 16);
    row->reason = lengths >> 8 & 0xff;
    memset(row->limit, 0, sizeof row->limit);
    memcpy(row->limit, name, lengths & 0xff);
    memset(row->key, 0, sizeof row->key); /* words after the key may be of an older key */
    memcpy(row->key, key, row->key_len < TOP_KEY_BYTES ? row->key_len : TOP_KEY_BYTES);
}

/* Keeps the last row, unless its place is free. A row may have moved while its set was read, and be
 * there twice; the higher count is newer. */
static void keep_row(struct top_set *set)
{
    const struct top_row *last = &set->rows[set->count];
    unsigned i = 0;
    while (i < set->count && set->rows[i].id != last->id) {
        i++;
    }
    if (i < set->count) {
        set->rows[i] = last->high > set->rows[i].high ? *last : set->rows[i];
    } else if (last->id != 0) {
        set->count++;
    }
}

void top_read_set(const struct top *top, uint64_t turn, unsigned set, struct top_set *out)
{
    const struct set *s = &top->sets[turn % 2][set];
    out->count = 0;
    out->lost = 0;
    if (load_acquire(&s->turn) != turn) { /* with begin_turn() */
        return;
    }
    out->lost = UINT64_MAX;
    for (unsigned way = 0; way < TOP_WAYS; way++) {
        struct top_row *row = &out->rows[out->count];
        read_place(s, way, row);
        uint64_t high = row->id != 0 ? row->high : 0;
        out->lost = high < out->lost ? high : out->lost;
        keep_row(out);
    }
}
