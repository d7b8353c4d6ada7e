/*
 * How many nodes the fleet has: each tells the store every 2 s that it is alive, and hears how many have
 * done so within 10 s. While the store is away the last number counts; a node that has never reached it
 * knows of itself alone (fleet_size says better).
 */
#ifndef WEIR_SHARED_MEMBERS_H
#define WEIR_SHARED_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buffer.h"
#include "redis/reply.h"

#define MEMBERS_BEAT_NS (2 * WEIR_SECOND)
#define MEMBERS_ALIVE_NS (10 * WEIR_SECOND)

/* Of a process; atomic. */
struct members {
    uint64_t nodes;  /* last heard; 0: never */
    uint64_t due_ns; /* the next beat */
    uint64_t node;   /* who we are */
    char key[128];   /* in the store */
};

void members_init(struct members *m, const char *prefix, uint64_t node);

/* True: the caller is to send the heartbeat that is due, of which no other thread will. */
bool members_take_beat(struct members *m, uint64_t now_ns);
uint64_t members_due(const struct members *m);

void members_put_arguments(const struct members *m, struct buffer *b, unsigned *count);
void members_heard(struct members *m, const struct store_reply *reply);

uint64_t members_count(const struct members *m); /* at least 1 */

#endif
