/*
 * What exchanges depend on, under the test's control: a limit that is not open anywhere, whose
 * references are counted. These functions replace the real ones in the program that includes this
 * header.
 */
#ifndef WEIR_TESTS_SUPPORT_SYNC_FAKES_H
#define WEIR_TESTS_SUPPORT_SYNC_FAKES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shared/synced/sync.h"
#include "support/store/node_keys_of.h"

#define MS (1000 * WEIR_MICROSECOND)
#define S_NS (100 * MS)

static uint64_t fleet_size = 1;

uint64_t store_fleet_size(const struct store_shared *s)
{
    return fleet_size;
}

void store_limit_hold(struct store_limit *limit)
{
    (void)__atomic_add_fetch(&limit->references, 1, __ATOMIC_RELAXED);
}

void store_limit_release(struct store_limit *limit)
{
    (void)__atomic_sub_fetch(&limit->references, 1, __ATOMIC_RELAXED);
}

struct fake_limit {
    struct store_limit limit;
    struct store_numbers numbers;
};

/* `burst` is that of buckets; 0 means count. */
static inline struct store_limit *fake_limit(struct fake_limit *f, int algorithm, uint64_t count,
                                             uint64_t period_ns, uint64_t burst)
{
    static uint64_t limits;
    *f = (struct fake_limit){.numbers.options = WEIR_OPTIONS_INIT};
    struct weir_options *o = &f->numbers.options;
    o->algorithm = algorithm;
    o->count = count;
    o->period_ns = period_ns;
    o->burst = burst;
    assert_int_equal(store_params(o, &f->numbers.params, NULL), 0);
    assert_int_equal(
        store_key_head(TEXT("t"), TEXT("limit"), &f->numbers.params, &f->limit.head, NULL), 0);
    f->limit.mode = REMOTE_SYNCED;
    f->limit.sync_ns = S_NS;
    f->limit.id = ++limits;
    f->limit.numbers = &f->numbers;
    return &f->limit;
}

#define NO_SHARD ((struct weir_text){NULL, 0})

static inline struct weir_answer fake_ask(struct node_keys *y, struct store_limit *limit,
                                          const char *key, uint64_t cost, uint64_t now_ns)
{
    struct weir_answer a;
    int e = sync_ask(y, PART(limit, text_of(key), cost), now_ns, &a);
    assert_int_equal(e & ~SYNC_DUE, SYNC_ANSWERED);
    return a;
}

/* Returns how many of `n` requests of cost 1 are admitted. */
static inline uint64_t fake_admit(struct node_keys *y, struct store_limit *limit, const char *key,
                                  uint64_t n, uint64_t now_ns)
{
    uint64_t admitted = 0;
    for (uint64_t i = 0; i < n; i++) {
        struct weir_answer a;
        int e = sync_ask(y, PART(limit, text_of(key), 1), now_ns, &a);
        admitted += (e & SYNC_ANSWERED) != 0 && a.verdict == WEIR_ALLOW;
    }
    return admitted;
}

#endif
