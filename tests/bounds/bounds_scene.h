/*
 * A server with small bounds, a crowd that goes beyond them, and honest neighbours. The crowd comes
 * from 127.0.0.2, an honest client of the same address too, and one of another address from
 * 127.0.0.9. All connections of the crowd close at once, in random order.
 */
#ifndef WEIR_TESTS_BOUNDS_SCENE_H
#define WEIR_TESTS_BOUNDS_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/loop/worker.h"
#include "support/engine/threads_run.h"
#include "support/server/server_client.h"
#include "support/server/server_http.h"

#define CROWD 2u /* last byte of the address of the crowd ... */
#define OTHER 9u /* ... and of an honest client of another address */
#define CROWD_MOST 512

struct scene {
    struct server_world world;
    char address[PROTOCOLS][SERVER_ADDRESS_MAX];
    struct server_client crowd[CROWD_MOST];
    unsigned count;
};

/* A row of bounds.def, and how it is driven. */
struct driver {
    const char *file;
    const char *name;
    void (*drive)(struct scene *s); /* NULL: another test does it, ... */
    const char *elsewhere;          /* ... this file below tests/ ... */
    const char *word;               /* ... in which this occurs */
};

/* Tables that end with a row without a name: drive_*.c. */
extern const struct driver drivers_connections[];
extern const struct driver drivers_bytes[];
extern const struct driver drivers_grpc[];
extern const struct driver drivers_requests[];
extern const struct driver drivers_later[];
extern const struct driver drivers_operators[];
extern const struct driver drivers_kept[];
extern const struct driver drivers_store[];

#define SCENE_RULES                                                                                \
    "attributes: {user: ['header:X-User']}\n"                                                      \
    "limits: [{name: api, key: [user], rate: 1000000/s, max_keys: 100}]"

/* Returns options with one thread for clients and all listeners. */
struct server_options scene_options(void);
void scene_start(struct scene *s, const char *rules, const struct server_options *options);

/* Closes the crowd and stops the server, whose counts must then be 0. */
void scene_stop(struct scene *s);

/* Adds a connection to the crowd, from 127.0.0.`from`. */
struct server_client *scene_add(struct scene *s, enum server_protocol protocol, unsigned from);
void scene_close_crowd(struct scene *s);

/* An honest client connects, asks and gets its answer, over RESP and HTTP. */
void scene_is_served(struct scene *s, unsigned from);
void scene_both_are_served(struct scene *s);

/* Sends a request of HTTP on a connection of its own, and receives the answer. Returns its status;
 * 0: the connection has ended instead. */
int scene_http(struct scene *s, enum server_protocol protocol, unsigned from, const char *line,
               const char *fields, const char *body, struct http_answer *a);

/* Counters of the thread of clients, and of that of operators. */
struct worker *scene_worker(struct scene *s);
struct worker *scene_operators(struct scene *s);
size_t scene_units(struct scene *s, enum crowd_of of);

/* Waits until a counter has at least this value; the test fails after a minute. */
void scene_await(const uint64_t *counter, uint64_t least);

/* Returns how often a word occurs in a text. */
unsigned scene_count(const char *text, const char *word);

/* Sends commands of RESP, as bytes, `n` times. Fetches all replies and returns their bytes. */
size_t scene_fetch_all(struct server_client *c, const char *bytes, unsigned n);

/* Returns a number below n, from the seed of the program. */
unsigned scene_random(unsigned n);
void scene_seed(uint64_t seed);

#endif
