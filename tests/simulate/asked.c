/* Questions of `leased` at a node, their calls, and which question waits for which call; modelled
 * on shared/store/send_lease.c. */
#include <inttypes.h>
#include <stdlib.h>

#include "shared/core/script.h"
#include "simulate/world.h"

/* A question, until it is answered. */
struct asked {
    struct lease_question lease;
    struct remote_part part;
    struct weir_answer answer;
    unsigned node;
    unsigned subject;
    bool probe;
};

static uint64_t now_ns(const struct world *w, unsigned n)
{
    return node_ns(w, n, w->now_us);
}

static struct asked *asked_of(struct lease_question *q)
{
    return q != NULL ? LIST_OF(q, struct asked, lease) : NULL;
}

/* ---- ends of questions ---- */

/* Checks I1. Timers fire late, and a paused node hears nothing. */
static void check_time(struct world *w, const struct asked *a)
{
    const struct node *node = &w->nodes[a->node];
    uint64_t due_us = max_u64(node_us(w, a->node, a->lease.deadline_ns), node->paused_us);
    if (w->now_us > due_us + w->plan.late_us + 1 && !w->over) {
        world_fail(w, "node %u: a question of %s has its end %" PRIu64 " us after its deadline",
                   a->node, w->subjects[a->subject].name, w->now_us - due_us);
    }
}

/* Ends a question. m is the call that has decided it; NULL: it was decided by what another call
 * brought. */
static void end(struct world *w, struct asked *a, bool decided, const struct message *m)
{
    w->open--;
    check_time(w, a);
    if (decided) {
        answered(w, a->node, a->subject, a->part.cost, &a->answer, m, a->probe);
    } else if (a->probe) {
        world_fail(w, "no answer though nothing fails any more");
    }
    free(a);
}

static void end_all(struct world *w, struct list *ended)
{
    struct lease_question *q;
    while ((q = lease_question_next(ended)) != NULL) {
        struct asked *a = asked_of(q);
        bool decided = q->state == LEASE_DECIDED;
        w->result->waited += decided;
        TRACE(w, "node %u: one who waited for %s %s", a->node, w->subjects[a->subject].name,
              decided ? "is served" : "has no answer");
        check_spendable(w, a->subject, a->node);
        end(w, a, decided, NULL);
    }
}

/* ---- calls ---- */

static int put_on_way(struct world *w, unsigned n, struct lease_question *q,
                      const struct lease_call *call)
{
    struct message *m = message_make(w, MESSAGE_LEASE, n, subject_of(w, &call->key));
    m->cost = call->cost;
    m->call.lease.question = q;
    TRACE(w, "node %u: sends lease call for %s: cost %" PRIu64 " want %" PRIu64 " back %" PRIu64, n,
          w->subjects[m->subject].name, call->cost, call->want, call->back);
    if (!message_send(w, m)) {
        return -1;
    }
    lease_flight_begin(&w->nodes[n].waits, &m->call.lease, q, call);
    return 0;
}

/* lease_send_fn */
static int send_lease(void *arg, struct lease_question *q, const struct lease_call *call,
                      uint64_t now)
{
    const struct home *home = arg;
    struct world *w = home->world;
    bool late = q != NULL && q->deadline_ns <= now;
    if (late || put_on_way(w, home->node, q, call) != 0) {
        lease_unsent(w->nodes[home->node].keys, call, now);
        return -1;
    }
    return 0;
}

void asked_begin(struct world *w, unsigned n)
{
    struct node *node = &w->nodes[n];
    node->home = (struct home){w, n};
    lease_waits_init(&node->waits, node->keys, send_lease, &node->home);
}

void asked_next(struct world *w, unsigned n)
{
    struct node *node = &w->nodes[n];
    struct lease_call call;
    while (lease_next(node->keys, now_ns(w, n), &call)) {
        (void)send_lease(&node->home, NULL, &call, now_ns(w, n));
    }
}

/* ---- asking ---- */

static void ask_and_wait(struct world *w, unsigned n, unsigned subject, uint64_t cost, bool probe,
                         unsigned said, struct lease_call *call)
{
    struct asked *a = calloc(1, sizeof *a);
    if (a == NULL) {
        abort();
    }
    const struct subject *s = &w->subjects[subject];
    uint64_t now = now_ns(w, n);
    a->node = n;
    a->subject = subject;
    a->probe = probe;
    a->part = *PART(s->limit, text_of(s->name), cost);
    lease_question_init(&a->lease, &a->part, now + w->plan.deadline_us * 1000, &a->answer);
    w->open++;
    if (lease_waits_take(&w->nodes[n].waits, &a->lease, said, call, now) != 0) {
        end(w, a, false, NULL);
    }
}

void asked_leased(struct world *w, unsigned n, unsigned subject, uint64_t cost, bool probe)
{
    const struct subject *s = &w->subjects[subject];
    struct node *node = &w->nodes[n];
    struct weir_answer answer = {0};
    struct lease_call call;
    check_spendable(w, subject, n);
    unsigned said = lease_ask(node->keys, PART(s->limit, text_of(s->name), cost), LEASE_ASK,
                              now_ns(w, n), &answer, &call);
    if ((said & LEASE_ANSWERED) == 0) {
        ask_and_wait(w, n, subject, cost, probe, said, &call);
        return;
    }
    if ((said & LEASE_SEND) != 0) {
        (void)send_lease(&node->home, NULL, &call, now_ns(w, n));
    }
    answered(w, n, subject, cost, &answer, NULL, probe);
}

/* ---- ends of calls ---- */

void asked_replied(struct world *w, struct message *m, const struct store_reply *reply)
{
    struct lease_flight *f = &m->call.lease;
    struct subject *s = &w->subjects[m->subject];
    struct asked *a = asked_of(f->question);
    uint64_t now = now_ns(w, m->node);
    struct list ended;
    list_init(&ended);
    if (lease_reply(w->nodes[m->node].keys, &f->call, reply, now, a != NULL ? &a->answer : NULL) !=
        0) {
        world_fail(w, "node %u cannot read the reply to a lease call", m->node);
    }
    w->result->leases += reply->integers[SCRIPT_ANSWER_COUNT] > 0;
    s->q = max_u64(s->q, (uint64_t)reply->integers[SCRIPT_ANSWER_COUNT] + f->call.keep);
    lease_flight_end(&w->nodes[m->node].waits, f, true, now, &ended);
    if (a != NULL) {
        end(w, a, true, m);
    }
    end_all(w, &ended);
    check_spendable(w, m->subject, m->node);
}

void asked_lost(struct world *w, struct message *m)
{
    struct lease_flight *f = &m->call.lease;
    struct asked *a = asked_of(f->question);
    uint64_t now = now_ns(w, m->node);
    struct list ended;
    list_init(&ended);
    lease_lost(w->nodes[m->node].keys, &f->call, now);
    lease_flight_end(&w->nodes[m->node].waits, f, false, now, &ended);
    if (a != NULL) {
        end(w, a, false, NULL);
    }
    end_all(w, &ended);
}

void asked_tick(struct world *w, unsigned n)
{
    struct list ended;
    list_init(&ended);
    lease_waits_tick(&w->nodes[n].waits, now_ns(w, n), &ended);
    end_all(w, &ended);
}
