#include "cli/load/load_connection.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/error.h"

/* ---- the address ---- */

static int parse_unix(const char *path, struct load_target *target, struct weir_error *error)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof to.sun_path) {
        return fail(error, WEIR_EINVAL, "unix:%s: expected a path of at most %zu bytes", path,
                    sizeof to.sun_path - 1);
    }
    memcpy(to.sun_path, path, strlen(path) + 1);
    memcpy(target->address, &to, sizeof to);
    target->family = AF_UNIX;
    target->len = sizeof to;
    return 0;
}

int load_target_parse(const char *text, struct load_target *target, struct weir_error *error)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    char host[128];
    const char *colon = strrchr(text, ':');
    _Static_assert(sizeof(struct sockaddr_un) <= sizeof target->address, "room");
    if (strncmp(text, "unix:", 5) == 0) {
        return parse_unix(text + 5, target, error);
    }
    bool brackets = text[0] == '[' && colon != NULL && colon > text && colon[-1] == ']';
    int len = colon == NULL ? 0 : (int)(colon - text) - 2 * brackets;
    if (len > 0) {
        (void)snprintf(host, sizeof host, "%.*s", len, text + brackets);
    }
    if (len <= 0 || getaddrinfo(host, colon + 1, &hints, &found) != 0) {
        return fail(error, WEIR_EINVAL,
                    "'%s': expected ADDRESS:PORT, [ADDRESS]:PORT or unix:PATH, in numbers", text);
    }
    target->family = found->ai_family;
    target->len = found->ai_addrlen;
    memcpy(target->address, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return 0;
}

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

int load_connection_open(struct load_connection *c, const struct load_target *target)
{
    const int on = 1;
    c->fd = socket(target->family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 ||
        connect(c->fd, (const struct sockaddr *)(const void *)target->address, target->len) != 0 ||
        fcntl(c->fd, F_SETFL, O_NONBLOCK) != 0) {
        int why = errno;
        load_connection_close(c);
        errno = why;
        return -1;
    }
    if (target->family != AF_UNIX) {
        (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    return 0;
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
