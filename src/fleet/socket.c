/*
 * The connection of a link. Sockets are plain descriptors that libuv watches, not its streams:
 * bytes go straight from the client's buffer to the kernel, a partial write needs no copy, and the
 * next address of a name can be tried at once, by the same code for TCP and unix sockets.
 *
 *     NEW -> RESOLVING -> CONNECTING -> UP        and from each of them to CLOSED, once
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "fleet/fleet_thread.h"

#define HOST_MAX 256
#define READS_MAX 8 /* reads in one turn, so that one store cannot occupy the loop */

enum state { NEW, RESOLVING, CONNECTING, UP, CLOSED };

struct fleet_socket {
    struct fleet_thread *thread;
    struct client_link *link; /* NULL: the socket is closed */
    struct fleet_socket *next, **from;
    struct fleet_socket *next_listed;
    bool listed;
    bool blocked; /* waits for the kernel to take more */
    enum state state;
    int fd;
    uv_poll_t *poll;
    uint64_t give_up_ns; /* until UP: end of the whole attempt ... */
    uint64_t step_ns;    /* ... and of the attempt with this address */
    char host[HOST_MAX];
    unsigned port;
    struct lookup *lookup;      /* pending lookup of its host */
    struct addrinfo *addresses; /* result of the lookup; freed by uv_freeaddrinfo() */
    struct addrinfo *address;   /* next address to try */
};

/* A lookup of a host name. It lives until libuv's thread is done with it, which cannot be
 * hastened. */
struct lookup {
    uv_getaddrinfo_t request;
    struct fleet_thread *thread;
    struct fleet_socket *socket; /* NULL: the socket is closed */
};

static void connect_next(struct fleet_socket *s, uint64_t now_ns);

/* ---- listing and closing ---- */

/* Lists the socket for the next fleet_sockets_work(). */
static void list(struct fleet_socket *s)
{
    if (!s->listed) {
        s->listed = true;
        s->next_listed = s->thread->listed;
        s->thread->listed = s;
    }
    fleet_thread_happened(s->thread);
}

static void close_descriptor(struct fleet_socket *s)
{
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
    close_descriptor(s);
    if (s->lookup != NULL) {
        s->lookup->socket = NULL;
        (void)uv_cancel((uv_req_t *)&s->lookup->request);
        s->lookup = NULL;
    }
    uv_freeaddrinfo(s->addresses);
    s->addresses = NULL;
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

static void note_reason(struct fleet_socket *s, const char *reason)
{
    (void)snprintf(s->thread->reason, sizeof s->thread->reason, "%.159s", reason);
}

static void end(struct fleet_socket *s, uint64_t now_ns)
{
    struct client_link *link = s->link;
    close_socket(s);
    client_link_set_data(link, NULL);
    client_down(link, now_ns);
}

/* ---- reading and writing ---- */

static void on_event(uv_poll_t *poll, int status, int events);

static void watch(struct fleet_socket *s, bool blocked)
{
    s->blocked = blocked;
    (void)uv_poll_start(s->poll, UV_READABLE | (blocked ? UV_WRITABLE : 0), on_event);
}

static void write_out(struct fleet_socket *s, uint64_t now_ns)
{
    struct text out;
    while ((out = client_outgoing(s->link)).len > 0) {
        ssize_t n = send(s->fd, out.at, out.len, MSG_NOSIGNAL);
        if (n > 0) {
            client_sent(s->link, (size_t)n);
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            watch(s, true);
            return;
        } else {
            end(s, now_ns);
            return;
        }
    }
    if (s->blocked) {
        watch(s, false);
    }
}

static void read_in(struct fleet_socket *s, uint64_t now_ns)
{
    char *room = s->thread->read;
    for (int i = 0; i < READS_MAX && s->link != NULL; i++) {
        ssize_t n = read(s->fd, room, FLEET_READ_BYTES);
        if (n > 0) {
            if (!client_received(s->link, (struct text){room, (size_t)n}, now_ns) ||
                n < FLEET_READ_BYTES) {
                return;
            }
        } else if (n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) {
            end(s, now_ns);
            return;
        } else if (errno != EINTR) {
            return;
        }
    }
}

/* ---- connecting ---- */

static void up(struct fleet_socket *s, uint64_t now_ns)
{
    char room[FLEET_SECRET_BYTES];
    struct fleet_thread *t = s->thread;
    s->state = UP;
    uv_freeaddrinfo(s->addresses);
    s->addresses = NULL;
    watch(s, false);
    struct weir_error error = {0};
    bool sentinel = client_link_is_sentinel(s->link);
    int e = fleet_secret_read(t->fleet, sentinel, room, sentinel ? &t->sentinel_secret : &t->secret,
                              &error);
    note_reason(s, error.text);
    if (e != 0) {
        end(s, now_ns);
    } else {
        client_up(s->link, now_ns);
    }
    t->secret = TEXT("");
    t->sentinel_secret = TEXT("");
    explicit_bzero(room, sizeof room);
}

static void connected(struct fleet_socket *s, uint64_t now_ns)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
        note_reason(s, strerror(error != 0 ? error : errno));
        connect_next(s, now_ns);
    } else {
        up(s, now_ns);
    }
}

/* Handles an event of the descriptor. Even with an error there may be bytes that came before it, so
 * it is read first. */
static void on_event(uv_poll_t *poll, int status, int events)
{
    struct fleet_socket *s = poll->data;
    uint64_t now_ns = clock_boot_ns();
    if (s == NULL) {
        return;
    }
    fleet_thread_happened(s->thread);
    if (s->state == CONNECTING) {
        connected(s, now_ns);
        return;
    }
    if (status < 0 || (events & UV_READABLE) != 0) {
        read_in(s, now_ns);
    }
    if (s->state == UP && status < 0) {
        end(s, now_ns);
    } else if (s->state == UP && (events & UV_WRITABLE) != 0) {
        list(s);
    }
}

/* Probes a silent connection after 15 s, and ends it after 15 s without a reply: so a firewall or a
 * NAT does not forget an idle one, and one whose store is gone is noticed before the next call. */
static void set_tcp_options(int fd)
{
    static const struct {
        int level;
        int name;
        int value;
    } options[] = {{IPPROTO_TCP, TCP_NODELAY, 1},
                   {SOL_SOCKET, SO_KEEPALIVE, 1},
                   {IPPROTO_TCP, TCP_KEEPIDLE, 15},
                   {IPPROTO_TCP, TCP_KEEPINTVL, 5},
                   {IPPROTO_TCP, TCP_KEEPCNT, 3}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        const int *value = &options[i].value;
        (void)setsockopt(fd, options[i].level, options[i].name, value, sizeof *value);
    }
}

/* Begins to connect to an address. Returns true if the connection is under way or made. */
static bool connect_to(struct fleet_socket *s, const struct sockaddr *address, socklen_t size,
                       uint64_t now_ns)
{
    if (client_link_is_announced(s->link) && address->sa_family != AF_UNIX &&
        !fleet_permits_address(s->thread->fleet, address)) {
        note_reason(s, "its address is not in the store's networks");
        return false;
    }
    s->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->fd < 0) {
        note_reason(s, strerror(errno));
        return false;
    }
    if (address->sa_family != AF_UNIX) {
        set_tcp_options(s->fd);
    }
    int e = connect(s->fd, address, size);
    if (e != 0 && errno != EINPROGRESS) {
        note_reason(s, strerror(errno));
        close_descriptor(s);
        return false;
    }
    s->poll = fleet_poll_open(s->thread, s->fd, s);
    if (s->poll == NULL) {
        close_descriptor(s);
        return false;
    }
    s->state = CONNECTING;
    if (e == 0) {
        up(s, now_ns);
    } else {
        (void)uv_poll_start(s->poll, UV_WRITABLE, on_event);
    }
    return true;
}

static uint64_t count_addresses(const struct addrinfo *a)
{
    uint64_t n = 0;
    for (; a != NULL; a = a->ai_next) {
        n++;
    }
    return n;
}

/* Tries the next address. The remaining addresses share the remaining time equally. */
static void connect_next(struct fleet_socket *s, uint64_t now_ns)
{
    close_descriptor(s);
    while (s->address != NULL && s->give_up_ns > now_ns) {
        struct addrinfo *a = s->address;
        s->step_ns = now_ns + (s->give_up_ns - now_ns) / count_addresses(a);
        s->address = a->ai_next;
        if (connect_to(s, a->ai_addr, a->ai_addrlen, now_ns)) {
            return;
        }
    }
    end(s, now_ns);
}

static void on_names(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    struct lookup *lookup = (struct lookup *)request;
    struct fleet_socket *s = lookup->socket;
    if (s == NULL) {
        uv_freeaddrinfo(found);
    } else {
        s->lookup = NULL;
        s->addresses = found;
        s->address = status == 0 ? found : NULL;
        if (status != 0) {
            note_reason(s, uv_strerror(status));
        }
        fleet_thread_happened(s->thread);
        connect_next(s, clock_boot_ns());
    }
    fleet_thread_handle_gone(lookup->thread);
    free(lookup);
}

/* Begins to look up the host. Returns true if the lookup is under way. */
static bool resolve(struct fleet_socket *s)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    char port[16];
    struct lookup *lookup = malloc(sizeof *lookup);
    if (lookup == NULL) {
        return false;
    }
    (void)snprintf(port, sizeof port, "%u", s->port);
    if (uv_getaddrinfo(s->thread->loop, &lookup->request, on_names, s->host, port, &hints) != 0) {
        free(lookup);
        return false;
    }
    lookup->thread = s->thread;
    lookup->socket = s;
    s->thread->handles++;
    s->lookup = lookup;
    s->state = RESOLVING;
    return true;
}

static bool connect_unix(struct fleet_socket *s, uint64_t now_ns)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(s->host);
    if (len >= sizeof address.sun_path) {
        return false;
    }
    memcpy(address.sun_path, s->host, len + 1);
    return connect_to(s, (struct sockaddr *)&address, sizeof address, now_ns);
}

/* Begins to connect. Addresses are used directly; names are resolved by libuv's threads. */
static bool begin(struct fleet_socket *s, uint64_t now_ns)
{
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    if (s->host[0] == '/') {
        return connect_unix(s, now_ns);
    }
    if (uv_ip4_addr(s->host, (int)s->port, &four) == 0) {
        return connect_to(s, (struct sockaddr *)&four, sizeof four, now_ns);
    }
    if (uv_ip6_addr(s->host, (int)s->port, &six) == 0) {
        return connect_to(s, (struct sockaddr *)&six, sizeof six, now_ns);
    }
    return resolve(s);
}

/* ---- the client's driver ---- */

static void drive_connect(void *arg, struct client_link *link, struct text host, unsigned port)
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
    s->port = port;
    memcpy(s->host, host.at, host.len < HOST_MAX ? host.len : HOST_MAX - 1);
    s->give_up_ns = clock_boot_ns() + FLEET_CONNECT_NS;
    s->step_ns = s->give_up_ns;
    s->next = t->sockets;
    s->from = &t->sockets;
    if (s->next != NULL) {
        s->next->from = &s->next;
    }
    t->sockets = s;
    list(s);
}

static void drive_wake(void *arg, struct client_link *link)
{
    struct fleet_socket *s = client_link_data(link);
    (void)arg;
    if (s != NULL && s->state == UP && !s->blocked) {
        list(s);
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
    if (s->state == NEW && !begin(s, now_ns)) {
        end(s, now_ns);
    }
    if (s->state == UP) {
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
        note_reason(s, s->state == RESOLVING ? "its name was not resolved in time"
                                             : "no connection in time");
        if (s->give_up_ns <= now_ns) {
            end(s, now_ns);
        } else {
            connect_next(s, now_ns);
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
            free(s);
        }
    }
}
