#include "cli/blocking_exchange.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/connect_address.h"

/* ---- time ---- */

static uint64_t now_ms(void)
{
    return clock_monotonic_ns() / WEIR_MILLISECOND;
}

/* Waits for a socket. Returns false, with errno, when the time is over. */
static bool wait_for(int fd, short events, uint64_t until_ms)
{
    for (;;) {
        uint64_t now = now_ms();
        struct pollfd p = {.fd = fd, .events = events};
        int got = now >= until_ms ? 0 : poll(&p, 1, (int)(until_ms - now));
        if (got > 0) {
            return true;
        }
        if (got == 0 || errno != EINTR) {
            errno = got == 0 ? ETIMEDOUT : errno;
            return false;
        }
    }
}

/* ---- connecting ---- */

/* Returns a connected socket, or -1 with errno. */
static int connect_to(const struct sockaddr *address, socklen_t size, uint64_t until_ms)
{
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int failed = 0;
    socklen_t length = sizeof failed;
    if (fd < 0) {
        return -1;
    }
    if (connect(fd, address, size) != 0) {
        failed = errno;
        if (failed == EINPROGRESS) {
            failed = !wait_for(fd, POLLOUT, until_ms)                              ? errno
                     : getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &length) != 0 ? errno
                                                                                   : failed;
        }
    }
    if (failed != 0) {
        (void)close(fd);
        errno = failed;
        return -1;
    }
    return fd;
}

static int connect_any(const char *text, uint64_t until_ms, int *fd, struct weir_error *error)
{
    struct connect_address address;
    int e = connect_address_read(&address, text, error);
    if (e != 0) {
        return e;
    }
    for (const struct addrinfo *a = address.found; *fd < 0 && a != NULL; a = a->ai_next) {
        *fd = connect_to(a->ai_addr, a->ai_addrlen, until_ms);
    }
    e = *fd >= 0 ? 0 : fail(error, WEIR_EIO, "%s: %s", text, strerror(errno));
    connect_address_finish(&address);
    return e;
}

/* ---- bytes ---- */

/*
 * Sends all bytes, or as many as the server takes: a server that refuses a request does not read
 * it to its end, and its answer says why. Returns false, with errno, when the time is over.
 */
static bool send_all(int fd, struct text bytes, uint64_t until_ms)
{
    while (bytes.len > 0) {
        ssize_t n = send(fd, bytes.at, bytes.len, MSG_NOSIGNAL);
        if (n > 0) {
            bytes = text_after(bytes, (size_t)n);
        } else if (errno == EAGAIN || errno == EINTR) {
            if (!wait_for(fd, POLLOUT, until_ms)) {
                return false;
            }
        } else {
            return true;
        }
    }
    return true;
}

/* Returns the number of bytes received, 0 at the end, -1 with errno. */
static ssize_t receive(int fd, struct buffer *input, uint64_t until_ms)
{
    char *room = buffer_room(input, EXCHANGE_READ_BYTES);
    if (room == NULL) {
        errno = ENOMEM;
        return -1;
    }
    for (;;) {
        ssize_t n = recv(fd, room, EXCHANGE_READ_BYTES, 0);
        if (n >= 0) {
            buffer_add(input, (size_t)n);
            return n;
        }
        if ((errno != EAGAIN && errno != EINTR) || !wait_for(fd, POLLIN, until_ms)) {
            return -1;
        }
    }
}

/* ---- the exchange ---- */

static int receive_all(int fd, const struct blocking_exchange *x, uint64_t until_ms,
                       struct buffer *input, struct weir_error *error)
{
    for (;;) {
        const char *complaint = "";
        ssize_t n = receive(fd, input, until_ms);
        if (n < 0) {
            return fail(error, WEIR_EIO, "%s: no answer: %s", x->address, strerror(errno));
        }
        int got = x->read(x->arg, buffer_text(input), n == 0, &complaint);
        if (got != EXCHANGE_MORE) {
            return got == EXCHANGE_DONE ? 0
                                        : fail(error, WEIR_EIO, "%s: %s", x->address, complaint);
        }
    }
}

int blocking_exchange(const struct blocking_exchange *x, struct buffer *input,
                      struct weir_error *error)
{
    uint64_t until_ms = now_ms() + x->timeout_ms;
    int fd = -1;
    int e = connect_any(x->address, until_ms, &fd, error);
    if (e != 0) {
        return e;
    }
    e = send_all(fd, x->request, until_ms)
            ? receive_all(fd, x, until_ms, input, error)
            : fail(error, WEIR_EIO, "%s: %s", x->address, strerror(errno));
    (void)close(fd);
    return e;
}
