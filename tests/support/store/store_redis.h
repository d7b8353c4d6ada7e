/*
 * A redis-server of the test: a process, a folder, a unix socket, one connection. It dies with the
 * test. An error ends the test program; the test is skipped if there is no redis-server.
 *
 * With WEIR_TEST_STORE=redis://host:port in the environment, the connection goes to that server
 * instead, which may be any version of Redis or of another store, and all of its keys are removed.
 */
#ifndef WEIR_TESTS_SUPPORT_STORE_REDIS_H
#define WEIR_TESTS_SUPPORT_STORE_REDIS_H

#include <sys/types.h>

#include "common/buffer.h"
#include "redis/reply.h"

struct store_redis {
    char folder[64];
    pid_t pid;
    int fd;
    struct buffer out; /* calls that have not been sent yet */
    struct buffer in;
    struct store_reply reply; /* the last reply, whose bytes are at the front of `in` */
    size_t used;
};

/* `extra`: more options for its command line, NULL-terminated; may be NULL. With options it is
 * always a server of its own. */
void store_redis_start(struct store_redis *r, const char *const *extra);
void store_redis_stop(struct store_redis *r);

/* Queues a command; the arguments are strings and end with NULL. */
void store_redis_put(struct store_redis *r, ...) __attribute__((sentinel));

/* Sends the queued calls. With more than some thousand calls at once both sides would wait for the
 * other to read. */
void store_redis_send(struct store_redis *r);

/* Returns the next reply, which is valid until the next call. */
const struct store_reply *store_redis_next(struct store_redis *r);

/* Sends one command and returns its reply. */
#define store_redis_do(r, ...)                                                                     \
    (store_redis_put((r), __VA_ARGS__, (const char *)0), store_redis_send(r), store_redis_next(r))

#endif
