#include "shared/store/fallback.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/maths.h"
#include "shared/store/stores.h"

#define RETRY_NS WEIR_SECOND /* retry if this node cannot decide: the store may be back by then */

_Static_assert((int)REMOTE_PEEK == (int)WEIR_PEEK && (int)REMOTE_UP_TO == (int)WEIR_UP_TO,
               "the verbs that a fallback answers are modes of weir_ask_at()");

struct fallback {
    pthread_rwlock_t lock; /* held for writing while the limiters are changed */
    struct weir *limiter;  /* NULL: none was needed yet, or it could not be made */
    struct weir *before;   /* the one before, for what its keys have spent; NULL: none */
    uint64_t nodes;        /* number of nodes that the limiter is for */
    uint64_t before_nodes; /* likewise `before` */
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
    if (units > UINT64_MAX || whole->count == 0) {
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
    if (algorithm_has(whole->algorithm, HAS_QUEUE)) {
        o->queue = share(whole->queue + 1, nodes) - 1;
        o->undelayed = min_u64(whole->undelayed / nodes, o->queue);
    } else {
        o->burst = share(whole->burst != 0 ? whole->burst : whole->count, nodes);
    }
    return set_period(o, (u128)whole->period_ns * nodes);
}

bool fallback_options(const struct weir_options *whole, uint64_t nodes, struct weir_options *part)
{
    bool bucket = algorithm_has(whole->algorithm, IS_BUCKET);
    *part = *whole;
    part->memory = WEIR_PRIVATE;
    part->path = NULL;
    part->flags = WEIR_EXPLICIT_TIME;
    part->clock = NULL;
    part->max_debt = WEIR_NO_DEBT;
    return bucket ? divide_bucket(whole, nodes, part) : divide_window(whole, nodes, part);
}

/* ---- the limiter ---- */

/* Returns whether the limiter is for the numbers of the limit and of the nodes as they are now.
 * Both are read with the lock held: a thread that remembered older ones would make the limiter for
 * those again, and so lose what the keys have spent. */
static bool fits(const struct fallback *f, const struct store_limit *limit)
{
    return f->round != 0 && f->nodes == store_fleet_size(limit->shared) &&
           f->numbers == store_limit_numbers(limit);
}

/*
 * Makes a limiter for another number of nodes or for other numbers, unless another thread has done
 * so. Each key is carried over when it is asked for: start_key(). A key that is not asked for
 * between two such changes begins anew. Rates that come with questions (any_rate) are divided then.
 */
static void remake(struct fallback *f, const struct store_limit *limit)
{
    static uint64_t rounds;
    (void)pthread_rwlock_wrlock(&f->lock);
    if (!fits(f, limit)) {
        weir_close(f->before);
        f->before = f->limiter;
        f->before_nodes = f->nodes;
        f->limiter = NULL;
        f->nodes = store_fleet_size(limit->shared);
        f->numbers = store_limit_numbers(limit);
        f->round = fetch_add(&rounds, 1) + 1;
        if (fallback_options(&f->numbers->options, limit->any_rate ? 1 : f->nodes, &f->part) &&
            weir_open(&f->limiter, &f->part, NULL) != 0) {
            f->limiter = NULL;
        }
    }
    (void)pthread_rwlock_unlock(&f->lock);
}

/* ---- asking ---- */

/* A key that the limiter decides for the first time. */
struct starting_key {
    const struct fallback *fallback;
    const struct remote_part *part;
    uint64_t now_ns;
};

/* Asks a limiter that is for so many nodes. */
static int ask(struct weir *limiter, uint64_t nodes, const struct remote_part *part, int verb,
               uint64_t cost, uint64_t now_ns, struct weir_answer *a)
{
    const struct remote_rate *rate = &part->rate;
    struct weir_question q = {
        .key = part->key.at, .key_len = part->key.len, .cost = cost, .mode = verb};
    uint64_t interval_ns;
    if (rate->burst == 0) {
        return weir_ask_at(limiter, &q, now_ns, a);
    }
    return __builtin_mul_overflow(rate->interval_ns, nodes, &interval_ns)
               ? WEIR_EQUOTA
               : weir_throttle_at(limiter, interval_ns, share(rate->burst, nodes), &q, now_ns, a);
}

/* Returns the units of this node's part that have refilled since the store last spoke of the key:
 * those of a bucket one by one, those of a window all at its end. */
static uint64_t come_since(const struct starting_key *s, const struct node_key *k)
{
    const struct weir_options *o = &s->fallback->part;
    const struct remote_rate *rate = &s->part->rate;
    uint64_t now_ns = s->now_ns;
    if (rate->burst != 0) {
        return sub_floor0(now_ns, k->noted_ns) / rate->interval_ns / s->fallback->nodes;
    }
    if (algorithm_has(o->algorithm, IS_BUCKET)) {
        return mul_div(sub_floor0(now_ns, k->noted_ns), o->count, o->period_ns);
    }
    return now_ns >= k->reset_at_ns ? UINT64_MAX : 0;
}

/* Returns what remained when the store last spoke of the key. It may have spoken of another rate
 * then, so that of a rate is computed from the time until the bucket is full. */
static uint64_t remained(const struct starting_key *s, const struct node_key *k)
{
    const struct remote_rate *rate = &s->part->rate;
    if (rate->burst == 0) {
        return k->remaining;
    }
    uint64_t lead_ns = sub_floor0(k->reset_at_ns, k->noted_ns);
    uint64_t taken = lead_ns / rate->interval_ns + (lead_ns % rate->interval_ns != 0);
    return sub_floor0(rate->burst, taken);
}

static bool peek(struct weir *limiter, uint64_t nodes, const struct starting_key *s,
                 struct weir_answer *a)
{
    return limiter != NULL && ask(limiter, nodes, s->part, WEIR_PEEK, 1, s->now_ns, a) == 0;
}

/* Takes units from a key. There are so many, so the charge of a rate is allowed. */
static void lower(const struct starting_key *s, uint64_t units)
{
    const struct fallback *f = s->fallback;
    struct weir_text key = s->part->key;
    struct weir_answer a;
    if (s->part->rate.burst == 0) {
        (void)weir_penalize_at(f->limiter, key.at, key.len, units, s->now_ns, NULL);
    } else {
        (void)ask(f->limiter, f->nodes, s->part, WEIR_CHECK, units, s->now_ns, &a);
    }
}

/* Starts a key in the fallback with min(remaining as last reported + refill since, quota - units
 * spent in the previous limiter). An unknown key has this node's whole part. */
static void start_key(void *arg, const struct node_key *k)
{
    const struct starting_key *s = arg;
    const struct fallback *f = s->fallback;
    struct weir_answer now;
    struct weir_answer before;
    uint64_t most = UINT64_MAX;
    if (!peek(f->limiter, f->nodes, s, &now)) {
        return;
    }
    if (k != NULL) {
        most = add_sat(remained(s, k), come_since(s, k));
    }
    if (peek(f->before, f->before_nodes, s, &before)) {
        uint64_t spent = sub_floor0(before.quota, before.remaining);
        most = min_u64(most, sub_floor0(now.quota, spent));
    }
    if (now.remaining > most) {
        lower(s, now.remaining - most);
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
    struct store_params own;
    const struct store_params *params = store_part_params(part, &own);
    (void)pthread_rwlock_rdlock(&f->lock);
    while (!fits(f, limit)) {
        (void)pthread_rwlock_unlock(&f->lock);
        remake(f, limit);
        (void)pthread_rwlock_rdlock(&f->lock);
    }
    struct starting_key key = {f, part, now_ns};
    int e = WEIR_ENOMEM;
    if (f->limiter != NULL) {
        node_keys_once(keys, node_key_hash(keys, part), f->round, now_ns, start_key, &key);
        e = ask(f->limiter, f->nodes, part, verb, part->cost, now_ns, answer);
    }
    (void)pthread_rwlock_unlock(&f->lock);
    if (e != 0 || (answer->verdict == WEIR_NEVER && part->cost <= params->quota)) {
        deny(params, answer);
    }
}
