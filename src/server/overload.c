#include "server/overload.h"

#include <poll.h>

#include "server/worker.h"

#define LONG_TURN_MS 10 /* of the loop: others have waited, so one more look is cheap */

/* ---- the loop's clock ---- */

/*
 * Whether there is something to read already. A poll that takes long has slept, or was held up
 * itself where a process may have only so much of a processor: then its input is not new.
 */
static bool has_input(const struct worker *w)
{
    struct pollfd fd = {.fd = uv_backend_fd(&w->loop), .events = POLLIN};
    return poll(&fd, 1, 0) > 0;
}

void overload_begin(struct worker *w)
{
    w->overload.polled_ms = uv_now(&w->loop);
}

/* The loop has done what there was. It will wait, or look again at once if there is more. */
void overload_before_poll(struct worker *w)
{
    struct overload *o = &w->overload;
    uint64_t now = uv_now(&w->loop);
    if (o->asleep_ms != 0) { /* the last poll was for other things than input */
        o->polled_ms = now;
    }
    o->asleep_ms = now;
    o->waiting = now - o->polled_ms > LONG_TURN_MS && has_input(w);
}

/* The first input of this poll: it waited here, or in the kernel. */
static void note_poll(struct overload *o, uint64_t polled)
{
    bool slept = polled - o->asleep_ms > 1 && !o->waiting;
    o->unread_ms = slept ? polled : o->polled_ms;
    o->polled_ms = polled;
    o->asleep_ms = 0;
    o->late_ms = o->late ? polled : o->late_ms;
    o->late = false;
}

/* uv_now() is the time of the poll, until this has been called. */
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
    c->worker->overload.behind += (unsigned)behind - (unsigned)c->behind;
    c->behind = behind;
}

void overload_leave(struct connection *c)
{
    set_behind(c, false);
}

/*
 * The longest that what has just been read can have waited. What lies behind it, if the read was
 * not to the end, has waited as long; if it was, it comes later than now. Who is behind alone waits
 * for itself.
 */
static uint64_t age_of_read(struct connection *c, size_t bytes, uint64_t now)
{
    const struct overload *o = &c->worker->overload;
    bool alone = c->behind && o->behind == 1;
    uint64_t arrived = c->arrived_ms;
    if (!c->behind && arrived < o->unread_ms) {
        arrived = o->unread_ms;
    }
    set_behind(c, bytes == SERVER_READ_BYTES);
    c->arrived_ms = c->behind ? arrived : now;
    return alone ? 0 : now - arrived;
}

/*
 * If they came evenly. Being late once is a hiccup of the machine: what has waited is answered. Who
 * is late again soon has too much to do.
 */
size_t overload_stale(struct connection *c, size_t bytes)
{
    struct overload *o = &c->worker->overload;
    uint64_t most = c->worker->server->options.max_age_ms;
    uint64_t now = clock_ms(c->worker);
    uint64_t age = age_of_read(c, bytes, now);
    if (most == 0 || age <= most) {
        return 0;
    }
    o->late = true;
    if (o->late_ms == 0 || now - o->late_ms > SERVER_HICCUP_MS) {
        return 0;
    }
    return c->behind ? bytes : (size_t)((age - most) * bytes / age);
}
