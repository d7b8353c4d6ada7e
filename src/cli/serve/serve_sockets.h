/*
 * Sockets that the service manager has opened: sd_listen_fds(3), without its library. The
 * service manager keeps them open during a restart, so that no connection is refused.
 *
 * A socket belongs to the listener of its name (LISTEN_FDNAMES: resp, http, admin), or if the
 * name is none of these, to the listener whose port or path it has. It replaces the address.
 */
#ifndef WEIR_CLI_SERVE_SERVE_SOCKETS_H
#define WEIR_CLI_SERVE_SERVE_SOCKETS_H

#include "cli/serve/serve.h"

#define SOCKETS_MAX (PROTOCOLS * SERVER_THREADS_MAX)

struct socket_given {
    int fd;
    char name[32];
    char address[128]; /* "127.0.0.1:6380", "unix:/run/weir/resp" */
};

struct sockets {
    struct socket_given at[SOCKETS_MAX];
    unsigned count;
    int fds[PROTOCOLS][SERVER_THREADS_MAX]; /* by listener: passed to the server */
    char address[PROTOCOLS][128];
};

/*
 * Takes the sockets, and removes LISTEN_... from the environment. If the variables are meant for
 * another process, it takes no socket and leaves them. Returns CLI_OK, or CLI_USAGE after a
 * message.
 */
int sockets_take(struct sockets *sockets);

/*
 * Assigns each socket to its listener. Call it once the listeners' addresses are known. Returns
 * CLI_OK, or CLI_USAGE after a message.
 */
int sockets_assign(struct sockets *sockets, struct serve_settings *settings);

void sockets_close(struct sockets *sockets);

#endif
