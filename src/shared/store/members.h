/*
 * How many nodes the fleet has: each node tells the store every 2 s that it is alive, and hears how
 * many have done so within 10 s.
 *
 * The number matters when the store is away, and then a number that is too small admits too much.
 * So it rises at once, but falls only when the store has named fewer nodes for 10 s without a gap:
 * a store that was away, or was started empty, does not know the nodes that have not found it again
 * yet. While the store is away the number stays. A file can keep it over restarts
 * (members_keep()). A node that has never reached the store and has no such file knows only of
 * itself; only fleet_size sets a number that is always right.
 */
#ifndef WEIR_SHARED_STORE_MEMBERS_H
#define WEIR_SHARED_STORE_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "redis/reply.h"

#define MEMBERS_BEAT_NS (2 * WEIR_SECOND)
#define MEMBERS_ALIVE_NS (10 * WEIR_SECOND)
#define MEMBERS_GAP_NS (3 * MEMBERS_BEAT_NS) /* a longer silence of the store is a gap */
#define MEMBERS_MOST 1000000

/* Shared by the threads of a process. Numbers and times are atomic; the rest does not change. */
struct members {
    uint64_t nodes;    /* 0: not known */
    uint64_t heard_ns; /* when the store last named a number; 0: never */
    uint64_t since_ns; /* since when it has named fewer nodes, without a gap */
    uint64_t due_ns;   /* when the next heartbeat is due */
    uint64_t *kept;    /* a word that outlives the process; NULL: none */
    uint64_t node;     /* the number that identifies this node */
    char key[128];     /* key in the store */
};

void members_init(struct members *m, const char *prefix, uint64_t node);

/* Returns true if a heartbeat is due and the caller must send it; no other thread will. */
bool members_take_beat(struct members *m, uint64_t now_ns);
uint64_t members_due(const struct members *m);

void members_put_arguments(const struct members *m, struct buffer *b, unsigned *count);
void members_heard(struct members *m, const struct store_reply *reply, uint64_t now_ns);

/* Begins with the number in *kept, unless that is no number of nodes, and keeps the number there.
 * Call it before other threads use `m`; the word must outlive it. */
void members_keep(struct members *m, uint64_t *kept);

uint64_t members_count(const struct members *m); /* at least 1 */

#endif
