/*
 * One redis-server process of a test, on a port of 127.0.0.1: it can be killed, held, started again,
 * and asked. It dies with the thread that started it, also if that crashes. What goes wrong with the
 * test's own means ends the test program; without a redis-server it is skipped.
 *
 * A node is used by one thread at a time.
 */
#ifndef WEIR_TESTS_SUPPORT_REDIS_NODE_H
#define WEIR_TESTS_SUPPORT_REDIS_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buffer.h"

#define REDIS_ARGS_MAX 48
#define REDIS_ARG_MAX 128

struct redis_node {
    char folder[96]; /* its own */
    unsigned port;
    unsigned bus; /* of a Cluster's node, or 0 */
    int held[2];  /* who keeps its ports for it */
    pid_t pid;    /* 0: does not run */
    bool paused;
    char id[41]; /* of a Cluster's node or a Sentinel */
    size_t argc;
    char args[REDIS_ARGS_MAX][REDIS_ARG_MAX]; /* with which it is started */
    struct buffer reply;
};

/* A free port, which stays so for a redis-server that comes and goes, until *held is closed. */
unsigned redis_hold_port(int *held);

/* Before it is started: its folder within `parent`, its ports, and the options that all nodes have.
 * bus: a second port. */
void redis_node_prepare(struct redis_node *n, const char *parent, unsigned number, bool bus);
void redis_node_option(struct redis_node *n, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A file in its folder. */
void redis_node_file(const struct redis_node *n, const char *name, struct text text);

void redis_node_start(struct redis_node *n);          /* does not wait ... */
void redis_node_await(struct redis_node *n);          /* ... until it answers */
void redis_node_show_log(const struct redis_node *n); /* to stderr */

bool redis_node_runs(const struct redis_node *n); /* neither killed nor paused */
void redis_node_kill(struct redis_node *n);       /* -9 */
void redis_node_pause(struct redis_node *n);
void redis_node_resume(struct redis_node *n);
void redis_node_restart_empty(struct redis_node *n); /* kills it first; waits until it answers */
void redis_node_finish(struct redis_node *n);        /* kills it, removes its folder */

/*
 * A command by a connection of its own. The reply as text, which lives until the node's next command:
 * of an array each value on a line; of an error its line behind '-'; NULL: no answer within 3 s, or
 * nobody there.
 */
const char *redis_node_do(struct redis_node *n, const char *const *args, size_t count);

/* Its words are separated by spaces, and hold none. */
const char *redis_node_run(struct redis_node *n, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The i-th line of a reply, copied; "" if there is none. */
void redis_line(const char *reply, unsigned i, char *out, size_t size);

/* Of `INFO`, the value behind `name:`; -1 if there is none. */
long long redis_node_info(struct redis_node *n, const char *section, const char *name);

/* CLOCK_MONOTONIC. */
uint64_t redis_now_ms(void);
/* Between two looks at a condition that one waits for. */
void redis_look_again_soon(void);

#endif
