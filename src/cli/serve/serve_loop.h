/* The loop of weir serve's first thread: signals, changed files, watchdog messages, limits that do
 * not limit. */
#ifndef WEIR_CLI_SERVE_SERVE_LOOP_H
#define WEIR_CLI_SERVE_SERVE_LOOP_H

#include "cli/serve/serve_notify.h"
#include "cli/serve/serve_watch.h"
#include "server/admin/uncovered.h"
#include "server/loop/server.h"

struct serve_loop {
    struct server *server;
    struct notify *notify;
    struct watch *watch;
    int signals;      /* of serve_signals_open() */
    uint64_t sign_ns; /* when the service manager is due the next watchdog message */
    bool reloading;   /* the service manager was told so */
    struct uncovered uncovered;
};

/* Makes the watch know what any thread of the server reads. Call it before the server starts. */
void serve_loop_join(struct serve_loop *loop);

/* Runs until the server is to stop. */
void serve_loop_run(struct serve_loop *loop);

#endif
