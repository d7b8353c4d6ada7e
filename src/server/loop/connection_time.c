/* Ends connections that are idle, or slow, for too long. */
#include "base/atomic.h"
#include "server/loop/worker.h"

/* Restarts the time for writing when the client has fetched another SERVER_FLUSH_BYTES. A client
 * that fetches less than that in write_ms is too slow. */
static void note_progress(struct connection *c, uint64_t now)
{
    size_t unsent = uv_stream_get_write_queue_size(&c->uv.stream);
    if (c->writing && unsent + SERVER_FLUSH_BYTES <= c->unsent) {
        c->unsent = unsent;
        c->since_ms = now;
    }
}

/* Returns whether replies wait for the client: in the network, or in the session. */
static bool has_unfetched(const struct connection *c)
{
    return c->writing || c->unfetched > 0;
}

static bool is_idle(const struct connection *c)
{
    return !has_unfetched(c) && buffer_len(&c->input) == 0;
}

/* Returns why a connection is cut. */
static const char *why_late(const struct connection *c, bool idle)
{
    if (has_unfetched(c)) {
        return "it does not fetch its replies";
    }
    if (idle) {
        return c->asked ? "idle" : "it has sent no request";
    }
    return "its request does not end";
}

/* An idle client has done nothing wrong and is logged at debug level; a slow
 * one may be an attack. */
static void tell_late(const struct connection *c)
{
    static struct log_limit limits[2];
    bool idle = is_idle(c) && c->session_kept == 0;
    connection_tell(c, &limits[idle], idle ? LEVEL_DEBUG : LEVEL_WARNING, "connection cut",
                    why_late(c, idle));
}

/* Returns how long the present state of a connection may last, and since when it does. */
static uint64_t time_for(const struct connection *c, uint64_t *since_ms)
{
    const struct server_options *o = &c->worker->server->options;
    *since_ms = c->since_ms;
    if (c->beyond) { /* in all, so that the reserve is soon free again */
        *since_ms = c->accepted_ms;
        return SERVER_RESERVE_MS;
    }
    if (c->leaving || c->writing) {
        return c->leaving ? SERVER_LINGER_MS : o->write_ms;
    }
    if (!c->asked) { /* a client that sends its first request byte by byte gets no more time */
        *since_ms = c->accepted_ms;
        return o->request_ms;
    }
    return buffer_len(&c->input) > 0 ? o->request_ms : o->idle_ms;
}

/* Ends the connection. One that is idle is told so, if its protocol can: a client that sends a
 * request at this moment then knows that it was not taken. */
static void end_late(struct connection *c)
{
    bool told = is_idle(c) && c->asked && !c->beyond && c->protocol->farewell != NULL;
    if (!c->leaving) {
        count_own(&c->worker->counts.timed_out, 1);
        tell_late(c);
    }
    if (told && !c->leaving) {
        c->ending = true;
        connection_go_on(c);
    } else {
        connection_close(c);
    }
}

/* Lets the protocol answer requests that do not end. Returns whether the connection must end. */
static bool has_late(struct connection *c, uint64_t now)
{
    struct buffer *replies = &c->worker->replies;
    if (c->protocol->late == NULL || c->ending || c->beyond) {
        return false;
    }
    buffer_take(replies, buffer_len(replies));
    replies->full = false;
    bool late = c->protocol->late(c, now);
    connection_push(c, buffer_text(replies));
    return late;
}

void connection_check_time(struct connection *c, uint64_t now)
{
    uint64_t since_ms;
    if (c->streaming) { /* bounded by its bytes */
        return;
    }
    note_progress(c, now);
    if (c->pending.count > 0 && !c->writing) { /* answers have their own deadlines */
        c->since_ms = now;
    }
    if (c->stopping && !c->writing) { /* waiting for a first request has an end */
        connection_go_on(c);
    }
    uint64_t limit = time_for(c, &since_ms);
    bool stuck = c->unfetched > 0 && now - c->unfetched_ms > c->worker->server->options.write_ms;
    if (!c->closing && (stuck || now - since_ms > limit || has_late(c, now))) {
        end_late(c);
    }
}
