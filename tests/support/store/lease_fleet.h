/*
 * Nodes that lease units of one key from a redis-server, at times that the test chooses. The units
 * that they admit are measured exactly, at the time of each admission: against the limit of any
 * stretch of time (a bucket), or of each window.
 */
#ifndef WEIR_TESTS_SUPPORT_LEASE_FLEET_H
#define WEIR_TESTS_SUPPORT_LEASE_FLEET_H

#include "base/maths.h"
#include "shared/leased/lease.h"
#include "shared/core/script.h"
#include "support/store/node_keys_of.h"
#include "support/store/store_redis.h"

#define FLEET_NODES 16
#define FLEET_WAITING 256

struct fleet_node {
    struct node_keys *keys;
    uint64_t ahead_ns;   /* offset of its clock */
    int64_t drift_parts; /* drift of its clock, in millionths; positive is faster */
    bool dead;
};

/* A call whose reply has not arrived yet, or will arrive a second time. */
struct fleet_waiting {
    unsigned node;
    struct lease_call call;
    struct store_reply reply;
    uint64_t at_us;
    bool lost; /* the node is told that the call was lost */
};

/* Probability of each fault of a call, in thousandths. */
struct fleet_trouble {
    unsigned lost;       /* lost before it reaches the store */
    unsigned unanswered; /* executed, but its reply is lost */
    unsigned late;       /* the reply is late by up to late_us */
    unsigned twice;      /* the reply arrives twice */
    unsigned unsent;
    uint64_t late_us;
};

struct fleet {
    struct store_redis *redis;
    struct store_limit limit;
    struct store_numbers numbers;
    struct fleet_node node[FLEET_NODES];
    unsigned nodes;
    struct fleet_trouble trouble;
    uint64_t random;
    uint64_t now_us;
    int64_t step_us; /* by which the store's clock was set */
    struct fleet_waiting *waiting;
    unsigned waiting_count;

    /* measurements */
    uint64_t calls, asked, admitted, denied, unanswered;
    u128 full_parts; /* when a bucket of the admitted units is full again, in parts of a us */
    uint64_t window, in_window; /* the last window, and the units admitted in it */
    uint64_t excess;            /* units beyond the limit, the maximum at any time */
};

/* Starts the nodes. `options` are those of the limit. The caller owns the redis-server; this
 * empties it and loads the scripts. */
void fleet_start(struct fleet *f, struct store_redis *redis, const struct weir_options *options,
                 unsigned nodes, uint64_t seed);
void fleet_stop(struct fleet *f);

uint64_t fleet_random(struct fleet *f, uint64_t below);

/* Lets time pass: replies arrive, and nodes renew and return their leases. */
void fleet_pass(struct fleet *f, uint64_t us);

/* Asks a node. Returns true if it was admitted at once, by the node or by the store's immediate
 * reply. */
bool fleet_ask(struct fleet *f, unsigned node, uint64_t cost);

/* Ends the node, which gives back all its units. */
void fleet_end_node(struct fleet *f, unsigned node);

/* Runs a call in the store now. Returns its reply. */
struct store_reply fleet_run(struct fleet *f, const struct lease_call *call);

/* Sends a verb directly to the store. */
struct weir_answer fleet_verb(struct fleet *f, unsigned verb, uint64_t cost, uint64_t time_ns);
int fleet_act(struct fleet *f, unsigned verb, uint64_t time_ns);

#endif
