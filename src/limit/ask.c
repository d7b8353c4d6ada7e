/*
 * The public questions, their validation, and the short cut of the commonest:
 * weir_check() of a known key of a narrow table, which is hash, find the slot,
 * read it, decide, one compare-and-swap, fill in the answer. It is written for
 * few instructions; whatever it is not made for goes the whole way (decide.c).
 */
#include "limit/limiter.h"
#include "limit/shortcut.h"

#define unlikely(condition) __builtin_expect((condition), 0)

/* ---- time ---- */

int limiter_now(const struct weir *w, uint64_t *now_ns)
{
    if (w->explicit_time) {
        return WEIR_EINVAL;
    }
    *now_ns =
        w->clock != NULL ? w->clock(w->clock_arg) : clock_now_ns() + (uint64_t)w->boot_to_unix_ns;
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

static int check_mode(const struct weir *w, const struct weir_question *ask)
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

int ask_check(const struct weir *w, const struct algo_params *p, const struct weir_question *ask,
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

void asked_from(const struct weir *w, const struct weir_question *ask, uint64_t now_ns,
                struct asked *q)
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

void weir_key_prefetch(const struct weir *w, const struct weir_key *key)
{
    if (w != NULL && key != NULL && key->word[2] == w->head->fixed.generation) {
        struct table_key where = table_key(&w->table, (struct hash){key->word[0], key->word[1]});
        __builtin_prefetch(&w->table.lines[where.line], 1);
        __builtin_prefetch(&w->table.lines[table_other_line(&w->table, where.line, where.tag)], 1);
    }
}

/* ---- check ---- */

/* The same question for everybody else: errors, new keys, other clocks, other tables. */
static __attribute__((noinline)) int check_whole(struct weir *w, const void *key, size_t key_len,
                                                 uint64_t cost, uint64_t now_ns,
                                                 struct weir_answer *answer)
{
    struct weir_question ask = {.key = key, .key_len = key_len, .cost = cost};
    return weir_ask_at(w, &ask, now_ns, answer);
}

int weir_check_at(struct weir *w, const void *key, size_t key_len, uint64_t cost, uint64_t now_ns,
                  struct weir_answer *answer)
{
    if (unlikely(w == NULL || answer == NULL || cost == 0 || !key_is_valid(key, key_len)) ||
        unlikely(!w->plain || thread_slot() >= THREAD_OWN)) {
        return check_whole(w, key, key_len, cost, now_ns, answer);
    }
    struct per_thread *own = &w->threads[thread_slot()];
    if (unlikely(own->version != load_acquire(&w->head->version)) || /* see params_now() */
        unlikely(!limiter_knows(w, &own->params, now_ns)) ||
        table_has_blocks(&w->table, limiter_line(w, now_ns))) {
        return check_whole(w, key, key_len, cost, now_ns, answer);
    }
    struct table_key where = table_key(&w->table, hash_sip(&w->secret, key, key_len));
    struct pair *slot = table_find(&w->table, where);
    struct algo_ask ask = {limiter_line(w, now_ns), cost, 0};
    struct shortcut s = {w, &own->params, slot, where.tag, ask, answer};
    if (unlikely(slot == NULL) || unlikely(!shortcut_take(&s))) {
        return check_whole(w, key, key_len, cost, now_ns, answer);
    }
    count_own(&own->counts.verdict[answer->verdict], 1);
    return 0;
}

/* ---- public ---- */

int weir_check(struct weir *w, const void *key, size_t key_len, uint64_t cost,
               struct weir_answer *answer)
{
    uint64_t now_ns;
    int e = w == NULL ? WEIR_EINVAL : limiter_now(w, &now_ns);
    return e != 0 ? e : weir_check_at(w, key, key_len, cost, now_ns, answer);
}

int weir_ask_at(struct weir *w, const struct weir_question *ask, uint64_t now_ns,
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

int weir_ask(struct weir *w, const struct weir_question *ask, struct weir_answer *answer)
{
    uint64_t now_ns;
    int e = w == NULL ? WEIR_EINVAL : limiter_now(w, &now_ns);
    return e != 0 ? e : weir_ask_at(w, ask, now_ns, answer);
}
