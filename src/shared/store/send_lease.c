/* Sends the calls of leases, and answers the groups that wait for them. */
#include <stdlib.h>

#include "base/maths.h"
#include "shared/core/script.h"
#include "shared/store/store_question.h"

/* A call that has not ended. */
struct flight {
    struct lease_flight lease;
    struct store *store;
};

static struct group *group_of(struct lease_question *q)
{
    return q != NULL ? LIST_OF(q, struct group, lease) : NULL;
}

/* ---- the end of calls ---- */

/* Tells the questions that waited for a call. full: the store does not have the key and is full. */
static void tell(struct list *ended, bool full, uint64_t now_ns)
{
    struct lease_question *q;
    while ((q = lease_question_next(ended)) != NULL) {
        struct group *g = group_of(q);
        if (q->state == LEASE_DECIDED) {
            g->answer.limit = g->piece;
            group_answered(g, now_ns);
        } else if (full) {
            group_full(g, 1, now_ns);
        } else {
            group_failed(g, now_ns);
        }
    }
}

static bool end_call(struct node_keys *keys, const struct lease_call *call, enum client_end end,
                     const struct store_reply *reply, uint64_t now_ns, struct weir_answer *answer)
{
    if (end == CLIENT_REPLIED) {
        return lease_reply(keys, call, reply, now_ns, answer) == 0;
    }
    if (end == CLIENT_NOT_RUN) {
        lease_unsent(keys, call, now_ns);
    } else {
        lease_lost(keys, call, now_ns);
    }
    return false;
}

/* Ends a call. The group that made it is told first, then those that waited, in their order; all
 * are decided before the first is told (lease_flight_end()). */
static void on_lease(void *arg, enum client_end end, const struct store_reply *reply,
                     uint64_t now_ns)
{
    struct flight *f = arg;
    struct store *s = f->store;
    struct group *g = group_of(f->lease.question);
    struct list ended;
    uint64_t absent;
    bool full = end == CLIENT_REPLIED && script_says_full(reply, 1, &absent);
    list_init(&ended);
    bool replied = end_call(s->shared->keys, &f->lease.call, end, reply, now_ns,
                            g != NULL ? &g->answer : NULL);
    lease_flight_end(&s->waits, &f->lease, replied, now_ns, &ended);
    free(f);
    if (g != NULL && replied) {
        g->answer.limit = g->piece;
        g->stamp_us = (uint64_t)reply->integers[SCRIPT_ANSWER_STAMP];
        group_answered(g, now_ns);
    } else if (g != NULL && full) {
        group_full(g, absent, now_ns);
    } else if (g != NULL) {
        group_failed(g, now_ns);
    }
    tell(&ended, full, now_ns);
}

void send_lease_tick(struct store *s, uint64_t now_ns)
{
    struct list ended;
    list_init(&ended);
    lease_waits_tick(&s->waits, now_ns, &ended);
    tell(&ended, false, now_ns);
}

/* ---- sending ---- */

static int put(struct store *s, const struct lease_call *call, uint64_t deadline_ns,
               uint64_t now_ns, struct flight *f)
{
    if (f == NULL) {
        return WEIR_ENOMEM;
    }
    if (deadline_ns <= now_ns) {
        return WEIR_EIO; /* the question has waited too long */
    }
    struct client_call sent = {.slot = send_slot(s, store_key_text(&call->key)),
                               .script = lease_script(&store_scripts, call),
                               .creates = true,
                               .deadline_ns = deadline_ns};
    lease_put_arguments(call, send_fresh(s), &sent.count);
    return send_call(s, &sent, now_ns, on_lease, f);
}

/* lease_send_fn */
static int send_for(void *arg, struct lease_question *q, const struct lease_call *call,
                    uint64_t now_ns)
{
    struct store *s = arg;
    struct flight *f = malloc(sizeof *f);
    int e = put(s, call, q != NULL ? q->deadline_ns : send_unawaited(s, now_ns), now_ns, f);
    if (e != 0) {
        free(f);
        lease_unsent(s->shared->keys, call, now_ns);
        return e;
    }
    f->store = s;
    lease_flight_begin(&s->waits, &f->lease, q, call);
    return 0;
}

void send_lease_init(struct store *s)
{
    lease_waits_init(&s->waits, s->shared->keys, send_for, s);
}

void send_lease(struct store *s, const struct lease_call *call, uint64_t now_ns)
{
    (void)send_for(s, NULL, call, now_ns);
}

int send_leased(struct group *g, unsigned said, struct lease_call *call, uint64_t now_ns)
{
    struct store *s = g->of->store;
    const struct piece *p = &g->of->pieces[g->piece];
    lease_question_init(&g->lease, p->part, add_sat(now_ns, s->options.deadline_ns), &g->answer);
    return lease_waits_take(&s->waits, &g->lease, said, call, now_ns);
}
