#include "bench_rivals.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"
#include "base/maths.h"
#include "bench_core.h"

#define STRIPES 1024
#define KEY_BYTES 16
#define BURST 1e9
#define RATE_PER_NS (1e9 / (1000.0 * 86400e9)) /* same as SUBJECT_LIVE */

struct bucket {
    double tokens;
    uint64_t last_ns;
};

/* An entry of the striped map, not larger than a cache line. */
struct entry {
    unsigned char key[KEY_BYTES];
    uint64_t len; /* 0: empty */
    struct bucket bucket;
};

/*
 * An entry of the mutex map. Each bucket has a mutex, so that the map's mutex is held only to
 * find it.
 */
struct locked_entry {
    struct entry entry;
    pthread_mutex_t lock;
};

struct map {
    pthread_mutex_t lock;
    unsigned char *entries;
} __attribute__((aligned(64)));

struct rival {
    struct hash_secret secret;
    struct map map[STRIPES];
    unsigned maps;
    size_t entry_bytes;
    uint64_t slots; /* in each map; a power of two */
    unsigned char *memory;
    size_t bytes;
};

static struct rival *create(uint64_t max_keys, unsigned maps, size_t entry_bytes, bool huge)
{
    struct rival *r = aligned_alloc(64, sizeof *r);
    if (r == NULL) {
        return NULL;
    }
    memset(r, 0, sizeof *r);
    uint64_t each = max_keys / maps + 16;
    r->maps = maps;
    r->entry_bytes = entry_bytes;
    r->slots = UINT64_C(1) << bits_for(each + each / 2); /* at most two thirds full */
    r->bytes = maps * r->slots * entry_bytes;
    r->memory = bench_map(r->bytes, huge);
    if (r->memory == NULL || hash_secret_init(&r->secret) != 0) {
        rival_destroy(r);
        return NULL;
    }
    for (unsigned i = 0; i < maps; i++) {
        r->map[i].entries = r->memory + i * r->slots * entry_bytes;
        (void)pthread_mutex_init(&r->map[i].lock, NULL);
    }
    return r;
}

struct rival *mutex_map_create(uint64_t max_keys, bool huge)
{
    return create(max_keys, 1, sizeof(struct locked_entry), huge);
}

struct rival *striped_map_create(uint64_t max_keys, bool huge)
{
    return create(max_keys, STRIPES, 64, huge);
}

void rival_destroy(struct rival *r)
{
    if (r != NULL && r->memory != NULL) {
        (void)munmap(r->memory, r->bytes);
    }
    free(r);
}

/* Returns the key's entry, or the empty one where it belongs; NULL if the map is full. */
static inline struct entry *find(const struct rival *r, const struct map *map, uint64_t hash,
                                 const void *key, size_t len)
{
    for (uint64_t i = 0; i < r->slots; i++) {
        uint64_t slot = (hash + i) & (r->slots - 1);
        struct entry *e = (struct entry *)(void *)(map->entries + slot * r->entry_bytes);
        if (e->len == 0 || (e->len == len && memcmp(e->key, key, len) == 0)) {
            return e;
        }
    }
    return NULL;
}

static void insert(struct entry *e, const void *key, size_t len, uint64_t now_ns)
{
    memcpy(e->key, key, len);
    e->len = len;
    e->bucket = (struct bucket){BURST, now_ns};
}

/* The textbook token bucket: refills by the time that has passed, then takes a token. */
static inline void take(struct bucket *b, uint64_t now_ns, struct weir_answer *a)
{
    if (now_ns > b->last_ns) {
        b->tokens += (double)(now_ns - b->last_ns) * RATE_PER_NS;
        b->tokens = b->tokens < BURST ? b->tokens : BURST;
        b->last_ns = now_ns;
    }
    bool allow = b->tokens >= 1;
    b->tokens -= allow ? 1 : 0;
    *a = (struct weir_answer){.verdict = allow ? WEIR_ALLOW : WEIR_DENY, .quota = (uint64_t)BURST};
    a->granted = allow;
    a->remaining = (uint64_t)b->tokens;
    a->retry_after_ns = allow ? 0 : (uint64_t)((1 - b->tokens) / RATE_PER_NS);
    a->reset_after_ns = (uint64_t)((BURST - b->tokens) / RATE_PER_NS);
}

int mutex_map_check(struct rival *r, const void *key, size_t len, uint64_t now_ns,
                    struct weir_answer *answer)
{
    struct hash h = hash_sip(&r->secret, key, len);
    struct map *map = &r->map[0];
    if (len > KEY_BYTES) {
        return -1;
    }
    (void)pthread_mutex_lock(&map->lock);
    struct locked_entry *e = (struct locked_entry *)(void *)find(r, map, h.low, key, len);
    if (e != NULL && e->entry.len == 0) {
        insert(&e->entry, key, len, now_ns);
        (void)pthread_mutex_init(&e->lock, NULL);
    }
    (void)pthread_mutex_unlock(&map->lock);
    if (e == NULL) {
        return -1;
    }
    (void)pthread_mutex_lock(&e->lock);
    take(&e->entry.bucket, now_ns, answer);
    (void)pthread_mutex_unlock(&e->lock);
    return 0;
}

int striped_map_check(struct rival *r, const void *key, size_t len, uint64_t now_ns,
                      struct weir_answer *answer)
{
    struct hash h = hash_sip(&r->secret, key, len);
    struct map *map = &r->map[h.high % STRIPES];
    if (len > KEY_BYTES) {
        return -1;
    }
    (void)pthread_mutex_lock(&map->lock);
    struct entry *e = find(r, map, h.low, key, len);
    if (e != NULL) {
        if (e->len == 0) {
            insert(e, key, len, now_ns);
        }
        take(&e->bucket, now_ns, answer);
    }
    (void)pthread_mutex_unlock(&map->lock);
    return e != NULL ? 0 : -1;
}
