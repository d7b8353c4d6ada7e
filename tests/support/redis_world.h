/*
 * Real Redis processes as an operator would run them, all on 127.0.0.1:
 *
 *     redis_world_alone      node 0
 *     redis_world_sentinel   node 0 a master, 1 its replica, 2 to 4 three Sentinels (quorum 2)
 *     redis_world_cluster    nodes 0 to 2 primaries with a third of the slots each, 3 to 5 their replicas
 *
 * They answer, and know each other, when the function returns. Everything ends with redis_world_stop(),
 * with the program, and with a crash of it (support/redis_node.h).
 *
 * A world is used by one thread at a time.
 */
#ifndef WEIR_TESTS_SUPPORT_REDIS_WORLD_H
#define WEIR_TESTS_SUPPORT_REDIS_WORLD_H

#include "support/redis_node.h"

#define REDIS_NODES_MAX 8
#define REDIS_MASTER_NAME "weir"
#define REDIS_SENTINELS 2 /* the first of three */
#define REDIS_PRIMARIES 3 /* of a Cluster; each with one replica */

struct redis_world {
    char folder[64];
    unsigned count;
    unsigned down_ms; /* of Sentinels; 0: a world without */
    struct redis_node node[REDIS_NODES_MAX];
    char url[256]; /* as for `store:` */
};

struct redis_world_options {
    unsigned down_ms;         /* redis_world_expect_failover(), cluster-node-timeout; 0: 1000 */
    bool min_replicas;        /* min-replicas-to-write 1, min-replicas-max-lag 2 */
    const char *const *extra; /* options of all nodes but Sentinels, NULL-terminated; may be NULL */
};

/* o may be NULL. */
void redis_world_alone(struct redis_world *w, const struct redis_world_options *o);
void redis_world_sentinel(struct redis_world *w, const struct redis_world_options *o);
void redis_world_cluster(struct redis_world *w, const struct redis_world_options *o);
void redis_world_stop(struct redis_world *w);

/* Ends the program, and the world with it, with a word about a reply that is not as it must be. */
void redis_world_give_up(const struct redis_world *w, const char *what, const char *reply);

/* ---- replicas ---- */

/* The replica, of those that run, of a master or primary; -1: none. */
int redis_world_replica_of(struct redis_world *w, int primary);

/* Waits until it has one that has followed to where the primary is now; false if not within 60 s. */
bool redis_world_await_replica(struct redis_world *w, int primary);

/* ---- Sentinel ---- */

/* Whom a Sentinel that can be asked calls the master; -1: nobody answers. */
int redis_world_master(struct redis_world *w);

/* From here on the Sentinels take a master for dead that has not answered for down_ms. Before this call, and
 * after redis_world_await_master(), they wait for a minute: a master that a busy machine keeps from
 * running is not to be replaced. Does nothing in a world without Sentinels. */
void redis_world_expect_failover(struct redis_world *w);

/* Waits until the Sentinels agree on another master than node `old`, and that one says so itself.
 * Its number; -1 if that does not happen within 60 s. */
int redis_world_await_master(struct redis_world *w, int old);

/* Asks the Sentinels for a failover without a fault, and waits for it. The new master. */
int redis_world_failover(struct redis_world *w);

/* ---- Cluster ---- */

/* A text whose slot it is, to be a key or its hash tag. */
void redis_slot_tag(unsigned slot, char tag[16]);

/* Returns the node that runs and answers for a slot. Waits for it, because nodes refuse commands while
 * they do not agree; ends the program if there is none within 60 s. */
int redis_world_owner(struct redis_world *w, unsigned slot);

/* Waits until another node than `old` owns the slot, and takes commands for it; -1: not within 60 s. */
int redis_world_await_owner(struct redis_world *w, unsigned slot, int old);

/* Makes the replica of a primary the primary, by agreement, and waits for it. The new one. */
int redis_world_promote(struct redis_world *w, int primary);

/*
 * A slot on its way, step by step, while others use it: begin (from here on ASK and TRYAGAIN), keys
 * (moves up to `most`, says how many are left), end (from here on MOVED). What a node refuses fails
 * the test program.
 */
void redis_world_migrate_begin(struct redis_world *w, unsigned slot, int from, int to);
unsigned redis_world_migrate_keys(struct redis_world *w, unsigned slot, int from, int to,
                                  unsigned most);
void redis_world_migrate_end(struct redis_world *w, unsigned slot, int from, int to);

/* All of it at once. */
void redis_world_migrate(struct redis_world *w, unsigned slot, int from, int to);

#endif
