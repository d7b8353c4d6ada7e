/*
 * How many nodes the fleet has: each node tells the store every 2 s that it is alive, and hears how
 * many have done so within 10 s. While the store is away the last number counts. A node that has
 * never reached the store knows only of itself; fleet_size sets the right number.
 */
#ifndef WEIR_SHARED_MEMBERS_H
#define WEIR_SHARED_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "redis/reply.h"

#define MEMBERS_BEAT_NS (2 * WEIR_SECOND)
#define MEMBERS_ALIVE_NS (10 * WEIR_SECOND)

/* Shared by the threads of a process. `nodes` and `due_ns` are atomic; the rest does not change. */
struct members {
    uint64_t nodes;  /* last number heard; 0: none yet */
    uint64_t due_ns; /* when the next heartbeat is due */
    uint64_t node;   /* the number that identifies this node */
    char key[128];   /* key in the store */
};

void members_init(struct members *m, const char *prefix, uint64_t node);

/* Returns true if a heartbeat is due and the caller must send it; no other thread will. */
bool members_take_beat(struct members *m, uint64_t now_ns);
uint64_t members_due(const struct members *m);

void members_put_arguments(const struct members *m, struct buffer *b, unsigned *count);
void members_heard(struct members *m, const struct store_reply *reply);

uint64_t members_count(const struct members *m); /* at least 1 */

#endif
