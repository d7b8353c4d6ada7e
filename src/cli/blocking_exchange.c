#include "cli/blocking_exchange.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "cli/client_tls.h"
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

/* A connection to a server: bytes of the network, or those of a session of TLS. */
struct exchange_socket {
    int fd;
    uint64_t until_ms;
    struct tls_session *session; /* NULL: plain text */
    struct buffer out;           /* what the session wants to send */
};

/*
 * Sends all bytes, or as many as the server takes: a server that refuses a request does not read
 * it to its end, and its answer says why. Returns false, with errno, when the time is over.
 */
static bool send_bytes(const struct exchange_socket *l, struct weir_text bytes)
{
    while (bytes.len > 0) {
        ssize_t n = send(l->fd, bytes.at, bytes.len, MSG_NOSIGNAL);
        if (n > 0) {
            bytes = text_after(bytes, (size_t)n);
        } else if (errno == EAGAIN || errno == EINTR) {
            if (!wait_for(l->fd, POLLOUT, l->until_ms)) {
                return false;
            }
        } else {
            return true;
        }
    }
    return true;
}

/* Returns the number of bytes received, 0 at the end, -1 with errno. */
static ssize_t receive_bytes(const struct exchange_socket *l, char *to, size_t size)
{
    for (;;) {
        ssize_t n = recv(l->fd, to, size, 0);
        if (n >= 0) {
            return n;
        }
        if ((errno != EAGAIN && errno != EINTR) || !wait_for(l->fd, POLLIN, l->until_ms)) {
            return -1;
        }
    }
}

/* ---- TLS ---- */

/* Sends what the session has to say. */
static int flush(struct exchange_socket *l, struct weir_error *error)
{
    bool sent = send_bytes(l, buffer_text(&l->out));
    buffer_take(&l->out, buffer_len(&l->out));
    return sent ? 0 : fail(error, WEIR_EIO, "%s", strerror(errno));
}

/* Gives the session bytes that have come, and appends its plaintext to *input. */
static int unseal(struct exchange_socket *l, struct weir_text cipher, struct buffer *input,
                  bool *ended, struct weir_error *error)
{
    enum tls_result got = tls_receive(l->session, &cipher, input, &l->out, error);
    struct weir_error ignored;
    int e = flush(l, got == TLS_OK || got == TLS_ENDED ? error : &ignored);
    *ended = got == TLS_ENDED;
    return got == TLS_OK || got == TLS_ENDED ? e : WEIR_EIO;
}

/* Receives until there is plaintext, or the handshake is finished. Returns 0 or WEIR_E... */
static int receive_sealed(struct exchange_socket *l, struct buffer *input, bool *ended,
                          struct weir_error *error)
{
    char cipher[TLS_RECORD_BYTES];
    size_t before = buffer_len(input);
    bool was_up = tls_is_up(l->session);
    int e = 0;
    *ended = false;
    while (e == 0 && !*ended && buffer_len(input) == before && was_up == tls_is_up(l->session)) {
        ssize_t n = receive_bytes(l, cipher, sizeof cipher);
        if (n < 0) {
            return fail(error, WEIR_EIO, "no answer: %s", strerror(errno));
        }
        *ended = n == 0;
        e = n == 0 ? 0 : unseal(l, (struct weir_text){cipher, (size_t)n}, input, ended, error);
    }
    return e;
}

static int open_session(struct exchange_socket *l, const struct client_tls *tls,
                        struct buffer *input, struct weir_error *error)
{
    bool ended = false;
    if (tls == NULL || tls->context == NULL) {
        return 0;
    }
    l->session = tls_session_create(tls->context, tls->server);
    if (l->session == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory for TLS");
    }
    int e = unseal(l, TEXT(""), input, &ended, error);
    while (e == 0 && !tls_is_up(l->session) && !ended) {
        e = receive_sealed(l, input, &ended, error);
    }
    return e == 0 && ended
               ? fail(error, WEIR_EIO, "the server closed the connection in the TLS handshake")
               : e;
}

/* ---- the exchange ---- */

static int send_request(struct exchange_socket *l, struct weir_text request,
                        struct weir_error *error)
{
    if (l->session == NULL) {
        return send_bytes(l, request) ? 0 : fail(error, WEIR_EIO, "%s", strerror(errno));
    }
    int e = 0;
    while (e == 0 && request.len > 0) {
        e = tls_send(l->session, &request, &l->out, error) == TLS_OK ? flush(l, error) : WEIR_EIO;
    }
    return e;
}

/* Receives more of the answer. *ended: no more will come. */
static int receive_more(struct exchange_socket *l, struct buffer *input, bool *ended,
                        struct weir_error *error)
{
    if (l->session != NULL) {
        return receive_sealed(l, input, ended, error);
    }
    char *room = buffer_room(input, EXCHANGE_READ_BYTES);
    if (room == NULL) {
        return fail(error, WEIR_EIO, "no answer: %s", strerror(ENOMEM));
    }
    ssize_t n = receive_bytes(l, room, EXCHANGE_READ_BYTES);
    if (n < 0) {
        return fail(error, WEIR_EIO, "no answer: %s", strerror(errno));
    }
    buffer_add(input, (size_t)n);
    *ended = n == 0;
    return 0;
}

static int receive_all(struct exchange_socket *l, const struct blocking_exchange *x,
                       struct buffer *input, struct weir_error *error)
{
    for (;;) {
        const char *complaint = "";
        bool ended = false;
        int e = receive_more(l, input, &ended, error);
        if (e != 0) {
            return e;
        }
        int got = x->read(x->arg, buffer_text(input), ended, &complaint);
        if (got != EXCHANGE_MORE) {
            return got == EXCHANGE_DONE ? 0 : fail(error, WEIR_EIO, "%s", complaint);
        }
    }
}

int blocking_exchange(const struct blocking_exchange *x, struct buffer *input,
                      struct weir_error *error)
{
    struct exchange_socket l = {.fd = -1, .until_ms = now_ms() + x->timeout_ms};
    struct weir_error why = {0};
    int e = connect_any(x->address, l.until_ms, &l.fd, error);
    if (e != 0) {
        return e;
    }
    buffer_init(&l.out, 4 * EXCHANGE_READ_BYTES);
    e = open_session(&l, x->tls, input, &why);
    e = e != 0 ? e : send_request(&l, x->request, &why);
    e = e != 0 ? e : receive_all(&l, x, input, &why);
    tls_session_destroy(l.session);
    buffer_finish(&l.out);
    (void)close(l.fd);
    return e == 0 ? 0 : fail(error, e, "%s: %s", x->address, why.text);
}
