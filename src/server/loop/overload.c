#include "server/loop/overload.h"

#include <poll.h>

#include "server/loop/worker.h"

#define LONG_TURN_MS 10 /* after such a turn of the loop, one more poll() costs little */

/* ---- the loop's clock ---- */

/*
 * Returns whether there is input already. A poll that takes long may have slept; or the process was
 * paused in it, because it has a processor quota: then the input is not new.
 */
static bool has_input(const struct worker *w)
{
    struct pollfd fd = {.fd = uv_backend_fd(&w->loop), .events = POLLIN};
    return poll(&fd, 1, 0) > 0;
}

/* Called when the loop has handled its events. It will now wait, or go on at once
 * if there are more. */
void overload_before_poll(struct worker *w)
{
    struct overload *o = &w->overload;
    uint64_t now = uv_now(&w->loop);
    if (o->asleep_ms != 0) { /* the last poll brought no input */
        o->polled_ms = now;
    }
    o->asleep_ms = now;
    o->waiting = now - o->polled_ms > LONG_TURN_MS && has_input(w);
}

/* Begins a turn, at the first input after a poll. If the loop slept, the input is new; otherwise
 * it may have arrived at any time since the poll before. */
static void note_poll(struct overload *o, uint64_t polled)
{
    bool slept = polled - o->asleep_ms > 1 && !o->waiting;
    o->unread_ms = slept ? polled : o->polled_ms;
    o->polled_ms = polled;
    o->asleep_ms = 0;
    o->late_ms = o->late ? polled : o->late_ms;
    o->late = false;
    o->turn++;
}

/* Returns the present time. Before the first call in a turn, uv_now() is the time of the poll. */
static uint64_t clock_ms(struct worker *w)
{
    if (w->overload.asleep_ms != 0) {
        note_poll(&w->overload, uv_now(&w->loop));
    }
    uv_update_time(&w->loop);
    return uv_now(&w->loop);
}

/* ---- connections ---- */

static void set_behind(struct connection *c, bool behind)
{
    c->worker->overload.behind += (unsigned)behind - (unsigned)c->place.behind;
    c->place.behind = behind;
}

void overload_enter(struct connection *c)
{
    c->place.read_ms = uv_now(&c->worker->loop);
    c->place.turn = c->worker->overload.turn - 1;
}

void overload_leave(struct connection *c)
{
    set_behind(c, false);
}

/* Returns how long the oldest input of the connection can have waited because of
 * other connections. */
static uint64_t age_of_turn(struct connection *c, uint64_t now)
{
    struct overload_place *p = &c->place;
    const struct overload *o = &c->worker->overload;
    set_behind(c, p->full);
    if (!p->behind) {
        p->arrived_ms = p->read_ms > o->unread_ms ? p->read_ms : o->unread_ms;
    }
    bool alone = p->behind && o->behind == 1; /* it waits for its own pipeline only */
    return alone || now < p->arrived_ms ? 0 : now - p->arrived_ms;
}

/*
 * Returns how many bytes of the connection are too old, when its turn begins with a read of
 * `bytes`. If input is late once, the machine has paused: it is answered. If it is late again
 * within SERVER_HICCUP_MS, there is too much to do.
 */
static size_t stale_of_turn(struct connection *c, size_t bytes, uint64_t now)
{
    struct overload *o = &c->worker->overload;
    uint64_t most = c->worker->server->options.max_age_ms;
    uint64_t age = age_of_turn(c, now);
    if (most == 0 || age <= most) {
        return 0;
    }
    o->late = true;
    if (o->late_ms == 0 || now - o->late_ms > SERVER_HICCUP_MS) {
        return 0;
    }
    return (size_t)((age - most) * (bytes + connection_unread(c)) / age);
}

size_t overload_stale(struct connection *c, size_t bytes)
{
    struct overload_place *p = &c->place;
    uint64_t now = clock_ms(c->worker);
    if (p->turn != c->worker->overload.turn) {
        p->turn = c->worker->overload.turn;
        p->stale = stale_of_turn(c, bytes, now);
    }
    size_t stale = p->stale < bytes ? p->stale : bytes;
    p->stale -= stale;
    p->full = bytes == SERVER_READ_BYTES;
    p->read_ms = now;
    return stale;
}
