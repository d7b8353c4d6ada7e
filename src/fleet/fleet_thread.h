/*
 * One loop's part of a fleet: a struct store, its sockets, its timer. Everything here happens on the
 * loop's thread; the loop may be the fleet's own, the caller's, or a server's.
 *
 * A turn is what there is to do between two sleeps of the loop: store_tick(), then whatever sockets
 * are listed for (to connect, to write). It is taken before and after the loop polls, and only if
 * something has happened; so all calls of one turn of the loop leave in one write.
 *
 * T1  Nothing calls the store from within one of its own calls: a driver's functions only list.
 * T2  A socket may be closed by any call into the store: who makes one looks again (socket->link).
 * T3  A thread that is closed answers everything and calls nobody afterwards; its memory waits for the
 *     last callback of libuv's handles and requests, however long the resolver of names takes.
 *
 * The timer is a timerfd. Deadlines are of 5 ms and less, and libuv's timers have whole milliseconds:
 * measured (Debian 12, 2 shared vCPU, 400 rounds), a time of 0.3 ms comes 0.78 ms late by uv_timer, one of 2.5 ms
 * 0.62 ms; by timerfd both come 0.03 ms late (median; p99 0.65 to 0.83 ms, and 0.06 to 0.08 ms). Setting it costs
 * 0.7 us, and is needed only when something is due earlier than what it is set to. It also makes the
 * caller's poll() as exact, whose timeout has whole milliseconds too.
 */
#ifndef WEIR_FLEET_FLEET_THREAD_H
#define WEIR_FLEET_FLEET_THREAD_H

#include <netdb.h>

#include "fleet/fleet.h"

#define FLEET_READ_BYTES 65536
#define FLEET_SECRET_BYTES 1024
/* One attempt to connect: names, and all addresses that they have. */
#define FLEET_CONNECT_NS WEIR_SECOND

struct fleet_thread {
    struct weir_fleet *fleet;
    struct fleet_thread *next; /* of the fleet */
    uv_loop_t *loop;
    struct store *store;
    struct text secret;          /* the password, within client_up(): of the store ... */
    struct text sentinel_secret; /* ... or of a Sentinel */
    bool happened;               /* a turn is to be taken */
    bool closing;
    uint64_t leave_ns; /* when it closes by itself; UINT64_MAX: it does not */
    unsigned handles;  /* and requests, that have not had their last callback */
    uv_prepare_t before;
    uv_check_t after;
    uv_async_t wake;
    void (*woken)(struct fleet_thread *t); /* NULL, or what `wake` is for beside a turn */
    uv_poll_t *timer;
    int timer_fd;
    uint64_t timer_ns;            /* what it is set to; UINT64_MAX: not */
    struct fleet_socket *sockets; /* all */
    struct fleet_socket *listed;  /* with something to do */
    struct fleet_socket *closed;  /* to be freed by the next turn */
    char reason[160];  /* why the last attempt to connect has failed; "" since one has not */
    char trouble[248]; /* of the store, with that; under the fleet's lock for others */
    char read[FLEET_READ_BYTES];
};

/* Whatever may have given the store or the sockets something to do. */
static inline void fleet_thread_happened(struct fleet_thread *t)
{
    t->happened = true;
}

/* Of a loop that is the fleet's: lets leases go back and counts be told, for at most a moment, then
 * closes the thread and stops the loop. */
void fleet_thread_leave(struct fleet_thread *t);

/* The last callback of a handle or request; frees the thread after the last of a closing one. */
void fleet_thread_handle_gone(struct fleet_thread *t);

/* A handle that watches fd, NULL: no memory. It is given to fleet_poll_close(), which also closes the
 * descriptor. */
uv_poll_t *fleet_poll_open(struct fleet_thread *t, int fd, void *data);
void fleet_poll_close(uv_poll_t *poll, int fd);

/* ---- fleet.c: whom store_shared_options.wake may wake ---- */

void fleet_add_thread(struct weir_fleet *f, struct fleet_thread *t);
void fleet_remove_thread(struct weir_fleet *f, const struct fleet_thread *t);

/* ---- socket.c ---- */

struct client_driver fleet_driver(struct fleet_thread *t);

/* Connects, writes; what was listed meanwhile stays listed. */
void fleet_sockets_work(struct fleet_thread *t, uint64_t now_ns);
/* Gives up what takes too long; when to look again. */
uint64_t fleet_sockets_tick(struct fleet_thread *t, uint64_t now_ns);
void fleet_sockets_sweep(struct fleet_thread *t); /* frees closed ones */

/* ---- secret.c ---- */

/* The password of the fleet's options, the Sentinels' or else the store's, from its file if it has one,
 * into `room`. 0 or WEIR_E... */
int fleet_secret_read(const struct weir_fleet *fleet, bool sentinel, char room[FLEET_SECRET_BYTES],
                      struct text *secret, struct weir_error *error);
/* 0, or WEIR_EINVAL: two passwords, a user without one. */
int fleet_secrets_check(const struct weir_fleet_options *o, struct weir_error *error);

#endif
