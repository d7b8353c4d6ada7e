/*
 * The decision, the whole way: any algorithm, any mode, and keys that are known, new, blocked or
 * being moved. A known key of a narrow table is decided without a lock, everything else under the
 * key's stripe. Most calls take the short cut instead (shortcut.h).
 */
#include "limit/limiter.h"

#include <assert.h>

/* Fills in the answer, and what a refund must know, from the state after the decision. */
static inline void give(const struct weir *w, const struct asked *q, struct algo_state s,
                        int verdict, uint64_t granted)
{
    const struct algo_params *p = q->params;
    assert(granted <= q->ask.cost);
    if (q->charge != NULL) {
        bool named = w->ops->stamp != NULL;
        uint64_t at = named ? w->ops->stamp(p, s, q->ask.now) : q->ask.now;
        *q->charge = (struct algo_charge){at, p->step, s.word};
    }
    answer_begin(p, verdict, granted, q->answer);
    if (q->mode != ASKED_PENALTY) { /* limiter_report() describes the key after a penalty */
        w->ops->describe(p, s, &q->ask, q->answer);
    }
}

/* Answers for a key that found no place: DENY until a candidate is fresh, or an uncharged ALLOW. */
static void answer_full(const struct weir *w, const struct asked *q, uint64_t base,
                        uint64_t full_for)
{
    struct weir_answer *a = q->answer;
    give(w, q, (struct algo_state){base, NULL}, WEIR_ALLOW, 0);
    a->flags = WEIR_FLAG_FULL;
    if (q->params->spec.on_full != WEIR_ALLOW_NEW) {
        a->verdict = WEIR_DENY;
        a->remaining = 0;
        a->delay_ns = 0;
        a->retry_after_ns = full_for - 1 >= ALGO_LIFE_NS ? WEIR_SECOND : full_for;
    }
}

/*
 * The patience of a call that needs a place in the table while other threads are in its way. It
 * ends sooner if they do not move at all, because a process may be stopped for good while it holds
 * a stripe or marks.
 */
struct patience {
    unsigned left;   /* how often to wait; begins with PATIENCE */
    uint64_t in_way; /* the tag that was in the way of the last claim */
};

#define PATIENCE 1000
#define PATIENCE_STOPPED 100 /* the cost of a wait in vain: ten of them, some 0.1 s, end it */

/* Claims a place as on_full demands, and counts. `contended` only while there is patience left. */
static struct claim claim_place(struct weir *w, const struct asked *q, uint64_t word,
                                struct patience *patience)
{
    bool evict = q->params->spec.on_full == WEIR_EVICT;
    unsigned how = (evict ? CLAIM_EVICT : 0) | (patience->left == 0 ? CLAIM_HASTY : 0);
    struct claim claim = table_claim(&w->table, q->key, word, q->now, how);
    if ((claim.reclaimed | claim.evicted | claim.moved) != 0) {
        struct counts *c = limiter_counts(w);
        count_add(&c->reclaimed, claim.reclaimed);
        count_add(&c->evicted, claim.evicted);
        count_add(&c->moved, claim.moved);
    }
    claim.contended = claim.contended && patience->left != 0;
    patience->in_way = claim.in_way;
    return claim;
}

/* Waits, but not for long, until the thread in the way has left its stripe. Holds no stripe. */
static void wait_for_room(const struct weir *w, struct patience *patience)
{
    struct lock *stripe = table_stripe(&w->table, patience->in_way);
    unsigned cost = 1;
    assert(!table_holds_any(&w->table)); /* G4 */
    if (patience->in_way == 0) {
        lock_pause(0);
    } else if (lock_take_soon(stripe, w->table.owner)) { /* waiting also finds a dead owner */
        lock_release(stripe);
    } else {
        cost = PATIENCE_STOPPED;
    }
    patience->left -= (unsigned)min_u64(cost, patience->left);
    patience->in_way = 0;
}

/* Decides on a state. *units is how much an ALLOW takes. */
static inline struct algo_step decide_state(const struct weir *w, const struct asked *q,
                                            struct algo_state s, uint64_t *units)
{
    *units = q->ask.cost;
    return q->mode == ASKED_PENALTY ? algo_penalize(w->ops, q->params, s, &q->ask, units)
                                    : algo_decide(w->ops, q->params, s, &q->ask);
}

/*
 * Decides on a slot that held the key and `word` a moment ago. Returns false if it has changed, and
 * the caller must look again. In wide tables the caller holds the stripe (G1).
 *
 * A state from a far future is pulled down by a swap of its own, whatever the verdict: a retry time
 * that was computed from the pulled state is right only if that state stays. It also keeps a log
 * from noting units in places that the forgotten ones still use.
 *
 * The word was read alone, which is quicker than reading the pair. If the call takes units, the
 * swap of the pair checks the tag; otherwise the pair is compared.
 */
static bool decide_slot(struct weir *w, const struct asked *q, struct pair *slot, uint64_t word)
{
    struct algo_state s = state_of(w, slot, word);
    uint64_t units;
    assert(s.record == NULL || table_holds(&w->table, q->key.tag)); /* G1, G6 */
    struct algo_step step = decide_state(w, q, s, &units);
    bool take = step.verdict == WEIR_ALLOW && q->mode != WEIR_PEEK;
    struct pair seen = {q->key.tag, word};
    if (step.pulled) {
        (void)pair_cas(slot, seen, (struct pair){seen.tag, step.base});
        return false;
    }
    if (s.record != NULL && take) {
        w->ops->note(q->params, s, q->ask.now, units);
    }
    if (take ? !pair_cas(slot, seen, (struct pair){seen.tag, step.word}) : !pair_is(slot, seen)) {
        return false;
    }
    s.word = take ? step.word : step.base;
    give(w, q, s, step.verdict, take ? units : 0);
    return true;
}

/*
 * Decides for a key that is not in the table, under its stripe. A narrow key enters it already
 * charged, by one swap; a wide one enters fresh and is then decided on like any other. Returns
 * false if the caller must begin again.
 */
static bool decide_absent(struct weir *w, const struct asked *q, struct patience *patience)
{
    bool wide = w->table.record_bytes != 0;
    struct algo_state s = {0, NULL};
    uint64_t units;
    assert(table_holds(&w->table, q->key.tag)); /* G2 */
    struct algo_step step = decide_state(w, q, s, &units);
    s.word = step.base;
    if (step.verdict != WEIR_ALLOW || q->mode == WEIR_PEEK) {
        give(w, q, s, step.verdict, 0);
        return true;
    }
    struct claim claim = claim_place(w, q, wide ? 0 : step.word, patience);
    if (claim.slot == NULL && claim.contended) {
        return false;
    }
    if (claim.slot == NULL) {
        answer_full(w, q, step.base, claim.full_for);
    } else if (wide) {
        return decide_slot(w, q, claim.slot, 0);
    } else {
        s.word = step.word;
        give(w, q, s, WEIR_ALLOW, units);
    }
    return true;
}

/* Returns how much of its cost UP_TO takes: what remains, or 1 so that a denial has a retry. */
static uint64_t affordable(const struct weir *w, const struct asked *q, struct algo_state s)
{
    struct weir_answer a = {.verdict = WEIR_NEVER}; /* only `remaining` is used */
    algo_describe(w->ops, q->params, s, &q->ask, &a);
    return max_u64(1, min_u64(q->ask.cost, a.remaining));
}

/*
 * Decides under the stripe. Returns false if the caller must begin again. For UP_TO, `granted` is
 * what the caller may use, also if a full table lets the key through without a charge.
 */
static bool decide_once(struct weir *w, const struct asked *asked, struct patience *patience)
{
    struct asked q = *asked;
    struct pair *slot = table_find_locked(&w->table, q.key);
    uint64_t word = slot != NULL ? load_acquire(&slot->word) : 0;
    if (q.mode == WEIR_UP_TO) {
        struct algo_state fresh = {0, NULL};
        q.ask.cost = affordable(w, &q, slot != NULL ? state_of(w, slot, word) : fresh);
        q.mode = WEIR_CHECK;
    }
    bool done = slot != NULL ? decide_slot(w, &q, slot, word) : decide_absent(w, &q, patience);
    if (done && asked->mode == WEIR_UP_TO && q.answer->verdict == WEIR_ALLOW) {
        q.answer->granted = q.ask.cost;
    }
    return done;
}

static __attribute__((noinline)) void decide_locked(struct weir *w, const struct asked *q)
{
    struct lock *stripe = table_stripe(&w->table, q->key.tag);
    struct patience patience = {PATIENCE, 0};
    assert(!table_holds_any(&w->table)); /* G4 */
    for (;;) {
        lock_take(stripe, w->table.owner);
        bool done = decide_once(w, q, &patience);
        lock_release(stripe);
        if (done) {
            return;
        }
        wait_for_room(w, &patience);
    }
}

/* Decides as if the key were not blocked. */
static void decide(struct weir *w, const struct asked *q, struct pair *slot)
{
    /* UP_TO reads before it decides. It is rare, so it takes the lock, which makes that simple. */
    if (w->table.record_bytes == 0 && q->mode != WEIR_UP_TO) {
        while (slot != NULL) {
            if (decide_slot(w, q, slot, load_acquire(&slot->word))) {
                return;
            }
            slot = table_find(&w->table, q->key);
        }
    }
    decide_locked(w, q);
}

/* Answers for a key that is blocked until `until`: as a peek, but denied. */
static void decide_blocked(struct weir *w, const struct asked *q, struct pair *slot, uint64_t until)
{
    struct weir_answer *a = q->answer;
    uint64_t left = until == UINT64_MAX ? WEIR_FOREVER : until - q->now;
    struct asked peek = *q;
    assert(until > q->now);
    peek.ask.cost = q->mode == WEIR_UP_TO ? 1 : q->ask.cost; /* UP_TO has no NEVER */
    peek.mode = WEIR_PEEK;
    peek.charge = NULL;
    decide(w, &peek, slot);
    a->flags |= WEIR_FLAG_BLOCKED | (block_is_ban(until) ? WEIR_FLAG_BANNED : 0);
    a->remaining = 0;
    a->delay_ns = 0;
    a->reset_after_ns = max_u64(left, a->reset_after_ns);
    if (a->verdict != WEIR_NEVER) {
        a->verdict = WEIR_DENY;
        a->retry_after_ns = max_u64(left, a->retry_after_ns);
    }
}

uint64_t limiter_blocked_until(const struct weir *w, const struct asked *q)
{
    uint64_t until = blocks_until(&w->table.blocks, table_block_tag(&w->table, q->hash));
    return until > q->now ? until : 0;
}

void limiter_decide_at(struct weir *w, const struct asked *q, struct pair *slot)
{
    uint64_t until = table_has_blocks(&w->table, q->now) ? limiter_blocked_until(w, q) : 0;
    if (until != 0) {
        decide_blocked(w, q, slot, until);
    } else {
        decide(w, q, slot);
    }
}

int limiter_charge(struct weir *w, struct asked *q, uint64_t *charged)
{
    struct weir_answer answer;
    q->mode = ASKED_PENALTY;
    q->answer = &answer;
    decide_locked(w, q);
    q->answer = NULL;
    *charged = answer.granted;
    if ((answer.flags & WEIR_FLAG_FULL) != 0) {
        count_add(&limiter_counts(w)->full_denied, 1);
        return WEIR_EFULL;
    }
    return 0;
}

void limiter_decide(struct weir *w, const struct asked *q)
{
    limiter_decide_at(w, q, table_find(&w->table, q->key));
}

void limiter_peek(struct weir *w, const struct asked *q, struct weir_answer *answer)
{
    struct asked look = *q;
    look.mode = WEIR_PEEK;
    look.answer = answer;
    look.charge = NULL;
    limiter_decide(w, &look);
}
