/*
 * One redis-server process of a test, on a port of 127.0.0.1. It can be killed, paused, started
 * again, and asked. It dies with the thread that started it, even if that crashes. Other errors end
 * the test program; the test is skipped if there is no redis-server.
 *
 * A node is used by one thread at a time.
 */
#ifndef WEIR_TESTS_SUPPORT_REDIS_NODE_H
#define WEIR_TESTS_SUPPORT_REDIS_NODE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/buffer.h"
#include "support/tls/certificates.h"

#define REDIS_ARGS_MAX 48
#define REDIS_ARG_MAX 128

struct redis_node {
    char folder[96];      /* its own folder */
    unsigned port;        /* for the commands of the test */
    unsigned public_port; /* for clients and other nodes: the same, or that of TLS */
    unsigned bus;         /* the bus port of a Cluster node, or 0 */
    int held[3];          /* sockets that keep its ports reserved */
    pid_t pid;            /* 0: it does not run */
    bool paused;
    char id[41]; /* id of a Cluster node or a Sentinel */
    size_t argc;
    char args[REDIS_ARGS_MAX][REDIS_ARG_MAX]; /* its command line */
    struct buffer reply;
};

/* Returns a free port. It stays reserved for a redis-server that comes and goes, until *held is
 * closed. */
unsigned redis_hold_port(int *held);

/* Call it before the start: makes the folder within `parent`, reserves the ports, sets the options
 * that all nodes have. `bus` asks for a second port. */
void redis_node_prepare(struct redis_node *n, const char *parent, unsigned number, bool bus);
void redis_node_option(struct redis_node *n, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Adds the options by which it and its clients speak TLS, with a port of its own: `cert` names its
 * certificate, and `ask` says whether it asks clients for theirs. */
void redis_node_secure(struct redis_node *n, const struct certificates *certificates,
                       const char *cert, bool ask);
/* Writes a file into its folder. */
void redis_node_file(const struct redis_node *n, const char *name, struct weir_text text);

void redis_node_start(struct redis_node *n); /* does not wait */
void redis_node_await(struct redis_node *n); /* waits until it answers */

/* Waits as await_start() does. `what` says for what, in words. */
typedef bool (*redis_ready_fn)(struct redis_node *n);
void redis_node_await_ready(struct redis_node *n, const char *what, redis_ready_fn ready);

void redis_node_show_log(const struct redis_node *n); /* to stderr */

bool redis_node_runs(const struct redis_node *n); /* it is neither killed nor paused */
void redis_node_kill(struct redis_node *n);       /* with SIGKILL */
void redis_node_pause(struct redis_node *n);
void redis_node_resume(struct redis_node *n);
void redis_node_restart_empty(struct redis_node *n); /* kills it first; waits until it answers */
void redis_node_finish(struct redis_node *n);        /* kills it, removes its folder */

/*
 * Sends a command on a connection of its own. Returns the reply as text, which is valid until the
 * node's next command: an array has each value on a line, an error is its line with the leading
 * '-'. Returns NULL without an answer within 3 s or without a server.
 */
const char *redis_node_do(struct redis_node *n, const char *const *args, size_t count);

/* The same with words that are separated by spaces and contain none. */
const char *redis_node_run(struct redis_node *n, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Copies the i-th line of a reply; "" if there is none. */
void redis_line(const char *reply, unsigned i, char *out, size_t size);

/* Returns the value after `name:` in INFO; -1 if there is none. */
long long redis_node_info(struct redis_node *n, const char *section, const char *name);

/* Returns the time of CLOCK_MONOTONIC. */
uint64_t redis_now_ms(void);
/* Sleeps briefly between two checks of an awaited condition. */
void redis_look_again_soon(void);

#endif
