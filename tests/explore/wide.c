#include "explore/wide.h"

#include <string.h>

#include "base/atomic.h"
#include "explore/world.h"

#define WORDS_MAX 64

static const struct algo_ops *real;
static struct algo_ops watched;

static void watch(const uint64_t *record)
{
    const struct table *t = &world_limiter()->table;
    if (record == NULL || scheduler_user() < 0) {
        return;
    }
    explore_point(record);
    uint64_t i = (uint64_t)((const unsigned char *)record - t->records) / t->record_bytes;
    uint64_t tag = t->lines[i / LINE_SLOTS].slot[i % LINE_SLOTS].tag;
    if (tag != 0 && !scheduler_holds(table_stripe(t, tag))) {
        scheduler_fail("the record of a key was touched without the key's stripe (G6)");
    }
}

/* Puts the record there word by word, as a processor would. */
static void put(const struct algo_params *p, uint64_t *record, const uint64_t *next)
{
    for (uint64_t i = 0; i < p->capacity; i++) {
        if (record[i] != next[i]) {
            explore_point(&record[i]);
            record[i] = next[i];
        }
    }
}

/* Every question to the algorithm but a refund and a note begins with this one. */
static uint64_t as_of(const struct algo_params *p, struct algo_state s, uint64_t now, bool *pulled)
{
    watch(s.record);
    return real->as_of(p, s, now, pulled);
}

static uint64_t refund(const struct algo_params *p, struct algo_state s, const struct algo_ask *ask,
                       const struct algo_charge *charge)
{
    uint64_t next[WORDS_MAX];
    watch(s.record);
    memcpy(next, s.record, p->capacity * sizeof *next);
    uint64_t after = real->refund(p, (struct algo_state){s.word, next}, ask, charge);
    put(p, s.record, next);
    return after;
}

static void note(const struct algo_params *p, struct algo_state s, uint64_t now, uint64_t units)
{
    uint64_t next[WORDS_MAX];
    watch(s.record);
    memcpy(next, s.record, p->capacity * sizeof *next);
    real->note(p, (struct algo_state){s.word, next}, now, units);
    put(p, s.record, next);
}

const struct algo_ops *wide_ops(const struct algo_ops *ops)
{
    if (ops->note == NULL) {
        return ops;
    }
    real = ops;
    watched = *ops;
    watched.as_of = as_of;
    watched.refund = refund;
    watched.note = note;
    return &watched;
}
