/*
 * A store client on real sockets, for tests: it has a loop around poll() and reads the real clock.
 * Hosts are unix sockets or numeric IPv4 addresses.
 */
#ifndef WEIR_TESTS_SUPPORT_CLIENT_LOOP_H
#define WEIR_TESTS_SUPPORT_CLIENT_LOOP_H

#include "redis/breaker.h"
#include "redis/client.h"

#define LOOP_LINKS 32

struct loop_link {
    struct client_link *link; /* NULL: this place is free */
    int fd;
    bool connecting;
    bool blocked; /* the kernel's send buffer is full */
    bool refused; /* connect() failed at once; the client is told in the next turn */
};

struct client_loop {
    struct client *client;
    struct client_options options;
    struct store_url url;
    struct client_metrics metrics;
    struct weir_text password;
    struct loop_link links[LOOP_LINKS];
};

/* Starts the client. deadline_ns 0 means 5 ms. `breakers` must outlive it. */
void loop_start(struct client_loop *l, const char *url, uint64_t deadline_ns,
                struct breakers *breakers);
void loop_stop(struct client_loop *l);

uint64_t loop_now(void);

/* Runs one turn: sends, waits until something is due or has arrived (at most most_ns), receives. */
void loop_turn(struct client_loop *l, uint64_t most_ns);
/* Runs turns until the condition holds. Returns false if it does not hold within most_ns. */
bool loop_until(struct client_loop *l, bool (*condition)(void *arg), void *arg, uint64_t most_ns);

#endif
