#include "load/load_connection.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUEUED_BYTES 4096 /* for frames that are no request */

/* ---- opening and closing ---- */

int load_connection_init(struct load_connection *c, const struct load_request *request,
                         unsigned depth)
{
    *c = (struct load_connection){.fd = -1, .depth = depth};
    buffer_init(&c->cipher, 2 * (depth * request->len + LOAD_INPUT_BYTES));
    c->due_ns = calloc(depth, sizeof *c->due_ns);
    c->out_size = (depth + 1) * request->len + QUEUED_BYTES;
    c->out = malloc(c->out_size);
    c->in = malloc(LOAD_INPUT_BYTES);
    return c->due_ns == NULL || c->out == NULL || c->in == NULL ? -1 : 0;
}

/* ---- TLS ---- */

/* Gives the session bytes that have come; the plaintext is appended to `in`. Returns the number of
 * its bytes, 0 at the end, -1 with errno. */
static ssize_t unseal(struct load_connection *c, struct weir_text cipher)
{
    struct weir_error error;
    struct buffer plain = {
        .at = c->in, .end = c->in_len, .size = LOAD_INPUT_BYTES, .most = LOAD_INPUT_BYTES};
    enum tls_result got = tls_receive(c->session, &cipher, &plain, &c->cipher, &error);
    ssize_t n = (ssize_t)(plain.end - c->in_len);
    c->in_len = plain.end;
    if (got == TLS_ENDED && n == 0) {
        return 0;
    }
    errno = got == TLS_OK && cipher.len == 0 ? EAGAIN : EPROTO;
    return n > 0 && errno == EAGAIN ? n : -1;
}

/* Sends what the session has to say, as far as the socket takes it. */
static bool flush(struct load_connection *c)
{
    struct weir_text text = buffer_text(&c->cipher);
    ssize_t n = text.len > 0 ? send(c->fd, text.at, text.len, MSG_NOSIGNAL) : 0;
    buffer_take(&c->cipher, n > 0 ? (size_t)n : 0);
    return n >= 0 || errno == EAGAIN || errno == EINTR;
}

/* Makes the handshake on a socket that blocks. Returns 0, or -1 with errno. */
static int shake_hands(struct load_connection *c, const struct client_tls *tls)
{
    char cipher[TLS_RECORD_BYTES];
    if (tls == NULL || tls->context == NULL) {
        return 0;
    }
    c->session = tls_session_create(tls->context, tls->server);
    if (c->session == NULL) {
        errno = ENOMEM;
        return -1;
    }
    ssize_t n = unseal(c, TEXT(""));
    while (!tls_is_up(c->session) && (n > 0 || errno == EAGAIN) && flush(c)) {
        n = recv(c->fd, cipher, sizeof cipher, 0);
        if (n <= 0) {
            errno = n == 0 ? ECONNRESET : errno;
            return -1;
        }
        n = unseal(c, (struct weir_text){cipher, (size_t)n});
    }
    return tls_is_up(c->session) && flush(c) ? 0 : -1;
}

/* ---- the opening of HTTP/2 ---- */

/* Reads what has arrived. Returns whether the first call has ended. Wrong bytes set errno. */
static bool has_opened(struct load_connection *c)
{
    struct weir_text rest = {c->in, c->in_len};
    struct load_ended ended = {.opening = false};
    errno = 0;
    while (!ended.opening && errno == 0) {
        int64_t used = load_grpc_read(c, rest, &ended);
        if (used == 0) {
            break;
        }
        errno = used == LOAD_BROKEN ? EPROTO : 0;
        rest = text_after(rest, errno == 0 ? (size_t)used : 0);
    }
    memmove(c->in, rest.at, rest.len);
    c->in_len = rest.len;
    return ended.opening;
}

/* Sends the opening on a socket that blocks, and waits for the end of its call. Returns 0, or -1
 * with errno. */
static int open_streams(struct load_connection *c, const struct load_request *request)
{
    if (request->opening == NULL) {
        return 0;
    }
    c->streams = load_streams_create(c->depth);
    if (c->streams == NULL) {
        errno = ENOMEM;
        return -1;
    }
    if (send(c->fd, request->opening, request->opening_len, MSG_NOSIGNAL) < 0) {
        return -1;
    }
    while (!has_opened(c)) {
        ssize_t n = errno == 0 ? load_connection_receive(c) : -1;
        if (n <= 0) {
            errno = n == 0 ? ECONNRESET : errno;
            return -1;
        }
    }
    return load_connection_send(c) ? 0 : -1;
}

/* ---- opening ---- */

static int open_one(struct load_connection *c, const struct addrinfo *target,
                    const struct load_request *request, const struct client_tls *tls)
{
    const int on = 1;
    c->fd = socket(target->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, target->ai_addr, target->ai_addrlen) != 0 ||
        shake_hands(c, tls) != 0 || open_streams(c, request) != 0 ||
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

int load_connection_open(struct load_connection *c, const struct addrinfo *target,
                         const struct load_request *request, const struct client_tls *tls)
{
    int e = -1;
    for (; e != 0 && target != NULL; target = target->ai_next) {
        e = open_one(c, target, request, tls);
    }
    return e;
}

void load_connection_close(struct load_connection *c)
{
    if (c->fd >= 0) {
        (void)close(c->fd);
    }
    c->fd = -1;
    tls_session_destroy(c->session);
    c->session = NULL;
    load_streams_destroy(c->streams);
    c->streams = NULL;
    buffer_take(&c->cipher, buffer_len(&c->cipher));
    c->in_flight = 0;
    c->sent = 0;
    c->made = 0;
    c->in_len = 0;
    c->wants_write = false;
}

void load_connection_finish(struct load_connection *c)
{
    load_connection_close(c);
    buffer_finish(&c->cipher);
    free(c->due_ns);
    free(c->out);
    free(c->in);
}

/* ---- requests ---- */

void load_connection_put(struct load_connection *c, const struct load_request *request,
                         uint64_t key, uint64_t due_ns)
{
    unsigned newest = c->oldest + c->in_flight;
    newest = newest < c->depth ? newest : newest - c->depth;
    c->due_ns[newest] = due_ns;
    c->in_flight++;
    memcpy(c->out + c->made, request->bytes, request->len);
    load_request_set_key(request, c->out + c->made, key);
    if (c->streams != NULL) {
        c->streams->verdict[newest] = LOAD_OTHER; /* until a message says more */
        load_grpc_set_stream(request, c->out + c->made, c->streams->next);
        c->streams->next += 2;
    }
    c->made += request->len;
}

bool load_connection_queue(struct load_connection *c, struct weir_text bytes)
{
    if (c->out_size - c->made < bytes.len) {
        return false;
    }
    memcpy(c->out + c->made, bytes.at, bytes.len);
    c->made += bytes.len;
    return true;
}

static bool send_sealed(struct load_connection *c)
{
    struct weir_error error;
    struct weir_text text = {c->out + c->sent, c->made - c->sent};
    if (tls_send(c->session, &text, &c->cipher, &error) != TLS_OK || text.len > 0) {
        return false;
    }
    c->sent = 0;
    c->made = 0;
    return flush(c);
}

bool load_connection_send(struct load_connection *c)
{
    if (c->session != NULL) {
        return send_sealed(c);
    }
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

ssize_t load_connection_receive(struct load_connection *c)
{
    char cipher[TLS_RECORD_BYTES];
    if (c->session != NULL) {
        ssize_t n = recv(c->fd, cipher, sizeof cipher, 0);
        return n > 0 ? unseal(c, (struct weir_text){cipher, (size_t)n}) : n;
    }
    ssize_t n = recv(c->fd, c->in + c->in_len, LOAD_INPUT_BYTES - c->in_len, 0);
    c->in_len += n > 0 ? (size_t)n : 0;
    return n;
}

uint64_t load_connection_take(struct load_connection *c)
{
    uint64_t due_ns = c->due_ns[c->oldest];
    c->oldest = c->oldest + 1 < c->depth ? c->oldest + 1 : 0;
    c->in_flight--;
    return due_ns;
}
