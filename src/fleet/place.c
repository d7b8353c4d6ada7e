#include "fleet/place.h"

#include <assert.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/maths.h"
#include "fleet/fleet_thread.h"
#include "fleet/loop.h"
#include "fleet/queue.h"
#include "shared/store/stores.h"

struct fleet_place {
    struct fleet_thread *thread; /* NULL: the place shares */
    struct fleet_loop *loop;     /* whose connections it shares */
    uv_prepare_t before;         /* gives the questions of a turn to the loop */
    struct remote_question *asked, **asked_end;
    uv_async_t wake;
    struct question_queue answered;
    uint64_t pending; /* questions that have not come back */
    uint64_t lent;    /* H2: atomic */
    bool closing;
};

/* A question that is lent to a loop: what it gets back, and its answer. It precedes the memory
 * that the store uses. */
struct lent_question {
    _Alignas(16) struct fleet_place *place;
    struct remote_question *question;
    remote_done_fn done;
    void *arg;
    int error;
    struct remote_answer answer;
};

size_t fleet_question_bytes(size_t n)
{
    return sizeof(struct lent_question) + store_question_bytes(n);
}

/* ---- asking ---- */

/* Takes the answer, on the loop's thread. The place may end as soon as `lent` is 0. */
static void on_answer(void *arg, int error, const struct remote_answer *answer)
{
    struct lent_question *l = arg;
    struct fleet_place *p = l->place;
    l->error = error;
    if (error == 0) {
        l->answer = *answer;
    }
    if (queue_push(&p->answered, l->question)) {
        (void)uv_async_send(&p->wake);
    }
    (void)fetch_sub(&p->lent, 1);
}

static void lend(struct fleet_place *p, struct remote_question *q)
{
    struct lent_question *l = q->memory;
    *l = (struct lent_question){.place = p, .question = q, .done = q->done, .arg = q->arg};
    q->done = on_answer;
    q->arg = l;
    q->memory = l + 1;
    p->pending++;
    (void)fetch_add(&p->lent, 1);
}

/* Makes the question what it was before lend(). Returns it with its answer. */
static struct lent_question *take_back(struct remote_question *q)
{
    struct lent_question *l = q->arg;
    assert(l->question == q && l->place->pending > 0); /* H1 */
    q->done = l->done;
    q->arg = l->arg;
    q->memory = l;
    l->place->pending--;
    return l;
}

int fleet_place_ask(struct fleet_place *p, struct remote_question *q, struct remote_answer *answer)
{
    if (p->thread != NULL) {
        return fleet_thread_ask(p->thread, q, answer);
    }
    int e = fleet_loop_try(p->loop, q, answer);
    if (e == REMOTE_PENDING) {
        lend(p, q);
        q->next = NULL;
        *p->asked_end = q;
        p->asked_end = &q->next;
    }
    return e;
}

/* ---- the end of a place ---- */

static void on_closed(uv_handle_t *handle)
{
    assert(((struct fleet_place *)handle->data)->pending == 0); /* H2 */
    free(handle->data);
}

static void on_before_closed(uv_handle_t *handle)
{
    struct fleet_place *p = handle->data;
    uv_close((uv_handle_t *)&p->wake, on_closed);
}

/* Ends a closing place when its last question has come back. The loop's thread may still be about
 * to send the wake-up for it, which takes a moment only. */
static void end_when_idle(struct fleet_place *p)
{
    if (!p->closing || p->pending > 0 || uv_is_closing((uv_handle_t *)&p->before)) {
        return;
    }
    for (unsigned attempt = 0; load_acquire(&p->lent) != 0; attempt++) {
        lock_pause(attempt);
    }
    uv_close((uv_handle_t *)&p->before, on_before_closed);
}

/* ---- turns ---- */

/* Gives the questions to the loop, one that it cannot take back to the asker. */
static void on_before(uv_prepare_t *handle)
{
    struct fleet_place *p = handle->data;
    struct remote_question *q = p->asked;
    p->asked = NULL;
    p->asked_end = &p->asked;
    while (q != NULL) {
        struct remote_question *next = q->next;
        struct remote_answer answer;
        int e = fleet_loop_send(p->loop, q, &answer);
        if (e != REMOTE_PENDING) {
            (void)take_back(q);
            (void)fetch_sub(&p->lent, 1);
            q->done(q->arg, e == REMOTE_ANSWERED ? 0 : e, &answer);
        }
        q = next;
    }
    if (p->asked != NULL) { /* `done` has asked: these leave in the next turn */
        (void)uv_async_send(&p->wake);
    }
    end_when_idle(p);
}

static void on_wake(uv_async_t *handle)
{
    struct fleet_place *p = handle->data;
    struct remote_question *q = queue_take(&p->answered);
    while (q != NULL) {
        struct remote_question *next = q->next;
        struct lent_question *l = take_back(q);
        q->done(q->arg, l->error, &l->answer); /* `q` may end by this */
        q = next;
    }
    end_when_idle(p);
}

/* ---- opening and closing ---- */

int fleet_share(struct weir_fleet *f, unsigned places, struct weir_error *error)
{
    unsigned most = f->connections;
    bool shares = most != 0 && most < places;
    f->links_each = shares ? most : places;
    return shares ? fleet_loops_open(f, most, error) : 0;
}

/* Opens the handles of a place that shares a loop's connections. uv_prepare_... cannot fail. */
static int share_loop(struct fleet_place *p, struct weir_fleet *f, uv_loop_t *loop,
                      struct weir_error *error)
{
    p->loop = fleet_loop_turn(f);
    p->asked_end = &p->asked;
    p->wake.data = p;
    p->before.data = p;
    int e = uv_async_init(loop, &p->wake, on_wake);
    if (e != 0) {
        return fail(error, WEIR_EIO, "cannot use the loop for the fleet: %s", uv_strerror(e));
    }
    (void)uv_prepare_init(loop, &p->before);
    (void)uv_prepare_start(&p->before, on_before);
    return 0;
}

int fleet_place_open(struct fleet_place **out, struct weir_fleet *f, uv_loop_t *loop,
                     struct weir_error *error)
{
    *out = NULL;
    struct fleet_place *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return fail(error, WEIR_ENOMEM, "out of memory for a place of the fleet");
    }
    int e = f->loop == NULL ? fleet_thread_open(&p->thread, f, loop, error)
                            : share_loop(p, f, loop, error);
    if (e != 0) {
        free(p);
        return e;
    }
    *out = p;
    return 0;
}

bool fleet_place_leave(struct fleet_place *p)
{
    if (p->thread != NULL) {
        node_keys_stop(p->thread->fleet->shared->keys);
        fleet_thread_happened(p->thread);
    }
    return p->thread != NULL;
}

void fleet_place_close(struct fleet_place *p)
{
    if (p != NULL && p->thread != NULL) {
        fleet_thread_close(p->thread);
        free(p);
    } else if (p != NULL) {
        p->closing = true;
        end_when_idle(p);
    }
}
