#include "fleet/socket.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#define READS_MAX 8 /* reads in one turn, so that one store cannot occupy the loop */

/* ---- listing and closing ---- */

void socket_list(struct fleet_socket *s)
{
    if (!s->listed) {
        s->listed = true;
        s->next_listed = s->thread->listed;
        s->thread->listed = s;
    }
    fleet_thread_happened(s->thread);
}

void socket_close_descriptor(struct fleet_socket *s)
{
    if (s->tls != NULL) {
        socket_end_tls(s);
    }
    if (s->poll != NULL) {
        fleet_poll_close(s->poll, s->fd);
    } else if (s->fd >= 0) {
        (void)close(s->fd);
    }
    s->poll = NULL;
    s->fd = -1;
    s->blocked = false;
}

/* Closes the socket. It stays in memory until the end of the turn, because callers up the stack may
 * still look at it. */
static void close_socket(struct fleet_socket *s)
{
    socket_close_descriptor(s);
    socket_forget_names(s);
    s->state = CLOSED;
    s->link = NULL;
    *s->from = s->next;
    if (s->next != NULL) {
        s->next->from = s->from;
    }
    s->next = s->thread->closed;
    s->thread->closed = s;
    fleet_thread_happened(s->thread);
}

void socket_note_reason(struct fleet_socket *s, const char *reason)
{
    (void)snprintf(s->thread->reason, sizeof s->thread->reason, "%.159s", reason);
}

void socket_end(struct fleet_socket *s, uint64_t now_ns)
{
    struct client_link *link = s->link;
    close_socket(s);
    client_link_set_data(link, NULL);
    client_down(link, now_ns);
}

/* Handles the end of a connection by the other side or by the network. */
static void lose(struct fleet_socket *s, uint64_t now_ns)
{
    if (s->state == SECURING) {
        socket_note_reason(s, "the connection was closed in the TLS handshake");
        socket_connect_next(s, now_ns);
    } else {
        socket_end(s, now_ns);
    }
}

/* ---- reading and writing ---- */

void socket_watch(struct fleet_socket *s, bool blocked)
{
    s->blocked = blocked;
    (void)uv_poll_start(s->poll, UV_READABLE | (blocked ? UV_WRITABLE : 0), socket_event);
}

static struct weir_text outgoing(struct fleet_socket *s)
{
    return s->tls == NULL ? client_outgoing(s->link) : socket_seal(s);
}

static void write_out(struct fleet_socket *s, uint64_t now_ns)
{
    struct weir_text out;
    while ((out = outgoing(s)).len > 0) {
        ssize_t n = send(s->fd, out.at, out.len, MSG_NOSIGNAL);
        if (n > 0 && s->tls != NULL) {
            buffer_take(&s->sealed, (size_t)n);
        } else if (n > 0) {
            client_sent(s->link, (size_t)n);
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            socket_watch(s, true);
            return;
        } else {
            lose(s, now_ns);
            return;
        }
    }
    if (s->blocked) {
        socket_watch(s, false);
    }
}

static bool receive(struct fleet_socket *s, struct weir_text bytes, uint64_t now_ns)
{
    return s->tls == NULL ? client_received(s->link, bytes, now_ns)
                          : socket_unseal(s, bytes, now_ns);
}

static void read_in(struct fleet_socket *s, uint64_t now_ns)
{
    char *room = s->thread->read;
    for (int i = 0; i < READS_MAX && s->link != NULL; i++) {
        ssize_t n = read(s->fd, room, FLEET_READ_BYTES);
        if (n > 0) {
            if (!receive(s, (struct weir_text){room, (size_t)n}, now_ns) || n < FLEET_READ_BYTES) {
                return;
            }
        } else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
            lose(s, now_ns);
            return;
        } else if (errno != EINTR) {
            return;
        }
    }
}

/* Even with an error there may be bytes that came before it, so the descriptor is read first. */
void socket_event(uv_poll_t *poll, int status, int events)
{
    struct fleet_socket *s = poll->data;
    uint64_t now_ns = clock_boot_ns();
    if (s == NULL) {
        return;
    }
    fleet_thread_happened(s->thread);
    if (s->state == CONNECTING) {
        socket_connected(s, now_ns);
        return;
    }
    if (status < 0 || (events & UV_READABLE) != 0) {
        read_in(s, now_ns);
    }
    if (s->poll != poll) {
        return; /* it is closed, or connects to another address */
    }
    if (status < 0) {
        lose(s, now_ns);
    } else if ((events & UV_WRITABLE) != 0) {
        socket_list(s);
    }
}

/* ---- the client's driver ---- */

static void drive_connect(void *arg, struct client_link *link, struct weir_text host, unsigned port)
{
    struct fleet_thread *t = arg;
    struct fleet_socket *s = calloc(1, sizeof *s);
    client_link_set_data(link, s);
    if (s == NULL) {
        return; /* the client gives up a connection that does not come up */
    }
    s->thread = t;
    s->link = link;
    s->fd = -1;
    buffer_init(&s->sealed, FLEET_SEALED_BYTES);
    s->port = port;
    memcpy(s->host, host.at, host.len < FLEET_HOST_MAX ? host.len : FLEET_HOST_MAX - 1);
    s->give_up_ns = clock_boot_ns() + FLEET_CONNECT_NS;
    s->step_ns = s->give_up_ns;
    s->next = t->sockets;
    s->from = &t->sockets;
    if (s->next != NULL) {
        s->next->from = &s->next;
    }
    t->sockets = s;
    socket_list(s);
}

static void drive_wake(void *arg, struct client_link *link)
{
    struct fleet_socket *s = client_link_data(link);
    (void)arg;
    if (s != NULL && s->state == UP && !s->blocked) {
        socket_list(s);
    }
}

static void drive_close(void *arg, struct client_link *link)
{
    struct fleet_socket *s = client_link_data(link);
    (void)arg;
    if (s != NULL) {
        client_link_set_data(link, NULL);
        close_socket(s);
    }
}

struct client_driver fleet_driver(struct fleet_thread *t)
{
    return (struct client_driver){t, drive_connect, drive_wake, drive_close};
}

/* ---- a turn ---- */

static void work(struct fleet_socket *s, uint64_t now_ns)
{
    if (s->state == NEW && !socket_begin(s, now_ns)) {
        socket_end(s, now_ns);
    }
    if (s->state == UP || s->state == SECURING) {
        write_out(s, now_ns);
    }
}

void fleet_sockets_work(struct fleet_thread *t, uint64_t now_ns)
{
    struct fleet_socket *s = t->listed;
    t->listed = NULL;
    while (s != NULL) {
        struct fleet_socket *next = s->next_listed;
        s->listed = false;
        work(s, now_ns);
        s = next;
    }
}

/* Returns a socket whose time is over, or NULL and in *due the time when the next one's is. The
 * search starts afresh each time, because ending one socket may close others. */
static struct fleet_socket *overdue(const struct fleet_thread *t, uint64_t now_ns, uint64_t *due)
{
    *due = UINT64_MAX;
    for (struct fleet_socket *s = t->sockets; s != NULL; s = s->next) {
        uint64_t own = s->step_ns < s->give_up_ns ? s->step_ns : s->give_up_ns;
        if (s->state != UP && own <= now_ns) {
            return s;
        }
        if (s->state != UP && own < *due) {
            *due = own;
        }
    }
    return NULL;
}

uint64_t fleet_sockets_tick(struct fleet_thread *t, uint64_t now_ns)
{
    uint64_t due;
    struct fleet_socket *s;
    while ((s = overdue(t, now_ns, &due)) != NULL) {
        socket_note_reason(s, s->state == RESOLVING  ? "its name was not resolved in time"
                              : s->state == SECURING ? "no TLS handshake in time"
                                                     : "no connection in time");
        if (s->give_up_ns <= now_ns) {
            socket_end(s, now_ns);
        } else {
            socket_connect_next(s, now_ns);
        }
    }
    return due;
}

/* Frees closed sockets. One that is still listed has to wait for fleet_sockets_work(). */
void fleet_sockets_sweep(struct fleet_thread *t)
{
    struct fleet_socket **from = &t->closed;
    while (*from != NULL) {
        struct fleet_socket *s = *from;
        if (s->listed) {
            from = &s->next;
        } else {
            *from = s->next;
            buffer_finish(&s->sealed);
            free(s);
        }
    }
}
