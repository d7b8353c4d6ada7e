/*
 * Nodes of a fleet: `weir serve` in as many processes, with one rule file and one store. They die with
 * the thread that started them, also if that crashes. What goes wrong ends the test program.
 */
#ifndef WEIR_TESTS_SUPPORT_WEIR_NODES_H
#define WEIR_TESTS_SUPPORT_WEIR_NODES_H

#include <sys/types.h>

#include "support/server_client.h"

#define WEIR_NODES_MAX 16

struct weir_nodes {
    char folder[96];
    unsigned count;
    pid_t pid[WEIR_NODES_MAX]; /* 0: does not run */
};

/* Started with --store URL; they listen, and are connected to the store, when it returns. */
void weir_nodes_start(struct weir_nodes *n, unsigned count, const char *rules, const char *url);
void weir_nodes_connect(const struct weir_nodes *n, unsigned node, struct server_client *c);

/* The file that all of them read again when they are told to. */
void weir_nodes_write_rules(const struct weir_nodes *n, const char *rules);

/* SIGTERM, and a good end; or SIGKILL. Waits for it. */
void weir_nodes_end(struct weir_nodes *n, unsigned node, int signal_number);

/* The value of a series ("weir_store_up"); -1: there is none. */
double weir_nodes_metric(const struct weir_nodes *n, unsigned node, const char *series);

/* What it has said on stderr; to be freed. */
char *weir_nodes_log(const struct weir_nodes *n, unsigned node);

/* Ends those that run, by SIGTERM, and removes the folder. */
void weir_nodes_finish(struct weir_nodes *n);

#endif
