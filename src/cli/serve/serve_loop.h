/* What the first thread of weir serve does: signals, changed files, signs of life. */
#ifndef WEIR_CLI_SERVE_SERVE_LOOP_H
#define WEIR_CLI_SERVE_SERVE_LOOP_H

#include <signal.h>

#include "cli/serve/serve_notify.h"
#include "cli/serve/serve_watch.h"
#include "server/net/server.h"

struct serve_loop {
    struct server *server;
    struct notify *notify;
    struct watch *watch;
    int signals;      /* a signalfd */
    uint64_t sign_ns; /* when the service manager is to get the next sign of life */
};

/* Blocks the signals that are waited for: before any thread, they inherit it. The descriptor, or
 * -1 after a complaint. */
int serve_loop_signals(void);

/* Returns when it is time to end. */
void serve_loop_run(struct serve_loop *loop);

#endif
