#include "support/store/fake_store.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/engine/threads_run.h"

#define CONNECTIONS 64
#define BYTES (1 << 20)

struct fake_connection {
    int fd; /* -1: free */
    struct buffer in;
};

struct fake_store {
    pthread_t thread;
    fake_store_fn reply;
    int listener;
    int stop; /* an eventfd */
    unsigned port;
    uint64_t accepted;
    struct fake_connection connections[CONNECTIONS];
};

static void end(struct fake_connection *c)
{
    (void)close(c->fd);
    c->fd = -1;
    buffer_finish(&c->in);
}

static void accept_one(struct fake_store *s)
{
    int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC);
    for (unsigned i = 0; fd >= 0 && i < CONNECTIONS; i++) {
        struct fake_connection *c = &s->connections[i];
        if (c->fd < 0) {
            c->fd = fd;
            buffer_init(&c->in, BYTES);
            (void)threads_add(&s->accepted, 1);
            return;
        }
    }
    (void)close(fd);
}

/* Answers all complete commands. Returns false if the connection is over. */
static bool answer(const struct fake_store *s, struct fake_connection *c)
{
    static const struct resp_limits limits = {RESP_ARGS_MAX, BYTES / 2, BYTES, false};
    static struct resp_request command;
    const char *complaint;
    struct buffer out;
    int e;
    buffer_init(&out, BYTES);
    while ((e = resp_parse(buffer_text(&c->in), &limits, &command, &complaint)) == RESP_REQUEST) {
        s->reply(s, &command, &out);
        buffer_take(&c->in, command.used);
    }
    size_t len = buffer_len(&out);
    bool sent = len == 0 || send(c->fd, out.at + out.begin, len, MSG_NOSIGNAL) == (ssize_t)len;
    buffer_finish(&out);
    return e == RESP_MORE && sent;
}

static void serve(const struct fake_store *s, struct fake_connection *c)
{
    char bytes[65536];
    ssize_t n = read(c->fd, bytes, sizeof bytes);
    if (n > 0) {
        buffer_put(&c->in, (struct weir_text){bytes, (size_t)n});
    }
    if (n <= 0 || !answer(s, c)) {
        end(c);
    }
}

static void *run(void *arg)
{
    struct fake_store *s = arg;
    struct pollfd fds[CONNECTIONS + 2];
    for (;;) {
        fds[0] = (struct pollfd){.fd = s->stop, .events = POLLIN};
        fds[1] = (struct pollfd){.fd = s->listener, .events = POLLIN};
        for (unsigned i = 0; i < CONNECTIONS; i++) {
            fds[i + 2] = (struct pollfd){.fd = s->connections[i].fd, .events = POLLIN};
        }
        (void)poll(fds, CONNECTIONS + 2, -1);
        if (fds[0].revents != 0) {
            return NULL;
        }
        for (unsigned i = 0; i < CONNECTIONS; i++) {
            if (fds[i + 2].fd >= 0 && fds[i + 2].revents != 0) {
                serve(s, &s->connections[i]);
            }
        }
        if (fds[1].revents != 0) {
            accept_one(s);
        }
    }
}

struct fake_store *fake_store_start(fake_store_fn reply)
{
    struct fake_store *s = calloc(1, sizeof *s);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    threads_require(s != NULL);
    s->reply = reply;
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    s->stop = eventfd(0, EFD_CLOEXEC);
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        s->connections[i].fd = -1;
    }
    threads_require(bind(s->listener, (const struct sockaddr *)&at, sizeof at) == 0);
    threads_require(listen(s->listener, 64) == 0);
    threads_require(getsockname(s->listener, (struct sockaddr *)&at, &size) == 0);
    s->port = ntohs(at.sin_port);
    threads_require(pthread_create(&s->thread, NULL, run, s) == 0);
    return s;
}

void fake_store_stop(struct fake_store *s)
{
    threads_require(eventfd_write(s->stop, 1) == 0);
    threads_require(pthread_join(s->thread, NULL) == 0);
    for (unsigned i = 0; i < CONNECTIONS; i++) {
        if (s->connections[i].fd >= 0) {
            end(&s->connections[i]);
        }
    }
    (void)close(s->listener);
    (void)close(s->stop);
    free(s);
}

unsigned fake_store_port(const struct fake_store *s)
{
    return s->port;
}

uint64_t fake_store_accepted(const struct fake_store *s)
{
    return threads_get(&s->accepted);
}
