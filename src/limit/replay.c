/* weir_replay(): stepped buckets in a map that grows with its clients. */
#include <inttypes.h>
#include <stdlib.h>

#include "algo/stepped_bucket.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/maths.h"

/* The identity of a client is its hash; an all-zero one is an empty place. */
struct client {
    struct hash hash;
    struct stepped_bucket bucket;
};

struct weir_replayer {
    int64_t capacity;
    int64_t window;
    struct hash_secret secret;
    struct client *places; /* open addressing, a power of two, at most 3/4 taken */
    uint64_t mask;
    uint64_t clients;
};

#define PLACES_FIRST 1024

int weir_replay_open(struct weir_replayer **out, int64_t capacity, int64_t window,
                     struct weir_error *error)
{
    if (out == NULL) {
        return fail(error, WEIR_EINVAL, "the replay's place is NULL");
    }
    *out = NULL;
    if (capacity < 0 || window < 0) {
        return fail(error, WEIR_EINVAL, "%s is %" PRId64 ", expected 0 or more",
                    capacity < 0 ? "capacity" : "window", capacity < 0 ? capacity : window);
    }
    struct weir_replayer *r = calloc(1, sizeof *r);
    struct client *places = calloc(PLACES_FIRST, sizeof *places);
    if (r == NULL || places == NULL) {
        free(r);
        free(places);
        return fail(error, WEIR_ENOMEM, "out of memory for the replay");
    }
    if (hash_secret_init(&r->secret) != 0) {
        int e = fail_errno(error, "getrandom", NULL);
        free(r);
        free(places);
        return e;
    }
    r->capacity = capacity;
    r->window = window;
    r->places = places;
    r->mask = PLACES_FIRST - 1;
    *out = r;
    return 0;
}

static struct client *find(struct client *places, uint64_t mask, struct hash h)
{
    uint64_t i = h.low & mask;
    while ((places[i].hash.low | places[i].hash.high) != 0 &&
           (places[i].hash.low != h.low || places[i].hash.high != h.high)) {
        i = (i + 1) & mask;
    }
    return &places[i];
}

static int grow(struct weir_replayer *r)
{
    uint64_t mask = r->mask * 2 + 1;
    struct client *places = calloc(mask + 1, sizeof *places);
    if (places == NULL) {
        return WEIR_ENOMEM;
    }
    for (uint64_t i = 0; i <= r->mask; i++) {
        const struct client *c = &r->places[i];
        if ((c->hash.low | c->hash.high) != 0) {
            *find(places, mask, c->hash) = *c;
        }
    }
    free(r->places);
    r->places = places;
    r->mask = mask;
    return 0;
}

int weir_replay(struct weir_replayer *r, const void *client, size_t client_len, int64_t time)
{
    if (r == NULL) {
        return WEIR_EINVAL;
    }
    if (client == NULL || client_len - 1 >= WEIR_KEY_MAX) {
        return WEIR_EKEY;
    }
    if (r->clients >= r->mask / 4 * 3 && grow(r) != 0) {
        return WEIR_ENOMEM;
    }
    struct hash h = hash_sip(&r->secret, client, client_len);
    h.low |= (h.low | h.high) == 0;
    struct client *c = find(r->places, r->mask, h);
    if ((c->hash.low | c->hash.high) == 0) {
        c->hash = h;
        c->bucket = stepped_bucket_start(r->capacity, time);
        r->clients++;
    }
    return stepped_bucket_take(&c->bucket, r->capacity, r->window, time) ? 1 : 0;
}

uint64_t weir_replay_clients(const struct weir_replayer *r)
{
    return r != NULL ? r->clients : 0;
}

void weir_replay_close(struct weir_replayer *r)
{
    if (r != NULL) {
        free(r->places);
        free(r);
    }
}
