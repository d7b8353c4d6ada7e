#include "fleet/loop.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/lock.h"
#include "fleet/fleet_thread.h"

#define WIND_UP_TURNS 4

struct fleet_loop {
    uv_loop_t uv;
    struct fleet_thread *thread;
    bool callers;
    pthread_t id; /* of the fleet's own thread, if not `callers` */
    struct remote_question *queue;
    uint64_t queued;
    uint64_t stop;
    uv_sem_t ended;
    /* A name lookup still holds the loop. A thread then frees it after the lookup ... */
    bool lingers;
    /* ... but not before the closing thread has set this and uses the loop no more. */
    uint64_t let_go;
};

/* ---- the queue ---- */

/* Pushes a question. Returns true if the queue was empty. */
static bool push(struct fleet_loop *l, struct remote_question *q)
{
    struct remote_question *top = __atomic_load_n(&l->queue, __ATOMIC_RELAXED);
    do {
        q->next = top;
    } while (
        !__atomic_compare_exchange_n(&l->queue, &top, q, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
    return top == NULL;
}

/* Takes all questions, and returns them with the oldest first. */
static struct remote_question *take(struct fleet_loop *l)
{
    struct remote_question *q = __atomic_exchange_n(&l->queue, NULL, __ATOMIC_ACQUIRE);
    struct remote_question *turned = NULL;
    while (q != NULL) {
        struct remote_question *next = q->next;
        q->next = turned;
        turned = q;
        q = next;
    }
    return turned;
}

static void on_woken(struct fleet_thread *t)
{
    struct fleet_loop *l = t->loop->data;
    struct remote_question *q = take(l);
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
    if (push(l, q)) {
        (void)uv_async_send(&l->thread->wake);
    }
    return REMOTE_PENDING;
}

/* ---- waiting ---- */

struct loop_waiter {
    struct remote_answer *answer;
    int error;
    uint32_t answered;
};

/* Passes the answer to the waiting thread. After the atomic store nothing of *w may be touched,
 * because the thread may have returned. Only the address is given to the kernel; if another futex
 * is there by then, its waiter gets a spurious wake-up, which it has to expect anyway. */
static void on_answer(void *arg, int error, const struct remote_answer *answer)
{
    struct loop_waiter *w = arg;
    uint32_t *word = &w->answered;
    w->error = error;
    if (error == 0) {
        *w->answer = *answer;
    }
    __atomic_store_n(word, 1, __ATOMIC_RELEASE);
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

int fleet_loop_wait(struct fleet_loop *l, struct remote_question *q, struct remote_answer *answer)
{
    _Alignas(16) char memory[STORE_QUESTION_BYTES];
    struct loop_waiter w = {.answer = answer, .answered = 0};
    if (fleet_loop_is_here(l)) {
        return WEIR_ENOTSUP;
    }
    int e = store_ask_here(q, clock_boot_ns(), answer);
    if (e != REMOTE_PENDING) {
        return e;
    }
    q->done = on_answer;
    q->arg = &w;
    q->memory = memory;
    e = fleet_loop_send(l, q, answer);
    if (e != REMOTE_PENDING) {
        return e;
    }
    while (__atomic_load_n(&w.answered, __ATOMIC_ACQUIRE) == 0) {
        (void)syscall(SYS_futex, &w.answered, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
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

/* Starts a thread with all signals blocked: they are for the program's own threads. */
static int start_thread(pthread_t *id, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    (void)sigfillset(&all);
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

static void close_own(struct fleet_loop *l)
{
    stop_own(l);
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

void fleet_loop_close(struct fleet_loop *l)
{
    if (l == NULL) {
        return;
    }
    if (l->callers) {
        close_callers(l);
    } else {
        close_own(l);
    }
}

static int start(struct fleet_loop *l, struct weir_error *error)
{
    if (l->callers) {
        return 0;
    }
    int e = uv_sem_init(&l->ended, 0);
    if (e != 0) {
        return fail(error, WEIR_EIO, "a semaphore of the fleet: %s", uv_strerror(e));
    }
    e = start_thread(&l->id, run_own, l);
    if (e != 0) {
        uv_sem_destroy(&l->ended);
        return fail(error, WEIR_EIO, "the fleet's thread: %s", strerror(e));
    }
    return 0;
}

int fleet_loop_open(struct fleet_loop **out, struct weir_fleet *fleet, struct weir_error *error)
{
    struct fleet_loop *l = calloc(1, sizeof *l);
    int e = l != NULL ? uv_loop_init(&l->uv) : UV_ENOMEM;
    if (e != 0) {
        free(l);
        return fail(error, e == UV_ENOMEM ? WEIR_ENOMEM : WEIR_EIO, "the fleet's loop: %s",
                    uv_strerror(e));
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
    *out = l;
    return 0;
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
