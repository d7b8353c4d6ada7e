#include "fleet/fleet_thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/maths.h"
#include "fleet/loop.h"
#include "fleet/place.h"
#include "shared/store/stores.h"

/* Answers lead to new questions, and questions to answers: after so many rounds the loop gets its
 * turn. */
#define ROUNDS_MAX 8
/* How long a close may wait for the store. What a key has to give back may have to wait for a call
 * that is under way. */
#define LEAVE_NS (100 * WEIR_MILLISECOND)

/* ---- handles ---- */

struct poll {
    uv_poll_t uv; /* first */
    struct fleet_thread *thread;
};

void fleet_thread_handle_gone(struct fleet_thread *t)
{
    if (--t->handles == 0 && t->closing) {
        buffer_finish(&t->plain);
        free(t);
    }
}

static void on_handle_closed(uv_handle_t *handle)
{
    fleet_thread_handle_gone(handle->data);
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct poll *poll = (struct poll *)handle;
    fleet_thread_handle_gone(poll->thread);
    free(poll);
}

uv_poll_t *fleet_poll_open(struct fleet_thread *t, int fd, void *data)
{
    struct poll *poll = calloc(1, sizeof *poll);
    if (poll == NULL || uv_poll_init(t->loop, &poll->uv, fd) != 0) {
        free(poll);
        return NULL;
    }
    poll->thread = t;
    poll->uv.data = data;
    t->handles++;
    return &poll->uv;
}

void fleet_poll_close(uv_poll_t *poll, int fd)
{
    poll->data = NULL;
    uv_close((uv_handle_t *)poll, on_poll_closed);
    (void)close(fd);
}

/* ---- the timer ---- */

static void on_timer(uv_poll_t *poll, int status, int events)
{
    struct fleet_thread *t = poll->data;
    uint64_t times;
    (void)status;
    (void)events;
    if (t != NULL && read(t->timer_fd, &times, sizeof times) > 0) {
        t->timer_ns = UINT64_MAX;
        fleet_thread_happened(t);
    }
}

/* Sets the timer. If it is already set to an earlier time it stays: it will be set again at that
 * time. */
static void set_timer(struct fleet_thread *t, uint64_t due_ns)
{
    if (due_ns >= t->timer_ns) {
        return;
    }
    struct itimerspec at = {
        .it_value = {(time_t)(due_ns / WEIR_SECOND), (long)(due_ns % WEIR_SECOND)}};
    if (due_ns == 0) {
        at.it_value.tv_nsec = 1; /* 0 would stop it */
    }
    t->timer_ns = due_ns;
    (void)timerfd_settime(t->timer_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* ---- turns ---- */

/* Takes one round. The store ticks first, so that the connections and bytes that it then wants are
 * handled in the same round. */
static uint64_t take_round(struct fleet_thread *t, uint64_t now_ns)
{
    t->happened = false;
    uint64_t due = min_u64(store_tick(t->store, now_ns), t->leave_ns);
    fleet_sockets_work(t, now_ns);
    return min_u64(due, fleet_sockets_tick(t, now_ns));
}

/* Records the store's error for weir_fleet_trouble(), only if it has changed. `reason` is added
 * only to "no connection": beside an error that a store has replied, it would be about another
 * endpoint. */
static void note_trouble(struct fleet_thread *t)
{
    char now[512];
    const char *error = store_last_error(t->store);
    if (error[0] == 0 && t->trouble[0] == 0) {
        return;
    }
    bool more = t->reason[0] != 0 && strstr(error, "no connection") != NULL;
    (void)snprintf(now, sizeof now, "%.300s%s%s%s", error, more ? " (" : "", more ? t->reason : "",
                   more ? ")" : "");
    now[sizeof t->trouble - 1] = 0;
    if (strcmp(now, t->trouble) != 0) {
        (void)pthread_mutex_lock(&t->fleet->lock);
        memcpy(t->trouble, now, sizeof t->trouble);
        (void)pthread_mutex_unlock(&t->fleet->lock);
    }
}

static void take_turn(struct fleet_thread *t)
{
    uint64_t now_ns = 0;
    uint64_t due = 0;
    for (int i = 0; i < ROUNDS_MAX && t->happened; i++) {
        now_ns = clock_boot_ns();
        due = take_round(t, now_ns);
    }
    fleet_sockets_sweep(t);
    set_timer(t, t->happened ? 0 : due);
    note_trouble(t);
    bool quiet = !t->happened && due > now_ns && store_is_idle(t->store);
    if (t->leave_ns != UINT64_MAX && (quiet || t->leave_ns <= now_ns)) {
        fleet_thread_close(t);
        uv_stop(t->loop);
    }
}

void fleet_thread_leave(struct fleet_thread *t)
{
    node_keys_stop(t->fleet->shared->keys);
    t->leave_ns = clock_boot_ns() + LEAVE_NS;
    fleet_thread_happened(t);
}

static void on_before(uv_prepare_t *handle)
{
    struct fleet_thread *t = handle->data;
    if (t->happened) {
        take_turn(t);
    }
}

static void on_after(uv_check_t *handle)
{
    struct fleet_thread *t = handle->data;
    if (t->happened) {
        take_turn(t);
    }
}

static void on_wake(uv_async_t *handle)
{
    struct fleet_thread *t = handle->data;
    fleet_thread_happened(t);
    if (t->woken != NULL) {
        t->woken(t);
    }
}

int fleet_thread_ask(struct fleet_thread *t, const struct remote_question *question,
                     struct remote_answer *answer)
{
    fleet_thread_happened(t);
    return store_ask(t->store, question, clock_boot_ns(), answer);
}

/* ---- opening and closing a thread ---- */

static int open_timer(struct fleet_thread *t)
{
    t->timer_ns = UINT64_MAX;
    t->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (t->timer_fd < 0) {
        return UV_EMFILE;
    }
    t->timer = fleet_poll_open(t, t->timer_fd, t);
    if (t->timer == NULL) {
        (void)close(t->timer_fd);
        return UV_ENOMEM;
    }
    return uv_poll_start(t->timer, UV_READABLE, on_timer);
}

/* Opens the handles. uv_prepare_... and uv_check_... cannot fail. */
static int open_handles(struct fleet_thread *t)
{
    int e = uv_async_init(t->loop, &t->wake, on_wake);
    if (e != 0) {
        return e;
    }
    t->wake.data = t;
    (void)uv_prepare_init(t->loop, &t->before);
    t->before.data = t;
    (void)uv_prepare_start(&t->before, on_before);
    (void)uv_check_init(t->loop, &t->after);
    t->after.data = t;
    (void)uv_check_start(&t->after, on_after);
    t->handles += 3;
    return open_timer(t);
}

static void close_handles(struct fleet_thread *t)
{
    t->closing = true;
    uv_close((uv_handle_t *)&t->wake, on_handle_closed);
    uv_close((uv_handle_t *)&t->before, on_handle_closed);
    uv_close((uv_handle_t *)&t->after, on_handle_closed);
    if (t->timer != NULL) {
        fleet_poll_close(t->timer, t->timer_fd);
    }
}

static int open_store(struct fleet_thread *t)
{
    struct weir_fleet *f = t->fleet;
    const struct client_options options = {
        .url = &f->url,
        .user = f->options.user == NULL ? TEXT("") : text_of(f->options.user),
        .password = &t->secret,
        .sentinel_user =
            f->options.sentinel_user == NULL ? TEXT("") : text_of(f->options.sentinel_user),
        .redact = &f->redact,
        .permits = f->networks != NULL ? fleet_permits : NULL,
        .permits_arg = f,
        .deadline_ns = f->options.deadline_ns,
        .memory_high = f->options.memory_high <= 100 ? f->options.memory_high : 0,
        .breakers = f->breakers,
        .metrics = &f->metrics,
    };
    t->secret = TEXT("");
    const struct client_driver driver = fleet_driver(t);
    return store_create(&t->store, f->shared, &options, &driver, clock_boot_ns());
}

int fleet_thread_open(struct fleet_thread **out, struct weir_fleet *fleet, uv_loop_t *loop,
                      struct weir_error *error)
{
    *out = NULL;
    struct fleet_thread *t = calloc(1, sizeof *t);
    if (t == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory for a thread of the fleet");
    }
    t->fleet = fleet;
    t->loop = loop;
    t->leave_ns = UINT64_MAX;
    buffer_init(&t->plain, FLEET_READ_BYTES + TLS_RECORD_BYTES);
    int e = open_handles(t);
    if (e != 0) {
        e = fail(error, e == UV_ENOMEM ? WEIR_ENOMEM : WEIR_EIO,
                 "cannot use the loop for the fleet: %s", uv_strerror(e));
    } else if ((e = open_store(t)) != 0) {
        e = fail(error, e, "cannot open the store of the fleet: %s", weir_strerror(e));
    }
    if (e != 0) {
        if (t->handles > 0) {
            close_handles(t);
        } else {
            free(t);
        }
        return e;
    }
    fleet_add_thread(fleet, t);
    fleet_thread_happened(t);
    *out = t;
    return 0;
}

void fleet_thread_close(struct fleet_thread *t)
{
    if (t == NULL) {
        return;
    }
    fleet_remove_thread(t->fleet, t);
    uint64_t now_ns = clock_boot_ns();
    store_destroy(t->store, now_ns);
    t->store = NULL;
    fleet_sockets_work(t, now_ns); /* all sockets are closed: this takes them off the list */
    fleet_sockets_sweep(t);
    close_handles(t);
}

/* ---- how rules reach a fleet: common/remote.h ---- */

static int open_limit(struct weir_fleet *fleet, const struct remote_spec *spec, void **limit,
                      struct weir_error *error)
{
    struct store_limit *made = NULL;
    int e = store_limit_open(fleet->shared, spec, &made, error);
    *limit = made;
    return e;
}

static void hold(void *limit)
{
    store_limit_hold(limit);
}

static void release(void *limit)
{
    store_limit_release(limit);
}

static int change(void *limit, const struct weir_options *options, struct weir_error *error)
{
    return store_limit_change(limit, options, error);
}

static void counts(const void *limit, struct remote_counts *out)
{
    const struct store_limit *l = limit;
    load_each(out, &l->counts, offsetof(struct remote_counts, mode) / sizeof(uint64_t));
    out->mode = store_limit_mode(l);
}

static int ask(struct weir_fleet *fleet, void *where, struct remote_question *question,
               struct remote_answer *answer)
{
    if (where != NULL) {
        return fleet_place_ask(where, question, answer);
    }
    if (fleet->bare) {
        return WEIR_EINVAL;
    }
    int e = fleet_loop_try(fleet->loop, question, answer);
    return e != REMOTE_PENDING ? e : fleet_loop_send(fleet->loop, question, answer);
}

const struct remote_ops fleet_ops = {
    .open = open_limit,
    .hold = hold,
    .release = release,
    .change = change,
    .counts = counts,
    .bytes = fleet_question_bytes,
    .ask = ask,
};
