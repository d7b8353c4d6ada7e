/*
 * The part of a fleet that belongs to one loop: a struct store, its sockets, its timer. Everything
 * here happens on the loop's thread; the loop may be the fleet's own, the caller's, or a server's.
 *
 * A turn is the work between two sleeps of the loop: store_tick(), then the sockets that are listed
 * (to connect, to write). It is taken before and after the loop polls, and only if something has
 * happened; so all calls of one turn of the loop leave in one write.
 *
 * T1  Nothing calls the store from within one of its own calls: the driver's functions only list
 *     or close sockets.
 * T2  Any call into the store may close a socket: after such a call the caller checks the socket
 *     again (socket->link).
 * T3  A thread that is closed answers everything and calls no callback afterwards. Its memory is
 *     freed after the last callback of libuv's handles and requests, however long a name lookup
 *     takes.
 *
 * The timer is a timerfd. Most deadlines are 5 ms (the default) or less, and libuv's timers have
 * whole milliseconds. Measured (Debian 12, 2 shared vCPU, 400 rounds): with uv_timer a time of 0.3
 * ms comes 0.78 ms late, one of 2.5 ms 0.62 ms; with timerfd both come 0.03 ms late (medians; p99
 * 0.65 to 0.83 ms, and 0.06 to 0.08 ms). Setting it costs 0.7 us, and is needed only when something
 * is due earlier than the time it is set to. It also makes the caller's poll() as exact, whose
 * timeout has whole milliseconds too.
 */
#ifndef WEIR_FLEET_FLEET_THREAD_H
#define WEIR_FLEET_FLEET_THREAD_H

#include <netdb.h>

#include "fleet/fleet.h"

#define FLEET_READ_BYTES 65536
#define FLEET_SEALED_BYTES 65536 /* of TLS that a socket may hold back */
#define FLEET_SECRET_BYTES 1024
/* Time for one attempt to connect: looking up the name, and trying all its addresses. */
#define FLEET_CONNECT_NS WEIR_SECOND

struct fleet_thread {
    struct weir_fleet *fleet;
    struct fleet_thread *next; /* in weir_fleet.threads */
    uv_loop_t *loop;
    struct store *store;
    struct weir_text secret; /* the password of a link, set only within its client_up() */
    bool happened;           /* a turn is to be taken */
    bool closing;
    uint64_t leave_ns; /* when it closes by itself at the latest; UINT64_MAX: it does not */
    unsigned handles;  /* handles and requests that have not had their last callback */
    uv_prepare_t before;
    uv_check_t after;
    uv_async_t wake;
    void (*woken)(struct fleet_thread *t); /* called when `wake` was sent; may be NULL */
    uv_poll_t *timer;
    int timer_fd;
    uint64_t timer_ns;            /* time it is set to; UINT64_MAX: not set */
    struct fleet_socket *sockets; /* all that are not closed */
    struct fleet_socket *listed;  /* with something to do */
    struct fleet_socket *closed;  /* freed at the end of a turn */
    char reason[160];             /* why the last attempt to connect failed; "" if it succeeded */
    /* The store's error, with `reason`. It is written, and read by other threads, under the fleet's
     * lock. */
    char trouble[248];
    struct buffer plain; /* with TLS: what a socket has received, until the client has it */
    char read[FLEET_READ_BYTES];
};

/* Notes that something may have given the store or the sockets something to do. */
static inline void fleet_thread_happened(struct fleet_thread *t)
{
    t->happened = true;
}

/* For a loop that belongs to the fleet: gives leases back and reports counts to the store, for at
 * most 100 ms, then closes the thread and stops the loop. */
void fleet_thread_leave(struct fleet_thread *t);

/* Counts the last callback of a handle or request; frees a closing thread after the last one. */
void fleet_thread_handle_gone(struct fleet_thread *t);

/* fleet_poll_open() returns a handle that watches fd; NULL: no memory, or libuv refuses the
 * descriptor. fleet_poll_close() closes the handle and the descriptor. */
uv_poll_t *fleet_poll_open(struct fleet_thread *t, int fd, void *data);
void fleet_poll_close(uv_poll_t *poll, int fd);

/* ---- fleet.c: the threads that store_shared_options.wake may wake ---- */

void fleet_add_thread(struct weir_fleet *f, struct fleet_thread *t);
void fleet_remove_thread(struct weir_fleet *f, const struct fleet_thread *t);

/* ---- socket.c ---- */

struct client_driver fleet_driver(struct fleet_thread *t);

/* Connects and writes for the listed sockets. Sockets that are listed meanwhile stay listed. */
void fleet_sockets_work(struct fleet_thread *t, uint64_t now_ns);
/* Ends attempts to connect that take too long. Returns when to look again. */
uint64_t fleet_sockets_tick(struct fleet_thread *t, uint64_t now_ns);
void fleet_sockets_sweep(struct fleet_thread *t); /* frees closed ones */

/* ---- socket_tls.c ---- */

/* Reads the certificates, if the URL asks for TLS. Returns 0, WEIR_EINVAL, WEIR_EIO (a file) or
 * WEIR_ENOMEM. */
int fleet_tls_open(struct weir_fleet *fleet, struct weir_error *error);

/* ---- networks.c ---- */

/* Reads options.networks. Returns 0, WEIR_EINVAL or WEIR_ENOMEM. */
int fleet_networks_read(struct weir_fleet *fleet, struct weir_error *error);
/* For client_options.permits: refuses addresses that are not in the networks, and counts them.
 * Names are permitted: fleet_permits_address() is asked about each of their addresses. */
bool fleet_permits(void *fleet, struct weir_text host, unsigned port);
bool fleet_permits_address(struct weir_fleet *fleet, const struct sockaddr *address);

/* ---- secret.c ---- */

/* Sets *secret to the password of the Sentinels or of the store, as the fleet's options say; empty
 * if there is none. A password from a file is read into `room`. Returns 0 or WEIR_E... */
int fleet_secret_read(const struct weir_fleet *fleet, bool sentinel, char room[FLEET_SECRET_BYTES],
                      struct weir_text *secret, struct weir_error *error);
/* Returns 0, or WEIR_EINVAL: a password and a file for it, a user without a password, or a password
 * that is too long. */
int fleet_secrets_check(const struct weir_fleet_options *o, struct weir_error *error);

#endif
