/*
 * Closes a connection to make room for another.
 *
 * A bound on connections alone would let a client that holds them all lock out every other one. So
 * when there are too many, the oldest idle connection of the address that has most is closed, and
 * the new one takes its place. A connection is idle while the server waits for its next request:
 * nothing is being decided or written. If none is idle, the oldest one that is stalled is closed: its
 * client does not fetch the replies, or has shown a wrong secret whose refusal is delayed (penalty.h).
 * A client could keep any number of connections in these two states. Only connections that wait for
 * the store of a fleet are never closed.
 *
 * Each thread has its own connections by address, in the order in which it accepted them. To enter, to
 * leave and to find the address that has most takes a constant time, because a client can cause all
 * three at any rate.
 */
#ifndef WEIR_SERVER_NET_CROWD_H
#define WEIR_SERVER_NET_CROWD_H

#include <weir.h>

#include "server/net/tally.h"

struct connection;
struct worker;

/* The connections of one address. */
struct crowd_group {
    struct connection *oldest;
    struct connection *newest;
    uint32_t count;
    uint32_t next; /* rows of groups with the same count; TALLY_NONE: none */
    uint32_t previous;
};

struct crowd {
    struct crowd_group *groups; /* by the row that a tally gave the address */
    uint32_t
        *ranks; /* by number of connections: the first group that has so many, plus one; 0: none */
    uint32_t most; /* connections of the address that has most */
};

/* What a connection has of it. */
struct crowd_place {
    struct connection *older; /* of the same address */
    struct connection *newer;
    uint32_t row; /* TALLY_NONE: it is in no group */
};

/* For tallies with this many rows. Returns 0 or WEIR_ENOMEM. */
int crowd_init(struct crowd *crowd, uint32_t rows, struct weir_error *error);
void crowd_finish(struct crowd *crowd);

void crowd_enter(struct connection *c, uint32_t row);
void crowd_leave(struct connection *c);

/* Returns the oldest idle connection of one address, or with TALLY_NONE of the address that has
 * most; if there is none among the first CROWD_LOOKS, the oldest stalled one; otherwise NULL. */
#define CROWD_LOOKS 64
struct connection *crowd_oldest(const struct worker *w, uint32_t row);

#endif
