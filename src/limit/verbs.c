/* Refund, penalize, block, unblock, reset: under the key's stripe, none of them hot. */
#include "limit/limiter.h"

void limiter_refund(struct weir *w, const struct asked *q, const struct algo_charge *charge)
{
    struct lock *stripe = table_stripe(&w->table, q->key.tag);
    bool done = false;
    while (!done) {
        lock_take(stripe, w->table.owner);
        struct pair *slot = table_find_locked(&w->table, q->key);
        done = slot == NULL; /* a key that is not there is as good as fresh already */
        if (slot != NULL) {
            struct pair seen = pair_load(slot);
            if (seen.tag == q->key.tag) {
                uint64_t word = w->ops->refund(q->params, seen.word, table_record(&w->table, slot),
                                               &q->ask, charge);
                done = pair_cas(slot, seen, (struct pair){seen.tag, word});
            }
        }
        lock_release(stripe);
    }
}

/* One attempt to charge q->ask.cost on a slot. False: it changed, or was pulled down. */
static bool charge_slot(struct weir *w, const struct asked *q, struct pair *slot, uint64_t *charged)
{
    struct pair seen = pair_load(slot);
    uint64_t *record = table_record(&w->table, slot);
    if (seen.tag != q->key.tag) {
        return false;
    }
    struct algo_step step = algo_penalize(w->ops, q->params, seen.word, record, &q->ask, charged);
    if (step.pulled) { /* first: see decide_slot() */
        limiter_pull(w, q, slot, seen);
        return false;
    }
    if (record != NULL) {
        w->ops->note(q->params, seen.word, record, q->ask.now, *charged);
    }
    return pair_cas(slot, seen, (struct pair){seen.tag, step.word});
}

/* The slot of the key, which is put into the table as a fresh one if need be. */
static struct claim find_or_claim(struct weir *w, const struct asked *q, struct patience *patience)
{
    struct claim c = {.slot = table_find_locked(&w->table, q->key)};
    return c.slot != NULL ? c : limiter_claim(w, q, 0, patience);
}

int limiter_charge(struct weir *w, const struct asked *q, uint64_t *charged)
{
    struct lock *stripe = table_stripe(&w->table, q->key.tag);
    struct patience patience = PATIENCE_INIT;
    for (;;) {
        lock_take(stripe, w->table.owner);
        struct claim c = find_or_claim(w, q, &patience);
        bool done = c.slot != NULL && charge_slot(w, q, c.slot, charged);
        lock_release(stripe);
        if (done) {
            return 0;
        }
        if (c.slot == NULL && !c.contended) {
            count_add(&limiter_counts(w)->full_denied, 1);
            return WEIR_EFULL;
        }
        limiter_wait(w, &patience);
    }
}

void limiter_report(struct weir *w, struct asked *q, uint64_t granted, struct weir_answer *answer)
{
    if (answer != NULL) {
        q->ask.cost = 1;
        limiter_peek(w, q, answer);
        answer->granted = granted;
    }
}

/* ---- public ---- */

static int init(const struct weir *w, const void *key, size_t len, uint64_t units, uint64_t now_ns,
                struct params_place *place, struct asked *q)
{
    if (w == NULL) {
        return WEIR_EINVAL;
    }
    if (units == 0) {
        return WEIR_ECOST;
    }
    q->params = params_now(w, place);
    q->mode = WEIR_CHECK;
    q->ask.cost = units;
    q->ask.wait = 0;
    return asked_key(w, key, len, now_ns, q);
}

int weir_refund_at(struct weir *w, const void *key, size_t key_len, uint64_t units,
                   uint64_t charged_ns, uint64_t now_ns, struct weir_answer *answer)
{
    struct params_place place;
    struct asked q;
    int e = init(w, key, key_len, units, now_ns, &place, &q);
    if (e == 0 && !limiter_knows(w, q.params, charged_ns)) {
        e = WEIR_ETIME;
    }
    if (e != 0) {
        return e;
    }
    struct algo_charge charge = {key_time(w, q.key.tag, limiter_line(w, charged_ns)),
                                 q.params->step, 0};
    limiter_refund(w, &q, &charge);
    limiter_report(w, &q, 0, answer);
    return 0;
}

int weir_refund(struct weir *w, const void *key, size_t key_len, uint64_t units,
                struct weir_answer *answer)
{
    uint64_t now_ns;
    int e = w == NULL ? WEIR_EINVAL : limiter_now(w, &now_ns);
    return e != 0 ? e : weir_refund_at(w, key, key_len, units, now_ns, now_ns, answer);
}

int weir_penalize_at(struct weir *w, const void *key, size_t key_len, uint64_t units,
                     uint64_t now_ns, struct weir_answer *answer)
{
    struct params_place place;
    struct asked q;
    uint64_t charged;
    int e = init(w, key, key_len, units, now_ns, &place, &q);
    e = e != 0 ? e : limiter_charge(w, &q, &charged);
    if (e == 0) {
        limiter_report(w, &q, charged, answer);
    }
    return e;
}

int weir_penalize(struct weir *w, const void *key, size_t key_len, uint64_t units,
                  struct weir_answer *answer)
{
    uint64_t now_ns;
    int e = w == NULL ? WEIR_EINVAL : limiter_now(w, &now_ns);
    return e != 0 ? e : weir_penalize_at(w, key, key_len, units, now_ns, answer);
}

/* ---- blocks ---- */

int weir_block_at(struct weir *w, const void *key, size_t key_len, uint64_t until_ns,
                  uint64_t now_ns)
{
    struct params_place place;
    struct asked q;
    int e = init(w, key, key_len, 1, now_ns, &place, &q);
    if (e != 0) {
        return e;
    }
    if (until_ns <= now_ns) {
        return WEIR_ETIME;
    }
    uint64_t until = until_ns > INT64_MAX ? UINT64_MAX : limiter_line(w, until_ns);
    return blocks_set(&w->table.blocks, table_block_tag(&w->table, q.hash), until, q.now);
}

int weir_block(struct weir *w, const void *key, size_t key_len, uint64_t until_ns)
{
    uint64_t now_ns;
    int e = w == NULL ? WEIR_EINVAL : limiter_now(w, &now_ns);
    return e != 0 ? e : weir_block_at(w, key, key_len, until_ns, now_ns);
}

static int init_hash(const struct weir *w, const void *key, size_t key_len, struct hash *hash)
{
    if (w == NULL) {
        return WEIR_EINVAL;
    }
    if (!key_is_valid(key, key_len)) {
        return WEIR_EKEY;
    }
    *hash = limiter_hash(w, key, key_len);
    return 0;
}

int weir_unblock(struct weir *w, const void *key, size_t key_len)
{
    struct hash hash;
    int e = init_hash(w, key, key_len, &hash);
    return e != 0 ? e : blocks_clear(&w->table.blocks, table_block_tag(&w->table, hash));
}

static int remove_key(struct weir *w, struct table_key key)
{
    struct lock *stripe = table_stripe(&w->table, key.tag);
    int removed = -1;
    while (removed < 0) {
        lock_take(stripe, w->table.owner);
        struct pair *slot = table_find_locked(&w->table, key);
        if (slot == NULL) {
            removed = 0;
        } else {
            struct pair seen = pair_load(slot);
            removed = seen.tag == key.tag && table_remove(&w->table, slot, seen) ? 1 : -1;
        }
        lock_release(stripe);
    }
    return removed;
}

int weir_reset(struct weir *w, const void *key, size_t key_len)
{
    struct hash hash;
    int e = init_hash(w, key, key_len, &hash);
    return e != 0 ? e : remove_key(w, table_key(&w->table, hash));
}
