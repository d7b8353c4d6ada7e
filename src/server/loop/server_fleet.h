/* The store of a fleet, as a server sees it. */
#ifndef WEIR_SERVER_LOOP_SERVER_FLEET_H
#define WEIR_SERVER_LOOP_SERVER_FLEET_H

#include "common/histogram.h"
#include "server/loop/server.h"
#include "shared/synced/sync.h"

#define FLEET_ENDPOINTS 64 /* most endpoints that are reported */

struct fleet_endpoint_numbers {
    char name[300]; /* host:port */
    uint64_t open;  /* 1: its breaker is open */
    /* As the endpoint last said by INFO; 0 where it is not known. */
    uint64_t memory_bytes;
    uint64_t memory_most; /* maxmemory */
    uint64_t full;        /* 1: above store.memory_high */
    uint64_t evicted;
    uint64_t maxclients;
    uint64_t noeviction, evicts_volatile, evicts_all; /* 1 for its policy */
    const char *policy;                               /* "" if it is not known */
};

struct fleet_numbers {
    uint64_t up; /* 1: there is a connection, and an endpoint that is worth asking */
    uint64_t links;
    uint64_t links_each; /* connections that this process makes to each primary */
    uint64_t nodes;
    uint64_t calls, replies, unknown, not_run, resent, late;
    uint64_t connects;
    uint64_t refunds_lost;
    uint64_t targets_refused;
    char last_refused[128]; /* "": none */
    struct sync_counts synced;
    uint64_t full;                  /* endpoints that are full */
    uint64_t evicted;               /* keys that the endpoints have evicted */
    uint64_t certificate_ns;        /* Unix time at which the own one ends; 0: none */
    struct weir_error certificates; /* why changed ones are not used; text "": they are */
    struct weir_error why;          /* what is wrong with the store; text "": no known trouble */
    struct histogram took;
    struct fleet_endpoint_numbers endpoints[FLEET_ENDPOINTS];
    size_t endpoints_count;
};

/* Returns the functions by which a server uses this fleet, which fleet_open_bare() has made. */
struct server_fleet fleet_serve(struct weir_fleet *fleet);

/* Logs when the store has gone away or come back. One thread calls it at regular intervals. */
void fleet_watch(struct server *server);

#endif
