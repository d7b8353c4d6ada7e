/*
 * A connection through a fault proxy (support/fault_proxy.h): what comes in on one side waits, and
 * leaves on the other as the faults say.
 */
#ifndef WEIR_TESTS_SUPPORT_FAULT_PAIR_H
#define WEIR_TESTS_SUPPORT_FAULT_PAIR_H

#include <poll.h>

#include "common/buffer.h"
#include "support/fault_proxy.h"

#define FAULT_PIECES_MAX 256

/* Bytes that came together, and when they may leave. */
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
    bool ended; /* `from` has said that nothing more comes */
    bool told;  /* and `to` knows */
    bool dead;  /* something was dropped: nothing moves any more */
};

enum { FAULT_TO_SERVER, FAULT_TO_CLIENT };

struct fault_pair {
    int client;
    int server; /* -1: there is none (half open) */
    bool connecting;
    struct fault_way way[2];
};

/* What all connections of a proxy go by. Of the proxy's thread; the counts are atomic. */
struct fault_rules {
    struct faults now;
    uint64_t random;
    struct fault_counts counts;
};

/* server -1: there is none. NULL: no memory. */
struct fault_pair *fault_pair_create(int client, int server);
void fault_pair_destroy(struct fault_pair *c, bool hard);

/* The two places of the pair for poll(): its client, then its server. */
void fault_pair_watch(const struct fault_rules *r, const struct fault_pair *c, uint64_t now_ns,
                      struct pollfd *fds);
/* After poll(). False: it has broken. */
bool fault_pair_serve(struct fault_rules *r, struct fault_pair *c, const struct pollfd *fds,
                      uint64_t now_ns);
/* When the next piece leaves; UINT64_MAX: none waits for its time. */
uint64_t fault_pair_due(const struct fault_rules *r, const struct fault_pair *c);
/* Both sides know that the other has ended, or nobody is behind the client. */
bool fault_pair_is_over(const struct fault_pair *c);

/* Without a word of farewell: RST. -1: nothing. */
void fault_close_hard(int fd);

#endif
