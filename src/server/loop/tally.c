#include "server/loop/tally.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"

struct row {
    struct hash key;
    uint64_t count;
    uint32_t next; /* in its list, or in the list of free rows; TALLY_NONE: the last */
};

struct tally {
    pthread_mutex_t lock;
    struct hash_secret secret;
    uint32_t size;   /* length of both arrays */
    uint32_t fresh;  /* rows from this one on were never used, so their memory was not either */
    uint32_t free;   /* first of the rows that were used and are free; TALLY_NONE: none */
    uint32_t *lists; /* the first row of each list, plus one; 0: none */
    struct row *rows;
};

int tally_create(struct tally **out, uint32_t rows, struct weir_error *error)
{
    struct tally *t = calloc(1, sizeof *t);
    bool made = t != NULL && (t->lists = calloc(rows, sizeof *t->lists)) != NULL &&
                (t->rows = calloc(rows, sizeof *t->rows)) != NULL;
    int e = made ? hash_secret_init(&t->secret) : WEIR_ENOMEM;
    *out = e == 0 ? t : NULL;
    if (e != 0) {
        tally_destroy(t);
        return fail(error, e, "cannot make a table of %u counts: %s", rows, weir_strerror(e));
    }
    (void)pthread_mutex_init(&t->lock, NULL);
    t->size = rows;
    t->free = TALLY_NONE;
    return 0;
}

void tally_destroy(struct tally *t)
{
    if (t != NULL) {
        free(t->lists);
        free(t->rows);
        free(t);
    }
}

/* Returns the row of a key, or TALLY_NONE. */
static uint32_t find(const struct tally *t, struct hash key)
{
    uint32_t row = t->lists[key.low % t->size] - 1;
    while (row != TALLY_NONE &&
           (t->rows[row].key.low != key.low || t->rows[row].key.high != key.high)) {
        row = t->rows[row].next;
    }
    return row;
}

/* Enters a key with the count 0. Returns its row, or TALLY_NONE if all are in use. */
static uint32_t enter(struct tally *t, struct hash key)
{
    uint32_t row = t->free;
    if (row != TALLY_NONE) {
        t->free = t->rows[row].next;
    } else if (t->fresh < t->size) {
        row = t->fresh++;
    } else {
        return TALLY_NONE;
    }
    assert(row < t->size);
    uint32_t *list = &t->lists[key.low % t->size];
    t->rows[row] = (struct row){key, 0, *list - 1};
    *list = row + 1;
    return row;
}

static void leave(struct tally *t, uint32_t row)
{
    uint32_t *list = &t->lists[t->rows[row].key.low % t->size];
    if (*list - 1 == row) {
        *list = t->rows[row].next + 1;
    } else {
        uint32_t at = *list - 1;
        while (t->rows[at].next != row) {
            at = t->rows[at].next;
        }
        t->rows[at].next = t->rows[row].next;
    }
    t->rows[row].next = t->free;
    t->free = row;
}

uint32_t tally_add(struct tally *t, struct weir_text key, uint32_t units, uint64_t most,
                   uint64_t *count)
{
    struct hash hash = hash_sip(&t->secret, key.at, key.len);
    (void)pthread_mutex_lock(&t->lock);
    uint32_t row = find(t, hash);
    *count = row != TALLY_NONE ? t->rows[row].count : 0;
    if (*count + units > most) {
        row = TALLY_NONE;
    } else if (row == TALLY_NONE) {
        row = enter(t, hash);
    }
    if (row != TALLY_NONE) {
        *count = t->rows[row].count += units;
        assert(*count <= most);
    }
    (void)pthread_mutex_unlock(&t->lock);
    return row;
}

uint32_t tally_row(struct tally *t, struct weir_text key)
{
    struct hash hash = hash_sip(&t->secret, key.at, key.len);
    (void)pthread_mutex_lock(&t->lock);
    uint32_t row = find(t, hash);
    (void)pthread_mutex_unlock(&t->lock);
    return row;
}

void tally_subtract(struct tally *t, uint32_t row, uint32_t units)
{
    (void)pthread_mutex_lock(&t->lock);
    assert(row < t->size && t->rows[row].count >= units);
    t->rows[row].count -= units;
    if (t->rows[row].count == 0) {
        leave(t, row);
    }
    (void)pthread_mutex_unlock(&t->lock);
}

struct weir_text tally_client(const struct address *address, struct address *room)
{
    *room = address != NULL ? *address : (struct address){.family = 0};
    address_cut(room, 32, 64);
    return (struct weir_text){(const char *)room, sizeof *room};
}
