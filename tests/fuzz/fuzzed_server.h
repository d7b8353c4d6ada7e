/* A server without sockets and threads, whose protocols fuzz targets give bytes to. */
#ifndef WEIR_TESTS_FUZZED_SERVER_H
#define WEIR_TESTS_FUZZED_SERVER_H

#include <fcntl.h>
#include <stdlib.h>

#include "common/log.h"
#include "server/operations/operations.h"
#include "server/operations/reservations.h"
#include "server/record/limit_reasons.h"
#include "server/record/top_panes.h"
#include "server/loop/worker.h"
#include "server/status/notices.h"

static struct server server;
static struct worker *worker; /* NULL until prepare_server() */

static inline void require(bool condition)
{
    if (!condition) {
        abort();
    }
}

/* Makes the server, with room for this many bytes of replies. */
static inline void prepare_server(const char *rules, size_t replies_bytes)
{
    static const struct hash_secret secret;
    struct weir_error error;
    worker = calloc(1, sizeof *worker);
    require(worker != NULL);
    require(weir_rules_open_text(&server.rules, "fuzz", rules, strlen(rules), NULL, &error) == 0);
    require(reservations_create(&server.reservations, 100, &error) == 0);
    log_init(open("/dev/null", O_WRONLY | O_CLOEXEC), LOG_AS_TEXT, LOG_KEYS_CUT);
    worker->server = &server;
    server.panes = top_panes_create(1);
    server.reasons = limit_reasons_create();
    server.notices = notices_create();
    require(server.panes != NULL && server.reasons != NULL && server.notices != NULL);
    worker->top = top_create(&secret, top_panes_turn(server.panes));
    require(worker->top != NULL);
    top_use(worker->top);
    limit_reasons_use(server.reasons);
    server.workers = worker;
    server.workers_count = 1;
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        server.options.listen[i] = "off";
    }
    buffer_init(&worker->replies, replies_bytes);
    require(crowds_init(worker, 1, &error) == 0);
}

/* Makes a connection without a socket, of a client on this machine. */
static inline struct connection *begin_connection(const struct protocol *protocol)
{
    struct connection *c = calloc(1, sizeof *c + protocol->session_bytes);
    require(c != NULL);
    c->worker = worker;
    c->protocol = protocol;
    c->peer = (struct address){.bytes = {127, 0, 0, 1}, .family = 4};
    c->row = TALLY_NONE;
    crowd_enter(c, 0);
    return c;
}

static inline void end_connection(struct connection *c)
{
    crowd_leave(c);
    free(c);
}

#endif
