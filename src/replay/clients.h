/*
 * The clients of a replay and what is known of each: a map that grows with
 * them and forgets none. A limiter's own table will not do here: it is made for a
 * number of keys, and puts a new key in the place of one that is as good as new. If
 * the times of a stream go back, that one may be needed again, and whether it is
 * there would depend on the table's random hash.
 */
#ifndef WEIR_REPLAY_CLIENTS_H
#define WEIR_REPLAY_CLIENTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "replay/stepped_bucket.h"

/* The identity of a client is its hash; an all-zero one is an empty place. */
struct replay_client {
    struct hash hash;
    union {
        struct stepped_bucket bucket;
        struct {
            uint64_t word;
            uint64_t *record; /* sliding_log; the client's own, or NULL */
        } limit;
    } state;
};

struct replay_clients {
    struct hash_secret secret;
    struct replay_client *places; /* open addressing, a power of two, at most 3/4 taken */
    uint64_t mask;
    uint64_t count;
};

/* 0, WEIR_ENOMEM or WEIR_EIO. */
int replay_clients_init(struct replay_clients *c);
void replay_clients_finish(struct replay_clients *c); /* not what state points to */

/* What stands for a name in c, and a hint that its client will be asked for soon. */
struct hash replay_clients_hash(const struct replay_clients *c, const void *name, size_t len);
void replay_clients_prefetch(const struct replay_clients *c, struct hash h);

/*
 * The client. A new one (c->count is then one more) has a zero state. Valid until the next call.
 * NULL: out of memory.
 */
struct replay_client *replay_clients_get(struct replay_clients *c, struct hash h);

#endif
