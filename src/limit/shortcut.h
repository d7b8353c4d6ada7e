/*
 * The short cut that most decisions take: a CHECK of a known key in a narrow table, without blocks
 * in force. Read the word, decide, swap, fill in the answer, in few instructions. Check, ask, batch
 * and throttle all begin here; what the short cut is not made for goes the whole way (decide.c).
 */
#ifndef WEIR_LIMIT_SHORTCUT_H
#define WEIR_LIMIT_SHORTCUT_H

#include "algo/inline.h"
#include "limit/limiter.h"

#define unlikely(condition) __builtin_expect((condition), 0)

/* A check of a known key under way. */
struct shortcut {
    const struct weir *w;
    const struct algo_params *params;
    struct pair *slot;
    uint64_t tag;
    struct algo_ask ask;
    struct weir_answer *answer;
};

/*
 * Returns true if the slot still held the key and was charged, or did not have to be. A call that
 * can NEVER fit goes the whole way. `algorithm` is a constant at each use, so that the functions of
 * the algorithm are inlined.
 */
static inline __attribute__((always_inline)) bool shortcut_decide(const struct shortcut *s,
                                                                  int algorithm)
{
    const struct algo_params *p = s->params;
    if (unlikely(s->ask.cost > p->quota)) {
        return false;
    }
    struct pair seen = {s->tag, load_acquire(&s->slot->word)};
    struct algo_state state = {seen.word, NULL};
    struct algo_step step = algo_decide(&narrow_ops[algorithm], p, state, &s->ask);
    bool allow = step.verdict == WEIR_ALLOW;
    if (allow ? !pair_cas(s->slot, seen, (struct pair){s->tag, step.word})
              : step.pulled || !pair_is(s->slot, seen)) {
        return false;
    }
    answer_begin(p, allow ? WEIR_ALLOW : WEIR_DENY, allow ? s->ask.cost : 0, s->answer);
    state.word = step.word;
    narrow_ops[algorithm].describe(p, state, &s->ask, s->answer);
    return true;
}

/*
 * Takes it. False: the slot has changed, or the call must go the whole way. All four are inlined,
 * and none calls a function that gets the address of *s: so it stays in registers.
 */
static inline __attribute__((always_inline)) bool shortcut_take(const struct shortcut *s)
{
    if (s->w->token_bucket) {
        return shortcut_decide(s, WEIR_TOKEN_BUCKET);
    }
    switch (s->params->spec.algorithm) {
    case WEIR_LEAKY_BUCKET:
        return shortcut_decide(s, WEIR_LEAKY_BUCKET);
    case WEIR_FIXED_WINDOW:
        return shortcut_decide(s, WEIR_FIXED_WINDOW);
    default:
        return shortcut_decide(s, WEIR_SLIDING_WINDOW);
    }
}

/* True if the question is one that the short cut is made for, and took it. */
static inline bool shortcut_serves(const struct weir *w, const struct asked *q, struct pair *slot)
{
    struct shortcut s = {w, q->params, slot, q->key.tag, q->ask, q->answer};
    return slot != NULL && w->table.record_bytes == 0 && q->mode == WEIR_CHECK &&
           q->ask.wait == 0 && !table_has_blocks(&w->table, q->now) && shortcut_take(&s);
}

/* Decides, beginning with a slot in which the key was seen (or NULL), and counts. */
static inline void shortcut_or_decide(struct weir *w, const struct asked *q, struct pair *slot)
{
    if (!shortcut_serves(w, q, slot)) {
        limiter_decide_at(w, q, slot);
    }
    if (q->mode != WEIR_PEEK) {
        limiter_count(w, q->answer);
    }
}

/*
 * Returns what the calling thread has for itself in the limiter if its next check may take the short
 * cut: NULL if the limiter is not plain, blocks may be in force, the parameters have changed (a
 * thread without a number of its own has none), or the time is outside the line.
 */
static inline __attribute__((always_inline)) struct per_thread *shortcut_begin(const struct weir *w,
                                                                               uint64_t now_ns)
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

/* Decides and counts. False: nothing has happened, and the call must go the whole way. */
static inline __attribute__((always_inline)) bool shortcut_check(const struct weir *w,
                                                                 struct per_thread *own,
                                                                 struct hash hash, uint64_t cost,
                                                                 uint64_t now_ns,
                                                                 struct weir_answer *answer)
{
    struct table_key where = table_key(&w->table, hash);
    struct pair *slot = table_find(&w->table, where);
    uint64_t now = limiter_line(w, now_ns);
    struct shortcut s = {w, &own->params, slot, where.tag, {now, cost, 0}, answer};
    if (unlikely(slot == NULL) || unlikely(!shortcut_take(&s))) {
        return false;
    }
    count_own(&own->counts.verdict[answer->verdict], 1);
    return true;
}

#endif
