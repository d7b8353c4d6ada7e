/*
 * The real program, `weir serve`, in a process of its own: started, killed, and started again on
 * the same port. Any thread may use it; an error ends the test program.
 */
#ifndef WEIR_TESTS_SUPPORT_SERVER_PROGRAM_H
#define WEIR_TESTS_SUPPORT_SERVER_PROGRAM_H

#include <stdbool.h>
#include <sys/types.h>

#include "support/server/server_client.h"

struct server_program {
    char folder[256]; /* the test's own: rules.yaml, log, admin (a socket), and state/ */
    char address[64]; /* of RESP; stays the same when it restarts */
    pid_t pid;        /* 0: it does not run */
};

/* Makes the folder and writes the rules. */
void server_program_init(struct server_program *p, const char *rules);
void server_program_write_rules(const struct server_program *p, const char *rules);

/* Starts it with --state; returns true when it listens. False: it ended instead, and the log says
 * why. */
bool server_program_start(struct server_program *p);

/* Starts it and does not wait. Returns the read end of a pipe to which it writes its addresses. */
int server_program_spawn(struct server_program *p);

/* Sends a signal. After SIGKILL and SIGTERM it waits for the end; with SIGTERM the exit status must
 * be 0. */
void server_program_signal(struct server_program *p, int number);

/* Waits until it has ended by itself. Returns its status, as waitpid() has it. */
int server_program_end(struct server_program *p);

/* Returns everything that it wrote to stderr since the beginning; to be freed. */
char *server_program_log(const struct server_program *p);

/* Waits until the log contains this text more than `times` times. */
void server_program_await(const struct server_program *p, const char *text, unsigned times);
unsigned server_program_logged(const struct server_program *p, const char *text);

/* Waits until other threads have raised a count to `until`. After a minute the test ends with the
 * state of the program and the end of its log. */
void server_program_await_count(const struct server_program *p, const uint64_t *count,
                                uint64_t until);

/* Returns the reply to GET of a path of the admin listener, with its head; to be freed. */
char *server_program_page(const struct server_program *p, const char *path);

/* Returns the value of a metric without labels. */
double server_program_metric(const struct server_program *p, const char *name);

/* Kills it if it runs, and removes the folder. */
void server_program_finish(struct server_program *p);

/* Returns false if the program does not listen. */
bool server_program_connect(const struct server_program *p, struct server_client *c);

#endif
