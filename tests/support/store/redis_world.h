/*
 * Real Redis processes as an operator would run them, all on 127.0.0.1:
 *
 *     redis_world_alone      node 0
 *     redis_world_sentinel   node 0 a master, 1 its replica, 2 to 4 three Sentinels (quorum 2)
 *     redis_world_cluster    nodes 0 to 2 primaries with a third of the slots each, 3 to 5 their
 *                            replicas
 *
 * They answer, and know each other, when the function returns. Everything ends with
 * redis_world_stop(), with the program, and with a crash of it (support/store/redis_node.h).
 *
 * A world is used by one thread at a time.
 */
#ifndef WEIR_TESTS_SUPPORT_REDIS_WORLD_H
#define WEIR_TESTS_SUPPORT_REDIS_WORLD_H

#include "support/store/redis_node.h"

#define REDIS_NODES_MAX 8
#define REDIS_MASTER_NAME "weir"
#define REDIS_SENTINELS 2 /* index of the first of three */
#define REDIS_PRIMARIES 3 /* of a Cluster; each has one replica */

struct redis_world {
    char folder[64];
    unsigned count;
    unsigned down_ms; /* for Sentinels; 0 in a world without them */
    struct redis_node node[REDIS_NODES_MAX];
    char url[256]; /* as in `store:` */
};

/* TLS between all nodes and their clients; the test's own commands go without it. */
struct redis_tls {
    const struct certificates *certificates;
    const char *cert; /* that of the nodes; NULL: "server" */
    bool ask;         /* clients need a certificate */
};

struct redis_world_options {
    unsigned down_ms;         /* before a failover, and cluster-node-timeout; 0: 1000 */
    bool min_replicas;        /* min-replicas-to-write 1, min-replicas-max-lag 2 */
    const char *const *extra; /* options of all nodes but Sentinels, NULL-terminated; may be NULL */
    const struct redis_tls *tls; /* NULL: none */
};

/* o may be NULL. */
void redis_world_alone(struct redis_world *w, const struct redis_world_options *o);
void redis_world_sentinel(struct redis_world *w, const struct redis_world_options *o);
void redis_world_cluster(struct redis_world *w, const struct redis_world_options *o);
void redis_world_stop(struct redis_world *w);

/* Ends the program, and the world with it, and prints the reply that is wrong. */
void redis_world_give_up(const struct redis_world *w, const char *what, const char *reply);

/* ---- replicas ---- */

/* Returns the running replica of a master or primary; -1 if there is none. */
int redis_world_replica_of(struct redis_world *w, int primary);

/* Waits until the node has a replica that has followed to the primary's present offset. Returns
 * false after 60 s. */
bool redis_world_await_replica(struct redis_world *w, int primary);

/* ---- Sentinel ---- */

/* Returns the master according to the first Sentinel that answers; -1 if none answers. */
int redis_world_master(struct redis_world *w);

/* From here on the Sentinels declare a master dead if it has not answered for down_ms. Before this
 * call, and after redis_world_await_master(), they wait for a minute, so that they do not replace a
 * master that a busy machine keeps from running. Does nothing in a world without Sentinels. */
void redis_world_expect_failover(struct redis_world *w);

/* Waits until the Sentinels agree on another master than node `old`, and that node says so itself.
 * Returns its number; -1 after 60 s. */
int redis_world_await_master(struct redis_world *w, int old);

/* Asks the Sentinels for a failover without a fault, and waits for it. Returns the new master. */
int redis_world_failover(struct redis_world *w);

/* ---- Cluster ---- */

/* Finds a text that is in the slot, to be used as a key or as its hash tag. */
void redis_slot_tag(unsigned slot, char tag[16]);

/* Returns the running node that answers for a slot. Waits for it, because nodes refuse commands
 * while they do not agree. Ends the program if there is none within 60 s. */
int redis_world_owner(struct redis_world *w, unsigned slot);

/* Waits until another node than `old` owns the slot and accepts commands for it. Returns -1 after
 * 60 s. */
int redis_world_await_owner(struct redis_world *w, unsigned slot, int old);

/* Makes the replica of a primary the primary, with its agreement, and waits for it. Returns the new
 * primary. */
int redis_world_promote(struct redis_world *w, int primary);

/*
 * Move a slot step by step, while clients use it: begin (from here on ASK and TRYAGAIN), keys
 * (moves up to `most`, returns how many are left), end (from here on MOVED). A refusal by a node
 * fails the test program.
 */
void redis_world_migrate_begin(struct redis_world *w, unsigned slot, int from, int to);
unsigned redis_world_migrate_keys(struct redis_world *w, unsigned slot, int from, int to,
                                  unsigned most);
void redis_world_migrate_end(struct redis_world *w, unsigned slot, int from, int to);

/* Moves the slot in one call. */
void redis_world_migrate(struct redis_world *w, unsigned slot, int from, int to);

#endif
