/* Refund, penalize, block, unblock, reset. They are not called often, so they take locks. */
#include "limit/limiter.h"

/* Gives back on a slot that held the key. Returns false if it has changed. */
static bool refund_slot(struct weir *w, const struct asked *q, const struct algo_charge *charge,
                        struct pair *slot)
{
    struct pair seen = pair_load(slot);
    if (seen.tag != q->key.tag) {
        return false;
    }
    uint64_t word = w->ops->refund(q->params, state_of(w, slot, seen.word), &q->ask, charge);
    return pair_cas(slot, seen, (struct pair){seen.tag, word});
}

void limiter_refund(struct weir *w, const struct asked *q, const struct algo_charge *charge)
{
    struct lock *stripe = table_stripe(&w->table, q->key.tag);
    bool done = false;
    assert(!table_holds_any(&w->table)); /* G4 */
    while (!done) {
        lock_take(stripe, w->table.owner);
        struct pair *slot = table_find_locked(&w->table, q->key);
        /* A key that is not in the table is fresh already. */
        done = slot == NULL || refund_slot(w, q, charge, slot);
        lock_release(stripe);
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

int weir_refund_at(struct weir *w, const void *key, size_t key_len, uint64_t units,
                   uint64_t charged_ns, uint64_t now_ns, struct weir_answer *answer)
{
    struct algo_params copy;
    struct asked q;
    int e = asked_key(w, key, key_len, units, now_ns, &copy, &q);
    if (e != 0) {
        return e;
    }
    if (!limiter_knows(w, q.params, charged_ns)) {
        return WEIR_ETIME;
    }
    uint64_t at = key_time(w, q.key.tag, limiter_line(w, charged_ns));
    limiter_refund(w, &q, &(struct algo_charge){at, q.params->step, 0});
    limiter_report(w, &q, 0, answer);
    return 0;
}

int weir_refund(struct weir *w, const void *key, size_t key_len, uint64_t units,
                struct weir_answer *answer)
{
    uint64_t now_ns;
    int e = limiter_now(w, &now_ns);
    return e != 0 ? e : weir_refund_at(w, key, key_len, units, now_ns, now_ns, answer);
}

int weir_penalize_at(struct weir *w, const void *key, size_t key_len, uint64_t units,
                     uint64_t now_ns, struct weir_answer *answer)
{
    struct algo_params copy;
    struct asked q;
    uint64_t charged;
    int e = asked_key(w, key, key_len, units, now_ns, &copy, &q);
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
    int e = limiter_now(w, &now_ns);
    return e != 0 ? e : weir_penalize_at(w, key, key_len, units, now_ns, answer);
}

static int block(struct weir *w, const void *key, size_t key_len, uint64_t until_ns, bool ban,
                 uint64_t now_ns)
{
    struct algo_params copy;
    struct asked q;
    int e = asked_key(w, key, key_len, 1, now_ns, &copy, &q);
    if (e != 0 || until_ns <= now_ns || (ban && until_ns > INT64_MAX)) {
        return e != 0 ? e : WEIR_ETIME;
    }
    uint64_t until = until_ns > INT64_MAX ? UINT64_MAX : limiter_line(w, until_ns);
    return blocks_set(&w->table.blocks, table_block_tag(&w->table, q.hash),
                      block_end(until, ban, q.now), q.now);
}

int weir_block_at(struct weir *w, const void *key, size_t key_len, uint64_t until_ns,
                  uint64_t now_ns)
{
    return block(w, key, key_len, until_ns, false, now_ns);
}

int weir_ban_at(struct weir *w, const void *key, size_t key_len, uint64_t until_ns, uint64_t now_ns)
{
    return block(w, key, key_len, until_ns, true, now_ns);
}

int weir_block(struct weir *w, const void *key, size_t key_len, uint64_t until_ns)
{
    uint64_t now_ns;
    int e = limiter_now(w, &now_ns);
    return e != 0 ? e : weir_block_at(w, key, key_len, until_ns, now_ns);
}

int weir_unblock(struct weir *w, const void *key, size_t key_len)
{
    struct weir_key k;
    int e = weir_key_init(w, key, key_len, &k);
    return e != 0 ? e : blocks_clear(&w->table.blocks, table_block_tag(&w->table, key_hash(&k)));
}

static int remove_key(struct weir *w, struct table_key key)
{
    struct lock *stripe = table_stripe(&w->table, key.tag);
    int removed = -1;
    assert(!table_holds_any(&w->table)); /* G4 */
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
    struct weir_key k;
    int e = weir_key_init(w, key, key_len, &k);
    return e != 0 ? e : remove_key(w, table_key(&w->table, key_hash(&k)));
}
