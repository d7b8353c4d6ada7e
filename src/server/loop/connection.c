#include "server/loop/connection.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "server/loop/worker.h"

#define KEEP_BYTES 4096 /* larger buffers of a connection are freed when they are empty */

static uint64_t now_ms(const struct connection *c)
{
    return uv_now(&c->worker->loop);
}

/* ---- ending ---- */

/* Counts replies that wait for the answer to an earlier request, too. */
size_t connection_unsent(const struct connection *c)
{
    return c->closing
               ? 0
               : buffer_len(&c->output) + buffer_len(&c->backlog) + c->pending.held + c->unfetched;
}

static void on_closed(uv_handle_t *handle)
{
    struct connection *c = handle->data;
    struct worker *w = c->worker;
    if (c->previous != NULL) {
        c->previous->next = c->next;
    } else {
        w->connections = c->next;
    }
    if (c->next != NULL) {
        c->next->previous = c->previous;
    }
    overload_leave(c);
    tls_session_destroy(c->tls);
    buffer_finish(&c->output);
    buffer_finish(&c->backlog);
    buffer_finish(&c->input);
    free(c);
}

void connection_note_unsent(struct connection *c)
{
    crowd_set(c, CROWD_UNSENT, connection_unsent(c));
}

/* Frees requests and replies that the protocol keeps with the session. */
static void finish_session(struct connection *c)
{
    if (c->protocol->finish != NULL) {
        c->protocol->finish(c);
    }
    crowd_set(c, CROWD_KEPT, 0);
    c->unfetched = 0;
    connection_note_unsent(c);
    c->session_waits = false;
}

void connection_close(struct connection *c)
{
    if (c->closing) {
        return;
    }
    finish_session(c);
    c->closing = true;
    connection_note_unsent(c); /* these replies will not be sent */
    connection_uncount(c);
    pending_abandon(c);
    assert(c->row == TALLY_NONE && !c->streaming); /* nothing counts it, no list points to it */
    uv_close(&c->uv.handle, on_closed);
}

static int file_of(const struct connection *c)
{
    uv_os_fd_t fd = -1;
    return uv_fileno(&c->uv.handle, &fd) == 0 ? fd : -1;
}

size_t connection_unread(const struct connection *c)
{
    int bytes = 0;
    return ioctl(file_of(c), FIONREAD, &bytes) == 0 && bytes > 0 ? (size_t)bytes : 0;
}

/* ---- writing ---- */

static void serve(struct connection *c, struct weir_text input, bool kept);

static bool has_room(const struct connection *c)
{
    return buffer_len(&c->backlog) < SERVER_OUTPUT_BYTES && pending_has_room(&c->pending) &&
           ((!c->writing && c->pending.held == 0) ||
            c->worker->crowds[CROWD_UNSENT].units < SERVER_THREAD_OUTPUT_BYTES);
}

bool connection_has_room(const struct connection *c)
{
    return has_room(c) && buffer_len(&c->backlog) + c->unfetched < SERVER_OUTPUT_BYTES &&
           (c->unfetched == 0 ||
            c->worker->crowds[CROWD_UNSENT].units < SERVER_THREAD_OUTPUT_BYTES);
}

/* Begins the time in which the client must fetch more. */
static void restart_fetching(struct connection *c)
{
    c->unfetched_ms = now_ms(c);
    c->passed = 0;
}

void connection_keep_reply(struct connection *c, size_t bytes)
{
    if (c->unfetched == 0) {
        restart_fetching(c);
    }
    c->unfetched += bytes;
    connection_note_unsent(c);
}

void connection_pass_reply(struct connection *c, size_t bytes)
{
    c->passed += bytes;
    if (c->passed >= SERVER_FLUSH_BYTES) {
        restart_fetching(c);
    }
}

void connection_free_reply(struct connection *c, size_t bytes)
{
    assert(bytes <= c->unfetched);
    c->unfetched -= bytes;
    connection_note_unsent(c);
}

static void on_written(uv_write_t *write, int status);

/* Hands c->output to the loop. */
static void write_output(struct connection *c)
{
    assert(!c->writing && !c->closing); /* one write at a time: it uses the bytes of `output` */
    struct weir_text text = buffer_text(&c->output);
    uv_buf_t buf = {.base = (char *)text.at, .len = text.len};
    c->writing = true;
    c->since_ms = now_ms(c);
    c->unsent = text.len;
    c->write.data = c;
    if (uv_write(&c->write, &c->uv.stream, &buf, 1, on_written) != 0) {
        connection_close(c);
    }
}

static void on_written(uv_write_t *write, int status)
{
    struct connection *c = write->data;
    c->writing = false;
    if (status != 0 || c->closing) {
        connection_close(c);
        return;
    }
    buffer_take(&c->output, buffer_len(&c->output));
    connection_note_unsent(c);
    c->since_ms = now_ms(c);
    if (buffer_len(&c->backlog) > 0) {
        struct buffer sent = c->output;
        c->output = c->backlog;
        c->backlog = sent;
        write_output(c);
    }
    buffer_trim(&c->output, KEEP_BYTES);
    buffer_trim(&c->backlog, KEEP_BYTES);
    if ((buffer_len(&c->input) > 0 || c->session_waits) && !c->ending && !c->closing) {
        serve(c, buffer_text(&c->input), true);
    } else {
        connection_go_on(c);
    }
}

/*
 * Closes connections of the thread until its bytes are within a bound. Each connection may keep at
 * least one reply and the beginning of a request; those of many connections together may be too
 * much. `c` is in use by the callers, so it stays open: it can be closed for the bytes of another.
 */
static void make_room(const struct connection *c, enum crowd_of of, uint64_t bound)
{
    static struct log_limit limit;
    struct worker *w = c->worker;
    struct connection *other = NULL;
    while (w->crowds[of].units > bound && (other = crowd_debtor(w, of, c)) != NULL) {
        count_own(&w->counts.replaced_bytes, 1);
        connection_tell(other, &limit, LEVEL_WARNING, "connection closed",
                        of == CROWD_KEPT ? "it made room for the requests of others"
                                         : "it made room for the replies of others");
        connection_close(other);
    }
}

/* Keeps the replies of the thread within their bound. */
static void bound_unsent(const struct connection *c)
{
    make_room(c, CROWD_UNSENT, 2 * SERVER_THREAD_OUTPUT_BYTES);
}

void connection_write(struct connection *c, struct weir_text text)
{
    if (c->closing) {
        return;
    }
    uv_buf_t buf = {.base = (char *)text.at, .len = text.len};
    int n = text.len > 0 && !c->writing ? uv_try_write(&c->uv.stream, &buf, 1) : 0;
    if (n < 0 && n != UV_EAGAIN) {
        connection_close(c);
        return;
    }
    text = text_after(text, n > 0 ? (size_t)n : 0);
    if (text.len == 0) {
        return;
    }
    struct buffer *keep = c->writing ? &c->backlog : &c->output;
    buffer_put(keep, text);
    if (keep->full) {
        connection_close(c);
        return;
    }
    connection_note_unsent(c);
    if (!c->writing) {
        write_output(c);
    }
    bound_unsent(c);
}

void connection_push(struct connection *c, struct weir_text text)
{
    connection_write(c, c->tls == NULL ? text : connection_seal(c, text));
}

static void empty_replies(struct worker *w)
{
    buffer_take(&w->replies, buffer_len(&w->replies));
    w->replies.full = false;
}

/* Writes the thread's replies; closes the connection if they did not fit. */
static void flush(struct connection *c)
{
    if (c->worker->replies.full) {
        connection_close(c);
    } else {
        connection_push(c, buffer_text(&c->worker->replies));
    }
    bound_unsent(c); /* replies may wait where connection_write() does not see them */
}

/* ---- reading ---- */

static uint64_t count_answered(const struct worker_counts *counts, unsigned kind)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < REQUEST_RESULTS; i++) {
        n += counts->requests[i][kind];
    }
    return n;
}

/*
 * Lets the protocol consume a batch of requests, and measures how long that takes. Each request of
 * the batch counts with the time of the whole batch, because all replies go out together; so two
 * readings of the clock are enough. Requests that are answered later are measured then.
 */
static int64_t consume(struct connection *c, struct weir_text input)
{
    struct worker_counts *counts = &c->worker->counts;
    unsigned kind = c->protocol->kind;
    uint64_t before = count_answered(counts, kind);
    c->worker->began_ns = clock_boot_ns();
    int64_t used = c->protocol->consume(c, input);
    uint64_t answered = count_answered(counts, kind) - before;
    if (answered > 0) {
        histogram_add(&counts->took[kind], clock_boot_ns() - c->worker->began_ns, answered);
    }
    return used;
}

/* Returns whether there is still no room for a connection that was accepted beyond the bound. */
static bool is_beyond(struct connection *c)
{
    uint64_t most;
    c->beyond = c->beyond && connection_count(c, &most) > most;
    return c->beyond;
}

/* Decides requests at the front of `input` and answers them. Returns the bytes used. */
static size_t decide(struct connection *c, struct weir_text input)
{
    empty_replies(c->worker);
    c->worker->split = 0;
    int64_t used = CONNECTION_CLOSE;
    if (!c->asked && connection_refuse_hello(c, input)) {
        return input.len;
    }
    if (c->beyond && is_beyond(c) && !c->protocol->reserve) {
        connection_refuse(c);
    } else {
        used = consume(c, input);
    }
    if (c->pending.count > 0) {
        pending_hold_back(c);
    }
    if (used == CONNECTION_CLOSE) {
        c->ending = true;
        used = (int64_t)input.len;
    }
    c->asked = c->asked || used > 0;
    flush(c);
    return (size_t)used;
}

/* Returns what the session of TLS counts. */
static size_t sealed_bytes(const struct connection *c)
{
    return c->tls == NULL         ? 0
           : !c->up               ? SERVER_HANDSHAKE_BYTES
           : tls_has_part(c->tls) ? SERVER_RECORD_BYTES
                                  : 0;
}

void connection_note_kept(struct connection *c)
{
    size_t kept = buffer_len(&c->input) + c->session_kept + sealed_bytes(c);
    crowd_set(c, CROWD_KEPT, c->closing ? 0 : kept);
    make_room(c, CROWD_KEPT, SERVER_THREAD_INPUT_BYTES);
}

/* Decides what is complete in `input`, as far as there is room for replies, and keeps the rest. */
static void serve(struct connection *c, struct weir_text input, bool kept)
{
    struct weir_text rest = input;
    bool more = true;
    (void)weir_rules_now(c->worker->server->rules, &c->worker->now_ns);
    while (more && has_room(c) && !c->closing) {
        size_t used = decide(c, rest);
        bool wrote = buffer_len(&c->worker->replies) > 0;
        rest = text_after(rest, used);
        more = rest.len > 0 ? used > 0 : c->session_waits && wrote;
    }
    if (rest.len < input.len && !c->writing) {
        c->since_ms = now_ms(c);
    }
    if (kept) {
        buffer_take(&c->input, input.len - rest.len);
    } else {
        buffer_put(&c->input, rest);
    }
    buffer_trim(&c->input, KEEP_BYTES);
    connection_note_kept(c);
    connection_go_on(c);
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    struct connection *c = handle->data;
    (void)size;
    *buf = uv_buf_init(c->worker->read, SERVER_READ_BYTES);
}

void connection_take(struct connection *c, struct weir_text text, size_t stale)
{
    struct worker *w = c->worker;
    if (buffer_len(&c->input) == 0) {
        c->since_ms = c->writing ? c->since_ms : now_ms(c);
        w->overload.fresh = text.at + stale;
        serve(c, text, false);
    } else {
        buffer_put(&c->input, text);
        if (!c->input.full) {
            struct weir_text all = buffer_text(&c->input);
            w->overload.fresh = all.at + (stale > 0 ? all.len - text.len + stale : 0);
            serve(c, all, true);
        }
    }
    w->overload.fresh = NULL;
}

/* Takes bytes of the network. Returns false if the client has said that no more will come. */
static bool take_bytes(struct connection *c, struct weir_text bytes)
{
    size_t stale = overload_stale(c, bytes.len);
    c->owed -= bytes.len < c->owed ? bytes.len : c->owed;
    if (c->tls != NULL) {
        return connection_unseal(c, bytes, stale);
    }
    connection_take(c, bytes, stale);
    return true;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct connection *c = stream->data;
    bool gone = pending_is_held(&c->pending); /* a gateway that no longer waits closes */
    if (n >= 0 && c->streaming) {
        return;
    }
    if (n == UV_EOF && !gone && !c->streaming &&
        (c->writing || c->pending.count > 0)) { /* it may still read */
        (void)uv_read_stop(stream);
        c->reading = false;
        c->ending = true;
    } else if (n < 0) {
        connection_close(c);
    } else if (n > 0 && !c->leaving && !take_bytes(c, (struct weir_text){buf->base, (size_t)n})) {
        c->half = true;
        if (gone) {
            connection_close(c);
        }
        connection_go_on(c);
    }
    if (c->input.full) { /* a request larger than the bound, or no memory */
        connection_close(c);
    }
}

static void set_reading(struct connection *c, bool reading)
{
    if (c->reading == reading) {
        return;
    }
    c->reading = reading;
    if (!reading) {
        (void)uv_read_stop(&c->uv.stream);
    } else if (uv_read_start(&c->uv.stream, on_alloc, on_read) != 0) {
        connection_close(c);
    }
}

/* Lets the protocol tell the client that the connection ends. */
static void say_farewell(struct connection *c, bool last)
{
    if (c->protocol->farewell != NULL && !c->beyond && (c->tls == NULL || c->up)) {
        empty_replies(c->worker);
        c->protocol->farewell(c, last);
        flush(c);
    }
}

/* Shuts the connection down for writing, when the replies are out and no more
 * requests are taken. */
static void leave(struct connection *c)
{
    if (!c->told) {
        c->told = true;
        say_farewell(c, true);
        if (c->tls != NULL && !c->closing) {
            connection_write(c, connection_seal_end(c));
        }
        if (c->writing || c->closing) { /* on_written() calls connection_go_on() */
            return;
        }
    }
    c->leaving = true;
    c->since_ms = now_ms(c);
    buffer_finish(&c->input);
    finish_session(c);
    if (shutdown(file_of(c), SHUT_WR) != 0) {
        connection_close(c);
        return;
    }
    set_reading(c, true);
}

/*
 * Returns whether to wait for a first request. A connection may have been accepted just before the
 * server stopped: its client cannot know, and would take the end of the connection for a failure.
 * Clients that have sent requests before expect that the connection may be closed at any time.
 */
static bool is_awaited(const struct connection *c)
{
    return !c->asked && now_ms(c) - c->worker->stopped_ms < SERVER_FIRST_MS;
}

void connection_go_on(struct connection *c)
{
    if (c->closing || c->leaving) {
        return;
    }
    if (((c->stopping && c->owed == 0 && !is_awaited(c)) || c->half) && has_room(c) &&
        !c->session_waits) {
        c->ending = true;
    }
    if (c->ending && !c->writing && c->pending.count == 0) {
        leave(c);
    } else {
        set_reading(c, !c->ending && has_room(c));
    }
}

void connection_stop(struct connection *c)
{
    if (c->closing || c->leaving) {
        return;
    }
    if (c->streaming) {
        connection_close(c);
        return;
    }
    c->owed = connection_unread(c);
    c->stopping = true;
    say_farewell(c, false);
    if (!c->writing) { /* otherwise on_written() calls connection_go_on() */
        connection_go_on(c);
    }
}

/* ---- answers that came later ---- */

/* Writes the replies that need not wait any more. */
static void send_answered(struct connection *c)
{
    struct worker *w = c->worker;
    struct weir_text behind;
    bool more = true;
    while (more && !c->closing) {
        empty_replies(w);
        more = pending_collect(c, &behind);
        flush(c);
        if (behind.len > 0 && !c->closing) {
            connection_push(c, behind);
        }
        pending_release(c);
    }
}

void connection_resume(struct connection *c)
{
    (void)weir_rules_now(c->worker->server->rules, &c->worker->now_ns);
    send_answered(c);
    if (((!c->reading && buffer_len(&c->input) > 0) || c->session_waits) && !c->ending &&
        !c->closing) {
        serve(c, buffer_text(&c->input), true);
    } else {
        connection_note_kept(c);
        connection_go_on(c);
    }
}

void connection_begin(struct connection *c)
{
    set_reading(c, true);
}
