/*
 * Nodes that lease units of one key from a redis-server, at times that the test chooses. What they
 * admit is measured exactly, as of the moment at which it is: against the limit of any stretch of
 * time (a bucket), or of each window.
 */
#ifndef WEIR_TESTS_SUPPORT_LEASE_FLEET_H
#define WEIR_TESTS_SUPPORT_LEASE_FLEET_H

#include "base/maths.h"
#include "shared/leased/lease.h"
#include "shared/script.h"
#include "support/store_redis.h"

#define FLEET_NODES 16
#define FLEET_WAITING 256

struct fleet_node {
    struct leases *leases;
    uint64_t ahead_ns;   /* of its clock */
    int64_t drift_parts; /* its clock goes faster by this many millionths */
    bool dead;
};

/* A call whose reply has not arrived yet, or will arrive again. */
struct fleet_waiting {
    unsigned node;
    struct lease_call call;
    struct store_reply reply;
    uint64_t at_us;
    bool lost; /* the node is told so */
};

/* What happens to calls, in thousandths. */
struct fleet_trouble {
    unsigned lost;       /* before they arrive */
    unsigned unanswered; /* after they ran */
    unsigned late;       /* by up to late_us */
    unsigned twice;      /* replies */
    unsigned unsent;
    uint64_t late_us;
};

struct fleet {
    struct store_redis *redis;
    struct scripts scripts;
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

    /* measured */
    uint64_t calls, asked, admitted, denied, unanswered;
    u128 full_parts; /* when a bucket of what was admitted is full again, in parts of a us */
    uint64_t window, in_window; /* the last one, and what was admitted in it */
    uint64_t excess;            /* units beyond the limit, the most at any time */
};

/* The options are those of the limit. A redis-server with its scripts is the caller's. */
void fleet_start(struct fleet *f, struct store_redis *redis, const struct weir_options *options,
                 unsigned nodes, uint64_t seed);
void fleet_stop(struct fleet *f);

uint64_t fleet_random(struct fleet *f, uint64_t below);

/* Time passes: replies arrive, nodes look after their leases. */
void fleet_pass(struct fleet *f, uint64_t us);

/* A question at a node; true if it was admitted at once or by the store's reply at once. */
bool fleet_ask(struct fleet *f, unsigned node, uint64_t cost);

/* The node ends, giving all back. */
void fleet_end_node(struct fleet *f, unsigned node);

/* A call runs in the store, now; its reply. */
struct store_reply fleet_run(struct fleet *f, const struct lease_call *call);

/* A verb of the store, straight. */
struct weir_answer fleet_verb(struct fleet *f, enum store_verb verb, uint64_t cost,
                              uint64_t time_ns);
int fleet_act(struct fleet *f, enum store_verb verb, uint64_t time_ns);

#endif
