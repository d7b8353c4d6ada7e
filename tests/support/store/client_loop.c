#include "shared/core/script.h"
#include "support/store/client_loop.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/maths.h"

uint64_t loop_now(void)
{
    return clock_monotonic_ns();
}

/* ---- the driver ---- */

static struct loop_link *find(struct client_loop *l, const struct client_link *link)
{
    for (size_t i = 0; i < LOOP_LINKS; i++) {
        if (l->links[i].link == link) {
            return &l->links[i];
        }
    }
    return NULL;
}

static int open_unix(const char *path)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    (void)snprintf(to.sun_path, sizeof to.sun_path, "%.100s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static int open_tcp(const char *host, unsigned port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (inet_pton(AF_INET, host, &to.sin_addr) != 1 ||
        (connect(fd, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static void on_connect(void *arg, struct client_link *link, struct weir_text host, unsigned port)
{
    struct loop_link *at = find(arg, NULL);
    char name[256];
    assert(at != NULL && find(arg, link) == NULL);
    (void)snprintf(name, sizeof name, "%.*s", TEXT_ARGS(host));
    *at = (struct loop_link){.link = link, .connecting = true};
    at->fd = name[0] == '/' ? open_unix(name) : open_tcp(name, port);
    at->refused = at->fd < 0;
}

static void on_wake(void *arg, struct client_link *link)
{
    assert(find(arg, link) != NULL); /* each turn looks at all links */
}

static void drop(struct loop_link *at)
{
    if (at->fd >= 0) {
        (void)close(at->fd);
    }
    *at = (struct loop_link){.fd = -1};
}

static void on_close(void *arg, struct client_link *link)
{
    drop(find(arg, link));
}

static void end(struct loop_link *at)
{
    struct client_link *link = at->link;
    drop(at);
    client_down(link, loop_now());
}

/* ---- start and end ---- */

void loop_start(struct client_loop *l, const char *url, uint64_t deadline_ns,
                struct breakers *breakers)
{
    struct weir_error error;
    const struct client_driver driver = {l, on_connect, on_wake, on_close};
    *l = (struct client_loop){0};
    if (store_url_read(text_of(url), &l->url, &error) != 0) {
        (void)fprintf(stderr, "%s: %s\n", url, error.text);
        abort();
    }
    l->options = (struct client_options){
        .url = &l->url,
        .scripts = &store_scripts,
        .password = &l->password,
        .deadline_ns = deadline_ns != 0 ? deadline_ns : 5 * WEIR_MILLISECOND,
        .breakers = breakers,
        .metrics = &l->metrics,
    };
    if (client_create(&l->client, &l->options, &driver, loop_now()) != 0) {
        abort();
    }
}

void loop_stop(struct client_loop *l)
{
    client_destroy(l->client, loop_now());
    for (size_t i = 0; i < LOOP_LINKS; i++) {
        assert(l->links[i].link == NULL);
    }
}

/* ---- turns ---- */

static void write_out(struct loop_link *at)
{
    struct weir_text out;
    while ((out = client_outgoing(at->link)).len > 0) {
        ssize_t n = send(at->fd, out.at, out.len, MSG_NOSIGNAL);
        if (n < 0) {
            at->blocked = errno == EAGAIN;
            if (!at->blocked) {
                end(at);
            }
            return;
        }
        client_sent(at->link, (size_t)n);
    }
    at->blocked = false;
}

static void read_in(struct loop_link *at)
{
    static char bytes[1 << 16];
    ssize_t n = read(at->fd, bytes, sizeof bytes);
    if (n > 0) {
        (void)client_received(at->link, (struct weir_text){bytes, (size_t)n}, loop_now());
    } else if (n == 0 || errno != EAGAIN) {
        end(at);
    }
}

static void connected(struct loop_link *at)
{
    int error = 0;
    socklen_t size = sizeof error;
    (void)getsockopt(at->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
        end(at);
    } else {
        at->connecting = false;
        client_up(at->link, loop_now());
    }
}

static void look(struct client_loop *l, struct pollfd *fds)
{
    for (size_t i = 0; i < LOOP_LINKS; i++) {
        struct loop_link *at = &l->links[i];
        if (at->link == NULL || at->fd != fds[i].fd || fds[i].revents == 0) {
            continue;
        }
        if (at->connecting) {
            connected(at);
        } else if ((fds[i].revents & ~POLLOUT) != 0) {
            read_in(at);
        }
    }
}

static void prepare(struct client_loop *l, struct pollfd *fds)
{
    for (size_t i = 0; i < LOOP_LINKS; i++) {
        struct loop_link *at = &l->links[i];
        if (at->link != NULL && at->refused) {
            end(at);
        } else if (at->link != NULL && !at->connecting) {
            write_out(at);
        }
    }
    (void)client_tick(l->client, loop_now());
    for (size_t i = 0; i < LOOP_LINKS; i++) {
        struct loop_link *at = &l->links[i];
        fds[i] = (struct pollfd){.fd = -1};
        if (at->link != NULL && !at->refused) {
            fds[i].fd = at->fd;
            fds[i].events = POLLIN | (at->connecting || at->blocked ? POLLOUT : 0);
        }
    }
}

void loop_turn(struct client_loop *l, uint64_t most_ns)
{
    struct pollfd fds[LOOP_LINKS];
    prepare(l, fds);
    uint64_t now = loop_now();
    uint64_t wait = min_u64(sub_floor0(client_due(l->client), now), most_ns);
    struct timespec time = {(time_t)(wait / WEIR_SECOND), (long)(wait % WEIR_SECOND)};
    if (ppoll(fds, LOOP_LINKS, &time, NULL) > 0) {
        look(l, fds);
    }
    (void)client_tick(l->client, loop_now());
}

bool loop_until(struct client_loop *l, bool (*condition)(void *arg), void *arg, uint64_t most_ns)
{
    uint64_t end_ns = loop_now() + most_ns;
    while (!condition(arg)) {
        uint64_t now = loop_now();
        if (now >= end_ns) {
            return false;
        }
        loop_turn(l, min_u64(end_ns - now, 10 * WEIR_MILLISECOND));
    }
    return true;
}
