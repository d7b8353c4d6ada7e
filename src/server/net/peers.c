#include "server/net/peers.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"

#define NO_PEER UINT32_MAX

struct peer {
    struct address address;
    uint32_t open;
    uint32_t next; /* in its bucket, or in the list of free ones; NO_PEER: the last */
};

struct peers {
    pthread_mutex_t lock;
    struct hash_secret secret; /* clients can choose their addresses, but not their bucket */
    uint32_t most;
    uint32_t size; /* length of both arrays: a connection needs one peer at most */
    uint32_t free;
    uint32_t *buckets;
    struct peer *all;
};

int peers_create(struct peers **out, unsigned connections, unsigned most, struct weir_error *error)
{
    struct peers *p = calloc(1, sizeof *p);
    bool made = p != NULL && (p->buckets = calloc(connections, sizeof *p->buckets)) != NULL &&
                (p->all = calloc(connections, sizeof *p->all)) != NULL;
    int e = made ? hash_secret_init(&p->secret) : WEIR_ENOMEM;
    *out = e == 0 ? p : NULL;
    if (e != 0) {
        peers_destroy(p);
        return fail(error, e, "the table of %u connections: %s", connections, weir_strerror(e));
    }
    (void)pthread_mutex_init(&p->lock, NULL);
    p->most = most;
    p->size = connections;
    for (uint32_t i = 0; i < p->size; i++) {
        p->buckets[i] = NO_PEER;
        p->all[i].next = i + 1 < p->size ? i + 1 : NO_PEER;
    }
    return 0;
}

void peers_destroy(struct peers *p)
{
    if (p != NULL) {
        free(p->buckets);
        free(p->all);
        free(p);
    }
}

static struct address client_of(const struct address *address)
{
    struct address client = *address;
    address_cut(&client, 32, 64);
    return client;
}

/* Returns the link that holds the index of the client's peer; the index is
 * NO_PEER if there is none. */
static uint32_t *find(struct peers *p, const struct address *client)
{
    uint32_t *at = &p->buckets[hash_sip(&p->secret, client, sizeof *client).low % p->size];
    while (*at != NO_PEER && memcmp(&p->all[*at].address, client, sizeof *client) != 0) {
        at = &p->all[*at].next;
    }
    return at;
}

static bool enter(struct peers *p, const struct address *client)
{
    uint32_t *at = find(p, client);
    if (*at == NO_PEER) {
        if (p->free == NO_PEER) { /* more connections than peers_create() was told */
            return false;
        }
        *at = p->free;
        p->free = p->all[*at].next;
        p->all[*at] = (struct peer){*client, 0, NO_PEER};
    }
    if (p->all[*at].open == p->most) {
        return false;
    }
    p->all[*at].open++;
    return true;
}

bool peers_enter(struct peers *p, const struct address *address)
{
    struct address client = client_of(address);
    (void)pthread_mutex_lock(&p->lock);
    bool entered = enter(p, &client);
    (void)pthread_mutex_unlock(&p->lock);
    return entered;
}

void peers_leave(struct peers *p, const struct address *address)
{
    struct address client = client_of(address);
    (void)pthread_mutex_lock(&p->lock);
    uint32_t *at = find(p, &client);
    if (*at != NO_PEER && --p->all[*at].open == 0) {
        uint32_t gone = *at;
        *at = p->all[gone].next;
        p->all[gone].next = p->free;
        p->free = gone;
    }
    (void)pthread_mutex_unlock(&p->lock);
}
