/*
 * A server whose limits are decided by the fake fleet: questions are kept until the test lets them
 * be answered, in any order, or never. An answer tells which question it is for: its `remaining` is
 * the cost. Questions are answered on the thread that asked, as in a real fleet.
 */
#ifndef WEIR_TESTS_SUPPORT_SERVER_FLEET_H
#define WEIR_TESTS_SUPPORT_SERVER_FLEET_H

#include <pthread.h>

#include "server/loop/worker.h"
#include "support/rules/fake_fleet.h"
#include "support/server/server_client.h"
#include "support/server/server_http.h"

#define SLOW_PLACES 8

struct slow_scene {
    struct fake_fleet fleet; /* must be first */
    struct server server;
    char resp[128];
    struct http_server http;  /* only its address is used */
    struct http_server admin; /* likewise */
    uint64_t now_ns;
    uint64_t away; /* 1: the store counts as away; it answers as before */
    struct slow_place {
        struct slow_scene *scene;
        uv_async_t wake;
        uint64_t due; /* how many of its questions may be answered now */
        bool used;
    } places[SLOW_PLACES];
};

/* Starts a server with one thread for clients; options may be NULL. */
void slow_start(struct slow_scene *s, const char *rules, const struct server_options *options);
void slow_stop(struct slow_scene *s);

void slow_plan(struct slow_scene *s, struct fake_plan plan);
void slow_forget(struct slow_scene *s);     /* clears the log and out_most */
uint64_t slow_logged(struct slow_scene *s); /* returns the count; the log may then be read */

/* Waits until that many questions are pending. */
void slow_await(struct slow_scene *s, uint64_t out);

/* Lets up to `n` questions of each thread be answered, in a random order. Does not wait. */
void slow_answer(struct slow_scene *s, uint64_t n);

/* Counters of the server's threads. */
uint64_t slow_pending(const struct slow_scene *s);
uint64_t slow_abandoned(const struct slow_scene *s);

#endif
