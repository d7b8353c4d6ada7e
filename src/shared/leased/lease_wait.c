#include "shared/leased/lease_wait.h"

#include <assert.h>

#include "base/maths.h"

#define TOOK_PART 8                        /* took_ns decays by 1/TOOK_PART with each call */
#define LATE 8                             /* a call is late after this many times took_ns */
#define LATE_LEAST (10 * WEIR_MILLISECOND) /* and not earlier: a process may pause */
#define ROUNDS 3 /* times took_ns: the call that is out, a call of its own, and a reserve */

void lease_waits_init(struct lease_waits *w, struct node_keys *keys, lease_send_fn send, void *arg)
{
    *w = (struct lease_waits){.keys = keys, .send = send, .arg = arg};
    timers_init(&w->timers);
    for (unsigned i = 0; i < LEASE_CHAINS; i++) {
        list_init(&w->chains[i]);
    }
}

/* ---- calls that are out ---- */

static struct list *chain_of(struct lease_waits *w, struct hash hash)
{
    return &w->chains[hash.high % LEASE_CHAINS];
}

static struct lease_flight *find(struct lease_waits *w, const struct lease_call *call)
{
    struct list *chain = chain_of(w, call->hash);
    for (struct list *at = chain->next; at != chain; at = at->next) {
        struct lease_flight *f = LIST_OF(at, struct lease_flight, node);
        if (f->call.id == call->id && f->call.hash.low == call->hash.low &&
            f->call.hash.high == call->hash.high) {
            return f;
        }
    }
    return NULL;
}

void lease_flight_begin(struct lease_waits *w, struct lease_flight *f, struct lease_question *q,
                        const struct lease_call *call)
{
    f->call = *call;
    f->question = q;
    list_init(&f->node);
    list_init(&f->waiting);
    if (call->id != 0 && call->want != 0) {
        list_put(chain_of(w, call->hash)->prev, &f->node);
    }
}

static void note_took(struct lease_waits *w, const struct lease_flight *f, uint64_t now_ns)
{
    uint64_t before_ns = w->took_ns - w->took_ns / TOOK_PART;
    w->took_ns = max_u64(max_u64(sub_floor0(now_ns, f->call.made_ns), before_ns), 1);
}

/* ---- waiting ---- */

void lease_question_init(struct lease_question *q, const struct remote_part *of,
                         uint64_t deadline_ns, struct weir_answer *answer)
{
    *q = (struct lease_question){.of = of, .deadline_ns = deadline_ns, .answer = answer};
    list_init(&q->node);
    timer_init(&q->timer, 0);
}

/* Returns whether the question may wait for the call (W3, W5). */
static bool may_wait(const struct lease_waits *w, const struct lease_flight *f,
                     const struct lease_question *q, uint64_t now_ns)
{
    uint64_t left_ns = sub_floor0(q->deadline_ns, now_ns);
    uint64_t late_ns = min_u64(left_ns / 2, max_u64(LATE * w->took_ns, LATE_LEAST));
    bool in_time = w->took_ns != 0 && left_ns >= ROUNDS * w->took_ns;
    return in_time && sub_floor0(now_ns, f->call.made_ns) < late_ns &&
           w->count < LEASE_WAITING_MOST;
}

static void join(struct lease_waits *w, struct lease_flight *f, struct lease_question *q,
                 uint64_t now_ns)
{
    assert(w->count < LEASE_WAITING_MOST); /* W5 */
    list_put(f->waiting.prev, &q->node);
    timer_set(&w->timers, &q->timer, q->deadline_ns, now_ns);
    w->count++;
}

static void leave(struct lease_waits *w, struct lease_question *q)
{
    list_take(&q->node);
    timer_clear(&q->timer);
    assert(w->count > 0);
    w->count--;
}

static int ask_alone(struct lease_waits *w, struct lease_question *q, struct lease_call *call,
                     uint64_t now_ns)
{
    lease_alone(q->of, now_ns, call);
    return w->send(w->arg, q, call, now_ns);
}

int lease_waits_take(struct lease_waits *w, struct lease_question *q, unsigned said,
                     struct lease_call *call, uint64_t now_ns)
{
    if ((said & LEASE_WAIT) == 0) {
        return w->send(w->arg, q, call, now_ns);
    }
    struct lease_flight *f = find(w, call);
    if (f == NULL || !may_wait(w, f, q, now_ns)) {
        return ask_alone(w, q, call, now_ns);
    }
    join(w, f, q, now_ns);
    return 0;
}

/* ---- the end of a call ---- */

/* Asks the question again. Returns true if it has ended: decided, or failed. `helps`: W2. */
static bool ask_again(struct lease_waits *w, struct lease_question *q, bool helps, uint64_t now_ns)
{
    struct lease_call call;
    unsigned said = lease_ask(w->keys, q->of, LEASE_AGAIN, now_ns, q->answer, &call);
    if ((said & LEASE_ANSWERED) != 0) {
        q->state = LEASE_DECIDED;
        if ((said & LEASE_SEND) != 0) {
            (void)w->send(w->arg, NULL, &call, now_ns);
        }
        return true;
    }
    int e = said == LEASE_WAIT && !helps ? ask_alone(w, q, &call, now_ns)
                                         : lease_waits_take(w, q, said, &call, now_ns);
    q->state = e != 0 ? LEASE_FAILED : LEASE_OPEN;
    return e != 0;
}

void lease_flight_end(struct lease_waits *w, struct lease_flight *f, bool replied, uint64_t now_ns,
                      struct list *ended)
{
    bool helps = f->question == NULL;
    struct list waiting;
    list_init(&waiting);
    list_move(&waiting, &f->waiting);
    list_take(&f->node);
    if (replied) {
        note_took(w, f, now_ns);
    }
    while (!list_is_empty(&waiting)) {
        struct lease_question *q = LIST_OF(waiting.next, struct lease_question, node);
        leave(w, q);
        q->state = LEASE_FAILED; /* W4 */
        if (!replied || ask_again(w, q, helps, now_ns)) {
            list_put(ended->prev, &q->node);
        }
        helps = helps || q->state == LEASE_DECIDED;
    }
    assert(list_is_empty(&f->waiting)); /* no question waits for a call that has ended (W4) */
}

void lease_waits_tick(struct lease_waits *w, uint64_t now_ns, struct list *ended)
{
    struct timer *t;
    while (w->count != 0 && (t = timers_pop(&w->timers, now_ns)) != NULL) {
        struct lease_question *q = LIST_OF(t, struct lease_question, timer);
        leave(w, q);
        q->state = LEASE_FAILED;
        list_put(ended->prev, &q->node);
    }
}

struct lease_question *lease_question_next(struct list *ended)
{
    return list_is_empty(ended) ? NULL : LIST_OF(list_pop(ended), struct lease_question, node);
}
