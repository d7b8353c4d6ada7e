/*
 * Nodes of a fleet: several processes of `weir serve` with one rule file and one store. They die
 * with the thread that started them, even if that crashes. An error ends the test program.
 */
#ifndef WEIR_TESTS_SUPPORT_WEIR_NODES_H
#define WEIR_TESTS_SUPPORT_WEIR_NODES_H

#include <sys/types.h>

#include "support/server/server_client.h"

#define WEIR_NODES_MAX 16

struct weir_nodes {
    char folder[96];
    unsigned count;
    pid_t pid[WEIR_NODES_MAX]; /* 0: it does not run */
    bool kept;                 /* each node has --state, a folder of its own */
    unsigned threads;          /* of each node; 0: 2 */
    unsigned links;            /* connections to the store that a node is ready with; 0: 3 */
};

/* Starts the nodes with --store URL. Returns when they listen and are connected to the store. */
void weir_nodes_start(struct weir_nodes *n, unsigned count, const char *rules, const char *url);
/* The same with --state. */
void weir_nodes_start_kept(struct weir_nodes *n, unsigned count, const char *rules,
                           const char *url);
/* The same with this many threads; returns when each node has so many connections to the store. */
void weir_nodes_start_sharing(struct weir_nodes *n, unsigned count, const char *rules,
                              const char *url, unsigned threads, unsigned links);
/* Starts a node that was ended again. Returns when it listens; the store may be away. */
void weir_nodes_restart(struct weir_nodes *n, unsigned node, const char *url);
void weir_nodes_connect(const struct weir_nodes *n, unsigned node, struct server_client *c);

/* Writes the file that all nodes read again when they are told to. */
void weir_nodes_write_rules(const struct weir_nodes *n, const char *rules);

/* Ends a node and waits for it: by SIGTERM, and then its exit status must be 0; or by SIGKILL. */
void weir_nodes_end(struct weir_nodes *n, unsigned node, int signal_number);

/* Sends a request with "Connection: close" to the HTTP listener. Returns its reply, which is valid
 * until the thread's next call of this or of weir_nodes_metric(). */
const char *weir_nodes_http(const struct weir_nodes *n, unsigned node, const char *request);

/* Returns the value of a series ("weir_store_up"); -1 if there is none. */
double weir_nodes_metric(const struct weir_nodes *n, unsigned node, const char *series);

/* Returns what the node wrote to stderr; to be freed. */
char *weir_nodes_log(const struct weir_nodes *n, unsigned node);

/* Ends the running nodes by SIGTERM, and removes the folder. */
void weir_nodes_finish(struct weir_nodes *n);

#endif
