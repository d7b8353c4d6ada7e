/* How a socket connects: it looks up its name, and tries its addresses one after the other. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "fleet/socket.h"

/* A lookup of a host name. It lives until libuv's thread is done with it, which cannot be
 * hastened. */
struct lookup {
    uv_getaddrinfo_t request;
    struct fleet_thread *thread;
    struct fleet_socket *socket; /* NULL: the socket is closed */
};

void socket_forget_names(struct fleet_socket *s)
{
    if (s->lookup != NULL) {
        s->lookup->socket = NULL;
        (void)uv_cancel((uv_req_t *)&s->lookup->request);
        s->lookup = NULL;
    }
    uv_freeaddrinfo(s->addresses);
    s->addresses = NULL;
    s->address = NULL;
}

/* ---- connected ---- */

void socket_up(struct fleet_socket *s, uint64_t now_ns)
{
    char room[FLEET_SECRET_BYTES];
    struct fleet_thread *t = s->thread;
    s->state = UP;
    socket_forget_names(s);
    socket_watch(s, false);
    struct weir_error error = {0};
    bool sentinel = client_link_is_sentinel(s->link);
    int e = fleet_secret_read(t->fleet, sentinel, room, &t->secret, &error);
    socket_note_reason(s, error.text);
    if (e != 0) {
        socket_end(s, now_ns);
    } else {
        client_up(s->link, now_ns);
    }
    t->secret = TEXT("");
    explicit_bzero(room, sizeof room);
}

/* The handshake comes first, if there is one. */
static void made(struct fleet_socket *s, uint64_t now_ns)
{
    if (s->thread->fleet->url.tls) {
        socket_secure(s, now_ns);
    } else {
        socket_up(s, now_ns);
    }
}

void socket_connected(struct fleet_socket *s, uint64_t now_ns)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(s->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0 || error != 0) {
        socket_note_reason(s, strerror(error != 0 ? error : errno));
        socket_connect_next(s, now_ns);
    } else {
        made(s, now_ns);
    }
}

/* ---- connecting ---- */

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
        socket_note_reason(s, "its address is not in the store's networks");
        return false;
    }
    s->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->fd < 0) {
        socket_note_reason(s, strerror(errno));
        return false;
    }
    if (address->sa_family != AF_UNIX) {
        set_tcp_options(s->fd);
    }
    int e = connect(s->fd, address, size);
    if (e != 0 && errno != EINPROGRESS) {
        socket_note_reason(s, strerror(errno));
        socket_close_descriptor(s);
        return false;
    }
    s->poll = fleet_poll_open(s->thread, s->fd, s);
    if (s->poll == NULL) {
        socket_close_descriptor(s);
        return false;
    }
    s->state = CONNECTING;
    if (e == 0) {
        made(s, now_ns);
    } else {
        (void)uv_poll_start(s->poll, UV_WRITABLE, socket_event);
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
void socket_connect_next(struct fleet_socket *s, uint64_t now_ns)
{
    socket_close_descriptor(s);
    while (s->address != NULL && s->give_up_ns > now_ns) {
        struct addrinfo *a = s->address;
        s->step_ns = now_ns + (s->give_up_ns - now_ns) / count_addresses(a);
        s->address = a->ai_next;
        if (connect_to(s, a->ai_addr, a->ai_addrlen, now_ns)) {
            return;
        }
    }
    socket_end(s, now_ns);
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
            socket_note_reason(s, uv_strerror(status));
        }
        fleet_thread_happened(s->thread);
        socket_connect_next(s, clock_boot_ns());
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

/* Addresses are used directly; names are resolved by libuv's threads. */
bool socket_begin(struct fleet_socket *s, uint64_t now_ns)
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
