/*
 * The decision, the whole way: any algorithm, any mode, keys that are known, new,
 * blocked or on the move. A known key of a narrow table is decided without a
 * lock; everything else under the key's stripe. shortcut.h has the way that
 * most calls take.
 */
#include "limit/limiter.h"

/* ---- the answer ---- */

static inline void fill_answer(const struct weir *w, const struct algo_params *p, uint64_t word,
                               const uint64_t *record, const struct algo_ask *ask, int verdict,
                               uint64_t granted, struct weir_answer *a)
{
    answer_begin(p, verdict, granted, a);
    algo_describe(w->ops, p, word, record, ask, a);
}

/* Lays a block over the answer of a peek. */
static void answer_blocked(uint64_t until, uint64_t now, struct weir_answer *a)
{
    uint64_t left = until == UINT64_MAX ? WEIR_FOREVER : until - now;
    a->flags |= WEIR_FLAG_BLOCKED;
    a->remaining = 0;
    a->delay_ns = 0;
    if (a->verdict != WEIR_NEVER) {
        a->verdict = WEIR_DENY;
        a->retry_after_ns = max_u64(left, a->retry_after_ns);
    }
    a->reset_after_ns = max_u64(left, a->reset_after_ns);
}

/* on_full said no: DENY until a candidate becomes fresh, or ALLOW without a charge. */
static void answer_full(const struct weir *w, const struct algo_params *p,
                        const struct algo_ask *ask, uint64_t full_for, struct weir_answer *a)
{
    bool allow = p->spec.on_full == WEIR_ALLOW_NEW;
    fill_answer(w, p, 0, NULL, ask, WEIR_ALLOW, 0, a);
    a->flags = WEIR_FLAG_FULL;
    if (!allow) {
        a->verdict = WEIR_DENY;
        a->remaining = 0;
        a->delay_ns = 0;
        a->retry_after_ns = full_for - 1 >= ALGO_LIFE_NS ? WEIR_SECOND : full_for;
    }
}

/* ---- deciding ---- */

struct claim limiter_claim(struct weir *w, const struct asked *q, uint64_t word,
                           struct patience *patience)
{
    bool evict = q->params->spec.on_full == WEIR_EVICT;
    unsigned how = (evict ? CLAIM_EVICT : 0) | (patience->left == 0 ? CLAIM_HASTY : 0);
    struct claim claim = table_claim(&w->table, q->key, word, q->now, how);
    limiter_count_claim(w, &claim);
    claim.contended = claim.contended && patience->left != 0;
    patience->in_way = claim.in_way;
    return claim;
}

/* True if the stripe could be had for a moment. Waiting is also how a dead owner is found out. */
static bool comes_free(const struct weir *w, struct lock *stripe)
{
    bool had = lock_take_soon(stripe, w->table.owner);
    if (had) {
        lock_release(stripe);
    }
    return had;
}

void limiter_wait(const struct weir *w, struct patience *patience)
{
    struct lock *stripe = table_stripe(&w->table, patience->in_way);
    unsigned cost = 1;
    if (patience->in_way == 0) {
        lock_pause(0);
    } else if (!comes_free(w, stripe)) {
        cost = PATIENCE_STOPPED;
    }
    patience->left -= (unsigned)min_u64(cost, patience->left);
    patience->in_way = 0;
}

/* A decision under way: the question, and where its results go. */
struct pending {
    const struct asked *q;
    struct weir_answer *answer;
    struct algo_charge *charge; /* may be NULL */
};

static inline void finish(const struct weir *w, const struct algo_params *p, uint64_t word,
                          const uint64_t *record, const struct algo_ask *ask, int verdict,
                          uint64_t granted, const struct pending *d)
{
    if (d->charge != NULL) {
        *d->charge = (struct algo_charge){w->ops->stamp(p, word, record, ask->now), p->step, word};
    }
    fill_answer(w, p, word, record, ask, verdict, granted, d->answer);
}

void limiter_pull(struct weir *w, const struct asked *q, struct pair *slot, struct pair seen)
{
    bool pulled;
    uint64_t word =
        w->ops->as_of(q->params, seen.word, table_record(&w->table, slot), q->ask.now, &pulled);
    if (pulled) {
        (void)pair_cas(slot, seen, (struct pair){seen.tag, word});
    }
}

/*
 * Decides on a slot that held the key and `word` a moment ago. False: it has
 * changed, look again. Narrow: with or without the stripe (G1). Wide: under it.
 *
 * A state from a far future is pulled down by a swap of its own, whatever the
 * verdict: a retry that was computed from the pulled state comes true only if
 * that state stays. It also keeps a log from noting units in places that the
 * forgotten ones still use.
 *
 * The word was read by itself, which is quicker than reading the pair. The swap of
 * the pair checks a call that takes; a call that does not take compares the pair.
 */
static bool decide_slot(struct weir *w, struct pair *slot, uint64_t word, uint64_t *record,
                        const struct pending *d)
{
    const struct asked *q = d->q;
    const struct algo_params *p = q->params;
    struct pair seen = {q->key.tag, word};
    struct algo_step step = algo_decide(w->ops, p, seen.word, record, &q->ask);
    bool take = step.verdict == WEIR_ALLOW && q->mode != WEIR_PEEK;
    struct pair next = {seen.tag, take ? step.word : seen.word};
    if (step.pulled) {
        limiter_pull(w, q, slot, seen);
        return false;
    }
    if (record != NULL && take) {
        w->ops->note(p, seen.word, record, q->ask.now, q->ask.cost);
    }
    if (take ? !pair_cas(slot, seen, next) : !pair_is(slot, seen)) {
        return false;
    }
    finish(w, p, next.word, record, &q->ask, step.verdict, take ? q->ask.cost : 0, d);
    return true;
}

/*
 * Decides for a key that is not in the table, under its stripe. A narrow key
 * enters it already charged, by one swap; a wide one enters fresh and is then
 * decided on like any other. False: begin again.
 */
static bool decide_absent(struct weir *w, const struct pending *d, struct patience *patience)
{
    const struct asked *q = d->q;
    const struct algo_params *p = q->params;
    bool wide = w->table.record_bytes != 0;
    struct algo_step step = algo_decide(w->ops, p, 0, NULL, &q->ask);
    if (step.verdict != WEIR_ALLOW || q->mode == WEIR_PEEK) {
        finish(w, p, 0, NULL, &q->ask, step.verdict, 0, d);
        return true;
    }
    struct claim claim = limiter_claim(w, q, wide ? 0 : step.word, patience);
    if (claim.slot == NULL) {
        if (claim.contended) {
            return false;
        }
        answer_full(w, p, &q->ask, claim.full_for, d->answer);
        return true;
    }
    if (wide) {
        return decide_slot(w, claim.slot, 0, table_record(&w->table, claim.slot), d);
    }
    finish(w, p, step.word, NULL, &q->ask, WEIR_ALLOW, q->ask.cost, d);
    return true;
}

/* What UP_TO takes of its cost: what there is, or 1 so that the refusal says when. */
static uint64_t affordable(const struct weir *w, const struct asked *q, uint64_t word,
                           const uint64_t *record)
{
    struct weir_answer a = {.verdict = WEIR_NEVER}; /* only `remaining` is of interest */
    algo_describe(w->ops, q->params, word, record, &q->ask, &a);
    return max_u64(1, min_u64(q->ask.cost, a.remaining));
}

/*
 * Decides under the stripe. False: begin again. Of UP_TO, `granted` is what the
 * caller may use, also where a full table lets the key through without a charge.
 */
static bool decide_once(struct weir *w, const struct pending *d, struct patience *patience)
{
    struct asked q = *d->q;
    struct pending here = {&q, d->answer, d->charge};
    struct pair *slot = table_find_locked(&w->table, q.key);
    uint64_t *record = slot != NULL ? table_record(&w->table, slot) : NULL;
    uint64_t word = slot != NULL ? load_acquire(&slot->word) : 0;
    if (q.mode == WEIR_UP_TO) {
        q.ask.cost = affordable(w, &q, word, record);
        q.mode = WEIR_CHECK;
    }
    bool done = slot != NULL ? decide_slot(w, slot, word, record, &here)
                             : decide_absent(w, &here, patience);
    if (done && d->q->mode == WEIR_UP_TO && d->answer->verdict == WEIR_ALLOW) {
        d->answer->granted = q.ask.cost;
    }
    return done;
}

static __attribute__((noinline)) void decide_locked(struct weir *w, const struct pending *d)
{
    struct lock *stripe = table_stripe(&w->table, d->q->key.tag);
    struct patience patience = PATIENCE_INIT;
    for (;;) {
        lock_take(stripe, w->table.owner);
        bool done = decide_once(w, d, &patience);
        lock_release(stripe);
        if (done) {
            return;
        }
        limiter_wait(w, &patience);
    }
}

uint64_t limiter_blocked_until(const struct weir *w, const struct asked *q)
{
    uint64_t until = blocks_until(&w->table.blocks, table_block_tag(&w->table, q->hash));
    return until > q->now ? until : 0;
}

/* Decides for a key that is not blocked, or as if it were not. */
static void decide(struct weir *w, struct pair *slot, const struct pending *d)
{
    /* UP_TO reads before it decides; under the lock that is simple, and it is rare. */
    if (w->table.record_bytes == 0 && d->q->mode != WEIR_UP_TO) {
        while (slot != NULL) {
            if (decide_slot(w, slot, load_acquire(&slot->word), NULL, d)) {
                return;
            }
            slot = table_find(&w->table, d->q->key);
        }
    }
    decide_locked(w, d);
}

/* True if the key is blocked; then the answer is complete. */
static bool decide_blocked(struct weir *w, const struct asked *q, struct pair *slot,
                           struct weir_answer *answer)
{
    uint64_t until = limiter_blocked_until(w, q);
    if (until == 0) {
        return false;
    }
    struct asked peek = *q;
    peek.ask.cost = q->mode == WEIR_UP_TO ? 1 : q->ask.cost; /* UP_TO has no NEVER */
    peek.mode = WEIR_PEEK;
    decide(w, slot, &(struct pending){&peek, answer, NULL});
    answer_blocked(until, q->now, answer);
    return true;
}

void limiter_decide_at(struct weir *w, const struct asked *q, struct pair *slot,
                       struct weir_answer *answer, struct algo_charge *charge)
{
    if (!table_has_blocks(&w->table, q->now) || !decide_blocked(w, q, slot, answer)) {
        decide(w, slot, &(struct pending){q, answer, charge});
    }
}

void limiter_decide(struct weir *w, const struct asked *q, struct weir_answer *answer,
                    struct algo_charge *charge)
{
    limiter_decide_at(w, q, table_find(&w->table, q->key), answer, charge);
}

void limiter_peek(struct weir *w, const struct asked *q, struct weir_answer *answer)
{
    struct asked look = *q;
    look.mode = WEIR_PEEK;
    limiter_decide(w, &look, answer, NULL);
}
