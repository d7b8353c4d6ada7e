/*
 * The connections of a thread by address, and which of them makes room for others.
 *
 * A bound on connections or bytes alone would let a client that takes everything lock out every
 * other one. So each thread counts three things for each address and for all addresses together:
 * open connections, bytes of requests and handshakes that are kept, and replies that are not
 * fetched.
 *
 * Too many connections: one of the address that has most is closed, and the new one takes its
 * place. Of this address goes, in this order, the oldest one
 *   - that has shown a wrong secret, and waits for the refusal, which is delayed (penalty.h);
 *   - that is idle: the server waits for its next request. One that is younger than CROWD_FRESH_MS,
 *     or has bytes that were not read yet, is spared: its request is on the way;
 *   - that is stalled: its client does not fetch the replies;
 *   - that is idle and was spared, when clients connect so fast that all connections are fresh.
 *     First goes one that has sent a request or the beginning of one, then one that has sent
 *     nothing, at last any.
 * A client could keep any number of connections in each of these states. Only connections that wait
 * for the store of a fleet, or for the delay of a limit, are never closed.
 *
 * Too many bytes: if an address has more than an eighth of them (CROWD_SHARE), the address that has
 * most gives way, otherwise the whole thread does; the connection that has had bytes for the
 * longest time is closed. So a client with one address harms itself only; and when each handshake
 * or request of a flood comes from another address, those go first that do not end. The caller
 * names a connection that it still uses, which is never closed.
 *
 * To count, and to find an address or a connection, takes a constant time, because a client can
 * cause that at any rate.
 */
#ifndef WEIR_SERVER_LOOP_CROWD_H
#define WEIR_SERVER_LOOP_CROWD_H

#include <weir.h>

#include "server/loop/tally.h"

struct connection;
struct worker;

enum crowd_of {
    CROWD_OPEN,   /* a connection is one unit */
    CROWD_KEPT,   /* bytes: connection_note_kept() */
    CROWD_UNSENT, /* bytes: connection_note_unsent() */
    CROWDS
};

struct crowd_list {
    struct connection *oldest;
    struct connection *newest;
};

/* The connections of one address that have units. */
struct crowd_group {
    struct crowd_list list;
    uint64_t units;
    uint32_t next; /* rows of groups of the same rank; TALLY_NONE: none */
    uint32_t previous;
};

/* Groups with about the same number of units, in the order in which they came to have it. */
struct crowd_rank {
    uint32_t first; /* row, plus one; 0: none */
    uint32_t last;
};

struct crowd {
    struct crowd_group *groups; /* by the row that a tally gave the address */
    struct crowd_rank *ranks;
    uint32_t ranks_count;
    uint64_t step;         /* units from one rank to the next */
    uint32_t most;         /* rank of the address that has most */
    struct crowd_list all; /* all connections that have units */
    uint64_t units;        /* of all connections, also of those that are in no group */
};

struct crowd_link {
    struct connection *older;
    struct connection *newer;
};

/* What a connection has of it. */
struct crowd_place {
    struct crowd_link of_address;
    struct crowd_link of_thread;
    size_t units;
};

/* Makes the crowds of a thread, for tallies with this many rows. Returns 0 or WEIR_ENOMEM. */
int crowds_init(struct worker *w, uint32_t rows, struct weir_error *error);
void crowds_finish(struct worker *w);

/* Counts a connection that is not closing for its address; c->row was TALLY_NONE. */
void crowd_enter(struct connection *c, uint32_t row);

/* Ends that. Units that the connection still has count for the thread, but for no address: it
 * is not closed because of them. */
void crowd_leave(struct connection *c);

/* Sets how many units a connection has. */
void crowd_set(struct connection *c, enum crowd_of of, size_t units);

/* Returns the connection that makes room for another one: of an address, or with TALLY_NONE of the
 * address that has most. NULL: none may be closed, among the first CROWD_LOOKS of each kind. */
#define CROWD_LOOKS 64
#define CROWD_FRESH_MS 100 /* from accepting a connection until its first request is expected */
struct connection *crowd_oldest(const struct worker *w, uint32_t row);

/* Returns the connection whose bytes make room for those of others, or NULL: there is none but
 * `except`. */
#define CROWD_SHARE 8 /* an address with a smaller part of the bytes is not what fills the thread */
struct connection *crowd_debtor(const struct worker *w, enum crowd_of of,
                                const struct connection *except);

#endif
