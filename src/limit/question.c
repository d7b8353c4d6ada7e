/*
 * The public questions and their validation. They try the short cut first (shortcut.h), and go the
 * whole way (decide.c) where it does not serve.
 */
#include "limit/shortcut.h"

/* ---- time ---- */

/*
 * Looks whether the wall clock has been set since the region was anchored. Of all limiters that
 * have the region open, the first one anchors it again; the others find it done.
 */
static __attribute__((noinline)) void anchor_again(struct weir *w)
{
    struct algo_params copy;
    uint64_t last_ns = (uint64_t)w->epoch_ns + params_now(w, &copy)->max_time;
    uint64_t wall_ns = clock_unix_ns();
    uint64_t line_ns = clock_boot_ns() + load_relaxed(&w->boot_to_unix_ns);
    bool is_set = wall_ns > line_ns && wall_ns <= last_ns;
    if (is_set || !region_is_adrift(w->region)) {
        lock_take(&w->head->change, w->region->owner);
        region_anchor_again(w->region, last_ns);
        limiter_anchor(w);
        lock_release(&w->head->change);
    }
}

int limiter_now(struct weir *w, uint64_t *now_ns)
{
    if (w == NULL || w->explicit_time) {
        return WEIR_EINVAL;
    }
    if (unlikely(load_relaxed(&w->adrift) != 0)) {
        anchor_again(w);
    }
    *now_ns = w->clock != NULL ? w->clock(w->clock_arg)
                               : clock_now_ns() + load_relaxed(&w->boot_to_unix_ns);
    return 0;
}

int weir_now(struct weir *w, uint64_t *now_ns)
{
    return now_ns == NULL ? WEIR_EINVAL : limiter_now(w, now_ns);
}

/* ---- validation ---- */

int ask_check(const struct weir *w, const struct algo_params *p, const struct weir_question *ask,
              uint64_t now_ns)
{
    if (ask->mode < WEIR_CHECK || ask->mode > WEIR_UP_TO || (ask->flags & ~WEIR_SHADOW) != 0 ||
        (ask->mode == WEIR_UP_TO && ask->max_wait_ns != 0)) {
        return WEIR_EINVAL;
    }
    if (ask->cost == 0 && ask->mode != WEIR_PEEK) {
        return WEIR_ECOST;
    }
    if (ask->max_wait_ns != 0 && !algorithm_has(w->ops->id, IS_BUCKET)) {
        return WEIR_ENOTSUP;
    }
    if (ask->hashed == NULL && !key_is_valid(ask->key, ask->key_len)) {
        return WEIR_EKEY;
    }
    if (ask->hashed != NULL && ask->hashed->word[2] != w->generation) {
        return WEIR_ESTALE;
    }
    return limiter_knows(w, p, now_ns) ? 0 : WEIR_ETIME;
}

void asked_from(const struct weir *w, const struct weir_question *ask, uint64_t now_ns,
                struct asked *q)
{
    q->mode = ask->mode;
    q->shadow = (ask->flags & WEIR_SHADOW) != 0;
    q->ask.cost = ask->cost;
    q->ask.wait = ask->max_wait_ns;
    struct hash hash =
        ask->hashed != NULL ? key_hash(ask->hashed) : limiter_hash(w, ask->key, ask->key_len);
    asked_about(w, hash, now_ns, q);
}

int asked_make(const struct weir *w, const struct weir_question *ask, uint64_t now_ns,
               struct asked *q)
{
    int e = ask_check(w, q->params, ask, now_ns);
    if (e == 0) {
        asked_from(w, ask, now_ns, q);
    }
    return e;
}

int asked_key(const struct weir *w, const void *key, size_t len, uint64_t units, uint64_t now_ns,
              struct algo_params *copy, struct asked *q)
{
    struct weir_question ask = {.key = key, .key_len = len, .cost = units};
    if (w == NULL) {
        return WEIR_EINVAL;
    }
    *q = (struct asked){.params = params_now(w, copy)};
    return asked_make(w, &ask, now_ns, q);
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
    *out = (struct weir_key){{h.low, h.high, w->generation}};
    return 0;
}

void weir_key_prefetch(const struct weir *w, const struct weir_key *key)
{
    if (w != NULL && key != NULL && key->word[2] == w->generation) {
        struct table_key where = table_key(&w->table, key_hash(key));
        __builtin_prefetch(&w->table.lines[where.line], 1);
        __builtin_prefetch(table_second(&w->table, where), 1);
    }
}

/* ---- public ---- */

/* Asks the whole way: errors, new keys, other modes and tables. */
static __attribute__((noinline)) int ask_whole(struct weir *w, const struct weir_question *ask,
                                               uint64_t now_ns, struct weir_answer *answer)
{
    struct algo_params copy;
    struct asked q = {.params = params_now(w, &copy), .answer = answer};
    int e = asked_make(w, ask, now_ns, &q);
    if (e == 0) {
        shortcut_or_decide(w, &q, table_find(&w->table, q.key));
    }
    return e;
}

static bool ask_shortly(const struct weir *w, const struct weir_question *ask, uint64_t now_ns,
                        struct weir_answer *answer)
{
    struct per_thread *own = shortcut_begin(w, now_ns);
    if (own == NULL || ask->mode != WEIR_CHECK || ask->cost == 0 || ask->max_wait_ns != 0 ||
        ask->flags != 0) {
        return false;
    }
    const struct weir_key *k = ask->hashed;
    if (k != NULL ? k->word[2] != w->generation : !key_is_valid(ask->key, ask->key_len)) {
        return false;
    }
    struct hash hash = k != NULL ? key_hash(k) : limiter_hash(w, ask->key, ask->key_len);
    return shortcut_check(w, own, hash, ask->cost, now_ns, answer);
}

int weir_ask_at(struct weir *w, const struct weir_question *ask, uint64_t now_ns,
                struct weir_answer *answer)
{
    if (w == NULL || ask == NULL || answer == NULL) {
        return WEIR_EINVAL;
    }
    return ask_shortly(w, ask, now_ns, answer) ? 0 : ask_whole(w, ask, now_ns, answer);
}

static __attribute__((noinline)) int check_whole(struct weir *w, const void *key, size_t key_len,
                                                 uint64_t cost, uint64_t now_ns,
                                                 struct weir_answer *answer)
{
    struct weir_question ask = {.key = key, .key_len = key_len, .cost = cost};
    return w == NULL || answer == NULL ? WEIR_EINVAL : ask_whole(w, &ask, now_ns, answer);
}

/* Does the same as weir_ask_at(), with the question in registers. */
int weir_check_at(struct weir *w, const void *key, size_t key_len, uint64_t cost, uint64_t now_ns,
                  struct weir_answer *answer)
{
    if (unlikely(w == NULL || answer == NULL || cost == 0 || !key_is_valid(key, key_len)) ||
        unlikely(w->xxh3)) {
        return check_whole(w, key, key_len, cost, now_ns, answer);
    }
    struct per_thread *own = shortcut_begin(w, now_ns);
    bool done = own != NULL &&
                shortcut_check(w, own, hash_sip(&w->secret, key, key_len), cost, now_ns, answer);
    return unlikely(!done) ? check_whole(w, key, key_len, cost, now_ns, answer) : 0;
}

int weir_check(struct weir *w, const void *key, size_t key_len, uint64_t cost,
               struct weir_answer *answer)
{
    uint64_t now_ns;
    int e = limiter_now(w, &now_ns);
    return e != 0 ? e : weir_check_at(w, key, key_len, cost, now_ns, answer);
}

int weir_ask(struct weir *w, const struct weir_question *ask, struct weir_answer *answer)
{
    uint64_t now_ns;
    int e = limiter_now(w, &now_ns);
    return e != 0 ? e : weir_ask_at(w, ask, now_ns, answer);
}
