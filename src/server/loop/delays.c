#include "server/loop/delays.h"

#include <assert.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "server/loop/worker.h"

/* ---- the heap ---- */

static void put(struct delays *d, size_t i, struct pending *p)
{
    d->at[i] = p;
    p->delay_place = i + 1;
}

/* Moves the entry at `i` to where it belongs. */
static void settle(struct delays *d, size_t i)
{
    struct pending *p = d->at[i];
    while (i > 0 && p->due_ms < d->at[(i - 1) / 2]->due_ms) {
        put(d, i, d->at[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    for (size_t below = 2 * i + 1; below < d->count; below = 2 * i + 1) {
        below += below + 1 < d->count && d->at[below + 1]->due_ms < d->at[below]->due_ms;
        if (d->at[below]->due_ms >= p->due_ms) {
            break;
        }
        put(d, i, d->at[below]);
        i = below;
    }
    put(d, i, p);
}

static bool make_room(struct delays *d)
{
    size_t room = d->room > 0 ? 2 * d->room : 64;
    struct pending **at = d->count < d->room ? d->at : realloc(d->at, room * sizeof *at);
    if (at == NULL) {
        return false;
    }
    d->room = d->count < d->room ? d->room : room;
    d->at = at;
    return true;
}

void delay_remove(struct pending *p)
{
    struct delays *d = &p->worker->delays;
    size_t i = p->delay_place - 1;
    assert(i < d->count && d->at[i] == p);
    struct pending *last = d->at[--d->count];
    p->delay_place = 0;
    if (last != p) {
        d->at[i] = last;
        settle(d, i);
    }
    count_own(&p->worker->counts.holding, p->held ? UINT64_MAX : 0);
}

/* ---- the timer ---- */

static uint64_t due(const struct delays *d)
{
    uint64_t first = d->count > 0 ? d->at[0]->due_ms : UINT64_MAX;
    return d->count > 0 && first > d->last_ms ? d->last_ms : first;
}

static void send_due(struct worker *w, uint64_t now_ms)
{
    struct delays *d = &w->delays;
    while (d->count > 0 && due(d) <= now_ms) {
        struct pending *p = d->at[0];
        delay_remove(p);
        p->began_ns = clock_boot_ns(); /* the server took none of the delay */
        pending_answered(p);           /* frees it if its connection has closed */
    }
    pending_flush(w);
}

static void on_timer(uv_timer_t *timer);

static void set_timer(struct worker *w)
{
    uint64_t next = due(&w->delays);
    uint64_t now = uv_now(&w->loop);
    if (next != UINT64_MAX) {
        (void)uv_timer_start(&w->delays.timer, on_timer, next > now ? next - now : 0, 0);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct worker *w = timer->loop->data;
    send_due(w, uv_now(&w->loop));
    set_timer(w);
}

/* ---- replies ---- */

bool delay_add(struct pending *p, uint64_t delay_ms)
{
    struct worker *w = p->worker;
    struct delays *d = &w->delays;
    if (!make_room(d)) {
        return false;
    }
    assert(p->delay_place == 0);
    p->due_ms = uv_now(&w->loop) + delay_ms;
    put(d, d->count, p);
    settle(d, d->count++);
    if (d->at[0] == p) {
        set_timer(w);
    }
    count_own(&w->counts.held, p->held);
    count_own(&w->counts.holding, p->held);
    return true;
}

void delay_answered(struct pending *p, uint64_t delay_ms)
{
    if (delay_ms == 0 || p->connection == NULL || !delay_add(p, delay_ms)) {
        pending_answered(p);
    }
}

bool delay_take_place(struct worker *w)
{
    bool free = w->delays.places < DELAYS_HELD;
    w->delays.places += free;
    count_own(&w->counts.unheld, !free);
    return free;
}

void delay_give_place(struct worker *w)
{
    assert(w->delays.places > 0);
    w->delays.places--;
}

/* ---- the thread ---- */

int delays_open(struct worker *w)
{
    w->delays.last_ms = UINT64_MAX;
    int e = uv_timer_init(&w->loop, &w->delays.timer);
    return e != 0 ? e : uv_idle_init(&w->loop, &w->awake); /* for pending_answered() */
}

void delays_end_by(struct worker *w, uint64_t last_ms)
{
    w->delays.last_ms = last_ms;
    set_timer(w);
}

void delays_close(struct worker *w)
{
    delays_end_by(w, 0);
    send_due(w, UINT64_MAX);
    if (w->delays.timer.type != UV_UNKNOWN_HANDLE &&
        !uv_is_closing((uv_handle_t *)&w->delays.timer)) {
        uv_close((uv_handle_t *)&w->delays.timer, NULL);
    }
    free(w->delays.at);
    w->delays.at = NULL;
    w->delays.room = 0;
}
