/*
 * What a Cluster says about where its slots live: the reply to CLUSTER SLOTS, and the refusals MOVED
 * and ASK. Of bytes, without I/O. An empty host means: the one that has said so.
 */
#ifndef WEIR_STORE_SLOTS_H
#define WEIR_STORE_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"

#define SLOTS_HOST_MAX 255

struct slots_reader {
    struct text rest;
    int64_t left; /* ranges */
};

/* Slots that live together at one primary. */
struct slots_range {
    unsigned first;
    unsigned last;
    struct text host; /* at NULL: nobody knows where */
    unsigned port;
};

/* A whole reply (store/value.h). False: it is not that of CLUSTER SLOTS. */
bool slots_begin(struct slots_reader *r, struct text reply);

/* The next range: 1. 0: there is none. -1: the reply is damaged. */
int slots_next(struct slots_reader *r, struct slots_range *out);

/* "MOVED 3999 127.0.0.1:6381", and ASK likewise. IPv6 addresses come without brackets. */
struct redirect {
    unsigned slot;
    struct text host;
    unsigned port;
};

bool redirect_read(struct text error, struct redirect *out);

#endif
