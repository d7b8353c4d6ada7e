#include "support/store/fault_pair.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define HELD_MAX ((size_t)1 << 20) /* bytes of one direction */
#define PIECE_MAX 65536

void fault_close_hard(int fd)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};
    if (fd >= 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
        (void)close(fd);
    }
}

static void no_delay(int fd)
{
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

struct fault_pair *fault_pair_create(int client, int server)
{
    struct fault_pair *c = malloc(sizeof *c);
    if (c == NULL) {
        return NULL;
    }
    *c = (struct fault_pair){.client = client, .server = server, .connecting = server >= 0};
    c->way[FAULT_TO_SERVER].from = c->way[FAULT_TO_CLIENT].to = client;
    c->way[FAULT_TO_SERVER].to = c->way[FAULT_TO_CLIENT].from = server;
    buffer_init(&c->way[FAULT_TO_SERVER].bytes, HELD_MAX + PIECE_MAX);
    buffer_init(&c->way[FAULT_TO_CLIENT].bytes, HELD_MAX + PIECE_MAX);
    no_delay(client);
    if (server >= 0) {
        no_delay(server);
    }
    return c;
}

void fault_pair_destroy(struct fault_pair *c, bool hard)
{
    if (hard) {
        fault_close_hard(c->client);
        fault_close_hard(c->server);
    } else {
        (void)close(c->client);
        (void)close(c->server);
    }
    buffer_finish(&c->way[FAULT_TO_SERVER].bytes);
    buffer_finish(&c->way[FAULT_TO_CLIENT].bytes);
    free(c);
}

/* ---- bytes ---- */

static enum fault_flow flow_of(const struct fault_rules *r, const struct fault_pair *c, int way)
{
    if (c->server < 0 || r->now.half_open || c->way[way].dead) {
        return FAULT_DROP;
    }
    if (r->now.black_hole || c->connecting) {
        return FAULT_HOLD;
    }
    return way == FAULT_TO_SERVER ? r->now.to_server : r->now.to_client;
}

static uint64_t due_of(struct fault_rules *r, uint64_t now_ns)
{
    r->random = r->random * 6364136223846793005U + 1442695040888963407U;
    uint64_t jitter_us = r->now.jitter_us != 0 ? (r->random >> 33) % r->now.jitter_us : 0;
    return now_ns + (r->now.delay_us + jitter_us) * 1000;
}

static void drop_all(struct fault_rules *r, struct fault_way *w, size_t more)
{
    w->dead = true;
    (void)__atomic_fetch_add(&r->counts.dropped, buffer_len(&w->bytes) + more, __ATOMIC_RELAXED);
    buffer_take(&w->bytes, buffer_len(&w->bytes));
    w->count = 0;
}

/* Reads bytes from one side. Returns false if the connection has broken. */
static bool take_in(struct fault_rules *r, struct fault_pair *c, int way, uint64_t now_ns)
{
    struct fault_way *w = &c->way[way];
    char *room = buffer_room(&w->bytes, PIECE_MAX);
    if (room == NULL) {
        return false;
    }
    ssize_t n = read(w->from, room, PIECE_MAX);
    if (n <= 0) {
        w->ended = n == 0;
        return n == 0 || errno == EAGAIN;
    }
    if (flow_of(r, c, way) == FAULT_DROP) {
        drop_all(r, w, (size_t)n);
        return true;
    }
    buffer_add(&w->bytes, (size_t)n);
    uint64_t due_ns = due_of(r, now_ns);
    uint64_t before =
        w->count > 0 ? w->pieces[(w->first + w->count - 1) % FAULT_PIECES_MAX].due_ns : 0;
    w->pieces[(w->first + w->count++) % FAULT_PIECES_MAX] =
        (struct fault_piece){due_ns > before ? due_ns : before, (size_t)n};
    return true;
}

static bool send_piece(struct fault_rules *r, struct fault_way *w, int way)
{
    struct fault_piece *piece = &w->pieces[w->first];
    size_t len = r->now.slice != 0 && r->now.slice < piece->len ? r->now.slice : piece->len;
    ssize_t n = send(w->to, buffer_text(&w->bytes).at, len, MSG_NOSIGNAL);
    if (n < 0) {
        return errno == EAGAIN;
    }
    buffer_take(&w->bytes, (size_t)n);
    piece->len -= (size_t)n;
    if (piece->len == 0) {
        w->first = (w->first + 1) % FAULT_PIECES_MAX;
        w->count--;
    }
    uint64_t *counter = way == FAULT_TO_SERVER ? &r->counts.to_server : &r->counts.to_client;
    (void)__atomic_fetch_add(counter, (size_t)n, __ATOMIC_RELAXED);
    return true;
}

/* Sends one piece, or one slice of it. The next one is sent in the next round, so that it is a
 * packet of its own. */
static bool pass_on(struct fault_rules *r, struct fault_pair *c, int way, uint64_t now_ns)
{
    struct fault_way *w = &c->way[way];
    enum fault_flow flow = flow_of(r, c, way);
    if (flow == FAULT_DROP && w->count > 0) {
        drop_all(r, w, 0);
    }
    if (flow != FAULT_FLOW) {
        return true;
    }
    if (w->count > 0) {
        return w->pieces[w->first].due_ns > now_ns || send_piece(r, w, way);
    }
    if (w->ended && !w->told) {
        w->told = true;
        (void)shutdown(w->to, SHUT_WR);
    }
    return true;
}

/* ---- poll ---- */

static short events_of(const struct fault_rules *r, const struct fault_pair *c, int way)
{
    const struct fault_way *w = &c->way[way];
    bool room = w->count < FAULT_PIECES_MAX && buffer_len(&w->bytes) < HELD_MAX;
    bool reads = !w->ended && room && flow_of(r, c, way) != FAULT_HOLD;
    return reads ? POLLIN : 0;
}

static bool can_send(const struct fault_rules *r, const struct fault_pair *c, int way,
                     uint64_t now_ns)
{
    const struct fault_way *w = &c->way[way];
    return flow_of(r, c, way) == FAULT_FLOW && w->count > 0 && w->pieces[w->first].due_ns <= now_ns;
}

void fault_pair_watch(const struct fault_rules *r, const struct fault_pair *c, uint64_t now_ns,
                      struct pollfd *fds)
{
    fds[0] = (struct pollfd){.fd = c->client, .events = events_of(r, c, FAULT_TO_SERVER)};
    fds[1] = (struct pollfd){.fd = c->server, .events = events_of(r, c, FAULT_TO_CLIENT)};
    if (can_send(r, c, FAULT_TO_CLIENT, now_ns)) {
        fds[0].events |= POLLOUT;
    }
    if (c->connecting || can_send(r, c, FAULT_TO_SERVER, now_ns)) {
        fds[1].events |= POLLOUT;
    }
    for (int i = 0; i < 2; i++) {
        fds[i].fd = fds[i].events == 0 ? -1 : fds[i].fd; /* or POLLHUP would end each poll() */
    }
}

static bool finish_connect(struct fault_pair *c)
{
    int error = 0;
    socklen_t len = sizeof error;
    c->connecting = false;
    return getsockopt(c->server, SOL_SOCKET, SO_ERROR, &error, &len) == 0 && error == 0;
}

bool fault_pair_serve(struct fault_rules *r, struct fault_pair *c, const struct pollfd *fds,
                      uint64_t now_ns)
{
    if (c->connecting && fds[1].revents != 0 && !finish_connect(c)) {
        return false;
    }
    for (int way = 0; way < 2; way++) {
        const struct pollfd *f = &fds[way];
        bool readable = (f->events & POLLIN) != 0 && f->revents != 0;
        if ((readable && !take_in(r, c, way, now_ns)) || !pass_on(r, c, way, now_ns)) {
            return false;
        }
    }
    return true;
}

bool fault_pair_is_over(const struct fault_pair *c)
{
    return c->server < 0 ? c->way[FAULT_TO_SERVER].ended
                         : c->way[FAULT_TO_SERVER].told && c->way[FAULT_TO_CLIENT].told;
}

uint64_t fault_pair_due(const struct fault_rules *r, const struct fault_pair *c)
{
    uint64_t due_ns = UINT64_MAX;
    for (int way = 0; way < 2; way++) {
        const struct fault_way *w = &c->way[way];
        bool waits = flow_of(r, c, way) == FAULT_FLOW && w->count > 0;
        if (waits && w->pieces[w->first].due_ns < due_ns) {
            due_ns = w->pieces[w->first].due_ns;
        }
    }
    return due_ns;
}
