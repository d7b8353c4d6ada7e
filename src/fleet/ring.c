/*
 * Finds the node that a key belongs to. This is rendezvous hashing (Thaler and Ravishankar: every
 * node bids for a key, the highest bid wins) over slots instead of keys: a key hashes to one of
 * 2^17 slots, and the winner of each slot is computed once, in weir_ring_open(). So a lookup is a
 * hash and one load, and a node that leaves only gives up the slots that it had won; the other
 * slots have the same highest bid as before.
 *
 * A node wins about 2^17/N slots. The number is binomial, so its standard deviation is sqrt(N/2^17)
 * of the node's share: 2.8 % with 100 nodes, where a share that is 25 % too large is nine standard
 * deviations away; 8.7 % with 1,000. The classic circle needs some 500 points for each node to come
 * near, and a search in them.
 *
 * Bids depend only on the name of the node and the slot, and equal bids are decided by the names:
 * the order of the nodes does not matter. The hash has no secret, since all programs must agree. So
 * anyone who can choose keys can choose their node.
 */
#include <stdlib.h>
#include <string.h>

#include <weir_fleet.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/maths.h"

#define SLOT_BITS 17
#define SLOTS (1u << SLOT_BITS)
#define NODES_MAX 1000
#define NAME_MAX_BYTES 1024

struct weir_ring {
    uint16_t owner[SLOTS];
};

/* The seeds are part of the format: other numbers would send every key elsewhere. */
static const uint64_t key_seed[2] = {0x776569722072696eULL, 0x67206b6579732031ULL};
static const uint64_t node_seed[2] = {0x776569722072696eULL, 0x67206e6f64657331ULL};

/* A node while the ring is made. */
struct bidder {
    const char *name;
    size_t index; /* in the caller's array */
    uint64_t hash;
};

/* Returns the bid of a node for a slot: every bit of the slot and the node reaches every bit of the
 * bid. */
static uint64_t bid(uint64_t node, uint64_t slot)
{
    return splitmix_finish(node + slot * SPLITMIX_STEP);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct bidder *)a)->name, ((const struct bidder *)b)->name);
}

static int check_names(const char *const *nodes, size_t count, struct weir_error *error)
{
    if (nodes == NULL || count < 1 || count > NODES_MAX) {
        return fail(error, WEIR_EINVAL, "%zu nodes, expected 1 to %d names", count, NODES_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        if (nodes[i] == NULL || nodes[i][0] == 0) {
            return fail(error, WEIR_EINVAL, "node %zu has no name, expected one", i);
        }
        if (strnlen(nodes[i], NAME_MAX_BYTES + 1) > NAME_MAX_BYTES) {
            return fail(error, WEIR_EINVAL, "the name of node %zu is longer than %d bytes", i,
                        NAME_MAX_BYTES);
        }
    }
    return 0;
}

/* Sorts the nodes by name, so that of two equal bids the same one wins everywhere. Fails if two
 * have the same name. */
static int sort_bidders(const char *const *nodes, size_t count, struct bidder *bidders,
                        struct weir_error *error)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t h = siphash128(node_seed, nodes[i], strlen(nodes[i]), 1, 3).low;
        bidders[i] = (struct bidder){nodes[i], i, h};
    }
    qsort(bidders, count, sizeof *bidders, by_name);
    for (size_t i = 1; i < count; i++) {
        if (by_name(&bidders[i - 1], &bidders[i]) == 0) {
            return fail(error, WEIR_EINVAL, "two nodes have the name '%.100s'", bidders[i].name);
        }
    }
    return 0;
}

static void share_out(struct weir_ring *ring, const struct bidder *bidders, size_t count)
{
    for (unsigned slot = 0; slot < SLOTS; slot++) {
        uint64_t highest = bid(bidders[0].hash, slot);
        size_t winner = 0;
        for (size_t i = 1; i < count; i++) {
            uint64_t b = bid(bidders[i].hash, slot);
            if (b > highest) {
                highest = b;
                winner = i;
            }
        }
        ring->owner[slot] = (uint16_t)bidders[winner].index;
    }
}

int weir_ring_open(struct weir_ring **ring, const char *const *nodes, size_t count,
                   struct weir_error *error)
{
    if (ring == NULL) {
        return fail(error, WEIR_EINVAL, "ring is NULL, expected the address of a pointer");
    }
    *ring = NULL;
    int e = check_names(nodes, count, error);
    if (e != 0) {
        return e;
    }
    struct weir_ring *r = malloc(sizeof *r);
    struct bidder *bidders = malloc(count * sizeof *bidders);
    if (r == NULL || bidders == NULL) {
        free(bidders);
        free(r);
        return fail(error, WEIR_ENOMEM, "out of memory for a ring of %zu nodes", count);
    }
    e = sort_bidders(nodes, count, bidders, error);
    if (e == 0) {
        share_out(r, bidders, count);
        *ring = r;
    } else {
        free(r);
    }
    free(bidders);
    return e;
}

size_t weir_ring_find(const struct weir_ring *ring, const void *key, size_t key_len)
{
    return ring->owner[siphash128(key_seed, key, key_len, 1, 3).low >> (64 - SLOT_BITS)];
}

void weir_ring_close(struct weir_ring *ring)
{
    free(ring);
}
