/*
 * The slots of a Cluster: which slot a key is in, and what the Cluster says about the nodes that
 * serve them: the reply to CLUSTER SLOTS, and the refusals MOVED and ASK. The functions work on
 * bytes, without I/O. An empty host means the host of the node that sent the reply.
 */
#ifndef WEIR_REDIS_SLOTS_H
#define WEIR_REDIS_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/text.h"

#define SLOTS 16384
#define SLOTS_HOST_MAX 255

/* The slot of a key in a Redis Cluster: CRC16 of it, or of its hash tag if it has one. */
unsigned cluster_slot(struct weir_text key);

struct slots_reader {
    struct weir_text rest;
    int64_t left; /* ranges that are not read yet */
};

/* A range of slots that one primary serves. */
struct slots_range {
    unsigned first;
    unsigned last;
    struct weir_text host; /* host.at is NULL: not known */
    unsigned port;
};

/* Begins to read a whole reply (redis/reply.h). Returns false if it is not one of CLUSTER SLOTS. */
bool slots_begin(struct slots_reader *r, struct weir_text reply);

/* Reads the next range. Returns 1; 0: there is none; -1: the reply is damaged. */
int slots_next(struct slots_reader *r, struct slots_range *out);

/* "MOVED 3999 127.0.0.1:6381", and ASK likewise. IPv6 addresses come without brackets. */
struct redirect {
    unsigned slot;
    struct weir_text host;
    unsigned port;
};

bool redirect_read(struct weir_text error, struct redirect *out);

/* Returns true if this may be a name or an address, or is empty; the resolver decides what it is.
 * It is never the path of a unix socket. */
bool slots_is_host(struct weir_text host);

#endif
