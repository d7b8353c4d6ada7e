/*
 * The decision. The fast path, a known key, is: hash, find the slot, read it,
 * decide, one compare-and-swap; the answer is filled in afterwards. Everything
 * else (new keys, keys on the move, wide states) goes under the key's stripe.
 */
#include "limit/limiter.h"

/* How often a new key waits for others who are in the way before the table counts as full. */
#define PATIENCE 1000

struct hash limiter_hash(const struct weir *w, const void *key, size_t len)
{
    return w->xxh3 ? hash_xxh3(&w->secret, key, len) : hash_sip(&w->secret, key, len);
}

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

int limiter_line(const struct weir *w, uint64_t now_ns, uint64_t *now)
{
    uint64_t version;
    if (now_ns > INT64_MAX) {
        return WEIR_ETIME;
    }
    int64_t since = (int64_t)now_ns - w->epoch_ns;
    *now = since > 0 ? (uint64_t)since : 0; /* before the epoch is at the epoch */
    return *now <= params_now(w, &version)->max_time ? 0 : WEIR_ETIME;
}

int weir_now(struct weir *w, uint64_t *now_ns)
{
    return w == NULL || now_ns == NULL ? WEIR_EINVAL : limiter_now(w, now_ns);
}

/* ---- validation ---- */

static inline void set_key(const struct weir *w, struct hash hash, struct asked *q)
{
    q->hash = hash;
    q->key = table_key(&w->table, hash);
    q->ask.now = key_time(w, q->key.tag, q->now);
}

static inline int init_key(const struct weir *w, const void *key, size_t len, uint64_t now_ns,
                           struct asked *q)
{
    if (__builtin_expect(len - 1 >= WEIR_KEY_MAX || key == NULL, 0)) {
        return WEIR_EKEY;
    }
    int e = limiter_line(w, now_ns, &q->now);
    if (e == 0) {
        set_key(w, limiter_hash(w, key, len), q);
    }
    return e;
}

int asked_key(const struct weir *w, const void *key, size_t len, uint64_t now_ns, struct asked *q)
{
    return init_key(w, key, len, now_ns, q);
}

static int init_hashed(const struct weir *w, const struct weir_key *key, uint64_t now_ns,
                       struct asked *q)
{
    if (key->word[2] != w->head->fixed.generation) {
        return WEIR_ESTALE;
    }
    int e = limiter_line(w, now_ns, &q->now);
    if (e == 0) {
        set_key(w, (struct hash){key->word[0], key->word[1]}, q);
    }
    return e;
}

int asked_init(const struct weir *w, const struct weir_ask *ask, uint64_t now_ns, struct asked *q)
{
    if (ask->mode < WEIR_CHECK || ask->mode > WEIR_UP_TO || ask->reserved != 0 ||
        (ask->mode == WEIR_UP_TO && ask->max_wait_ns != 0)) {
        return WEIR_EINVAL;
    }
    if (ask->cost == 0 && ask->mode != WEIR_PEEK) {
        return WEIR_ECOST;
    }
    if (ask->max_wait_ns != 0 && !w->ops->waits) {
        return WEIR_ENOTSUP;
    }
    q->mode = ask->mode;
    q->ask.cost = ask->cost;
    q->ask.wait = ask->max_wait_ns;
    return ask->hashed != NULL ? init_hashed(w, ask->hashed, now_ns, q)
                               : init_key(w, ask->key, ask->key_len, now_ns, q);
}

int weir_key_init(const struct weir *w, const void *key, size_t key_len, struct weir_key *out)
{
    if (w == NULL || out == NULL) {
        return WEIR_EINVAL;
    }
    if (key == NULL || key_len - 1 >= WEIR_KEY_MAX) {
        return WEIR_EKEY;
    }
    struct hash h = limiter_hash(w, key, key_len);
    *out = (struct weir_key){{h.low, h.high, w->head->fixed.generation}};
    return 0;
}

/* ---- counting ---- */

struct counts *limiter_counts(struct weir *w)
{
    return &w->counts[thread_slot()];
}

void limiter_count(struct weir *w, const struct weir_answer *answer)
{
    struct counts *c = limiter_counts(w);
    if (answer->verdict == WEIR_ALLOW) {
        count_add(&c->allowed, 1);
    } else if (answer->verdict == WEIR_DENY) {
        count_add(&c->denied, 1);
    } else {
        count_add(&c->never, 1);
    }
    if (__builtin_expect(answer->flags != 0, 0)) {
        count_add(&c->blocked, (answer->flags & WEIR_FLAG_BLOCKED) != 0);
        count_add(&c->spurious, (answer->flags & WEIR_FLAG_SPURIOUS) != 0);
        if ((answer->flags & WEIR_FLAG_FULL) != 0) {
            count_add(answer->verdict == WEIR_ALLOW ? &c->full_allowed : &c->full_denied, 1);
        }
    }
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

/* What UP_TO takes of its cost: what there is, or 1 so that the refusal says when. */
static uint64_t affordable(const struct weir *w, const struct algo_params *p, uint64_t word,
                           const uint64_t *record, const struct algo_ask *ask)
{
    struct weir_answer a = {.verdict = WEIR_ALLOW};
    w->ops->describe(p, word, record, ask, &a);
    return max_u64(1, min_u64(ask->cost, a.remaining));
}

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
 */
static inline bool decide_slot(struct weir *w, struct pair *slot, const struct pending *d)
{
    uint64_t version;
    const struct algo_params *p = params_now(w, &version);
    const struct asked *q = d->q;
    struct algo_ask ask = q->ask;
    uint64_t *record = table_record(&w->table, slot);
    struct pair seen = pair_load(slot);
    if (__builtin_expect(seen.tag != q->key.tag, 0)) {
        return false;
    }
    if (__builtin_expect(q->mode == WEIR_UP_TO, 0)) {
        ask.cost = affordable(w, p, seen.word, record, &ask);
    }
    struct algo_step step = w->ops->decide(p, seen.word, record, &ask);
    if (__builtin_expect(!params_stand(w, version), 0)) {
        return false;
    }
    bool take = step.verdict == WEIR_ALLOW && q->mode != WEIR_PEEK;
    if (take && record != NULL) {
        w->ops->note(p, seen.word, record, ask.now, ask.cost);
    }
    if ((take || (step.pulled && q->mode != WEIR_PEEK)) &&
        !pair_cas(slot, seen, (struct pair){seen.tag, step.word})) {
        return false;
    }
    uint64_t word = step.verdict == WEIR_ALLOW && !take ? seen.word : step.word;
    finish(w, p, word, record, &ask, step.verdict, take ? ask.cost : 0, d);
    return true;
}

/*
 * Decides for a key that is not in the table, under its stripe. A narrow key
 * enters it already charged, by one swap; a wide one enters fresh and is then
 * decided on like any other. False: begin again.
 */
static bool decide_absent(struct weir *w, const struct pending *d, unsigned *patience)
{
    uint64_t version;
    const struct algo_params *p = params_now(w, &version);
    bool wide = w->table.record_bytes != 0;
    struct algo_ask ask = d->q->ask;
    if (d->q->mode == WEIR_UP_TO) {
        ask.cost = min_u64(ask.cost, p->quota);
    }
    struct algo_step step = w->ops->decide(p, 0, NULL, &ask);
    if (!params_stand(w, version)) {
        return false;
    }
    if (step.verdict != WEIR_ALLOW || d->q->mode == WEIR_PEEK) {
        finish(w, p, 0, NULL, &ask, step.verdict, 0, d);
        return true;
    }
    struct claim claim =
        limiter_claim(w, d->q, d->q->key, wide ? 0 : step.word, p->spec.on_full == WEIR_EVICT);
    if (claim.slot == NULL) {
        if (claim.contended && (*patience)-- != 0) {
            return false;
        }
        answer_full(w, p, &ask, claim.full_for, d->answer);
        return true;
    }
    if (wide) {
        return decide_slot(w, claim.slot, d);
    }
    finish(w, p, step.word, NULL, &ask, WEIR_ALLOW, ask.cost, d);
    return true;
}

static __attribute__((noinline)) void decide_locked(struct weir *w, const struct pending *d)
{
    struct lock *stripe = table_stripe(&w->table, d->q->key.tag);
    unsigned patience = PATIENCE;
    for (;;) {
        lock_take(stripe);
        struct pair *slot = table_find_locked(&w->table, d->q->key);
        bool done = slot != NULL ? decide_slot(w, slot, d) : decide_absent(w, d, &patience);
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
    peek.mode = WEIR_PEEK;
    decide_locked(w, &(struct pending){&peek, answer, NULL});
    answer_blocked(until, q->now, answer);
    return true;
}

static inline void decide(struct weir *w, const struct asked *q, struct weir_answer *answer,
                          uint64_t *stamp)
{
    struct pending d = {q, answer, stamp};
    if (__builtin_expect(load_relaxed(&w->table.counts->blocks) != 0, 0) &&
        decide_blocked(w, q, answer)) {
        return;
    }
    if (__builtin_expect(w->table.record_bytes == 0, 1)) {
        struct pair *slot = table_find(&w->table, q->key);
        while (slot != NULL) {
            if (__builtin_expect(decide_slot(w, slot, &d), 1)) {
                return;
            }
            slot = table_find(&w->table, q->key);
        }
    }
    decide_locked(w, &d);
}

void limiter_decide(struct weir *w, const struct asked *q, struct weir_answer *answer,
                    uint64_t *stamp)
{
    decide(w, q, answer, stamp);
}

void limiter_peek(struct weir *w, const struct asked *q, struct weir_answer *answer)
{
    struct asked peek = *q;
    peek.mode = WEIR_PEEK;
    decide(w, &peek, answer, NULL);
}

/* ---- public ---- */

int weir_check_at(struct weir *w, const void *key, size_t key_len, uint64_t cost, uint64_t now_ns,
                  struct weir_answer *answer)
{
    struct asked q;
    if (__builtin_expect(w == NULL || answer == NULL, 0)) {
        return WEIR_EINVAL;
    }
    if (__builtin_expect(cost == 0, 0)) {
        return WEIR_ECOST;
    }
    int e = init_key(w, key, key_len, now_ns, &q);
    if (__builtin_expect(e != 0, 0)) {
        return e;
    }
    q.mode = WEIR_CHECK;
    q.ask.cost = cost;
    q.ask.wait = 0;
    decide(w, &q, answer, NULL);
    limiter_count(w, answer);
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
    struct asked q;
    if (w == NULL || ask == NULL || answer == NULL) {
        return WEIR_EINVAL;
    }
    int e = asked_init(w, ask, now_ns, &q);
    if (e != 0) {
        return e;
    }
    decide(w, &q, answer, NULL);
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
