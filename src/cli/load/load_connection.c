#include "cli/load/load_connection.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- opening and closing ---- */

int load_connection_init(struct load_connection *c, const struct load_request *request,
                         unsigned depth)
{
    *c = (struct load_connection){.fd = -1, .depth = depth};
    c->due_ns = calloc(depth, sizeof *c->due_ns);
    c->out = malloc(depth * request->len);
    c->in = malloc(LOAD_INPUT_BYTES);
    if (c->due_ns == NULL || c->out == NULL || c->in == NULL) {
        return -1;
    }
    for (unsigned i = 0; i < depth; i++) {
        memcpy(c->out + i * request->len, request->bytes, request->len);
    }
    return 0;
}

static int open_one(struct load_connection *c, const struct addrinfo *target)
{
    const int on = 1;
    c->fd = socket(target->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, target->ai_addr, target->ai_addrlen) != 0 ||
        fcntl(c->fd, F_SETFL, O_NONBLOCK) != 0) {
        int why = errno;
        load_connection_close(c);
        errno = why;
        return -1;
    }
    if (target->ai_family != AF_UNIX) {
        (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    return 0;
}

int load_connection_open(struct load_connection *c, const struct addrinfo *target)
{
    int e = -1;
    for (; e != 0 && target != NULL; target = target->ai_next) {
        e = open_one(c, target);
    }
    return e;
}

void load_connection_close(struct load_connection *c)
{
    if (c->fd >= 0) {
        (void)close(c->fd);
    }
    c->fd = -1;
    c->in_flight = 0;
    c->sent = 0;
    c->made = 0;
    c->in_len = 0;
    c->wants_write = false;
}

void load_connection_finish(struct load_connection *c)
{
    load_connection_close(c);
    free(c->due_ns);
    free(c->out);
    free(c->in);
}

/* ---- requests ---- */

void load_connection_put(struct load_connection *c, const struct load_request *request,
                         uint64_t key, uint64_t due_ns)
{
    unsigned newest = c->oldest + c->in_flight;
    c->due_ns[newest < c->depth ? newest : newest - c->depth] = due_ns;
    c->in_flight++;
    load_request_set_key(request, c->out + c->made, key);
    c->made += request->len;
}

bool load_connection_send(struct load_connection *c)
{
    ssize_t n = send(c->fd, c->out + c->sent, c->made - c->sent, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EINTR) {
        return false;
    }
    c->sent += n > 0 ? (size_t)n : 0;
    if (c->sent == c->made) {
        c->sent = 0;
        c->made = 0;
    }
    return true;
}

uint64_t load_connection_take(struct load_connection *c)
{
    uint64_t due_ns = c->due_ns[c->oldest];
    c->oldest = c->oldest + 1 < c->depth ? c->oldest + 1 : 0;
    c->in_flight--;
    return due_ns;
}
