/*
 * The short cut that most decisions take: a CHECK of a known key in a narrow
 * table, without blocks in it. Read the word, decide, swap, fill in the answer,
 * in few instructions. Whatever it is not made for goes the whole way (decide.c).
 */
#ifndef WEIR_LIMIT_SHORTCUT_H
#define WEIR_LIMIT_SHORTCUT_H

#include "algo/token_bucket.h"
#include "limit/limiter.h"

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
 * True if the slot still held the key, and was charged or did not have to be.
 * Inlined twice: with token_bucket's own functions, and with those of the table
 * of operations.
 */
static inline __attribute__((always_inline)) bool shortcut_decide(const struct shortcut *s,
                                                                  bool token_bucket)
{
    const struct algo_params *p = s->params;
    struct pair seen = {s->tag, load_acquire(&s->slot->word)};
    struct algo_step step = token_bucket ? token_bucket_decide(p, seen.word, &s->ask)
                                         : s->w->ops->decide(p, seen.word, NULL, &s->ask);
    bool allow = step.verdict == WEIR_ALLOW;
    if (allow ? !pair_cas(s->slot, seen, (struct pair){s->tag, step.word})
              : step.pulled || !pair_is(s->slot, seen)) {
        return false;
    }
    struct weir_answer *a = s->answer;
    a->verdict = step.verdict;
    a->flags = 0;
    a->quota = p->quota;
    a->granted = allow ? s->ask.cost : 0;
    a->retry_after_ns = step.verdict == WEIR_NEVER ? WEIR_FOREVER : 0;
    a->limit = 0;
    a->reserved = 0;
    if (token_bucket && step.verdict != WEIR_NEVER) {
        /* The word after a decision leads now by what is legitimate: no need to look again. */
        token_bucket_describe_lead(p, step.word - bucket_now(p, s->ask.now), &s->ask, a);
    } else {
        s->w->ops->describe(p, step.word, NULL, &s->ask, a);
    }
    return true;
}

/* Scalars, not the struct: handing that over would make the other way keep it in memory too. */
static __attribute__((noinline, unused)) bool shortcut_by_table(const struct weir *w,
                                                                const struct algo_params *p,
                                                                struct pair *slot, uint64_t tag,
                                                                uint64_t now, uint64_t cost,
                                                                struct weir_answer *answer)
{
    struct shortcut s = {w, p, slot, tag, {now, cost, 0}, answer};
    return shortcut_decide(&s, false);
}

/* Takes it. False: the slot has changed, or the call must go the whole way. */
static inline bool shortcut_take(const struct shortcut *s)
{
    return s->w->token_bucket ? shortcut_decide(s, true)
                              : shortcut_by_table(s->w, s->params, s->slot, s->tag, s->ask.now,
                                                  s->ask.cost, s->answer);
}

/* The same for any question, if it is one that the short cut is made for. */
static inline bool shortcut_serves(const struct weir *w, const struct asked *q, struct pair *slot,
                                   struct weir_answer *answer)
{
    struct shortcut s = {w, q->params, slot, q->key.tag, q->ask, answer};
    return slot != NULL && w->table.record_bytes == 0 && q->mode == WEIR_CHECK &&
           q->ask.wait == 0 && !table_has_blocks(&w->table, q->now) && shortcut_take(&s);
}

#endif
