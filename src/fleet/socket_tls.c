/* TLS of a socket: bytes pass through its session, which knows no descriptors. */
#include <stdio.h>
#include <sys/socket.h>

#include "base/error.h"
#include "fleet/socket.h"

/* ---- certificates ---- */

int fleet_tls_open(struct weir_fleet *f, struct weir_error *error)
{
    const struct weir_fleet_options *o = &f->options;
    if (!f->url.tls) {
        bool given = o->tls_ca != NULL || o->tls_cert != NULL || o->tls_key != NULL ||
                     o->tls_server_name != NULL;
        return given ? fail(error, WEIR_EINVAL,
                            "found options for TLS, expected a URL with rediss://, "
                            "rediss-sentinel:// or rediss-cluster://")
                     : 0;
    }
    const struct tls_options options = {.ca = o->tls_ca, .cert = o->tls_cert, .key = o->tls_key};
    int e = tls_context_create(&f->tls, &options, error);
    /* The same code as for an unreadable file with a password. */
    return e == 0 || e == WEIR_EINVAL || e == WEIR_ENOMEM ? e : WEIR_EIO;
}

/* Reads the certificates if their files have changed. If these are bad, the ones that were read
 * before stay in use. The caller holds the lock. */
static void renew(struct weir_fleet *f)
{
    struct weir_error error = {0};
    int e = tls_context_renew(&f->tls, &error);
    if (e != 0) {
        f->tls_trouble = e < 0 ? error : (struct weir_error){0};
    }
}

/* Returns a session with the certificates as they are now in the files. */
static struct tls_session *open_session(struct weir_fleet *f, const char *name)
{
    (void)pthread_mutex_lock(&f->tls_lock);
    renew(f);
    struct tls_context *context = tls_context_ref(f->tls);
    (void)pthread_mutex_unlock(&f->tls_lock);
    struct tls_session *session = tls_session_create(context, name);
    tls_context_unref(context);
    return session;
}

int64_t fleet_tls_expires(struct weir_fleet *fleet)
{
    if (!fleet->url.tls) {
        return 0;
    }
    (void)pthread_mutex_lock(&fleet->tls_lock);
    renew(fleet);
    int64_t s = tls_context_expires(fleet->tls);
    (void)pthread_mutex_unlock(&fleet->tls_lock);
    return s;
}

void fleet_tls_trouble(const struct weir_fleet *fleet, struct weir_error *error)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)&fleet->tls_lock;
    (void)pthread_mutex_lock(lock);
    *error = fleet->tls_trouble;
    (void)pthread_mutex_unlock(lock);
}

/* ---- the session of a socket ---- */

/* Ends a socket whose TLS has failed. A handshake is tried at the next address. Returns false. */
static bool fail_tls(struct fleet_socket *s, const struct weir_error *error, uint64_t now_ns)
{
    socket_note_reason(s, error->text);
    if (s->state == SECURING) {
        socket_connect_next(s, now_ns);
    } else {
        socket_end(s, now_ns);
    }
    return false;
}

/* The server's name is the one that the options give, or the one that the URL, a Sentinel or a
 * Cluster has given for this connection. */
void socket_secure(struct fleet_socket *s, uint64_t now_ns)
{
    const char *given = s->thread->fleet->options.tls_server_name;
    s->state = SECURING;
    s->tls = open_session(s->thread->fleet, given != NULL ? given : s->host);
    if (s->tls == NULL) {
        struct weir_error error;
        (void)fail(&error, WEIR_ENOMEM, "out of memory for TLS");
        (void)fail_tls(s, &error, now_ns);
        return;
    }
    socket_watch(s, false);
    if (socket_unseal(s, TEXT(""), now_ns)) {
        socket_list(s);
    }
}

bool socket_unseal(struct fleet_socket *s, struct weir_text cipher, uint64_t now_ns)
{
    struct weir_error error = {0};
    struct buffer *plain = &s->thread->plain; /* with room for all that cipher can hold */
    enum tls_result result = tls_receive(s->tls, &cipher, plain, &s->sealed, &error);
    if (s->state == SECURING && tls_is_up(s->tls)) {
        socket_up(s, now_ns);
    }
    struct weir_text bytes = buffer_text(plain);
    bool open = s->link != NULL && (bytes.len == 0 || client_received(s->link, bytes, now_ns));
    buffer_take(plain, bytes.len);
    if (!open) {
        return false;
    }
    if (result == TLS_ENDED) {
        (void)fail(&error, WEIR_EIO, "the store has ended the connection");
    }
    if (result != TLS_OK) {
        return fail_tls(s, &error, now_ns);
    }
    if (buffer_len(&s->sealed) > 0 && !s->blocked) {
        socket_list(s);
    }
    return true;
}

/* The client's bytes count as sent when they are encrypted: nothing can be taken back from the
 * middle of a record. */
struct weir_text socket_seal(struct fleet_socket *s)
{
    if (s->state == UP && buffer_len(&s->sealed) == 0) {
        struct weir_error error;
        struct weir_text out = client_outgoing(s->link);
        size_t len = out.len;
        if (len == 0) {
            return out;
        }
        if (tls_send(s->tls, &out, &s->sealed, &error) != TLS_OK) {
            socket_note_reason(s, error.text);
            (void)shutdown(s->fd, SHUT_RDWR); /* the next read ends the socket */
        }
        client_sent(s->link, len - out.len);
    }
    return buffer_text(&s->sealed);
}

void socket_end_tls(struct fleet_socket *s)
{
    tls_end(s->tls, &s->sealed);
    struct weir_text rest = buffer_text(&s->sealed);
    if (rest.len > 0) {
        (void)send(s->fd, rest.at, rest.len, MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    buffer_take(&s->sealed, rest.len);
    tls_session_destroy(s->tls);
    s->tls = NULL;
}
