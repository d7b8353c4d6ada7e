/* A limiter as one process holds it: an algorithm, a table and a clock. */
#ifndef WEIR_LIMIT_LIMITER_H
#define WEIR_LIMIT_LIMITER_H

#include "algo/algo.h"
#include "base/thread.h"
#include "table/region.h"

/* What one thread counts. The fields are the first ones of struct weir_stats. */
#define COUNT_SHADOW 0 /* no verdict has this number */
struct counts {
    uint64_t verdict[WEIR_NEVER + 1]; /* by enum weir_verdict; COUNT_SHADOW: shadow_denied */
    uint64_t blocked, spurious;
    uint64_t reclaimed, evicted, full_denied, full_allowed, moved;
};

/*
 * What each thread has for itself in a limiter: its counts, and a copy of the parameters that it
 * renews when the version in the header has changed. So a decision computes with one version from
 * beginning to end, and reads no cache line that another thread writes.
 */
struct per_thread {
    uint64_t version; /* of params; 0 if there are none yet */
    struct algo_params params;
    struct counts counts;
} __attribute__((aligned(64)));

struct weir {
    /* What a decision reads. These fields do not change after weir_open(). */
    struct table table;
    const struct algo_ops *ops;
    struct region_header *head;
    int64_t epoch_ns;
    struct per_thread *threads; /* THREAD_SLOTS of them */
    bool token_bucket;          /* ops is algo_token_bucket */
    bool xxh3;
    bool align_key;
    bool inlined; /* the short cut has the algorithm: the table is narrow, without months */
    bool plain;   /* and windows do not depend on the key */
    bool explicit_time;
    uint64_t generation;
    struct hash_secret secret;

    uint64_t boot_to_unix_ns; /* the limiter's time is CLOCK_BOOTTIME plus this */
    uint64_t adrift; /* 1 if the wall clock was not set when that was computed: it will change */
    weir_clock_fn clock;
    void *clock_arg;
    struct region *region;
};

/* Besides the modes of questions: charge whatever the quota, up to max_debt. */
enum { ASKED_PENALTY = WEIR_UP_TO + 1 };

/* A valid question: all that the decision needs, and the places for its results. */
struct asked {
    const struct algo_params *params; /* stay the same until the call returns */
    struct hash hash;
    struct table_key key;
    struct algo_ask ask; /* its time is that of the key (see key_time()) */
    uint64_t now;        /* on the limiter's time line */
    int mode;            /* enum weir_mode, or ASKED_PENALTY */
    bool shadow;         /* WEIR_SHADOW */
    struct weir_answer *answer;
    struct algo_charge *charge; /* what a refund must know of the units taken; may be NULL */
};

/* ---- parameters (change.c) ---- */

const struct algo_params *params_renew(const struct weir *w, struct algo_params *copy);

/*
 * Returns the parameters in force. A public call does this once, at its beginning, because the
 * result of an earlier call may be overwritten. Threads that share a number get them in *copy.
 */
static inline const struct algo_params *params_now(const struct weir *w, struct algo_params *copy)
{
    unsigned slot = thread_slot();
    const struct per_thread *own = &w->threads[slot];
    if (__builtin_expect(slot < THREAD_OWN && own->version == load_acquire(&w->head->version), 1)) {
        return &own->params; /* the acquire pairs with spec_publish() */
    }
    return params_renew(w, copy);
}

/* Computes the parameters of the version in force and returns its number. Sets *e as compile(). */
uint64_t params_read(const struct weir *w, struct algo_params *params, int *e);

/* Makes *spec the next version. Under head->change, or before any other user sees the region. */
void spec_publish(struct region_header *head, const struct limit_spec *spec);

/* Returns the sizes that parameters of this limiter must keep. */
static inline struct algo_layout layout_of(const struct weir *w)
{
    return (struct algo_layout){w->head->fixed.shift, w->head->fixed.capacity, true};
}

/*
 * Compiles a spec with the max_debt that debt_asked means. The default is as much as the quota, or
 * half of it and so on until it fits, so that a default never makes a limit impossible.
 */
int params_compile(const struct algo_ops *ops, const struct limit_spec *spec,
                   const struct algo_layout *layout, struct algo_params *params,
                   struct weir_error *error);

/* ---- asking (question.c, decide.c) ---- */

/* Returns the state of a slot in which `word` was read. */
static inline struct algo_state state_of(const struct weir *w, const struct pair *slot,
                                         uint64_t word)
{
    return (struct algo_state){word, table_record(&w->table, slot)};
}

/* Fills in all of an answer except what the algorithm's describe() fills in. */
ALWAYS_INLINE void answer_begin(const struct algo_params *p, int verdict, uint64_t granted,
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

ALWAYS_INLINE struct hash limiter_hash(const struct weir *w, const void *key, size_t len)
{
    return __builtin_expect(w->xxh3, 0) ? hash_xxh3(&w->secret, key, len)
                                        : hash_sip(&w->secret, key, len);
}

static inline struct hash key_hash(const struct weir_key *key)
{
    return (struct hash){key->word[0], key->word[1]};
}

/* Returns Unix ns as a time on the limiter's line. Before the epoch, it wraps beyond max_time. */
static inline uint64_t limiter_line(const struct weir *w, uint64_t now_ns)
{
    return now_ns - (uint64_t)w->epoch_ns;
}

/* Returns whether the words of the table can express the time. */
static inline bool limiter_knows(const struct weir *w, const struct algo_params *p, uint64_t now_ns)
{
    return limiter_line(w, now_ns) <= p->max_time && now_ns <= INT64_MAX;
}

/* Reads the limiter's clock. WEIR_EINVAL without a limiter and with WEIR_EXPLICIT_TIME. */
int limiter_now(struct weir *w, uint64_t *now_ns);

/* Computes the limiter's time from the anchor of its region. */
void limiter_anchor(struct weir *w);

/* Returns the time that a key with this tag sees, because its windows may be shifted. */
static inline uint64_t key_time(const struct weir *w, uint64_t tag, uint64_t now)
{
    bool shifted = __builtin_expect(w->align_key, 0);
    return shifted ? now + mul_high(tag & TAG_HASH, w->head->fixed.period_ns) : now;
}

static inline bool key_is_valid(const void *key, size_t len)
{
    return len - 1 < WEIR_KEY_MAX && key != NULL;
}

/* Fills in key and time of *q. The time must be one that limiter_knows(). */
static inline void asked_about(const struct weir *w, struct hash hash, uint64_t now_ns,
                               struct asked *q)
{
    q->now = limiter_line(w, now_ns);
    q->hash = hash;
    q->key = table_key(&w->table, hash);
    q->ask.now = key_time(w, q->key.tag, q->now);
}

/* Checks everything about *ask at now_ns. Returns 0 or an error. */
int ask_check(const struct weir *w, const struct algo_params *p, const struct weir_question *ask,
              uint64_t now_ns);

/* Fills *q from an *ask that ask_check() has passed. The caller sets params, answer and charge. */
void asked_from(const struct weir *w, const struct weir_question *ask, uint64_t now_ns,
                struct asked *q);

/* Does both. */
int asked_make(const struct weir *w, const struct weir_question *ask, uint64_t now_ns,
               struct asked *q);

/* Makes *q for a verb on one key. Also WEIR_EINVAL if w is NULL. *copy: see params_now(). */
int asked_key(const struct weir *w, const void *key, size_t len, uint64_t units, uint64_t now_ns,
              struct algo_params *copy, struct asked *q);

/* Decides, charges, and fills in the results. Counts only what happens to the table. */
void limiter_decide(struct weir *w, const struct asked *q);

/* Does the same, beginning with a slot in which the key was seen. The slot may be NULL. */
void limiter_decide_at(struct weir *w, const struct asked *q, struct pair *slot);

/* Charges q->ask.cost into debt; *charged is how much fitted. Returns 0 or WEIR_EFULL. */
int limiter_charge(struct weir *w, struct asked *q, uint64_t *charged);

/* Fills *answer with what a CHECK would be told. Counts nothing. */
void limiter_peek(struct weir *w, const struct asked *q, struct weir_answer *answer);

/* Adds the verdict to this thread's counts. */
void limiter_count(struct weir *w, const struct weir_answer *answer, bool shadow);

/* Returns this thread's counts. They are changed by count_add(). */
static inline struct counts *limiter_counts(struct weir *w)
{
    return &w->threads[thread_slot()].counts;
}

static inline void count_add(uint64_t *p, uint64_t n)
{
    if (__builtin_expect(thread_slot() < THREAD_OWN, 1)) {
        count_own(p, n);
    } else { /* all threads beyond THREAD_OWN share one set of counts */
        (void)__atomic_fetch_add(p, n, __ATOMIC_RELAXED);
    }
}

/* ---- verbs (verbs.c) ---- */

/* weir_reserve_at() with a question, of which it uses the key, the cost and the flags
 * (reserve.c). */
int limiter_reserve(struct weir *w, const struct weir_question *ask, uint64_t ttl_ns,
                    uint64_t now_ns, struct weir_reservation *reservation,
                    struct weir_answer *answer);

/* Gives q->ask.cost units of *charge back. */
void limiter_refund(struct weir *w, const struct asked *q, const struct algo_charge *charge);

/* Fills *answer with the key's state after a verb that granted so much. *answer may be NULL. */
void limiter_report(struct weir *w, struct asked *q, uint64_t granted, struct weir_answer *answer);

/* Returns the end of the key's block on the limiter's time line, or 0 if none is in force. */
uint64_t limiter_blocked_until(const struct weir *w, const struct asked *q);

#endif
