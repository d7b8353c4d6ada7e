#include "fleet/loop.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/lock.h"
#include "fleet/fleet_thread.h"
#include "fleet/queue.h"

#define WIND_UP_TURNS 4

struct fleet_loop {
    uv_loop_t uv;
    struct fleet_loop *next; /* in weir_fleet.loop */
    struct fleet_thread *thread;
    bool callers;
    pthread_t id; /* of the fleet's own thread, if not `callers` */
    struct question_queue queue;
    uint64_t queued;
    uint64_t stop;
    uv_sem_t ended;
    /* A name lookup still holds the loop. A thread frees it after the lookup and `let_go`. */
    bool lingers;
    /* 1: the closing thread uses the loop no more. */
    uint64_t let_go;
};

/* ---- the queue ---- */

static void on_woken(struct fleet_thread *t)
{
    struct fleet_loop *l = t->loop->data;
    struct remote_question *q = queue_take(&l->queue);
    while (q != NULL) {
        struct remote_question *next = q->next;
        struct remote_answer answer;
        (void)fetch_sub(&l->queued, 1);
        int e = fleet_thread_ask(t, q, &answer);
        if (e != REMOTE_PENDING) {
            q->done(q->arg, e == REMOTE_ANSWERED ? 0 : e, &answer);
        }
        q = next;
    }
    if (load_acquire(&l->stop) != 0 && t->leave_ns == UINT64_MAX) {
        fleet_thread_leave(t);
    }
}

/* ---- asking without waiting ---- */

bool fleet_loop_is_here(const struct fleet_loop *l)
{
    return l->callers || pthread_equal(l->id, pthread_self());
}

static bool queue_has_room(struct fleet_loop *l)
{
    if (fetch_add(&l->queued, 1) < FLEET_QUEUE_MAX) {
        return true;
    }
    (void)fetch_sub(&l->queued, 1);
    return false;
}

int fleet_loop_try(struct fleet_loop *l, const struct remote_question *q,
                   struct remote_answer *answer)
{
    return fleet_loop_is_here(l) ? REMOTE_PENDING : store_ask_here(q, clock_boot_ns(), answer);
}

int fleet_loop_send(struct fleet_loop *l, struct remote_question *q, struct remote_answer *answer)
{
    if (fleet_loop_is_here(l)) {
        return fleet_thread_ask(l->thread, q, answer);
    }
    if (!queue_has_room(l)) {
        return store_ask_failed(q, clock_boot_ns(), answer);
    }
    if (queue_push(&l->queue, q)) {
        (void)uv_async_send(&l->thread->wake);
    }
    return REMOTE_PENDING;
}

/* ---- waiting ---- */

struct loop_waiter {
    struct remote_answer *answer;
    int error;
    sem_t answered;
};

/* Passes the answer to the waiting thread. After sem_post() nothing of *w may be touched, because
 * the thread may have returned. */
static void on_answer(void *arg, int error, const struct remote_answer *answer)
{
    struct loop_waiter *w = arg;
    w->error = error;
    if (error == 0) {
        *w->answer = *answer;
    }
    (void)sem_post(&w->answered);
}

int fleet_loop_wait(struct fleet_loop *l, struct remote_question *q, struct remote_answer *answer)
{
    _Alignas(16) char memory[STORE_QUESTION_BYTES];
    struct loop_waiter w = {.answer = answer};
    if (fleet_loop_is_here(l)) {
        return WEIR_ENOTSUP;
    }
    int e = store_ask_here(q, clock_boot_ns(), answer);
    if (e != REMOTE_PENDING) {
        return e;
    }
    (void)sem_init(&w.answered, 0, 0);
    q->done = on_answer;
    q->arg = &w;
    q->memory = memory;
    e = fleet_loop_send(l, q, answer);
    if (e != REMOTE_PENDING) {
        return e;
    }
    while (sem_wait(&w.answered) != 0) { /* a signal */
    }
    return w.error != 0 ? w.error : REMOTE_ANSWERED;
}

/* ---- running ---- */

/* Runs the loop until fleet_thread_leave() has finished. Returns true if the loop is closed. */
static bool run_to_the_end(struct fleet_loop *l)
{
    (void)uv_run(&l->uv, UV_RUN_DEFAULT);
    for (int i = 0; i < WIND_UP_TURNS && uv_loop_alive(&l->uv); i++) {
        (void)uv_run(&l->uv, UV_RUN_NOWAIT);
    }
    return uv_loop_close(&l->uv) == 0;
}

/* Runs the loop until the last name lookup has ended, closes it, waits for `let_go` and frees
 * it. */
static void *linger(void *arg)
{
    struct fleet_loop *l = arg;
    (void)uv_run(&l->uv, UV_RUN_DEFAULT);
    (void)uv_loop_close(&l->uv);
    for (unsigned attempt = 0; load_acquire(&l->let_go) == 0; attempt++) {
        lock_pause(attempt);
    }
    free(l);
    return NULL;
}

static void *run_own(void *arg)
{
    struct fleet_loop *l = arg;
    bool lingers = !run_to_the_end(l);
    l->lingers = lingers;
    uv_sem_post(&l->ended);
    return lingers ? linger(l) : NULL;
}

/* Starts a thread with all signals blocked: they are for the program's own threads. Only SIGBUS is
 * not: it comes from a state file that this thread uses, and a handler must run. */
static int start_thread(pthread_t *id, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGBUS);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int e = pthread_create(id, NULL, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (e == 0) {
        (void)pthread_setname_np(*id, "weir-fleet");
    }
    return e;
}

/* Tells the fleet's own thread to stop. An earlier wake-up may let the loop see `stop` before ours
 * is sent. But the loop ends only after fleet_remove_thread(), which needs the lock, so `wake`
 * still exists when we send to it. */
static void stop_own(struct fleet_loop *l)
{
    struct fleet_thread *t = l->thread;
    struct weir_fleet *f = t->fleet;
    (void)pthread_mutex_lock(&f->lock);
    store_release(&l->stop, 1);
    (void)uv_async_send(&t->wake);
    (void)pthread_mutex_unlock(&f->lock);
}

static void await_own(struct fleet_loop *l)
{
    uv_sem_wait(&l->ended);
    if (l->lingers) {
        (void)pthread_detach(l->id);
        store_release(&l->let_go, 1);
        return;
    }
    (void)pthread_join(l->id, NULL);
    uv_sem_destroy(&l->ended);
    free(l);
}

static void close_callers(struct fleet_loop *l)
{
    pthread_t id;
    l->let_go = 1;
    fleet_thread_leave(l->thread);
    if (run_to_the_end(l)) {
        free(l);
    } else if (start_thread(&id, linger, l) == 0) {
        (void)pthread_detach(id);
    } else {
        (void)linger(l);
    }
}

/* Closes a loop that was told to stop. */
static void close_one(struct fleet_loop *l)
{
    if (l->callers) {
        close_callers(l);
    } else {
        await_own(l);
    }
}

void fleet_loops_close(struct weir_fleet *fleet)
{
    for (struct fleet_loop *l = fleet->loop; l != NULL; l = l->next) {
        if (!l->callers) {
            stop_own(l);
        }
    }
    for (struct fleet_loop *l = fleet->loop, *next; l != NULL; l = next) {
        next = l->next;
        close_one(l); /* answers, which may lead to questions for fleet->loop */
    }
    fleet->loop = NULL;
}

static int start(struct fleet_loop *l, struct weir_error *error)
{
    if (l->callers) {
        return 0;
    }
    int e = uv_sem_init(&l->ended, 0);
    if (e != 0) {
        return fail(error, WEIR_EIO, "cannot make a semaphore for the fleet: %s", uv_strerror(e));
    }
    e = start_thread(&l->id, run_own, l);
    if (e != 0) {
        uv_sem_destroy(&l->ended);
        return fail(error, WEIR_EIO, "cannot start the fleet's thread: %s", strerror(e));
    }
    return 0;
}

static int open_one(struct weir_fleet *fleet, struct weir_error *error)
{
    struct fleet_loop *l = calloc(1, sizeof *l);
    int e = l != NULL ? uv_loop_init(&l->uv) : UV_ENOMEM;
    if (e != 0) {
        free(l);
        return fail(error, e == UV_ENOMEM ? WEIR_ENOMEM : WEIR_EIO,
                    "cannot make the fleet's loop: %s", uv_strerror(e));
    }
    l->uv.data = l;
    l->callers = (fleet->options.flags & WEIR_FLEET_CALLERS_LOOP) != 0;
    e = fleet_thread_open(&l->thread, fleet, &l->uv, error);
    if (e == 0) {
        l->thread->woken = on_woken;
        e = start(l, error);
        if (e != 0) {
            fleet_thread_close(l->thread);
        }
    }
    if (e != 0) {
        (void)run_to_the_end(l);
        free(l);
        return e;
    }
    l->next = fleet->loop;
    fleet->loop = l;
    return 0;
}

int fleet_loops_open(struct weir_fleet *fleet, unsigned count, struct weir_error *error)
{
    int e = 0;
    for (unsigned i = 0; i < count && e == 0; i++) {
        e = open_one(fleet, error);
    }
    if (e != 0) {
        fleet_loops_close(fleet);
    }
    return e;
}

struct fleet_loop *fleet_loop_turn(struct weir_fleet *fleet)
{
    struct fleet_loop *l = fleet->turn != NULL ? fleet->turn : fleet->loop;
    fleet->turn = l->next;
    return l;
}

/* ---- the caller's loop ---- */

static struct fleet_loop *callers(const struct weir_fleet *fleet)
{
    return fleet != NULL && fleet->loop != NULL && fleet->loop->callers ? fleet->loop : NULL;
}

int weir_fleet_fd(const struct weir_fleet *fleet)
{
    struct fleet_loop *l = callers(fleet);
    return l != NULL ? uv_backend_fd(&l->uv) : WEIR_ENOTSUP;
}

int weir_fleet_timeout_ms(const struct weir_fleet *fleet)
{
    struct fleet_loop *l = callers(fleet);
    if (l == NULL) {
        return -1;
    }
    return l->thread->happened ? 0 : uv_backend_timeout(&l->uv);
}

int weir_fleet_run(struct weir_fleet *fleet)
{
    struct fleet_loop *l = callers(fleet);
    if (l == NULL) {
        return WEIR_ENOTSUP;
    }
    (void)uv_run(&l->uv, UV_RUN_NOWAIT);
    return 0;
}
