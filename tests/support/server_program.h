/*
 * The real program, `weir serve`, in a process of its own: started, killed, started again on the
 * same port. May be used by any thread: what goes wrong ends the test program.
 */
#ifndef WEIR_TESTS_SUPPORT_SERVER_PROGRAM_H
#define WEIR_TESTS_SUPPORT_SERVER_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

#include "support/server_client.h"

struct server_program {
    char folder[256]; /* of the test's own: rules.yaml, log, admin (a socket), and state/ */
    char address[64]; /* of RESP; the same over restarts */
    pid_t pid;        /* 0: not running */
};

/* Makes the folder, writes the rules. */
void server_program_init(struct server_program *p, const char *rules);
void server_program_write_rules(const struct server_program *p, const char *rules);

/* Starts it with --state; returns when it listens. False: it ended instead, the log says why. */
bool server_program_start(struct server_program *p);

/* Starts it and does not wait. Returns the end of a pipe that it writes its addresses to. */
int server_program_spawn(struct server_program *p);

/* Sends a signal. SIGKILL and SIGTERM: waits for the end, which with SIGTERM must be a good one. */
void server_program_signal(struct server_program *p, int number);

/* Everything that it said on stderr since the beginning; to be freed. */
char *server_program_log(const struct server_program *p);

/* Waits until the log has this text more than `times` times. */
void server_program_await(const struct server_program *p, const char *text, unsigned times);
unsigned server_program_logged(const struct server_program *p, const char *text);

/* Waits until other threads have brought a count to `until`; a minute without that ends the test with
 * the state of the program and the end of its log. */
void server_program_await_count(const struct server_program *p, const uint64_t *count,
                                uint64_t until);

/* The value of a metric without labels. */
double server_program_metric(const struct server_program *p, const char *name);

/* Kills it if it runs, removes the folder. */
void server_program_finish(struct server_program *p);

/* False if nobody listens now. */
bool server_program_connect(const struct server_program *p, struct server_client *c);

#endif
