/* Accepts or refuses new connections, and counts them. */
#include <assert.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "server/loop/worker.h"

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
    c->accepted_ms = c->since_ms = uv_now(&w->loop);
    c->row = TALLY_NONE;
    overload_enter(c);
    buffer_init(&c->input, SERVER_REQUEST_BYTES + SERVER_READ_BYTES + TLS_RECORD_BYTES);
    buffer_init(&c->output, SERVER_SEALED_BYTES(2 * SERVER_OUTPUT_BYTES));
    buffer_init(&c->backlog, SERVER_SEALED_BYTES(2 * SERVER_OUTPUT_BYTES));
    c->next = w->connections;
    if (c->next != NULL) {
        c->next->previous = c;
    }
    w->connections = c;
    return c;
}

/* ---- what is told ---- */

void connection_tell(const struct connection *c, struct log_limit *limit, enum log_level level,
                     const char *what, const char *why)
{
    char peer[ADDRESS_MAX];
    LOG_LIMITED(limit, level, what, LOG_STRING("why", why),
                LOG_STRING("protocol", c->protocol->name),
                LOG_STRING("address", peer_print(&c->peer, peer)));
}

bool connection_wrong_secret(struct connection *c)
{
    static struct log_limit limit;
    bool ends = ++c->wrong >= CONNECTION_WRONG_MAX;
    if (ends) {
        connection_tell(c, &limit, LEVEL_WARNING, "connection ended", "too many wrong secrets");
    }
    return ends;
}

/* ---- counting ---- */

uint64_t connection_count(const struct connection *c, uint64_t *most)
{
    const struct worker *w = c->worker;
    bool client = connection_is_client(c->protocol);
    *most = client ? w->server->options.connections : w->server->options.operators;
    return client ? load_relaxed(&w->server->connections)
                  : w->counts.open[PROTOCOL_ADMIN] + w->counts.open[PROTOCOL_METRICS] -
                        w->counts.streams;
}

static struct tally *tally_of(const struct connection *c)
{
    struct server *server = c->worker->server;
    return connection_is_client(c->protocol) ? server->clients : server->operators;
}

/* Ends the counting of a connection for its address. */
static void leave_crowd(struct connection *c)
{
    uint32_t row = c->row;
    if (row != TALLY_NONE) {
        crowd_leave(c);
        tally_subtract(tally_of(c), row, 1);
    }
}

#define STREAM_KERNEL_BYTES 65536

/* The kernel gets a small buffer, which otherwise grows to megabytes for a client that does not
 * read: what waits is to be counted here. */
void connection_stream(struct connection *c)
{
    int bytes = STREAM_KERNEL_BYTES;
    assert(!c->closing); /* it would be counted for ever */
    (void)uv_send_buffer_size(&c->uv.handle, &bytes);
    leave_crowd(c);
    c->beyond = false;
    c->streaming = true;
    count_own(&c->worker->counts.streams, 1);
}

void connection_end_stream(struct connection *c, struct weir_text last)
{
    c->streaming = false;
    count_own(&c->worker->counts.streams, UINT64_MAX);
    c->ending = true;
    c->since_ms = uv_now(&c->worker->loop); /* the time to fetch replies is bounded again */
    connection_push(c, last);
    connection_go_on(c);
}

void connection_uncount(struct connection *c)
{
    struct worker *w = c->worker;
    leave_crowd(c);
    if (c->streaming) {
        c->streaming = false;
        count_own(&w->counts.streams, UINT64_MAX);
    }
    if (connection_is_client(c->protocol)) {
        (void)fetch_sub(&w->server->connections, 1);
    }
    assert(w->counts.open[c->protocol->kind] > 0);
    count_own(&w->counts.open[c->protocol->kind], UINT64_MAX);
}

/* ---- room ---- */

/* Closes a connection of an address, or with TALLY_NONE of the address that has most on this
 * thread. Returns false if none may be closed. */
static bool replace(struct worker *w, uint32_t row, uint64_t *count, const char *why)
{
    static struct log_limit limit;
    struct connection *old = crowd_oldest(w, row);
    if (old != NULL) {
        count_own(count, 1);
        connection_tell(old, &limit, LEVEL_WARNING, "connection closed", why);
        connection_close(old);
    }
    return old != NULL;
}

static bool replace_any(struct worker *w)
{
    return replace(w, TALLY_NONE, &w->counts.replaced,
                   "its address has the most connections, and a new client needed room");
}

/* Asks the thread that has the most clients, besides this one, to close one of them. Returns false
 * if no other thread has any. */
static bool ask_for_room(const struct worker *w)
{
    const struct server *server = w->server;
    struct worker *asked = NULL;
    uint64_t most = 0;
    for (unsigned i = 0; i < server->threads; i++) {
        struct worker *other = &server->workers[i];
        uint64_t open = 0;
        for (unsigned kind = 0; listener_is_for_clients(kind); kind++) {
            open += load_relaxed(&other->counts.open[kind]);
        }
        if (other != w && open > most) {
            asked = other;
            most = open;
        }
    }
    if (asked != NULL) {
        worker_ask_for_room(asked);
    }
    return asked != NULL;
}

void connection_make_room(struct worker *w, uint64_t n)
{
    while (n > 0 && load_relaxed(&w->server->connections) > w->server->options.connections &&
           replace_any(w)) {
        n--;
    }
}

/*
 * Finds room for a connection that was counted. If this thread has none to close, but another one
 * may have, the client need not wait for that: half of the reserve is for such clients, the rest
 * is for health checks. Returns false if there is no room and no reserve.
 */
static bool find_room(struct connection *c)
{
    uint64_t most;
    uint64_t open = connection_count(c, &most);
    while (open > most && replace_any(c->worker)) {
        open = connection_count(c, &most);
    }
    if (open <= most) {
        return true;
    }
    bool asked = connection_is_client(c->protocol) && ask_for_room(c->worker);
    c->beyond = !asked || open > most + SERVER_RESERVE / 2;
    return open <= most + SERVER_RESERVE;
}

/* Returns whether the peer is a proxy that the operator has named: its connections are of many
 * clients. */
static bool is_named_proxy(const struct connection *c)
{
    const struct cidr_set *trusted = c->worker->server->options.trusted;
    return trusted != NULL && cidr_set_has(trusted, &c->peer);
}

/* Returns the bound on connections of one address; 0: there is none. */
static uint64_t most_of_address(const struct connection *c)
{
    const struct server_options *o = &c->worker->server->options;
    if (connection_is_client(c->protocol)) {
        return is_named_proxy(c) ? 0 : o->connections_per_address;
    }
    uint64_t half = (o->operators + 1) / 2;
    return half < SERVER_ADMIN_PER_ADDRESS ? half : SERVER_ADMIN_PER_ADDRESS;
}

/* Counts the connection for its address. If the address has as many as it may, its oldest one that
 * may be closed makes room. Returns false if it has none. */
static bool enter(struct connection *c)
{
    struct worker *w = c->worker;
    struct address room;
    struct weir_text key = tally_client(&c->peer, &room);
    struct tally *tally = tally_of(c);
    uint64_t most = most_of_address(c);
    most = most != 0 && c->peer.family != 0 ? most : UINT64_MAX;
    uint64_t count;
    assert(!c->closing); /* it would be counted for ever: connection_uncount() was called */
    uint32_t row = tally_add(tally, key, 1, most, &count);
    if (row == TALLY_NONE && count >= most &&
        replace(w, tally_row(tally, key), &w->counts.replaced_address,
                "its address reached the limit of connections and opened a newer one")) {
        row = tally_add(tally, key, 1, most, &count);
    }
    if (row != TALLY_NONE) {
        crowd_enter(c, row);
    }
    return row != TALLY_NONE;
}

/* ---- accepting ---- */

static void tell_refused(struct connection *c, uint64_t *count, const char *why)
{
    static struct log_limit limit;
    count_own(count, 1);
    connection_tell(c, &limit, LEVEL_WARNING, "connection refused", why);
}

void connection_refuse(struct connection *c)
{
    const char *words = c->protocol->refusal;
    buffer_put(&c->worker->replies, text_of(words != NULL ? words : ""));
    tell_refused(c, &c->worker->counts.refused, "too many connections");
}

/* Refuses a connection before anything was read. */
static void turn_away(struct connection *c, uint64_t *count, const char *why)
{
    const char *words = c->tls == NULL ? c->protocol->refusal : NULL; /* no handshake for that */
    uv_buf_t buf = {.base = (char *)words, .len = words != NULL ? strlen(words) : 0};
    if (words != NULL) {
        (void)uv_try_write(&c->uv.stream, &buf, 1);
    }
    tell_refused(c, count, why);
    connection_close(c);
}

static void count_in(struct connection *c)
{
    if (connection_is_client(c->protocol)) {
        (void)fetch_add(&c->worker->server->connections, 1);
    }
    count_own(&c->worker->counts.open[c->protocol->kind], 1);
}

bool connection_accept(struct worker *w, uv_stream_t *listener, const struct protocol *protocol)
{
    bool tcp = listener->type == UV_TCP;
    struct connection *c = create(w, protocol, tcp);
    if (c == NULL) {
        return false;
    }
    count_in(c);
    if (uv_accept(listener, &c->uv.stream) != 0) {
        connection_close(c);
        return true;
    }
    if (tcp) {
        note_peer(c);
    }
    if (tcp && !connection_open_tls(c)) {
        connection_close(c);
    } else if (!find_room(c)) {
        turn_away(c, &w->counts.refused, "too many connections");
    } else if (!enter(c)) {
        turn_away(c, &w->counts.refused_address, "too many connections of this address");
    } else {
        connection_note_kept(c); /* a handshake counts from here on, and may close others */
        connection_begin(c);
    }
    return true;
}
