#include "shared/known.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/maths.h"

#define WAYS 4
#define STRIPES 256

struct entry {
    struct hash key; /* both 0: the entry is empty */
    uint64_t used_ns;
    uint64_t denied_cost; /* 0: not denied */
    uint64_t denied_until_ns;
    uint64_t retry_at_ns;
    uint64_t reset_at_ns;
    uint64_t denied_remaining;
    uint64_t remaining; /* or KNOWN_NOT */
    uint64_t round;     /* 0: none yet */
};

struct stripe {
    pthread_mutex_t lock;
} __attribute__((aligned(64)));

struct known {
    struct hash_secret secret;
    struct entry (*sets)[WAYS];
    uint64_t mask; /* number of sets - 1 */
    struct stripe stripes[STRIPES];
};

int known_create(struct known **out, uint64_t keys)
{
    uint64_t sets = STRIPES;
    while (sets * WAYS < keys && sets < UINT64_C(1) << 32) {
        sets *= 2;
    }
    struct known *k = aligned_alloc(64, sizeof *k);
    if (k == NULL) {
        return WEIR_ENOMEM;
    }
    k->mask = sets - 1;
    k->sets = calloc(sets, sizeof k->sets[0]);
    if (k->sets == NULL || hash_secret_init(&k->secret) != 0) {
        free(k->sets);
        free(k);
        return WEIR_ENOMEM;
    }
    for (unsigned i = 0; i < STRIPES; i++) {
        (void)pthread_mutex_init(&k->stripes[i].lock, NULL);
    }
    *out = k;
    return 0;
}

void known_destroy(struct known *k)
{
    if (k == NULL) {
        return;
    }
    for (unsigned i = 0; i < STRIPES; i++) {
        (void)pthread_mutex_destroy(&k->stripes[i].lock);
    }
    free(k->sets);
    free(k);
}

struct hash known_hash(const struct known *k, uint64_t limit, struct text key)
{
    struct hash h = hash_sip(&k->secret, key.at, key.len);
    h.low += limit * UINT64_C(0x9e3779b97f4a7c15); /* keeps equal keys of limits apart */
    h.high |= 1;                                   /* both 0 would be an empty entry */
    return h;
}

/* ---- entries ---- */

static pthread_mutex_t *lock_of(struct known *k, struct hash key)
{
    return &k->stripes[key.low & k->mask & (STRIPES - 1)].lock;
}

static struct entry *find(struct known *k, struct hash key)
{
    struct entry *set = k->sets[key.low & k->mask];
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].key.low == key.low && set[i].key.high == key.high) {
            return &set[i];
        }
    }
    return NULL;
}

/* Returns the key's entry. If it has none, that of its set which has not been used for longest
 * becomes its own. */
static struct entry *make(struct known *k, struct hash key, uint64_t now_ns)
{
    struct entry *e = find(k, key);
    if (e == NULL) {
        struct entry *set = k->sets[key.low & k->mask];
        e = &set[0];
        for (unsigned i = 1; i < WAYS; i++) {
            e = set[i].used_ns < e->used_ns ? &set[i] : e;
        }
        *e = (struct entry){.key = key, .remaining = KNOWN_NOT};
    }
    e->used_ns = now_ns;
    return e;
}

/* ---- denials ---- */

/* Sets *ns to how much later a cost that is higher by `more` would be allowed. Returns false if
 * that is not known. */
static bool later(const struct store_params *p, uint64_t more, uint64_t *ns)
{
    *ns = 0;
    if (more == 0 || p->algorithm == WEIR_FIXED_WINDOW) {
        return true;
    }
    if (p->algorithm != WEIR_TOKEN_BUCKET && p->algorithm != WEIR_LEAKY_BUCKET) {
        return false;
    }
    unsigned __int128 parts = ((unsigned __int128)p->a * STORE_PARTS + p->b) * more;
    unsigned __int128 us = parts / STORE_PARTS + (parts % STORE_PARTS != 0);
    *ns = us > STORE_MOST / WEIR_MICROSECOND ? STORE_MOST : (uint64_t)us * WEIR_MICROSECOND;
    return true;
}

static uint64_t left(uint64_t at_ns, uint64_t now_ns)
{
    return at_ns == WEIR_FOREVER ? WEIR_FOREVER : at_ns > now_ns ? at_ns - now_ns : 0;
}

bool known_denial(struct known *k, struct hash key, const struct store_params *params,
                  uint64_t cost, uint64_t now_ns, struct weir_answer *answer)
{
    uint64_t more_ns = 0;
    pthread_mutex_t *lock = lock_of(k, key);
    (void)pthread_mutex_lock(lock);
    struct entry *e = find(k, key);
    bool hit = e != NULL && e->denied_cost != 0 && now_ns < e->denied_until_ns &&
               cost >= e->denied_cost && cost <= params->quota &&
               later(params, cost - e->denied_cost, &more_ns);
    if (hit) {
        uint64_t retry_ns = left(e->retry_at_ns, now_ns);
        e->used_ns = now_ns;
        *answer = (struct weir_answer){
            .verdict = WEIR_DENY,
            .quota = params->quota,
            .remaining = e->denied_remaining,
            .retry_after_ns = retry_ns == WEIR_FOREVER ? retry_ns : retry_ns + more_ns,
            .reset_after_ns = left(e->reset_at_ns, now_ns),
        };
    }
    (void)pthread_mutex_unlock(lock);
    return hit;
}

static uint64_t after(uint64_t now_ns, uint64_t ns)
{
    return ns > WEIR_FOREVER - now_ns ? WEIR_FOREVER : now_ns + ns;
}

void known_denied(struct known *k, struct hash key, uint64_t cost, const struct weir_answer *answer,
                  uint64_t deny_cache_ns, uint64_t now_ns)
{
    uint64_t keep_ns = min_u64(answer->retry_after_ns, deny_cache_ns);
    if (keep_ns == 0 || (answer->flags & WEIR_FLAG_BLOCKED) != 0) {
        return; /* an UNBLOCK may end a block at any time */
    }
    pthread_mutex_t *lock = lock_of(k, key);
    (void)pthread_mutex_lock(lock);
    struct entry *e = make(k, key, now_ns);
    e->denied_cost = cost;
    e->denied_until_ns = after(now_ns, keep_ns);
    e->retry_at_ns = after(now_ns, answer->retry_after_ns);
    e->reset_at_ns = after(now_ns, answer->reset_after_ns);
    e->denied_remaining = answer->remaining;
    (void)pthread_mutex_unlock(lock);
}

void known_forget(struct known *k, struct hash key)
{
    pthread_mutex_t *lock = lock_of(k, key);
    (void)pthread_mutex_lock(lock);
    struct entry *e = find(k, key);
    if (e != NULL) {
        *e = (struct entry){.used_ns = 0};
    }
    (void)pthread_mutex_unlock(lock);
}

/* ---- how much there was ---- */

void known_remaining(struct known *k, struct hash key, uint64_t remaining, uint64_t now_ns)
{
    pthread_mutex_t *lock = lock_of(k, key);
    (void)pthread_mutex_lock(lock);
    struct entry *e = make(k, key, now_ns);
    e->remaining = remaining;
    e->round = 0; /* the store's number replaces that of a fallback used in between */
    (void)pthread_mutex_unlock(lock);
}

void known_once(struct known *k, struct hash key, uint64_t round, uint64_t now_ns,
                void (*fn)(void *arg, uint64_t remaining), void *arg)
{
    pthread_mutex_t *lock = lock_of(k, key);
    (void)pthread_mutex_lock(lock);
    struct entry *e = make(k, key, now_ns);
    if (e->round != round) {
        e->round = round;
        fn(arg, e->remaining);
    }
    (void)pthread_mutex_unlock(lock);
}
