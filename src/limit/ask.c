/*
 * The decision. The fast path, a known key, is: hash, find the slot, read it,
 * decide, one compare-and-swap; the answer is filled in afterwards. Everything
 * else (new keys, keys on the move, wide states) goes under the key's stripe.
 */
#include "limit/limiter.h"

/* ---- time ---- */

int limiter_now(const struct weir *w, uint64_t *now_ns)
{
    if (w->explicit_time) {
        return WEIR_EINVAL;
    }
    *now_ns =
        w->clock != NULL ? w->clock(w->clock_arg) : clock_boot_ns() + (uint64_t)w->boot_to_unix_ns;
    return 0;
}

int weir_now(struct weir *w, uint64_t *now_ns)
{
    return w == NULL || now_ns == NULL ? WEIR_EINVAL : limiter_now(w, now_ns);
}

/* ---- validation ---- */

int asked_key(const struct weir *w, const void *key, size_t len, uint64_t now_ns, struct asked *q)
{
    if (!key_is_valid(key, len)) {
        return WEIR_EKEY;
    }
    if (!limiter_knows(w, q->params, now_ns)) {
        return WEIR_ETIME;
    }
    asked_time(w, now_ns, q);
    asked_hash(w, limiter_hash(w, key, len), q);
    return 0;
}

static int check_mode(const struct weir *w, const struct weir_ask *ask)
{
    if (ask->mode < WEIR_CHECK || ask->mode > WEIR_UP_TO || ask->reserved != 0 ||
        (ask->mode == WEIR_UP_TO && ask->max_wait_ns != 0)) {
        return WEIR_EINVAL;
    }
    if (ask->cost == 0 && ask->mode != WEIR_PEEK) {
        return WEIR_ECOST;
    }
    return ask->max_wait_ns != 0 && !w->ops->waits ? WEIR_ENOTSUP : 0;
}

int ask_check(const struct weir *w, const struct algo_params *p, const struct weir_ask *ask,
              uint64_t now_ns)
{
    int e = check_mode(w, ask);
    if (e != 0) {
        return e;
    }
    if (ask->hashed != NULL) {
        if (ask->hashed->word[2] != w->head->fixed.generation) {
            return WEIR_ESTALE;
        }
    } else if (!key_is_valid(ask->key, ask->key_len)) {
        return WEIR_EKEY;
    }
    return limiter_knows(w, p, now_ns) ? 0 : WEIR_ETIME;
}

void asked_from(const struct weir *w, const struct weir_ask *ask, uint64_t now_ns, struct asked *q)
{
    q->mode = ask->mode;
    q->ask.cost = ask->cost;
    q->ask.wait = ask->max_wait_ns;
    asked_time(w, now_ns, q);
    if (ask->hashed != NULL) {
        asked_hash(w, (struct hash){ask->hashed->word[0], ask->hashed->word[1]}, q);
    } else {
        asked_hash(w, limiter_hash(w, ask->key, ask->key_len), q);
    }
}

int weir_key_init(const struct weir *w, const void *key, size_t key_len, struct weir_key *out)
{
    if (w == NULL || out == NULL) {
        return WEIR_EINVAL;
    }
    if (!key_is_valid(key, key_len)) {
        return WEIR_EKEY;
    }
    struct hash h = limiter_hash(w, key, key_len);
    *out = (struct weir_key){{h.low, h.high, w->head->fixed.generation}};
    return 0;
}

/* ---- counting ---- */

static __attribute__((noinline)) void count_flags(struct counts *c, const struct weir_answer *a)
{
    count_add(&c->blocked, (a->flags & WEIR_FLAG_BLOCKED) != 0);
    count_add(&c->spurious, (a->flags & WEIR_FLAG_SPURIOUS) != 0);
    if ((a->flags & WEIR_FLAG_FULL) != 0) {
        count_add(a->verdict == WEIR_ALLOW ? &c->full_allowed : &c->full_denied, 1);
    }
}

static inline void count(struct weir *w, const struct weir_answer *a)
{
    struct counts *c = limiter_counts(w);
    count_add(&c->verdict[a->verdict], 1);
    if (__builtin_expect(a->flags != 0, 0)) {
        count_flags(c, a);
    }
}

void limiter_count(struct weir *w, const struct weir_answer *answer)
{
    count(w, answer);
}

void limiter_count_claim(struct weir *w, const struct claim *claim)
{
    if ((claim->reclaimed | claim->evicted | claim->moved) != 0) {
        struct counts *c = limiter_counts(w);
        count_add(&c->reclaimed, claim->reclaimed);
        count_add(&c->evicted, claim->evicted);
        count_add(&c->moved, claim->moved);
    }
}

/* ---- the answer ---- */

static inline void fill_answer(const struct weir *w, const struct algo_params *p, uint64_t word,
                               const uint64_t *record, const struct algo_ask *ask, int verdict,
                               uint64_t granted, struct weir_answer *a)
{
    a->verdict = verdict;
    a->flags = 0;
    a->quota = p->quota;
    a->granted = granted;
    a->retry_after_ns = verdict == WEIR_NEVER ? WEIR_FOREVER : 0;
    a->limit = 0;
    a->reserved = 0;
    w->ops->describe(p, word, record, ask, a);
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

struct claim limiter_claim(struct weir *w, const struct asked *q, struct table_key key,
                           uint64_t word, bool evict)
{
    /* Freshness is judged by the slowest clock that is allowed: what one thread sees as fresh must
       not still bind another. */
    uint64_t now = sub_floor0(q->now, ALGO_SLACK_NS);
    struct claim claim = table_claim(&w->table, key, word, now, evict);
    limiter_count_claim(w, &claim);
    return claim;
}

/* A decision under way: the question, and where its results go. */
struct pending {
    const struct asked *q;
    struct weir_answer *answer;
    uint64_t *stamp; /* may be NULL */
};

static inline void finish(const struct weir *w, const struct algo_params *p, uint64_t word,
                          const uint64_t *record, const struct algo_ask *ask, int verdict,
                          uint64_t granted, const struct pending *d)
{
    if (d->stamp != NULL) {
        *d->stamp = w->ops->stamp(p, word, record, ask->now);
    }
    fill_answer(w, p, word, record, ask, verdict, granted, d->answer);
}

/*
 * Decides on a slot that held the key a moment ago. False: it changed, look
 * again. Narrow: with or without the stripe (G1). Wide: under it.
 *
 * The word is read by itself, which is quicker than reading the pair. Whoever
 * takes is checked by the swap of the pair; whoever does not checks the pair.
 */
static inline __attribute__((always_inline)) bool decide_slot(struct weir *w, struct pair *slot,
                                                              uint64_t *record,
                                                              const struct pending *d)
{
    const struct asked *q = d->q;
    const struct algo_params *p = q->params;
    struct pair seen = {q->key.tag, load_acquire(&slot->word)};
    struct algo_step step = w->ops->decide(p, seen.word, record, &q->ask);
    bool allow = step.verdict == WEIR_ALLOW;
    bool take = allow && q->mode < WEIR_PEEK;
    bool pull = step.pulled && !allow && q->mode != WEIR_PEEK;
    if (record != NULL && take) {
        w->ops->note(p, seen.word, record, q->ask.now, q->ask.cost);
    }
    if (take || pull) {
        if (!pair_cas(slot, seen, (struct pair){seen.tag, step.word})) {
            return false;
        }
    } else if (!pair_is(slot, seen)) {
        return false;
    }
    uint64_t word = allow && !take ? seen.word : step.word;
    finish(w, p, word, record, &q->ask, step.verdict, take ? q->ask.cost : 0, d);
    return true;
}

/*
 * Wide, under the stripe: a log of a far future is forgotten by a store of its
 * own, before anything is noted in places that it still uses. True if it was.
 */
bool limiter_forget(struct weir *w, const struct asked *q, struct pair *slot)
{
    struct pair seen = pair_load(slot);
    uint64_t *record = table_record(&w->table, slot);
    if (record == NULL || q->mode == WEIR_PEEK ||
        !w->ops->decide(q->params, seen.word, record, &q->ask).pulled) {
        return false;
    }
    return pair_cas(slot, seen, (struct pair){seen.tag, 0});
}

/*
 * Decides for a key that is not in the table, under its stripe. A narrow key
 * enters it already charged, by one swap; a wide one enters fresh and is then
 * decided on like any other. False: begin again.
 */
static bool decide_absent(struct weir *w, const struct pending *d, unsigned *patience)
{
    const struct asked *q = d->q;
    const struct algo_params *p = q->params;
    bool wide = w->table.record_bytes != 0;
    struct algo_step step = w->ops->decide(p, 0, NULL, &q->ask);
    if (step.verdict != WEIR_ALLOW || q->mode >= WEIR_PEEK) {
        finish(w, p, 0, NULL, &q->ask, step.verdict, 0, d);
        return true;
    }
    struct claim claim =
        limiter_claim(w, q, q->key, wide ? 0 : step.word, p->spec.on_full == WEIR_EVICT);
    if (claim.slot == NULL) {
        if (claim.contended && (*patience)-- != 0) {
            return false;
        }
        answer_full(w, p, &q->ask, claim.full_for, d->answer);
        return true;
    }
    if (wide) {
        return decide_slot(w, claim.slot, table_record(&w->table, claim.slot), d);
    }
    finish(w, p, step.word, NULL, &q->ask, WEIR_ALLOW, q->ask.cost, d);
    return true;
}

/* What UP_TO takes of its cost: what there is, or 1 so that the refusal says when. */
static uint64_t affordable(struct weir *w, const struct asked *q, struct pair *slot)
{
    struct weir_answer a = {.verdict = WEIR_ALLOW};
    uint64_t *record = slot != NULL ? table_record(&w->table, slot) : NULL;
    uint64_t word = slot != NULL ? pair_load(slot).word : 0;
    w->ops->describe(q->params, word, record, &q->ask, &a);
    return max_u64(1, min_u64(q->ask.cost, a.remaining));
}

/* Under the stripe. False: begin again. */
static bool decide_once(struct weir *w, const struct pending *d, unsigned *patience)
{
    struct asked q = *d->q;
    struct pending here = {&q, d->answer, d->stamp};
    struct pair *slot = table_find_locked(&w->table, q.key);
    if (slot != NULL) {
        (void)limiter_forget(w, &q, slot);
    }
    if (q.mode == WEIR_UP_TO) {
        q.ask.cost = affordable(w, &q, slot);
        q.mode = WEIR_CHECK;
    }
    return slot != NULL ? decide_slot(w, slot, table_record(&w->table, slot), &here)
                        : decide_absent(w, &here, patience);
}

static __attribute__((noinline)) void decide_locked(struct weir *w, const struct pending *d)
{
    struct lock *stripe = table_stripe(&w->table, d->q->key.tag);
    unsigned patience = LIMITER_PATIENCE;
    for (;;) {
        lock_take(stripe);
        bool done = decide_once(w, d, &patience);
        lock_release(stripe);
        if (done) {
            return;
        }
        lock_pause();
    }
}

uint64_t limiter_blocked_until(const struct weir *w, const struct asked *q)
{
    struct table_key key = table_block_key(&w->table, q->hash);
    struct pair *slot = table_find(&w->table, key);
    if (slot == NULL) {
        return 0;
    }
    struct pair seen = pair_load(slot);
    return seen.tag == key.tag && seen.word > q->now ? seen.word : 0;
}

/* True if the key is blocked; then the answer is complete. */
static __attribute__((noinline)) bool decide_blocked(struct weir *w, const struct asked *q,
                                                     struct weir_answer *answer)
{
    uint64_t until = limiter_blocked_until(w, q);
    if (until == 0) {
        return false;
    }
    struct asked peek = *q;
    peek.ask.cost = q->mode == WEIR_UP_TO ? 1 : q->ask.cost; /* UP_TO has no NEVER */
    peek.mode = WEIR_PEEK;
    decide_locked(w, &(struct pending){&peek, answer, NULL});
    answer_blocked(until, q->now, answer);
    return true;
}

static inline __attribute__((always_inline)) void decide(struct weir *w, const struct asked *q,
                                                         struct pair *slot,
                                                         struct weir_answer *answer,
                                                         uint64_t *stamp)
{
    struct pending d = {q, answer, stamp};
    if (__builtin_expect(load_relaxed(&w->table.counts->blocks) != 0, 0) &&
        decide_blocked(w, q, answer)) {
        return;
    }
    /* UP_TO reads before it decides; under the lock that is simple, and it is rare. */
    if (__builtin_expect(w->table.record_bytes == 0 && q->mode != WEIR_UP_TO, 1)) {
        while (slot != NULL) {
            if (__builtin_expect(decide_slot(w, slot, NULL, &d), 1)) {
                return;
            }
            slot = table_find(&w->table, q->key);
        }
    }
    decide_locked(w, &d);
}

void limiter_decide_at(struct weir *w, const struct asked *q, struct pair *slot,
                       struct weir_answer *answer)
{
    decide(w, q, slot, answer, NULL);
}

void limiter_decide(struct weir *w, const struct asked *q, struct weir_answer *answer,
                    uint64_t *stamp)
{
    decide(w, q, table_find(&w->table, q->key), answer, stamp);
}

void limiter_look(struct weir *w, const struct asked *q, int mode, struct weir_answer *answer)
{
    struct asked look = *q;
    look.mode = mode;
    limiter_decide(w, &look, answer, NULL);
}

/* ---- public ---- */

int weir_check_at(struct weir *w, const void *key, size_t key_len, uint64_t cost, uint64_t now_ns,
                  struct weir_answer *answer)
{
    struct params_place place;
    struct asked q;
    if (__builtin_expect(w == NULL || answer == NULL, 0)) {
        return WEIR_EINVAL;
    }
    if (__builtin_expect(cost == 0, 0)) {
        return WEIR_ECOST;
    }
    if (__builtin_expect(!key_is_valid(key, key_len), 0)) {
        return WEIR_EKEY;
    }
    q.params = params_now(w, &place);
    if (__builtin_expect(!limiter_knows(w, q.params, now_ns), 0)) {
        return WEIR_ETIME;
    }
    q.mode = WEIR_CHECK;
    q.ask.cost = cost;
    q.ask.wait = 0;
    asked_time(w, now_ns, &q);
    asked_hash(w, limiter_hash(w, key, key_len), &q);
    decide(w, &q, table_find(&w->table, q.key), answer, NULL);
    count(w, answer);
    return 0;
}

int weir_check(struct weir *w, const void *key, size_t key_len, uint64_t cost,
               struct weir_answer *answer)
{
    uint64_t now_ns;
    int e = w == NULL ? WEIR_EINVAL : limiter_now(w, &now_ns);
    return e != 0 ? e : weir_check_at(w, key, key_len, cost, now_ns, answer);
}

int weir_ask_at(struct weir *w, const struct weir_ask *ask, uint64_t now_ns,
                struct weir_answer *answer)
{
    struct params_place place;
    struct asked q;
    if (w == NULL || ask == NULL || answer == NULL) {
        return WEIR_EINVAL;
    }
    q.params = params_now(w, &place);
    int e = ask_check(w, q.params, ask, now_ns);
    if (e != 0) {
        return e;
    }
    asked_from(w, ask, now_ns, &q);
    limiter_decide(w, &q, answer, NULL);
    if (q.mode != WEIR_PEEK) {
        limiter_count(w, answer);
    }
    return 0;
}

int weir_ask(struct weir *w, const struct weir_ask *ask, struct weir_answer *answer)
{
    uint64_t now_ns;
    int e = w == NULL ? WEIR_EINVAL : limiter_now(w, &now_ns);
    return e != 0 ? e : weir_ask_at(w, ask, now_ns, answer);
}
