/* Accepts or refuses new connections. */
#include <stdlib.h>

#include "base/atomic.h"
#include "server/net/peers.h"
#include "server/net/worker.h"

static void note_peer(struct connection *c)
{
    struct sockaddr_storage from;
    int size = sizeof from;
    if (uv_tcp_getpeername(&c->uv.tcp, (struct sockaddr *)&from, &size) != 0) {
        return;
    }
    char text[INET6_ADDRSTRLEN] = "";
    if (from.ss_family == AF_INET) {
        (void)uv_ip4_name((const struct sockaddr_in *)&from, text, sizeof text);
    } else if (from.ss_family == AF_INET6) {
        (void)uv_ip6_name((const struct sockaddr_in6 *)&from, text, sizeof text);
    }
    (void)address_parse(text_of(text), &c->peer, NULL);
}

/* Creates a connection in the thread's list. Its handle is open, so it must be ended by
 * connection_close(). Returns NULL if out of memory. */
static struct connection *create(struct worker *w, const struct protocol *protocol, bool tcp)
{
    struct connection *c = calloc(1, sizeof *c + protocol->session_bytes);
    if (c == NULL ||
        (tcp ? uv_tcp_init(&w->loop, &c->uv.tcp) : uv_pipe_init(&w->loop, &c->uv.pipe, 0)) != 0) {
        free(c);
        return NULL;
    }
    c->uv.handle.data = c;
    c->worker = w;
    c->protocol = protocol;
    c->since_ms = uv_now(&w->loop);
    overload_enter(c);
    buffer_init(&c->input, SERVER_REQUEST_BYTES + SERVER_READ_BYTES);
    buffer_init(&c->output, 2 * SERVER_OUTPUT_BYTES);
    buffer_init(&c->backlog, 2 * SERVER_OUTPUT_BYTES);
    c->next = w->connections;
    if (c->next != NULL) {
        c->next->previous = c;
    }
    w->connections = c;
    return c;
}

static void refuse(struct connection *c, uint64_t *count, struct log_limit *limit, const char *why)
{
    const char *words = c->protocol->refusal;
    uv_buf_t buf = {.base = (char *)words, .len = words != NULL ? strlen(words) : 0};
    if (words != NULL) {
        (void)uv_try_write(&c->uv.stream, &buf, 1);
    }
    count_own(count, 1);
    connection_tell(c, limit, LEVEL_WARNING, "connection refused", why);
    connection_close(c);
}

/* Counts the connection for its address. Returns false if that has as many
 * connections as it may. */
static bool enter(struct connection *c)
{
    struct peers *peers = c->worker->server->peers;
    c->entered = peers != NULL && c->peer.family != 0 && peers_enter(peers, &c->peer);
    return c->entered || peers == NULL || c->peer.family == 0;
}

static bool is_too_many(const struct worker *w, const struct protocol *protocol, uint64_t open)
{
    return connection_is_client(protocol)
               ? open >= w->server->options.connections
               : w->counts.open[PROTOCOL_ADMIN] > SERVER_ADMIN_CONNECTIONS;
}

bool connection_accept(struct worker *w, uv_stream_t *listener, const struct protocol *protocol)
{
    static struct log_limit refused;
    static struct log_limit refused_address;
    bool tcp = listener->type == UV_TCP;
    struct connection *c = create(w, protocol, tcp);
    if (c == NULL) {
        return false;
    }
    uint64_t open = connection_is_client(protocol) ? fetch_add(&w->server->connections, 1) : 0;
    count_own(&w->counts.open[protocol->kind], 1);
    if (uv_accept(listener, &c->uv.stream) != 0) {
        connection_close(c);
        return true;
    }
    if (tcp) {
        (void)uv_tcp_nodelay(&c->uv.tcp, 1);
        note_peer(c);
    }
    if (is_too_many(w, protocol, open)) {
        refuse(c, &w->counts.refused, &refused, "too many connections");
    } else if (connection_is_client(protocol) && !enter(c)) {
        refuse(c, &w->counts.refused_address, &refused_address,
               "too many connections of this address");
    } else {
        connection_begin(c);
    }
    return true;
}
