#include "shared/fallback.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/maths.h"
#include "shared/stores.h"

#define RETRY_NS WEIR_SECOND /* retry if this node cannot decide: the store may be back by then */

_Static_assert((int)REMOTE_PEEK == (int)WEIR_PEEK && (int)REMOTE_UP_TO == (int)WEIR_UP_TO,
               "the verbs that a fallback answers are modes of weir_ask_at()");

struct fallback {
    pthread_rwlock_t lock; /* held for writing while the limiters are changed */
    struct weir *limiter;  /* NULL: none was needed yet, or it could not be made */
    struct weir *before;   /* the one before, for what its keys have spent; NULL: none */
    uint64_t nodes;        /* number of nodes that the limiter is for */
    const struct store_numbers *numbers;
    struct weir_options part; /* options that the limiter was made of */
    uint64_t round; /* of node_keys_once(): the limiter's number, unique in this process */
};

struct fallback *fallback_create(void)
{
    struct fallback *f = calloc(1, sizeof *f);
    if (f != NULL) {
        (void)pthread_rwlock_init(&f->lock, NULL);
    }
    return f;
}

void fallback_destroy(struct fallback *f)
{
    if (f != NULL) {
        weir_close(f->limiter);
        weir_close(f->before);
        (void)pthread_rwlock_destroy(&f->lock);
        free(f);
    }
}

/* ---- a node's part ---- */

static uint64_t share(uint64_t burst, uint64_t nodes)
{
    return max_u64(burst / nodes, 1);
}

static bool set_period(struct weir_options *o, u128 period_ns)
{
    o->period_ns = (uint64_t)period_ns;
    return period_ns == o->period_ns;
}

/* Gives a node b = o->count units per b N period / count, rounded up to whole ns. */
static bool divide_window(const struct weir_options *whole, uint64_t nodes, struct weir_options *o)
{
    o->count = share(whole->count, nodes);
    o->offset_ns = 0;
    o->align = 0;
    u128 units = (u128)o->count * nodes;
    if (units > UINT64_MAX) {
        return false;
    }
    if (whole->period_ns == WEIR_MONTH && units <= whole->count) {
        return true; /* calendar months are not stretched */
    }
    u128 all = units * whole->period_ns;
    return set_period(o, all / whole->count + (all % whole->count != 0));
}

static bool divide_bucket(const struct weir_options *whole, uint64_t nodes, struct weir_options *o)
{
    if (whole->algorithm == WEIR_LEAKY_BUCKET) {
        o->queue = share(whole->queue + 1, nodes) - 1;
        o->undelayed = min_u64(whole->undelayed / nodes, o->queue);
    } else {
        o->burst = share(whole->burst != 0 ? whole->burst : whole->count, nodes);
    }
    return set_period(o, (u128)whole->period_ns * nodes);
}

bool fallback_options(const struct weir_options *whole, uint64_t nodes, struct weir_options *part)
{
    bool bucket = whole->algorithm == WEIR_TOKEN_BUCKET || whole->algorithm == WEIR_LEAKY_BUCKET;
    *part = *whole;
    part->memory = WEIR_PRIVATE;
    part->path = NULL;
    part->flags = WEIR_EXPLICIT_TIME;
    part->clock = NULL;
    part->max_debt = WEIR_NO_DEBT;
    return bucket ? divide_bucket(whole, nodes, part) : divide_window(whole, nodes, part);
}

/* ---- the limiter ---- */

static bool fits(const struct fallback *f, const struct store_numbers *numbers, uint64_t nodes)
{
    return f->round != 0 && f->nodes == nodes && f->numbers == numbers;
}

/*
 * Makes a limiter for another number of nodes or for other numbers, unless another thread has done
 * so. Each key is carried over when it is asked for (sow()). A key that is not asked for between
 * two such changes begins anew.
 */
static void remake(struct fallback *f, const struct store_numbers *numbers, uint64_t nodes)
{
    static uint64_t rounds;
    (void)pthread_rwlock_wrlock(&f->lock);
    if (!fits(f, numbers, nodes)) {
        weir_close(f->before);
        f->before = f->limiter;
        f->limiter = NULL;
        if (fallback_options(&numbers->options, nodes, &f->part) &&
            weir_open(&f->limiter, &f->part, NULL) != 0) {
            f->limiter = NULL;
        }
        f->nodes = nodes;
        f->numbers = numbers;
        f->round = fetch_add(&rounds, 1) + 1;
    }
    (void)pthread_rwlock_unlock(&f->lock);
}

/* ---- asking ---- */

struct seed {
    const struct fallback *fallback;
    struct text key;
    uint64_t now_ns;
};

/* Returns the units of this node's part that have refilled since the store last spoke of the key:
 * those of a bucket one by one, those of a window all at its end. */
static uint64_t come_since(const struct fallback *f, const struct node_key *k, uint64_t now_ns)
{
    const struct weir_options *o = &f->part;
    bool bucket = o->algorithm == WEIR_TOKEN_BUCKET || o->algorithm == WEIR_LEAKY_BUCKET;
    if (bucket) {
        return mul_div(sub_floor0(now_ns, k->noted_ns), o->count, o->period_ns);
    }
    return now_ns >= k->reset_at_ns ? UINT64_MAX : 0;
}

static bool peek(struct weir *limiter, const struct seed *s, struct weir_answer *a)
{
    struct weir_question q = {
        .key = s->key.at, .key_len = s->key.len, .cost = 1, .mode = WEIR_PEEK};
    return limiter != NULL && weir_ask_at(limiter, &q, s->now_ns, a) == 0;
}

/* Lowers a key to what the store last said remained, with what has refilled since, and by what it
 * has spent in the limiter before. A key of which nothing is known has this node's whole part. */
static void sow(void *arg, const struct node_key *k)
{
    const struct seed *s = arg;
    const struct fallback *f = s->fallback;
    struct weir_answer now;
    struct weir_answer before;
    uint64_t most = UINT64_MAX;
    if (!peek(f->limiter, s, &now)) {
        return;
    }
    if (k != NULL) {
        most = add_sat(k->remaining, come_since(f, k, s->now_ns));
    }
    if (peek(f->before, s, &before)) {
        uint64_t spent = sub_floor0(before.quota, before.remaining);
        most = min_u64(most, sub_floor0(now.quota, spent));
    }
    if (now.remaining > most) {
        (void)weir_penalize_at(f->limiter, s->key.at, s->key.len, now.remaining - most, s->now_ns,
                               NULL);
    }
}

static void deny(const struct store_params *params, struct weir_answer *answer)
{
    *answer = (struct weir_answer){.verdict = WEIR_DENY,
                                   .quota = params->quota,
                                   .retry_after_ns = RETRY_NS,
                                   .reset_after_ns = RETRY_NS};
}

void fallback_ask(struct fallback *f, const struct remote_part *part, int verb, uint64_t now_ns,
                  struct weir_answer *answer)
{
    const struct store_limit *limit = part->limit;
    struct node_keys *keys = limit->shared->keys;
    const struct store_numbers *numbers = store_limit_numbers(limit);
    uint64_t nodes = store_fleet_size(limit->shared);
    struct weir_question q = {
        .key = part->key.at, .key_len = part->key.len, .cost = part->cost, .mode = verb};
    (void)pthread_rwlock_rdlock(&f->lock);
    while (!fits(f, numbers, nodes)) {
        (void)pthread_rwlock_unlock(&f->lock);
        remake(f, numbers, nodes);
        (void)pthread_rwlock_rdlock(&f->lock);
    }
    struct seed seed = {f, part->key, now_ns};
    int e = WEIR_ENOMEM;
    if (f->limiter != NULL) {
        node_keys_once(keys, node_key_hash(keys, part), f->round, now_ns, sow, &seed);
        e = weir_ask_at(f->limiter, &q, now_ns, answer);
    }
    (void)pthread_rwlock_unlock(&f->lock);
    if (e != 0 || (answer->verdict == WEIR_NEVER && part->cost <= numbers->params.quota)) {
        deny(&numbers->params, answer);
    }
}
