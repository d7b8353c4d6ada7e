#include "cli/serve/serve_loop.h"

#include <poll.h>
#include <signal.h>

#include "base/clock.h"
#include "base/maths.h"
#include "cli/serve/serve_signals.h"
#include "common/log.h"

/* ---- reload ---- */

static void read_begins(void *watch)
{
    watch_before(watch);
}

static void read_ended(void *watch)
{
    watch_after(watch);
    serve_signals_wake();
}

void serve_loop_join(struct serve_loop *l)
{
    struct server_options *o = &l->server->options;
    o->reload_begins = read_begins;
    o->reload_ended = read_ended;
    o->reload_arg = l->watch;
}

static bool tell_reload(struct serve_loop *l, const char *why)
{
    LOG(LEVEL_INFO, "reloading", LOG_STRING("why", why));
    notify_send(l->notify, "RELOADING=1\nMONOTONIC_USEC=%llu\nSTATUS=reloading",
                (unsigned long long)(clock_monotonic_ns() / 1000));
    l->reloading = true;
    return true;
}

static bool on_signal(void *arg)
{
    return tell_reload(arg, "SIGHUP");
}

static bool on_change(void *arg)
{
    struct serve_loop *l = arg;
    return watch_is_new(l->watch, clock_monotonic_ns()) && tell_reload(l, "a file has changed");
}

static void reload_if(struct serve_loop *l, bool (*is_due)(void *arg))
{
    struct weir_error error;
    l->reloading = false;
    int e = server_reload_if(l->server, is_due, l, NULL, &error);
    if (!l->reloading) {
        return;
    }
    if (e == 0) {
        notify_send(l->notify, "READY=1\nSTATUS=serving");
    } else {
        notify_send(l->notify, "READY=1\nSTATUS=serving; %s", error.text);
    }
}

/* Handles what has been written to the loop. Returns true if the server is to stop. */
static bool take_signal(struct serve_loop *l)
{
    int number;
    while ((number = serve_signals_take(l->signals)) == SIGHUP || number == SERVE_WAKE) {
        if (number == SIGHUP) {
            reload_if(l, on_signal);
        } else {
            watch_events(l->watch, clock_monotonic_ns());
        }
    }
    if (number != 0) {
        LOG(LEVEL_INFO, "stopping", LOG_STRING("why", number == SIGTERM ? "SIGTERM" : "SIGINT"));
    }
    return number != 0;
}

/* ---- watchdog ---- */

/*
 * Sends a watchdog message if one is due. They are due twice in the time that the service
 * manager waits, and are sent only if every thread has answered the last ping.
 */
static void give_sign(struct serve_loop *l, uint64_t now_ns)
{
    if (l->notify->watchdog_ns == 0 || now_ns < l->sign_ns) {
        return;
    }
    if (server_answered(l->server)) {
        notify_send(l->notify, "WATCHDOG=1");
    } else {
        LOG(LEVEL_ERROR, "a thread does not answer");
    }
    server_ping(l->server);
    l->sign_ns = now_ns + l->notify->watchdog_ns / 2;
}

/* ---- the loop ---- */

/* Returns the milliseconds, rounded up, until the next thing is due, at most an hour. */
static int timeout_ms(const struct serve_loop *l, uint64_t now_ns)
{
    uint64_t due = watch_due_ns(l->watch);
    due = l->uncovered.due_ns < due ? l->uncovered.due_ns : due;
    if (l->notify->watchdog_ns != 0 && l->sign_ns < due) {
        due = l->sign_ns;
    }
    uint64_t ms = mul_div_up(sub_floor0(due, now_ns), 1, WEIR_MILLISECOND);
    return ms > 3600000 ? 3600000 : (int)ms;
}

void serve_loop_run(struct serve_loop *l)
{
    server_ping(l->server);
    l->sign_ns = clock_monotonic_ns() + l->notify->watchdog_ns / 2;
    l->uncovered = uncovered_begin(clock_monotonic_ns());
    for (;;) {
        struct pollfd fds[] = {{l->signals, POLLIN, 0}, {l->watch->fd, POLLIN, 0}};
        (void)poll(fds, 2, timeout_ms(l, clock_monotonic_ns()));
        if (take_signal(l)) {
            uncovered_finish(&l->uncovered);
            return;
        }
        uint64_t now_ns = clock_monotonic_ns();
        if ((fds[1].revents & POLLIN) != 0 && fds[1].fd == l->watch->fd) {
            watch_events(l->watch, now_ns);
        }
        if (watch_due_ns(l->watch) <= now_ns) {
            reload_if(l, on_change);
        }
        uncovered_look(&l->uncovered, l->server, now_ns);
        give_sign(l, clock_monotonic_ns());
    }
}
