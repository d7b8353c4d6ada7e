/*
 * A real Redis that decides the shared limits of a server_world, by a clock that the test sets
 * (tests/preload/clock_step.c): TIME in its scripts is the time of the world. Any thread may set
 * the time; an error ends the program.
 */
#ifndef WEIR_TESTS_SUPPORT_SERVER_STORE_H
#define WEIR_TESTS_SUPPORT_SERVER_STORE_H

#include <weir_fleet.h>

#include "support/store/redis_world.h"

struct server_store {
    struct redis_world redis;
    struct weir_fleet *fleet; /* for one server, which must end first */
    int64_t *clock;           /* as clock_step.c reads it */
};

void server_store_start(struct server_store *s);

/* Requires that the store was called at least so often, and that it has given every answer. */
void server_store_stop(struct server_store *s, uint64_t calls);

void server_store_set_time(struct server_store *s, uint64_t now_ns);

#endif
