/* What one node remembers of keys, for tests that need only one kind of them. */
#ifndef WEIR_TESTS_SUPPORT_NODE_KEYS_OF_H
#define WEIR_TESTS_SUPPORT_NODE_KEYS_OF_H

#include "shared/core/node_keys.h"

/* A key of a limit, with a cost. */
#define PART(l, k, c) (&(struct remote_part){.limit = (l), .key = (k), .cost = (c)})

/* Makes room for `most` keys of the kind, and for as many with notes alone. */
static inline int node_keys_of(struct node_keys **keys, enum key_kind kind, uint64_t most)
{
    uint64_t each[KEY_KINDS] = {[KEY_NOTED] = most};
    each[kind] = most;
    return node_keys_create(keys, each);
}

/* Makes the secret of the hashes from `seed`, so that runs repeat. To be called before the first
 * question. */
static inline void node_keys_seed(struct node_keys *keys, uint64_t seed)
{
    keys->secret.sip[0] = seed;
    keys->secret.sip[1] = ~seed;
}

/* Notes `n` denials of different keys, and looks each of them up. Returns how many were found. */
static inline uint64_t node_keys_deny_many(struct node_keys *keys, uint64_t n, uint64_t now_ns)
{
    struct store_limit exact = {.id = 1000000};
    const struct store_params params = {.algorithm = WEIR_FIXED_WINDOW, .quota = 1};
    struct weir_answer a = {.verdict = WEIR_DENY, .retry_after_ns = WEIR_SECOND};
    uint64_t found = 0;
    for (uint64_t i = 0; i < n; i++) {
        struct weir_text name = {(const char *)&i, sizeof i};
        struct hash hash = node_key_hash(keys, PART(&exact, name, 1));
        node_keys_note(keys, hash, 1, &a, WEIR_SECOND, now_ns);
        found += node_keys_deny(keys, hash, &params, 1, now_ns, &a);
    }
    return found;
}

#endif
