/*
 * A limiter: algorithm + table + clock, as one process holds it.
 */
#ifndef WEIR_LIMIT_LIMITER_H
#define WEIR_LIMIT_LIMITER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "algo/algo.h"
#include "base/thread.h"
#include "table/fork.h"
#include "table/region.h"
#include "table/table.h"

/* One thread's counts; a cache line of its own, and one for the rare events. */
struct counts {
    uint64_t allowed, denied, never, blocked, spurious;
    uint64_t reclaimed, evicted, full_denied, full_allowed, moved;
} __attribute__((aligned(64)));

struct weir {
    /* What a decision reads. Fixed from weir_open() on. */
    struct table table;
    const struct algo_ops *ops;
    struct region_header *head;
    int64_t epoch_ns;
    struct counts *counts; /* THREAD_SLOTS of them */
    bool xxh3;
    bool align_key;
    bool explicit_time;
    struct hash_secret secret;

    int64_t boot_to_unix_ns; /* the limiter's time is CLOCK_BOOTTIME plus this */
    weir_clock_fn clock;
    void *clock_arg;
    struct region region;
    struct fork_watch watch;
};

/* A question after validation: all that the decision needs. */
struct asked {
    struct hash hash;
    struct table_key key;
    struct algo_ask ask; /* now: on the key's own line (see key_time) */
    uint64_t now;        /* on the limiter's line */
    int mode;
};

/* ---- parameters (change.c) ---- */

/*
 * The parameters in force. They stay readable for REGION_VERSIONS - 2 further
 * changes; whoever is about to act on what it computed from them asks
 * params_stand() first, and begins again if not.
 */
static inline const struct algo_params *params_now(const struct weir *w, uint64_t *version)
{
    *version = load_acquire(&w->head->version); /* pairs with params_publish() */
    return (const struct algo_params *)(const void *)w->head->params[*version % REGION_VERSIONS]
        .bytes;
}

static inline bool params_stand(const struct weir *w, uint64_t version)
{
    return load_acquire(&w->head->version) - version < REGION_VERSIONS - 1;
}

/* Makes *params the next version. Under head->change, or before anybody else sees the region. */
void params_publish(struct region_header *head, const struct algo_params *params);

/* ---- asking (ask.c) ---- */

struct hash limiter_hash(const struct weir *w, const void *key, size_t len);

/* Time checks: Unix ns to the limiter's line. 0 or WEIR_ETIME. */
int limiter_line(const struct weir *w, uint64_t now_ns, uint64_t *now);

/* The limiter's own time. WEIR_EINVAL with WEIR_EXPLICIT_TIME. */
int limiter_now(const struct weir *w, uint64_t *now_ns);

/* The time that a key with this tag sees: its own windows may be shifted. */
static inline uint64_t key_time(const struct weir *w, uint64_t tag, uint64_t now)
{
    if (__builtin_expect(w->align_key, 0)) {
        return now + mul_high(tag & TAG_HASH, w->head->fixed.period_ns);
    }
    return now;
}

/* Checks a key's length and pointer, hashes it and fills q->hash, key, now, ask.now. */
int asked_key(const struct weir *w, const void *key, size_t len, uint64_t now_ns, struct asked *q);

/* Checks everything about *ask at now_ns and fills *q. */
int asked_init(const struct weir *w, const struct weir_ask *ask, uint64_t now_ns, struct asked *q);

/*
 * Decides, charges, fills *answer; counts only what happens to the table.
 * *stamp (may be NULL): under which time units were counted, for a refund.
 */
void limiter_decide(struct weir *w, const struct asked *q, struct weir_answer *answer,
                    uint64_t *stamp);

/* What a CHECK would be told; writes nothing, counts nothing. */
void limiter_peek(struct weir *w, const struct asked *q, struct weir_answer *answer);

/* Adds the verdict to this thread's counts. */
void limiter_count(struct weir *w, const struct weir_answer *answer);

/* This thread's counts; add with count_add(). */
struct counts *limiter_counts(struct weir *w);
static inline void count_add(uint64_t *p, uint64_t n)
{
    if (__builtin_expect(thread_slot() < THREAD_OWN, 1)) {
        count_own(p, n);
    } else {
        (void)__atomic_fetch_add(p, n, __ATOMIC_RELAXED); /* shared by all threads beyond 63 */
    }
}

/* Notes what a claim did. */
void limiter_count_claim(struct weir *w, const struct claim *claim);

/* table_claim() under the key's stripe, with the patience that contention needs. */
struct claim limiter_claim(struct weir *w, const struct asked *q, struct table_key key,
                           uint64_t word, bool evict);

/* ---- verbs (verbs.c) ---- */

/* Gives q->ask.cost back, counted under charged_at (limiter's line of the key). */
void limiter_refund(struct weir *w, const struct asked *q, uint64_t charged_at);

/* Charges q->ask.cost into debt; *charged is what fitted. 0 or WEIR_EFULL. */
int limiter_charge(struct weir *w, const struct asked *q, uint64_t *charged);

/* The end of the key's block on the limiter's line, 0 if there is none in force. */
uint64_t limiter_blocked_until(const struct weir *w, const struct asked *q);

#endif
