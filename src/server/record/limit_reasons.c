#include "server/record/limit_reasons.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"

struct reasons_row {
    uint64_t used; /* 1: the name is there (R1) */
    uint64_t counts[REQUEST_REASONS];
    char limit[WEIR_RULES_NAME];
};

struct limit_reasons {
    pthread_mutex_t lock; /* for adding rows */
    struct reasons_row rows[REASON_ROWS];
};

_Static_assert(sizeof(struct limit_reasons) <= REASON_TABLE, "the table is too large");

struct limit_reasons *limit_reasons_create(void)
{
    struct limit_reasons *r = calloc(1, sizeof *r);
    if (r != NULL) {
        (void)pthread_mutex_init(&r->lock, NULL);
    }
    return r;
}

void limit_reasons_destroy(struct limit_reasons *reasons)
{
    if (reasons != NULL) {
        (void)pthread_mutex_destroy(&reasons->lock);
        free(reasons);
    }
}

static size_t place_of(const char *limit)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *limit != 0; limit++) {
        hash = (hash ^ (unsigned char)*limit) * UINT64_C(0x100000001b3);
    }
    return (size_t)(hash ^ hash >> 32);
}

/* Returns the number of the limit's row, or of the free row that it would get; REASON_ROWS: the
 * table is full. */
static size_t find(const struct limit_reasons *r, const char *limit)
{
    size_t place = place_of(limit);
    for (size_t i = 0; i < REASON_ROWS; i++) {
        size_t at = (place + i) % REASON_ROWS;
        if (load_acquire(&r->rows[at].used) == 0 || strcmp(r->rows[at].limit, limit) == 0) {
            return at;
        }
    }
    return REASON_ROWS;
}

/* Enters a limit, unless another thread has just done so. Returns as find(). */
static size_t enter(struct limit_reasons *r, const char *limit)
{
    (void)pthread_mutex_lock(&r->lock);
    size_t at = find(r, limit);
    if (at < REASON_ROWS && r->rows[at].used == 0) {
        memcpy(r->rows[at].limit, limit, strnlen(limit, WEIR_RULES_NAME - 1));
        store_release(&r->rows[at].used, 1); /* with find() */
    }
    (void)pthread_mutex_unlock(&r->lock);
    return at;
}

void limit_reasons_count(struct limit_reasons *reasons, const char *limit, int reason)
{
    size_t at = find(reasons, limit);
    if (at < REASON_ROWS && load_acquire(&reasons->rows[at].used) == 0) {
        at = enter(reasons, limit);
    }
    if (at < REASON_ROWS) {
        count_shared(&reasons->rows[at].counts[reason], 1);
    }
}

void limit_reasons_read(const struct limit_reasons *reasons, const char *limit,
                        uint64_t counts[REQUEST_REASONS])
{
    size_t at = reasons != NULL ? find(reasons, limit) : REASON_ROWS;
    memset(counts, 0, REQUEST_REASONS * sizeof counts[0]);
    if (at < REASON_ROWS) { /* a free row has counted nothing */
        load_each(counts, reasons->rows[at].counts, REQUEST_REASONS);
    }
}

static __thread struct limit_reasons *own;

void limit_reasons_use(struct limit_reasons *reasons)
{
    own = reasons;
}

void limit_reasons_note(const char *limit, int reason)
{
    if (own != NULL) {
        limit_reasons_count(own, limit, reason);
    }
}
