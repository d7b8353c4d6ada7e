/* A server in this process with all its listeners, and the requests of an operator. */
#ifndef WEIR_TESTS_SUPPORT_SERVER_ADMIN_H
#define WEIR_TESTS_SUPPORT_SERVER_ADMIN_H

#include "server/loop/server.h"
#include "support/server/server_http.h"

struct admin_world {
    struct server server;
    char address[PROTOCOLS][128];
    char file[64]; /* the rule file, which may be changed */
};

/* Starts a server with rules in a file of its own; `options` may be NULL. */
void admin_world_start(struct admin_world *w, const char *rules,
                       const struct server_options *options);
void admin_world_stop(struct admin_world *w);
void admin_world_write(const struct admin_world *w, const char *rules);

/*
 * Sends one request to the admin listener, on a connection of its own: "GET /v1/status". A body is
 * sent as JSON. Host is localhost unless `fields` ("A: b\r\n") has one.
 */
void admin_ask(const struct admin_world *w, const char *line, const char *fields, const char *body,
               struct http_answer *a);

/* The same to the listener for metrics, and to that for clients. */
void metrics_ask(const struct admin_world *w, const char *line, struct http_answer *a);
void admin_check(const struct admin_world *w, const char *body, struct http_answer *a);
void admin_check_batch(const struct admin_world *w, const char *body, struct http_answer *a);

/* Returns a socket to the admin listener, on which a read waits for at most a minute. `from` is the
 * last byte of the client's address: 1 for 127.0.0.1. */
int admin_connect(const struct admin_world *w, unsigned from);

/* Returns the whole number after "name": in the body. The test fails if there is none. */
long long admin_number(const struct http_answer *a, const char *name);

/* Returns the value of a series of /metrics, named as there. The test fails if there is none. */
double admin_metric(const struct admin_world *w, const char *series);

#endif
