/* What a state is, as bytes: digests of it, and sets of digests. */
#ifndef WEIR_EXPLORE_STATE_H
#define WEIR_EXPLORE_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 127 bits: two of ten million states are taken for one with a chance below 10^-24. */
struct digest {
    uint64_t a;
    uint64_t b; /* even: a set keeps a mark in the lowest bit */
};

/* The digest of what came before, and of these bytes. */
struct digest digest_add(struct digest d, const void *bytes, size_t count);

static inline bool digest_same(struct digest x, struct digest y)
{
    return x.a == y.a && x.b == y.b;
}

/* A set of digests, some of which are open: on the way from the beginning to where we are. */
struct digest_set {
    struct digest *slots;
    size_t room; /* a power of two, or 0 */
    size_t count;
};

enum set_found { SET_NEW, SET_OPEN, SET_CLOSED };

void set_clear(struct digest_set *set);

/* Adds it, open, if it is new. */
enum set_found set_enter(struct digest_set *set, struct digest d);

/* It is no longer on the way. */
void set_close(struct digest_set *set, struct digest d);

bool set_has(const struct digest_set *set, struct digest d);

#endif
