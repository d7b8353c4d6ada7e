/*
 * The short cut that most decisions take: a CHECK of a known key in a narrow table, without blocks
 * in force and without calendar months. It reads the word, decides, swaps and fills in the
 * answer, in few instructions. Check, ask, batch and throttle all begin here. Other calls go
 * the whole way (decide.c).
 */
#ifndef WEIR_LIMIT_SHORTCUT_H
#define WEIR_LIMIT_SHORTCUT_H

#include "algo/bucket.h"
#include "algo/window.h"
#include "limit/limiter.h"

#define unlikely(condition) __builtin_expect((condition), 0)

/*
 * The functions with which the short cut decides. The rows of the algorithms name the same ones.
 * But these rows are constants that the compiler sees, so that it inlines the functions.
 */
static const struct algo_ops narrow_ops[] = {
    [WEIR_TOKEN_BUCKET] = {.as_of = bucket_as_of,
                           .fits = token_bucket_fits,
                           .describe = token_bucket_describe},
    [WEIR_LEAKY_BUCKET] = {.as_of = bucket_as_of,
                           .fits = leaky_bucket_fits,
                           .describe = leaky_bucket_describe},
    [WEIR_FIXED_WINDOW] = {.as_of = window_as_of,
                           .fits = fixed_window_fits,
                           .describe = fixed_window_describe},
    [WEIR_SLIDING_WINDOW] = {.as_of = window_as_of,
                             .fits = sliding_window_fits,
                             .describe = sliding_window_describe},
};

#define SHORTCUTS ((int)(sizeof narrow_ops / sizeof narrow_ops[0]))

/* Returns whether the short cut has the algorithm. */
static inline bool shortcut_has(int algorithm)
{
    return algorithm > 0 && algorithm < SHORTCUTS && narrow_ops[algorithm].fits != NULL;
}

/*
 * Returns true if the slot still held the key and was charged, or did not have to be. A call that
 * can NEVER fit goes the whole way. `algorithm` is a constant at each use, so that the functions of
 * the algorithm are inlined.
 */
ALWAYS_INLINE bool shortcut_decide(const struct asked *q, struct pair *slot, int algorithm)
{
    const struct algo_params *p = q->params;
    struct pair seen = {q->key.tag, load_acquire(&slot->word)};
    struct algo_state s = {seen.word, NULL};
    struct algo_step step = algo_decide(&narrow_ops[algorithm], p, s, &q->ask);
    bool allow = step.verdict == WEIR_ALLOW;
    if (allow ? !pair_cas(slot, seen, (struct pair){seen.tag, step.word})
              : step.pulled || step.verdict == WEIR_NEVER || !pair_is(slot, seen)) {
        return false;
    }
    s.word = step.word;
    answer_begin(p, allow ? WEIR_ALLOW : WEIR_DENY, allow ? q->ask.cost : 0, q->answer);
    narrow_ops[algorithm].describe(p, s, &q->ask, q->answer);
    return true;
}

/*
 * Decides by the limiter's algorithm. All four are inlined, and none passes the address of *q to a
 * function that is not, so *q stays in registers.
 */
ALWAYS_INLINE bool shortcut_take(const struct weir *w, const struct asked *q, struct pair *slot)
{
    assert(w->inlined && w->table.record_bytes == 0); /* G1: no stripe is needed */
    if (w->token_bucket) {
        return shortcut_decide(q, slot, WEIR_TOKEN_BUCKET);
    }
    switch (q->params->spec.algorithm) {
    case WEIR_LEAKY_BUCKET:
        return shortcut_decide(q, slot, WEIR_LEAKY_BUCKET);
    case WEIR_FIXED_WINDOW:
        return shortcut_decide(q, slot, WEIR_FIXED_WINDOW);
    default:
        return shortcut_decide(q, slot, WEIR_SLIDING_WINDOW);
    }
}

/* Decides by the short cut if it serves, otherwise the whole way, and counts. */
static inline void shortcut_or_decide(struct weir *w, const struct asked *q, struct pair *slot)
{
    bool serves = slot != NULL && w->inlined && q->mode == WEIR_CHECK && q->ask.wait == 0 &&
                  !table_has_blocks(&w->table, q->now);
    if (!serves || !shortcut_take(w, q, slot)) {
        limiter_decide_at(w, q, slot);
    }
    if (q->mode != WEIR_PEEK) {
        limiter_count(w, q->answer, q->shadow);
    }
}

/*
 * Returns the calling thread's part of the limiter if its next check may take the short cut.
 * Returns NULL if the limiter is not plain, blocks may be in force, the parameters have changed (a
 * thread without a number of its own has none), or the time is outside the time line.
 */
ALWAYS_INLINE struct per_thread *shortcut_begin(const struct weir *w, uint64_t now_ns)
{
    struct per_thread *own = &w->threads[thread_slot()];
    uint64_t now = limiter_line(w, now_ns);
    if (unlikely(!w->plain) ||
        unlikely(own->version != load_acquire(&w->head->version)) || /* see params_now() */
        unlikely(now > own->params.max_time) || table_has_blocks(&w->table, now)) {
        return NULL;
    }
    return own;
}

/* Decides and counts. False if nothing has happened and the call must go the whole way. */
ALWAYS_INLINE bool shortcut_check(const struct weir *w, struct per_thread *own, struct hash hash,
                                  uint64_t cost, uint64_t now_ns, struct weir_answer *answer)
{
    struct table_key where = table_key(&w->table, hash);
    struct pair *slot = table_find(&w->table, where);
    struct asked q = {.params = &own->params, .key = where, .answer = answer};
    q.ask = (struct algo_ask){limiter_line(w, now_ns), cost, 0};
    if (unlikely(slot == NULL) || unlikely(!shortcut_take(w, &q, slot))) {
        return false;
    }
    count_own(&own->counts.verdict[answer->verdict], 1);
    return true;
}

#endif
