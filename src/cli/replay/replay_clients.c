#include "cli/replay/replay_clients.h"

#include <stdlib.h>
#include <sys/mman.h>

#include <weir.h>

#define PLACES_FIRST 1024
#define LARGE_PAGE ((uintptr_t)2 << 20)

/*
 * Allocates places, on pages of 2 MB if possible. Clients come in no order, so nearly every
 * request is a cache miss; with large pages it is not a TLB miss as well. This is only a hint:
 * the kernel may ignore it.
 */
static struct replay_client *allocate(uint64_t places)
{
    struct replay_client *p = calloc(places, sizeof *p);
    uintptr_t begin = ((uintptr_t)p + LARGE_PAGE - 1) & ~(LARGE_PAGE - 1);
    uintptr_t end = (uintptr_t)(p + places) & ~(LARGE_PAGE - 1);
    if (p != NULL && begin < end) {
        (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
    }
    return p;
}

int replay_clients_init(struct replay_clients *c)
{
    *c = (struct replay_clients){.mask = PLACES_FIRST - 1};
    c->places = allocate(PLACES_FIRST);
    if (c->places == NULL) {
        return WEIR_ENOMEM;
    }
    int e = hash_secret_init(&c->secret);
    if (e != 0) {
        replay_clients_finish(c);
    }
    return e;
}

void replay_clients_finish(struct replay_clients *c)
{
    free(c->places);
    c->places = NULL;
}

static bool is_empty(const struct replay_client *place)
{
    return (place->hash.low | place->hash.high) == 0;
}

/* Returns the client's place, or the empty place where it would be. */
static struct replay_client *find(struct replay_client *places, uint64_t mask, struct hash h)
{
    uint64_t i = h.low & mask;
    while (!is_empty(&places[i]) && !hash_same(places[i].hash, h)) {
        i = (i + 1) & mask;
    }
    return &places[i];
}

static bool grow(struct replay_clients *c)
{
    uint64_t mask = c->mask * 2 + 1;
    struct replay_client *places = allocate(mask + 1);
    if (places == NULL) {
        return false;
    }
    for (uint64_t i = 0; i <= c->mask; i++) {
        if (!is_empty(&c->places[i])) {
            *find(places, mask, c->places[i].hash) = c->places[i];
        }
    }
    free(c->places);
    c->places = places;
    c->mask = mask;
    return true;
}

struct hash replay_clients_hash(const struct replay_clients *c, const void *name, size_t len)
{
    struct hash h = hash_sip(&c->secret, name, len);
    h.low |= (h.low | h.high) == 0;
    return h;
}

void replay_clients_prefetch(const struct replay_clients *c, struct hash h)
{
    __builtin_prefetch(&c->places[h.low & c->mask], 1);
}

struct replay_client *replay_clients_get(struct replay_clients *c, struct hash h)
{
    struct replay_client *place = find(c->places, c->mask, h);
    if (!is_empty(place)) {
        return place;
    }
    if (c->count >= c->mask / 4 * 3) {
        if (!grow(c)) {
            return NULL;
        }
        place = find(c->places, c->mask, h);
    }
    place->hash = h;
    c->count++;
    return place;
}

const struct stepped_bucket *replay_clients_take(struct replay_clients *c, struct hash h,
                                                 int64_t capacity, int64_t window, int64_t time,
                                                 bool *allow)
{
    uint64_t before = c->count;
    struct replay_client *client = replay_clients_get(c, h);
    if (client == NULL) {
        return NULL;
    }
    if (c->count != before) {
        client->state.bucket = (struct stepped_bucket){capacity, time};
    }
    *allow = stepped_bucket_take(&client->state.bucket, capacity, window, time);
    return &client->state.bucket;
}
