#include "server/loop/penalty.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "server/loop/worker.h"

/* ---- counts ---- */

#define WAYS 8 /* places that an address may have */

struct penalty_place {
    struct address address;
    uint32_t wrong;   /* 0: free */
    uint64_t last_ms; /* when the last one came */
};

struct penalties {
    pthread_mutex_t lock;
    struct hash_secret secret; /* clients can choose their addresses, but not their places */
    struct penalty_place places[PENALTY_PLACES];
};

int penalties_create(struct penalties **out, struct weir_error *error)
{
    struct penalties *p = calloc(1, sizeof *p);
    int e = p != NULL ? hash_secret_init(&p->secret) : WEIR_ENOMEM;
    if (e != 0) {
        free(p);
        return fail(error, e, "cannot make the table of wrong secrets: %s", weir_strerror(e));
    }
    (void)pthread_mutex_init(&p->lock, NULL);
    *out = p;
    return 0;
}

void penalties_destroy(struct penalties *p)
{
    if (p != NULL) {
        (void)pthread_mutex_destroy(&p->lock);
        free(p);
    }
}

static bool is_forgotten(const struct penalty_place *p, uint64_t now_ms)
{
    return p->wrong == 0 || now_ms - p->last_ms > PENALTY_FORGET_MS;
}

/* Returns the place of an address, which may have to be taken from another one. */
static struct penalty_place *find(struct penalties *p, const struct address *client,
                                  uint64_t now_ms)
{
    size_t first = hash_sip(&p->secret, client, sizeof *client).low % (PENALTY_PLACES / WAYS);
    struct penalty_place *set = &p->places[first * WAYS];
    struct penalty_place *least = set;
    for (unsigned i = 0; i < WAYS; i++) {
        bool forgotten = is_forgotten(&set[i], now_ms);
        if (!forgotten && memcmp(&set[i].address, client, sizeof *client) == 0) {
            return &set[i];
        }
        set[i].wrong = forgotten ? 0 : set[i].wrong;
        least = set[i].wrong < least->wrong ? &set[i] : least;
    }
    *least = (struct penalty_place){.address = *client};
    return least;
}

/* Returns the delay of the refusal that comes so many after the first delayed one. */
static uint64_t delay_of(uint32_t step)
{
    uint64_t delay = (uint64_t)PENALTY_FIRST_MS << (step < 32 ? step : 32);
    return delay < PENALTY_MOST_MS ? delay : PENALTY_MOST_MS;
}

uint64_t penalty_note(struct penalties *p, const struct address *peer, uint64_t now_ms)
{
    struct address client = *peer;
    address_cut(&client, 32, 64);
    (void)pthread_mutex_lock(&p->lock);
    struct penalty_place *place = find(p, &client, now_ms);
    place->wrong += place->wrong < UINT32_MAX;
    place->last_ms = now_ms;
    uint32_t wrong = place->wrong;
    (void)pthread_mutex_unlock(&p->lock);
    if (wrong <= PENALTY_FREE) {
        return 0;
    }
    return delay_of(wrong - PENALTY_FREE - 1);
}

/* ---- refusals ---- */

struct pending *penalty_begin(struct connection *c)
{
    struct worker *w = c->worker;
    uint64_t delay = penalty_note(w->server->penalties, &c->peer, uv_now(&w->loop));
    struct pending *p = delay > 0 ? pending_batch(w) : NULL;
    if (p == NULL ||
        !delay_add(p, delay)) { /* without memory, a refusal at once is better than none */
        pending_destroy(p);
        return NULL;
    }
    p->refusal = true;
    return p;
}
