/*
 * A server whose limits are decided by a fake fleet: questions are kept until the test lets them be
 * answered, in any order, or never. An answer tells which question it is for: its `remaining` is
 * the cost. Questions are answered on the thread that asked, as in a real fleet.
 */
#ifndef WEIR_TESTS_SUPPORT_SERVER_FLEET_H
#define WEIR_TESTS_SUPPORT_SERVER_FLEET_H

#include <pthread.h>

#include "common/remote.h"
#include "server/net/worker.h"
#include "support/server_client.h"
#include "support/server_http.h"

#define SLOW_PLACES 8
#define SLOW_LOG 64

struct slow_question;

/* The answer to the next questions. */
struct slow_plan {
    int verdict; /* 0 means WEIR_ALLOW */
    unsigned flags;
    uint64_t retry_ns;
    int error;        /* of the later answer */
    int refuse;       /* WEIR_E...: ask() fails with it at once, without effect */
    unsigned at_once; /* every n-th question is answered at once; 0: none */
};

struct slow_fleet {
    struct remote_face face; /* must be first */
    pthread_mutex_t lock;
    struct slow_plan plan;
    struct slow_question *out; /* all questions without an answer */
    uint64_t out_count;
    uint64_t out_most;
    uint64_t asked;
    uint64_t held;   /* number of references to limits */
    uint64_t random; /* state of the random order of answers */
    struct {
        int verb;
        uint64_t cost;
        uint64_t time_ns;
        char key[64];
    } log[SLOW_LOG]; /* the first questions since slow_forget() */
    uint64_t logged;
    struct slow_place {
        struct slow_fleet *fleet;
        uv_async_t wake;
        uint64_t due; /* how many of its questions may be answered now */
        bool used;
    } places[SLOW_PLACES];
};

struct slow_scene {
    struct slow_fleet fleet;
    struct server server;
    char resp[128];
    struct http_server http;  /* only its address is used */
    struct http_server admin; /* likewise */
    uint64_t now_ns;
};

/* Starts a server with one thread for clients; options may be NULL. */
void slow_start(struct slow_scene *s, const char *rules, const struct server_options *options);
void slow_stop(struct slow_scene *s);

void slow_plan(struct slow_scene *s, struct slow_plan plan);
void slow_forget(struct slow_scene *s);     /* clears the log and out_most */
uint64_t slow_logged(struct slow_scene *s); /* returns the count; the log may then be read */

/* Waits until that many questions are pending. */
void slow_await(struct slow_scene *s, uint64_t out);

/* Lets up to `n` questions of each thread be answered, in a random order. Does not wait. */
void slow_answer(struct slow_scene *s, uint64_t n);

/* Counters of the server's threads. */
uint64_t slow_deferred(const struct slow_scene *s);
uint64_t slow_abandoned(const struct slow_scene *s);

#endif
