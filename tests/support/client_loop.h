/*
 * A client on real sockets, for tests: poll(), and a clock. Hosts are unix sockets or numeric IPv4
 * addresses.
 */
#ifndef WEIR_TESTS_SUPPORT_CLIENT_LOOP_H
#define WEIR_TESTS_SUPPORT_CLIENT_LOOP_H

#include "redis/breaker.h"
#include "redis/client.h"

#define LOOP_LINKS 32

struct loop_link {
    struct client_link *link; /* NULL: free */
    int fd;
    bool connecting;
    bool blocked; /* the kernel takes no more */
    bool refused; /* at once; told in the next turn */
};

struct client_loop {
    struct client *client;
    struct client_options options;
    struct store_url url;
    struct scripts scripts;
    struct client_metrics metrics;
    struct text password;
    struct loop_link links[LOOP_LINKS];
};

/* deadline 0: 5 ms. `breakers` outlives it. */
void loop_start(struct client_loop *l, const char *url, uint64_t deadline_ns,
                struct breakers *breakers);
void loop_stop(struct client_loop *l);

uint64_t loop_now(void);

/* One turn: sends, waits until something is due or has come (at most most_ns), receives. */
void loop_turn(struct client_loop *l, uint64_t most_ns);
/* Turns until the condition holds (false: not within the time), or the time is over. */
bool loop_until(struct client_loop *l, bool (*condition)(void *arg), void *arg, uint64_t most_ns);

#endif
