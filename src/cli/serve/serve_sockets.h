/*
 * Sockets that somebody else has opened: sd_listen_fds(3), without its library.
 * Whoever holds them keeps them over a restart, so that no connection is refused.
 *
 * A socket belongs to the listener of its name (LISTEN_FDNAMES: resp, http,
 * admin), else to the one whose port or path it has. It replaces the address.
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
    int fds[PROTOCOLS][SERVER_THREADS_MAX]; /* by listener: what the server is given */
    char address[PROTOCOLS][128];
};

/*
 * Takes them, and LISTEN_... out of the environment; none are there if those are for another
 * process. CLI_OK, or CLI_USAGE after a complaint.
 */
int sockets_take(struct sockets *sockets);

/* Gives each to the listener that it belongs to, once it is known where those would be. */
int sockets_assign(struct sockets *sockets, struct serve_settings *settings);

void sockets_close(struct sockets *sockets);

#endif
