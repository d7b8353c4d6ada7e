#include "cli/http_client.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/buffer_format.h"
#include "cli/connect_address.h"

#define READ_BYTES 65536

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

/* ---- the request ---- */

/*
 * Checks that the secret has printable ASCII only: a line end in it would begin another header
 * field.
 */
static int check_secret(const char *secret, struct weir_error *error)
{
    size_t n = strlen(secret);
    for (size_t i = 0; i < n; i++) {
        if (secret[i] <= ' ' || secret[i] > '~') {
            return fail(
                error, WEIR_EINVAL,
                "found a byte in the secret, at place %zu, that HTTP cannot carry; expected "
                "visible ASCII characters without blanks",
                i + 1);
        }
    }
    return n > 0 && n <= HTTP_CLIENT_SECRET_MAX
               ? 0
               : fail(error, WEIR_EINVAL, "found a secret of %zu bytes, expected 1 to %d", n,
                      HTTP_CLIENT_SECRET_MAX);
}

static void put_request(struct buffer *b, const struct http_peer *peer,
                        const struct http_call *call)
{
    buffer_format(b, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", call->method,
                  call->target, is_unix_address(peer->address) ? "localhost" : peer->address);
    if (peer->secret != NULL) {
        buffer_format(b, "Authorization: Bearer %s\r\n", peer->secret);
    }
    if (call->type != NULL) {
        buffer_format(b, "Content-Type: %s\r\nContent-Length: %zu\r\n", call->type, call->body.len);
    }
    buffer_put(b, TEXT("\r\n"));
    buffer_put(b, call->type != NULL ? call->body : TEXT(""));
}

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

/* ---- the answer ---- */

/* Returns the number of bytes received, 0 at the end, -1 with errno. */
static ssize_t receive(int fd, struct buffer *input, uint64_t until_ms)
{
    char *room = buffer_room(input, READ_BYTES);
    if (room == NULL) {
        errno = ENOMEM;
        return -1;
    }
    for (;;) {
        ssize_t n = recv(fd, room, READ_BYTES, 0);
        if (n >= 0) {
            buffer_add(input, (size_t)n);
            return n;
        }
        if ((errno != EAGAIN && errno != EINTR) || !wait_for(fd, POLLIN, until_ms)) {
            return -1;
        }
    }
}

static int receive_all(int fd, struct http_result *result, uint64_t until_ms,
                       const struct http_peer *peer, struct weir_error *error)
{
    for (;;) {
        ssize_t n = receive(fd, &result->input, until_ms);
        struct text input = buffer_text(&result->input);
        if (n < 0) {
            return fail(error, WEIR_EIO, "%s: no answer: %s", peer->address, strerror(errno));
        }
        if (n > 0 && input.len < result->response.needed) {
            continue;
        }
        int got = http_response_parse(input, n == 0, &result->response);
        if (got == HTTP_READ) {
            return 0;
        }
        if (got == HTTP_BAD) {
            return fail(error, WEIR_EIO, "%s: %s", peer->address, result->response.complaint);
        }
    }
}

static int exchange(int fd, const struct http_peer *peer, const struct http_call *call,
                    uint64_t until_ms, struct http_result *result, struct weir_error *error)
{
    struct buffer request;
    int e = WEIR_ENOMEM;
    buffer_init(&request, HTTP_RESPONSE_MAX);
    put_request(&request, peer, call);
    if (request.full) {
        (void)fail(error, e, "out of memory for the request");
    } else if (!send_all(fd, buffer_text(&request), until_ms)) {
        e = fail(error, WEIR_EIO, "%s: %s", peer->address, strerror(errno));
    } else {
        e = receive_all(fd, result, until_ms, peer, error);
    }
    buffer_finish(&request);
    return e;
}

void http_result_finish(struct http_result *r)
{
    http_response_finish(&r->response);
    buffer_finish(&r->input);
}

int http_call(const struct http_peer *peer, const struct http_call *call,
              struct http_result *result, struct weir_error *error)
{
    uint64_t until_ms = now_ms() + peer->timeout_ms;
    int fd = -1;
    http_response_init(&result->response);
    buffer_init(&result->input, HTTP_RESPONSE_MAX + READ_BYTES);
    int e = peer->secret != NULL ? check_secret(peer->secret, error) : 0;
    e = e == 0 ? connect_any(peer->address, until_ms, &fd, error) : e;
    if (e == 0) {
        e = exchange(fd, peer, call, until_ms, result, error);
        (void)close(fd);
    }
    return e;
}

void http_put_encoded(struct buffer *target, struct text text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (text_is_plain(c, "-._~")) {
            buffer_put_char(target, c);
        } else {
            buffer_format(target, "%%%02X", (unsigned)(unsigned char)c);
        }
    }
}
