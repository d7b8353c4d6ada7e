/*
 * The clients of a replay and the state of each: a map that grows with them and forgets none. A
 * limiter's own table is not suitable. It is made for a fixed number of keys, and replaces a key
 * that is fresh by a new key. If the times of a stream go back, the replaced key may be
 * needed again, and whether it is still there would depend on the table's random hash.
 */
#ifndef WEIR_CLI_REPLAY_REPLAY_CLIENTS_H
#define WEIR_CLI_REPLAY_REPLAY_CLIENTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "cli/replay/stepped_bucket.h"

/* A client is identified by its hash; an all-zero hash is an empty place. */
struct replay_client {
    struct hash hash;
    union {
        struct stepped_bucket bucket;
        struct {
            uint64_t word;
            uint64_t *record; /* for sliding_log, owned by the client; otherwise NULL */
        } limit;
    } state;
};

struct replay_clients {
    struct hash_secret secret;
    struct replay_client *places; /* open addressing, a power of two, at most 3/4 taken */
    uint64_t mask;
    uint64_t count;
};

/* Returns 0, WEIR_ENOMEM or WEIR_EIO. */
int replay_clients_init(struct replay_clients *c);
void replay_clients_finish(struct replay_clients *c); /* does not free what states point to */

/*
 * Return the hash that stands for a name in c, and start to fetch the client of a hash from
 * memory.
 */
struct hash replay_clients_hash(const struct replay_clients *c, const void *name, size_t len);
void replay_clients_prefetch(const struct replay_clients *c, struct hash h);

/*
 * Returns the client of a hash, valid until the next call; NULL: out of memory. A new client has
 * a zero state, and c->count is then one more.
 */
struct replay_client *replay_clients_get(struct replay_clients *c, struct hash h);

/*
 * Takes a token from the client's stepped bucket, which is full at the first request. Returns the
 * bucket as it is afterwards; NULL: out of memory.
 */
const struct stepped_bucket *replay_clients_take(struct replay_clients *c, struct hash h,
                                                 int64_t capacity, int64_t window, int64_t time,
                                                 bool *allow);

#endif
