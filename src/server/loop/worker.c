#include "server/loop/worker.h"

#include <netinet/tcp.h>
#include <signal.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "server/record/denied_log.h"
#include "server/record/limit_reasons.h"
#include "server/record/top_denied.h"
#include "server/loop/server_fleet.h"

#define STOP_TICK_MS 20

/* Returns what upper floors do on this thread; NULL: nothing. */
static const struct worker_hooks *hooks_of(const struct worker *w)
{
    return w->number == w->server->threads ? w->server->hooks : NULL;
}

/* ---- connections ---- */

static void accept_one(struct worker *w, unsigned protocol)
{
    const struct protocol *speaks = w->server->options.speaks[protocol];
    bool taken = connection_accept(w, &w->listeners[protocol].uv.stream,
                                   speaks != NULL ? speaks : protocol_of(protocol));
    w->listeners[protocol].stalled = !taken;
    w->listeners[protocol].turn++;
    count_own(&w->counts.accepted[protocol], taken);
}

/*
 * A client that opens connections all the time costs more with each of them than a request does. So
 * a listener accepts only a few in a turn of the loop; then the connections that are open get their
 * turn. libuv waits with the next one until it is accepted.
 */
static void on_connection(uv_stream_t *listener, int status)
{
    struct worker *w = listener->loop->data;
    for (unsigned i = 0; status == 0 && i < PROTOCOLS; i++) {
        if (listener == &w->listeners[i].uv.stream) {
            w->listeners[i].waits = w->listeners[i].turn == SERVER_ACCEPTS;
            if (!w->listeners[i].waits) {
                accept_one(w, i);
            }
        }
    }
}

/* Begins a turn: accepts the connections that wait for it. */
static void accept_waiting(struct worker *w)
{
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        w->listeners[i].turn = 0;
        if (w->listeners[i].waits) {
            w->listeners[i].waits = false;
            accept_one(w, i);
        }
    }
}

static void close_handle(uv_handle_t *handle)
{
    if (handle->type != UV_UNKNOWN_HANDLE && !uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

/* Takes no more connections, and no more orders of other threads. */
static void close_first(struct worker *w)
{
    const struct worker_hooks *hooks = hooks_of(w);
    if (hooks != NULL) {
        hooks->close(w);
    }
    close_handle((uv_handle_t *)&w->stop);
    close_handle((uv_handle_t *)&w->ping);
    close_handle((uv_handle_t *)&w->room);
    close_handle((uv_handle_t *)&w->before_poll);
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        if (w->listeners[i].open) {
            close_handle(&w->listeners[i].uv.handle);
        }
        w->listeners[i].stalled = false;
    }
}

static void check_connections(struct worker *w, uint64_t now_ms)
{
    bool late = w->stopping && now_ms - w->stopped_ms > SERVER_DRAIN_MS;
    for (struct connection *c = w->connections; c != NULL; c = c->next) {
        if (late) {
            connection_close(c);
        } else {
            connection_check_time(c, now_ms);
        }
    }
}

/* Closes the last handles, when no connection is left. Closing the fleet's place answers the
 * questions of clients that did not wait. */
static void close_last(struct worker *w)
{
    close_handle((uv_handle_t *)&w->tick);
    delays_close(w);
    close_handle((uv_handle_t *)&w->after_poll);
    close_handle((uv_handle_t *)&w->before_sleep);
    close_handle((uv_handle_t *)&w->awake);
    if (w->where != NULL) {
        w->server->fleet.close(w->where);
        w->where = NULL;
    }
}

/* Returns whether the fleet's place may be closed. The last of the clients' threads that drains
 * lets the fleet give back the units that it has taken in advance, and waits until leave_ms. */
static bool has_left_fleet(struct worker *w)
{
    struct server *server = w->server;
    if (w->where == NULL || w->number >= server->threads) {
        return true;
    }
    if (w->leave_ms == 0) {
        bool last = fetch_add(&server->drained, 1) + 1 == server->threads;
        w->leave_ms =
            uv_now(&w->loop) + (last ? server->fleet.leave(server->fleet.fleet, w->where) : 0);
    }
    return uv_now(&w->loop) >= w->leave_ms;
}

static void on_tick(uv_timer_t *timer)
{
    struct worker *w = timer->loop->data;
    check_connections(w, uv_now(&w->loop));
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        if (w->listeners[i].stalled) {
            accept_one(w, i);
        }
    }
    if (w->number == 0) {
        fleet_watch(w->server);
    }
    if (hooks_of(w) != NULL) {
        hooks_of(w)->tick(w);
    }
    if (w->stopping && w->connections == NULL && has_left_fleet(w)) {
        close_last(w);
    }
}

static void on_before_poll(uv_prepare_t *prepare)
{
    accept_waiting(prepare->loop->data);
    overload_before_poll(prepare->loop->data);
}

static void on_after_poll(uv_check_t *check)
{
    pending_flush(check->loop->data);
}

static void on_before_sleep(uv_prepare_t *prepare)
{
    pending_flush(prepare->loop->data);
}

static void on_ping(uv_async_t *async)
{
    struct worker *w = async->loop->data;
    store_release(&w->answered, load_relaxed(&w->server->pings));
}

static void on_room(uv_async_t *async)
{
    struct worker *w = async->loop->data;
    connection_make_room(w, exchange_u64(&w->room_wanted, 0));
}

/* Closes the listeners; the connections end as soon as their replies are out. */
static void on_stop(uv_async_t *async)
{
    struct worker *w = async->loop->data;
    w->stopping = true;
    w->stopped_ms = uv_now(&w->loop);
    accept_waiting(w);
    close_first(w);
    delays_end_by(w, w->stopped_ms + SERVER_DRAIN_MS / 2);
    for (struct connection *c = w->connections; c != NULL; c = c->next) {
        connection_stop(c);
    }
    (void)uv_timer_start(&w->tick, on_tick, 0, STOP_TICK_MS);
}

/* ---- making ---- */

/* Notes where the socket of a listener is bound. */
static void note_address(struct worker *w, unsigned protocol, int fd)
{
    struct sockaddr_storage bound = {.ss_family = AF_UNSPEC};
    socklen_t length = sizeof bound;
    bool known = getsockname(fd, (struct sockaddr *)&bound, &length) == 0;
    w->listeners[protocol].loopback = known && listener_is_loopback(&bound);
    w->listeners[protocol].port = known ? listener_port(&bound) : 0;
}

/* Lets the connections of a socket send each reply at once: they inherit this. */
static void set_nodelay(int fd)
{
    int one = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* fails on unix sockets */
}

/* Listens on a socket and takes it over, also on error. */
static int listen_on(struct worker *w, unsigned protocol, int fd)
{
    bool pipe = listener_is_unix(w->server->options.listen[protocol]);
    note_address(w, protocol, fd);
    set_nodelay(fd);
    int e = pipe ? uv_pipe_init(&w->loop, &w->listeners[protocol].uv.pipe, 0)
                 : uv_tcp_init(&w->loop, &w->listeners[protocol].uv.tcp);
    w->listeners[protocol].open = e == 0;
    if (e == 0) {
        e = pipe ? uv_pipe_open(&w->listeners[protocol].uv.pipe, fd)
                 : uv_tcp_open(&w->listeners[protocol].uv.tcp, fd);
    }
    if (e != 0) {
        (void)close(fd);
        return e;
    }
    return uv_listen(&w->listeners[protocol].uv.stream, SERVER_BACKLOG, on_connection);
}

/* Returns the timer's interval: a quarter of the shortest timeout, from 1 ms to a second. */
static uint64_t tick_ms(const struct server_options *o)
{
    uint64_t least = o->idle_ms < o->request_ms ? o->idle_ms : o->request_ms;
    least = o->write_ms < least ? o->write_ms : least;
    return least < 4 ? 1 : least / 4 < 1000 ? least / 4 : 1000;
}

/*
 * Opens the fleet's place on the loop. A fleet gives its answers after the loop has polled, and
 * before it sleeps. Handles of one kind are called in the reverse order of their start. Our check
 * handle is started before the fleet's, so it runs after it and writes the answers. Our prepare
 * handle is started after the fleet's, so it runs before it: questions that arise when replies
 * have been written are sent before the loop sleeps. Answers that come later than that keep the
 * loop awake (pending.c ).
 */
static int open_fleet(struct worker *w, struct weir_error *error)
{
    struct server_fleet *fleet = &w->server->fleet;
    if (fleet->fleet == NULL) {
        return 0;
    }
    (void)uv_check_init(&w->loop, &w->after_poll); /* these cannot fail */
    (void)uv_prepare_init(&w->loop, &w->before_sleep);
    (void)uv_check_start(&w->after_poll, on_after_poll);
    int e = fleet->open(fleet->fleet, &w->loop, &w->where, error);
    (void)uv_prepare_start(&w->before_sleep, on_before_sleep);
    return e;
}

static int open_handles(struct worker *w)
{
    int e = uv_async_init(&w->loop, &w->stop, on_stop);
    e = e != 0 ? e : uv_async_init(&w->loop, &w->ping, on_ping);
    e = e != 0 ? e : delays_open(w);
    e = e != 0 ? e : uv_async_init(&w->loop, &w->room, on_room);
    if (e != 0) {
        return e;
    }
    (void)uv_timer_init(&w->loop, &w->tick); /* these cannot fail */
    (void)uv_prepare_init(&w->loop, &w->before_poll);
    w->overload.polled_ms = uv_now(&w->loop);
    (void)uv_prepare_start(&w->before_poll, on_before_poll);
    uint64_t ms = tick_ms(&w->server->options);
    return uv_timer_start(&w->tick, on_tick, ms, ms);
}

int worker_init(struct worker *w, struct server *server, unsigned number, const int *sockets,
                struct weir_error *error)
{
    w->server = server;
    w->number = number;
    buffer_init(&w->replies, /* operators' replies may list thousands of limits */
                number < server->threads ? SERVER_REPLY_BYTES : SERVER_OUTPUT_BYTES);
    buffer_init(&w->plain, SERVER_READ_BYTES + 2 * TLS_RECORD_BYTES);
    buffer_init(&w->cipher, SERVER_SEALED_BYTES(2 * SERVER_OUTPUT_BYTES));
    int e = uv_loop_init(&w->loop);
    w->loop.data = w;
    w->made = e == 0;
    e = e == 0 ? open_handles(w) : e;
    for (unsigned i = 0; i < PROTOCOLS; i++) {
        if (sockets[i] >= 0 && e == 0) {
            e = listen_on(w, i, sockets[i]);
        } else if (sockets[i] >= 0) {
            (void)close(sockets[i]);
        }
    }
    if (e != 0) {
        return fail(error, WEIR_EIO, "cannot listen: %s", uv_strerror(e));
    }
    e = hooks_of(w) != NULL ? hooks_of(w)->open(w, error) : 0;
    return e == 0 ? open_fleet(w, error) : e;
}

void worker_count_rare(struct worker *worker, enum server_protocol listener, int reason,
                       const char *limit)
{
    if (listener_is_for_clients(listener)) {
        count_own(&worker->counts.denied[reason], 1);
    }
    if (reason == WEIR_REASON_MISSING) {
        top_denied(limit, "", 0, reason);
    }
}

static void run(void *arg)
{
    struct worker *w = arg;
    sigset_t all; /* other threads handle signals; instead of SIGPIPE a write returns an error */
    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGBUS); /* of a state file; if it were blocked, no handler would run */
    (void)pthread_sigmask(SIG_BLOCK, &all, NULL);
    top_use(w->top);
    limit_reasons_use(w->server->reasons);
    denied_log_use(w->server->denied_log);
    (void)uv_run(&w->loop, UV_RUN_DEFAULT); /* until on_stop() and on_tick() have closed all */
}

int worker_start(struct worker *w, struct weir_error *error)
{
    int e = uv_thread_create(&w->thread, run, w);
    w->started = e == 0;
    return e == 0 ? 0 : fail(error, WEIR_EIO, "cannot start a thread: %s", uv_strerror(e));
}

void worker_ping(struct worker *w)
{
    if (w->started) {
        (void)uv_async_send(&w->ping);
    }
}

void worker_stop(struct worker *w)
{
    if (w->started) {
        (void)uv_async_send(&w->stop);
    }
}

void worker_ask_for_room(struct worker *w)
{
    (void)fetch_add(&w->room_wanted, 1);
    (void)uv_async_send(&w->room);
}

void worker_join(struct worker *w)
{
    if (w->started) {
        (void)uv_thread_join(&w->thread);
    }
}

void worker_finish(struct worker *w)
{
    if (!w->started && w->made && uv_loop_alive(&w->loop)) { /* it never ran */
        close_first(w);
        close_last(w);
        (void)uv_run(&w->loop, UV_RUN_DEFAULT);
    }
    if (w->made) {
        (void)uv_loop_close(&w->loop);
    }
    if (hooks_of(w) != NULL) {
        hooks_of(w)->finish(w);
    }
    pending_finish(w);
    crowds_finish(w);
    buffer_finish(&w->replies);
    buffer_finish(&w->plain);
    buffer_finish(&w->cipher);
}
