/*
 * The reservations that are open, in short lists of 64 shards. Each shard has a lock of its own;
 * bits of an entry's id choose its shard and its list. Ids are random, so clients cannot choose a
 * shard or a list.
 *
 * The thread that takes an entry off its list owns it. Settling therefore happens outside the lock,
 * and a second thread that looks for the entry finds nothing. Room for an entry is taken before it
 * is made (reservations_room.h), so its bounds are exact whatever the shards hold.
 *
 * There is no timer for expired entries: each new entry removes the expired ones of its own list,
 * and when there is no room, a shard that may hold expired entries is cleaned.
 */
#ifndef WEIR_SERVER_OPERATIONS_RESERVATIONS_TABLE_H
#define WEIR_SERVER_OPERATIONS_RESERVATIONS_TABLE_H

#include <pthread.h>

#include "rules/live/live.h"
#include "server/operations/key_ask.h"
#include "server/operations/reservations.h"
#include "server/operations/reservations_id.h"

#define RESERVATIONS_SHARDS 64
#define RESERVATIONS_LISTS 256

struct entry {
    struct entry *next;
    struct id id;
    struct weir_reservation handle;
    uint64_t expires_ns;
    struct room_share share;
    bool uncharged;    /* nothing to settle: a shadow limit would have denied, or the answer was
                        * given without the store; a charge made without it stays */
    struct held *held; /* for a limit that a fleet decides; NULL: `handle` is used */
    struct weir_rules_key key;
    struct weir_text parts[]; /* of `key`; then the bytes of its texts */
};

/* What is needed to settle in a fleet's store: the limit, which is kept, the key and the charge. */
struct held {
    struct rules_found found;
    bool kept; /* the limit is held, and must be let go */
    uint64_t cost;
    uint64_t stamp;
    size_t key_len;
    size_t shard_len;
    char bytes[]; /* the shard, then the key */
};

struct shard {
    pthread_mutex_t lock;
    uint64_t oldest_ns; /* no entry of the shard expires before this time */
    struct entry *lists[RESERVATIONS_LISTS];
} __attribute__((aligned(64)));

struct reservations {
    struct room room;
    struct reservations_counts counts;
    struct shard shards[RESERVATIONS_SHARDS];
};

/* Allocates an entry with a copy of the key and a new id, in no list yet. Returns NULL after an
 * error: RESERVATION_FULL or WEIR_E... in *e, the reason in *error. */
struct entry *entry_create(struct asker *asker, const struct weir_rules_key *key, int *e,
                           struct weir_error *error);

/* Gives the room of an entry that is in no list back, and frees it. */
void entry_forget(struct reservations *r, struct entry *e);

/* Enters an entry into its list. From then on another thread may take it. */
void entry_put(struct reservations *r, struct entry *e, uint64_t now_ns);

/* Takes an entry off its list; the caller owns it then. Returns NULL if there is none. */
struct entry *entry_take(struct reservations *r, struct id id);

#endif
