/* A limiter: algorithm + table + clock, as one process holds it. */
#ifndef WEIR_LIMIT_LIMITER_H
#define WEIR_LIMIT_LIMITER_H

#include <stdbool.h>
#include <stdint.h>

#include <weir.h>

#include "algo/algo.h"
#include "base/thread.h"
#include "table/region.h"
#include "table/table.h"

/* What one thread counts. */
struct counts {
    uint64_t verdict[WEIR_NEVER + 1]; /* by enum weir_verdict; 0 is unused */
    uint64_t blocked, spurious;
    uint64_t reclaimed, evicted, full_denied, full_allowed, moved;
};

/*
 * What one thread has for itself in each limiter: its counts, and its copy of the parameters, which
 * it renews when the header's version has moved on. A decision thus computes with one version from
 * beginning to end, whatever changes meanwhile, and reads no line that another thread writes.
 */
struct per_thread {
    uint64_t version; /* of params; 0: none yet */
    struct algo_params params;
    struct counts counts;
} __attribute__((aligned(64)));

struct weir {
    /* What a decision reads. Fixed from weir_open() on. */
    struct table table;
    const struct algo_ops *ops;
    struct region_header *head;
    int64_t epoch_ns;
    struct per_thread *threads; /* THREAD_SLOTS of them */
    bool token_bucket;          /* ops is algo_token_bucket */
    bool xxh3;
    bool align_key;
    bool plain; /* a narrow table, whose windows do not depend on the key */
    bool explicit_time;
    uint64_t generation;
    struct hash_secret secret;

    uint64_t boot_to_unix_ns; /* the limiter's time is CLOCK_BOOTTIME plus this */
    uint64_t adrift; /* 1: that was found before the wall clock was set, and changes once it is */
    weir_clock_fn clock;
    void *clock_arg;
    struct region *region;
};

/* A question after validation: all that the decision needs, and where its results go. */
struct asked {
    const struct algo_params *params; /* stays the same until the call returns */
    struct hash hash;
    struct table_key key;
    struct algo_ask ask; /* now: on the key's own line (see key_time) */
    uint64_t now;        /* on the limiter's line */
    int mode;
    struct weir_answer *answer;
    struct algo_charge *charge; /* NULL, or for what a refund must know of the units taken */
};

/* ---- parameters (change.c) ---- */

/* Threads that share a number keep their copy on their own stack. */
struct params_place {
    struct algo_params copy;
};

const struct algo_params *params_renew(const struct weir *w, struct params_place *place);

/*
 * The parameters in force. Call once, at the beginning of a public call: the copy that an earlier
 * call returned is overwritten. *place must live as long.
 */
static inline const struct algo_params *params_now(const struct weir *w, struct params_place *place)
{
    unsigned slot = thread_slot();
    const struct per_thread *own = &w->threads[slot];
    if (__builtin_expect(slot < THREAD_OWN && own->version == load_acquire(&w->head->version), 1)) {
        return &own->params; /* the acquire pairs with spec_publish() */
    }
    return params_renew(w, place);
}

/* Computes the parameters of the version in force. Returns its number. *e: what compile() said. */
uint64_t params_read(const struct weir *w, struct algo_params *params, int *e);

/* Makes *spec the next version. Under head->change, or before anybody else sees the region. */
void spec_publish(struct region_header *head, const struct limit_spec *spec);

/*
 * Compiles a spec whose max_debt is yet to be found from debt_asked. A default debt never makes a
 * limit impossible that fits without one; the caller's own is taken at its word.
 */
int params_compile(const struct algo_ops *ops, const struct limit_spec *spec,
                   const struct algo_layout *layout, struct algo_params *params,
                   struct weir_error *error);

/* ---- asking (question.c, decide.c) ---- */

/* Fills in all of an answer but what the algorithm's describe() does. */
static inline __attribute__((always_inline)) void answer_begin(const struct algo_params *p,
                                                               int verdict, uint64_t granted,
                                                               struct weir_answer *a)
{
    a->verdict = verdict;
    a->flags = 0;
    a->quota = p->quota;
    a->granted = granted;
    a->retry_after_ns = verdict == WEIR_NEVER ? WEIR_FOREVER : 0;
    a->limit = 0;
    a->reserved = 0;
}

static inline __attribute__((always_inline)) struct hash limiter_hash(const struct weir *w,
                                                                      const void *key, size_t len)
{
    return __builtin_expect(w->xxh3, 0) ? hash_xxh3(&w->secret, key, len)
                                        : hash_sip(&w->secret, key, len);
}

/* Unix ns to the limiter's line. A time before the epoch wraps to one beyond any max_time. */
static inline uint64_t limiter_line(const struct weir *w, uint64_t now_ns)
{
    return now_ns - (uint64_t)w->epoch_ns;
}

/* True if the words of the table can express the time. */
static inline bool limiter_knows(const struct weir *w, const struct algo_params *p, uint64_t now_ns)
{
    return limiter_line(w, now_ns) <= p->max_time && now_ns <= INT64_MAX;
}

/* The limiter's own time. WEIR_EINVAL with WEIR_EXPLICIT_TIME. */
int limiter_now(struct weir *w, uint64_t *now_ns);

/* Takes the region's anchor for the limiter's time. */
void limiter_anchor(struct weir *w);

/* The time that a key with this tag sees: its own windows may be shifted. */
static inline uint64_t key_time(const struct weir *w, uint64_t tag, uint64_t now)
{
    if (__builtin_expect(w->align_key, 0)) {
        return now + mul_high(tag & TAG_HASH, w->head->fixed.period_ns);
    }
    return now;
}

static inline bool key_is_valid(const void *key, size_t len)
{
    return len - 1 < WEIR_KEY_MAX && key != NULL;
}

/*
 * Fills in what a question is from: time first, then the key. The time must be one that
 * limiter_knows(). Mode and cost are the caller's.
 */
static inline void asked_time(const struct weir *w, uint64_t now_ns, struct asked *q)
{
    q->now = limiter_line(w, now_ns);
}

static inline void asked_hash(const struct weir *w, struct hash hash, struct asked *q)
{
    q->hash = hash;
    q->key = table_key(&w->table, hash);
    q->ask.now = key_time(w, q->key.tag, q->now);
}

/* All of it for a verb on one key, q->params given; WEIR_EKEY, WEIR_ETIME. */
int asked_key(const struct weir *w, const void *key, size_t len, uint64_t now_ns, struct asked *q);

/* Checks everything about *ask at now_ns: 0 or an error. */
int ask_check(const struct weir *w, const struct algo_params *p, const struct weir_question *ask,
              uint64_t now_ns);

/* Makes *q, whose params, answer and charge are given, of an *ask that ask_check() has passed. */
void asked_from(const struct weir *w, const struct weir_question *ask, uint64_t now_ns,
                struct asked *q);

/* Decides, charges, and fills in the results; counts only what happens to the table. */
void limiter_decide(struct weir *w, const struct asked *q);

/* Decides like limiter_decide(), beginning with a slot in which the key was seen (or NULL). */
void limiter_decide_at(struct weir *w, const struct asked *q, struct pair *slot);

/* Fills *answer with what a CHECK would be told. Counts nothing. */
void limiter_peek(struct weir *w, const struct asked *q, struct weir_answer *answer);

/*
 * Stores what the key's state, read as `seen`, is pulled down to if it is from a far future. In
 * wide tables under the key's stripe.
 */
void limiter_pull(struct weir *w, const struct asked *q, struct pair *slot, struct pair seen);

/* Adds the verdict to this thread's counts. */
void limiter_count(struct weir *w, const struct weir_answer *answer);

/* This thread's counts; add with count_add(). */
static inline struct counts *limiter_counts(struct weir *w)
{
    return &w->threads[thread_slot()].counts;
}

static inline void count_add(uint64_t *p, uint64_t n)
{
    if (__builtin_expect(thread_slot() < THREAD_OWN, 1)) {
        count_own(p, n);
    } else {
        (void)__atomic_fetch_add(p, n,
                                 __ATOMIC_RELAXED); /* shared by all threads beyond THREAD_OWN */
    }
}

/* Notes what a claim did. */
void limiter_count_claim(struct weir *w, const struct claim *claim);

/*
 * The patience of somebody who needs a place in the table and finds others in the way: how often to
 * wait for them, and for whom. It ends soon if they do not move at all: a process may be stopped
 * for good with a stripe or marks of its own.
 */
struct patience {
    unsigned left;
    uint64_t in_way; /* of the last claim */
};

#define PATIENCE_STOPPED 100 /* what a wait in vain costs: ten of them, some 0.1 s, and it ends */
#define PATIENCE_INIT                                                                              \
    {                                                                                              \
        1000, 0                                                                                    \
    }

/*
 * After a claim that was contended, the stripe given up: waits until whoever was in the way has
 * left its stripe, but not for long.
 */
void limiter_wait(const struct weir *w, struct patience *patience);

/*
 * table_claim() under the key's stripe, as on_full says, counted. `contended` only while there is
 * patience left.
 */
struct claim limiter_claim(struct weir *w, const struct asked *q, uint64_t word,
                           struct patience *patience);

/* ---- verbs (verbs.c) ---- */

/* Gives q->ask.cost units of *charge back. */
void limiter_refund(struct weir *w, const struct asked *q, const struct algo_charge *charge);

/* Charges q->ask.cost into debt; *charged is what fitted. 0 or WEIR_EFULL. */
int limiter_charge(struct weir *w, const struct asked *q, uint64_t *charged);

/* Fills *answer (may be NULL) with how the key stands after a verb that granted so much. */
void limiter_report(struct weir *w, struct asked *q, uint64_t granted, struct weir_answer *answer);

/* The end of the key's block on the limiter's line, 0 if there is none in force. */
uint64_t limiter_blocked_until(const struct weir *w, const struct asked *q);

#endif
