/*
 * A connection through a fault proxy (support/store/fault_proxy.h): bytes that come in on one side
 * wait, and leave on the other side as the faults say.
 */
#ifndef WEIR_TESTS_SUPPORT_FAULT_PAIR_H
#define WEIR_TESTS_SUPPORT_FAULT_PAIR_H

#include <poll.h>

#include "common/buffer.h"
#include "support/store/fault_proxy.h"

#define FAULT_PIECES_MAX 256

/* Bytes that arrived together, and when they may leave. */
struct fault_piece {
    uint64_t due_ns;
    size_t len;
};

/* One direction of a connection. */
struct fault_way {
    int from;
    int to;
    struct buffer bytes;
    struct fault_piece pieces[FAULT_PIECES_MAX]; /* a ring */
    unsigned first;
    unsigned count;
    bool ended; /* `from` has closed its sending side */
    bool told;  /* `to` has been told so */
    bool dead;  /* bytes were dropped: nothing moves any more */
};

enum { FAULT_TO_SERVER, FAULT_TO_CLIENT };

struct fault_pair {
    int client;
    int server; /* -1: no server (half open) */
    bool connecting;
    struct fault_way way[2];
};

/* The rules for all connections of a proxy. Only the proxy's thread uses them; the counts are
 * atomic. */
struct fault_rules {
    struct faults now;
    uint64_t random;
    struct fault_counts counts;
};

/* Returns NULL if there is no memory. server -1 means that there is no server. */
struct fault_pair *fault_pair_create(int client, int server);
void fault_pair_destroy(struct fault_pair *c, bool hard);

/* Fills in the two entries of the pair for poll(): its client, then its server. */
void fault_pair_watch(const struct fault_rules *r, const struct fault_pair *c, uint64_t now_ns,
                      struct pollfd *fds);
/* Moves bytes after poll(). Returns false if the connection has broken. */
bool fault_pair_serve(struct fault_rules *r, struct fault_pair *c, const struct pollfd *fds,
                      uint64_t now_ns);
/* Returns when the next piece leaves; UINT64_MAX if none is waiting for its time. */
uint64_t fault_pair_due(const struct fault_rules *r, const struct fault_pair *c);
/* Returns true if both sides know that the other has ended; without a server, if the client has
 * ended. */
bool fault_pair_is_over(const struct fault_pair *c);

/* Closes the socket with RST. Does nothing if fd is -1. */
void fault_close_hard(int fd);

#endif
