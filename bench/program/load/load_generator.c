#include "load/load_generator.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/maths.h"
#include "cli/simulate/simulate.h"

#define SECOND UINT64_C(1000000000)
#define EVENTS 256
#define NEVER UINT64_MAX

/* ---- the schedule ---- */

static void step_schedule(struct generator *g)
{
    double gap = g->gap_ns;
    if (g->plan->arrivals == LOAD_POISSON) {
        gap *= (double)sim_exponential(splitmix_next(&g->random)) / 4294967296.0;
    }
    g->due += gap;
    g->due_ns = g->begin_ns + (uint64_t)g->due;
}

/* Returns true if no more requests are to be made. */
static bool is_done(const struct generator *g, uint64_t now_ns)
{
    return g->made == g->limit || now_ns >= g->end_ns || (g->gap_ns > 0 && g->due_ns >= g->end_ns);
}

/* ---- results ---- */

static void note(struct generator *g, uint64_t due_ns, uint64_t now_ns)
{
    load_latency_add(&g->result.latency, now_ns > due_ns ? now_ns - due_ns : 0);
}

static void note_reply(struct generator *g, uint64_t due_ns, uint64_t now_ns,
                       enum load_verdict verdict)
{
    g->last_reply_ns = now_ns;
    store_relaxed(&g->replies, g->replies + 1);
    if (due_ns < g->count_ns) {
        return;
    }
    bool good = verdict != LOAD_REFUSED && verdict != LOAD_ERROR;
    note(g, due_ns, now_ns);
    g->result.verdicts[verdict]++;
    g->result.within += good && now_ns - due_ns <= g->plan->within_ns;
}

static void note_lost(struct generator *g, struct load_connection *c, uint64_t now_ns)
{
    while (c->in_flight > 0) {
        uint64_t due_ns = load_connection_take(c);
        g->in_flight--;
        if (due_ns >= g->count_ns) {
            note(g, due_ns, now_ns);
            g->result.lost++;
        }
    }
}

/* Counts the requests that were due before the end but found no free connection. */
static void note_unsent(struct generator *g, uint64_t now_ns)
{
    while (g->gap_ns > 0 && g->due_ns < g->end_ns && g->due_ns <= now_ns && g->made < g->limit) {
        if (g->due_ns >= g->count_ns) {
            note(g, g->due_ns, now_ns);
            g->result.unsent++;
        }
        g->made++;
        step_schedule(g);
    }
}

/* ---- connections ---- */

static void watch(struct generator *g, struct load_connection *c, int operation)
{
    struct epoll_event e = {.events = EPOLLIN | (c->wants_write ? EPOLLOUT : 0), .data.ptr = c};
    (void)epoll_ctl(g->poll, operation, c->fd, &e);
}

static bool open_one(struct generator *g, struct load_connection *c)
{
    if (load_connection_open(c, g->target, &g->plan->request, &g->plan->tls) != 0) {
        g->error = errno;
        return false;
    }
    watch(g, c, EPOLL_CTL_ADD);
    g->open++;
    return true;
}

/* Replaces a connection that has ended. Its requests in flight are lost. */
static void reopen(struct generator *g, struct load_connection *c, uint64_t now_ns)
{
    note_lost(g, c, now_ns);
    load_connection_close(c);
    g->open--;
    (void)open_one(g, c);
}

static void touch(struct generator *g, struct load_connection *c)
{
    if (!c->touched) {
        c->touched = true;
        g->touched[g->touched_count++] = c;
    }
}

static void put(struct generator *g, struct load_connection *c, uint64_t due_ns)
{
    load_connection_put(c, &g->plan->request, load_next_key(&g->keys), due_ns);
    g->in_flight++;
    g->made++;
    touch(g, c);
}

static void send_touched(struct generator *g, uint64_t now_ns)
{
    for (unsigned i = 0; i < g->touched_count; i++) {
        struct load_connection *c = g->touched[i];
        c->touched = false;
        if (c->fd < 0 || load_connection_unsent(c) == 0) {
            continue;
        }
        if (!load_connection_send(c)) {
            reopen(g, c, now_ns);
        } else if (c->wants_write != (load_connection_unsent(c) > 0)) {
            c->wants_write = load_connection_unsent(c) > 0;
            watch(g, c, EPOLL_CTL_MOD);
        }
    }
    g->touched_count = 0;
}

/* ---- making requests ---- */

/* Returns the next connection in turn that has room; NULL: none. */
static struct load_connection *find_room(struct generator *g)
{
    for (unsigned i = 0; i < g->count && g->in_flight < (uint64_t)g->count * g->plan->depth; i++) {
        struct load_connection *c = &g->connections[g->next];
        g->next = g->next + 1 < g->count ? g->next + 1 : 0;
        if (load_connection_has_room(c, g->plan->request.len)) {
            return c;
        }
    }
    return NULL;
}

/*
 * Adds all requests that are due. Returns false if some are still due and every connection is
 * busy.
 */
static bool put_due(struct generator *g, uint64_t now_ns)
{
    while (g->due_ns <= now_ns && !is_done(g, now_ns)) {
        struct load_connection *c = find_room(g);
        if (c == NULL) {
            return false;
        }
        put(g, c, g->due_ns);
        step_schedule(g);
    }
    return true;
}

/*
 * In a closed loop, adds a whole batch. Call it when all replies have arrived. A server that
 * answers requests before they are sent, or asks for many frames, leaves no room.
 */
static void put_batch(struct generator *g, struct load_connection *c, uint64_t now_ns)
{
    while (load_connection_has_room(c, g->plan->request.len) && !is_done(g, now_ns)) {
        put(g, c, now_ns);
    }
    if (c->in_flight == 0 && c->fd >= 0 && !is_done(g, now_ns)) {
        g->error = -1;
    }
}

static void put_all_batches(struct generator *g, uint64_t now_ns)
{
    for (unsigned i = 0; i < g->count; i++) {
        put_batch(g, &g->connections[i], now_ns);
    }
}

/* ---- taking replies ---- */

/* Reads one reply, or a frame of gRPC that may end a call. Returns its length, as
 * load_read_reply(). */
static int64_t read_next(struct generator *g, struct load_connection *c, struct weir_text input,
                         uint64_t now_ns)
{
    struct load_ended ended = {.due_ns = 0};
    unsigned before = c->in_flight;
    int64_t used = c->streams != NULL ? load_grpc_read(c, input, &ended)
                                      : load_read_reply(g->plan->wire, input, &ended.verdict);
    if (used > 0 && c->streams == NULL) {
        ended.due_ns = load_connection_take(c);
    }
    if (ended.due_ns != 0) {
        note_reply(g, ended.due_ns, now_ns, ended.verdict);
    }
    g->in_flight -= before - c->in_flight;
    return used;
}

/* Reads the replies that have arrived. Returns false if the bytes are not a reply. */
static bool take_replies(struct generator *g, struct load_connection *c, uint64_t now_ns)
{
    struct weir_text rest = {c->in, c->in_len};
    bool is_grpc = c->streams != NULL;
    while (rest.len > 0 && (c->in_flight > 0 || is_grpc)) {
        int64_t used = read_next(g, c, rest, now_ns);
        if (used == LOAD_BROKEN) {
            return false;
        }
        if (used == 0) {
            break;
        }
        rest = text_after(rest, (size_t)used);
    }
    if (rest.len == LOAD_INPUT_BYTES || (rest.len > 0 && c->in_flight == 0 && !is_grpc)) {
        return false; /* too long, or a reply without a request */
    }
    memmove(c->in, rest.at, rest.len);
    c->in_len = rest.len;
    return true;
}

static void receive(struct generator *g, struct load_connection *c)
{
    ssize_t n = load_connection_receive(c);
    uint64_t now_ns = clock_boot_ns();
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (n <= 0) {
        reopen(g, c, now_ns);
    } else if (!take_replies(g, c, now_ns)) {
        g->error = -1;
        return;
    }
    if (g->gap_ns <= 0 && c->in_flight == 0) {
        put_batch(g, c, now_ns);
    }
    if (load_connection_unsent(c) > 0) {
        touch(g, c); /* with frames that the server asked for */
    }
}

/* ---- the loop ---- */

/* Waits until an event arrives or until_ns is reached. Returns the number of events. */
static int wait_for_events(struct generator *g, struct epoll_event *events, uint64_t until_ns)
{
    uint64_t now_ns = clock_boot_ns();
    uint64_t ns = until_ns > now_ns && !g->plan->spin ? until_ns - now_ns : 0;
    struct timespec timeout = {(time_t)(ns / SECOND), (long)(ns % SECOND)};
    return epoll_pwait2(g->poll, events, EVENTS, &timeout, NULL);
}

static void turn(struct generator *g, uint64_t until_ns)
{
    struct epoll_event events[EVENTS];
    int n = wait_for_events(g, events, until_ns);
    for (int i = 0; i < n && g->error != -1; i++) {
        struct load_connection *c = events[i].data.ptr;
        if ((events[i].events & ~(uint32_t)EPOLLOUT) != 0) {
            receive(g, c);
        }
        if ((events[i].events & EPOLLOUT) != 0) {
            touch(g, c);
        }
    }
}

void generator_run(struct generator *g)
{
    uint64_t now_ns = g->begin_ns;
    if (g->gap_ns <= 0) {
        put_all_batches(g, now_ns);
    }
    while (!is_done(g, now_ns) && g->open > 0 && g->error != -1) {
        bool room = g->gap_ns <= 0 || put_due(g, now_ns);
        send_touched(g, now_ns);
        uint64_t due_ns = g->gap_ns > 0 && room ? g->due_ns : NEVER;
        turn(g, due_ns < g->end_ns ? due_ns : g->end_ns);
        now_ns = clock_boot_ns();
    }
    send_touched(g, now_ns);
    note_unsent(g, now_ns);
    uint64_t last_ns = now_ns + LOAD_GRACE_NS;
    while (g->in_flight > 0 && now_ns < last_ns && g->open > 0 && g->error != -1) {
        turn(g, last_ns);
        now_ns = clock_boot_ns();
        send_touched(g, now_ns);
    }
    for (unsigned i = 0; i < g->count; i++) {
        note_lost(g, &g->connections[i], now_ns);
    }
}

/* ---- beginning and end ---- */

static uint64_t share(uint64_t all, unsigned i, unsigned n)
{
    return all / n + (i < all % n);
}

static int open_connections(struct generator *g)
{
    for (unsigned i = 0; i < g->count; i++) {
        struct load_connection *c = &g->connections[i];
        if (load_connection_init(c, &g->plan->request, g->plan->depth) != 0) {
            g->error = ENOMEM;
            return -1;
        }
        if (!open_one(g, c)) {
            return -1;
        }
    }
    return 0;
}

int generator_init(struct generator *g, const struct load_plan *plan, const struct addrinfo *target,
                   unsigned i)
{
    unsigned n = plan->threads;
    *g = (struct generator){.plan = plan, .target = target, .random = plan->seed + i};
    g->count = (unsigned)share(plan->connections, i, n);
    g->keys = (struct load_keys){.order = plan->order,
                                 .count = plan->keys,
                                 .next = plan->keys / n * i,
                                 .random = plan->seed * 31 + i};
    g->limit = plan->requests > 0 ? share(plan->requests, i, n) : NEVER;
    g->gap_ns = plan->rate > 0 ? (double)SECOND / plan->rate * n : 0;
    g->connections = calloc(g->count, sizeof *g->connections);
    g->touched = calloc(g->count, sizeof *g->touched);
    g->poll = epoll_create1(EPOLL_CLOEXEC);
    for (unsigned j = 0; g->connections != NULL && j < g->count; j++) {
        g->connections[j].fd = -1;
    }
    if (g->connections == NULL || g->touched == NULL || g->poll < 0) {
        g->error = errno;
        return -1;
    }
    return open_connections(g);
}

void generator_finish(struct generator *g)
{
    for (unsigned i = 0; g->connections != NULL && i < g->count; i++) {
        load_connection_finish(&g->connections[i]);
    }
    free(g->connections);
    free(g->touched);
    if (g->poll > 0) {
        (void)close(g->poll);
    }
}

void generator_set_times(struct generator *g, uint64_t begin_ns, unsigned i)
{
    g->begin_ns = begin_ns;
    g->count_ns = begin_ns + g->plan->warmup_ns;
    g->end_ns = g->plan->duration_ns == NEVER ? NEVER : g->count_ns + g->plan->duration_ns;
    g->due = g->gap_ns * i / g->plan->threads;
    g->due_ns = begin_ns + (uint64_t)g->due;
    g->last_reply_ns = g->count_ns;
}
