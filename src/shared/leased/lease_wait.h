/*
 * Questions of `leased` that wait for a call which is out already, and what is done with them when
 * it has ended (lease.h L8). A struct lease_waits belongs to one thread: a question waits only for
 * a call of its own thread's store; if another thread's call is out, the question asks alone. There
 * is no I/O and no clock here.
 *
 * W1 A question that waits has been charged nothing. When the reply is here, the questions that
 *    waited are asked again in the order in which they came. They are allowed out of what was
 *    granted, or denied if the store denied a cost that is not higher. The script ran while they
 *    waited, so this answer is true at a time between question and answer; or it ran so shortly
 *    before they came that any question would be denied by it (lease.h: the memory of denials). The
 *    first question that is decided by neither makes the next call, and the others wait for that.
 * W2 Questions wait only for calls that help. If a call has decided its own question but is of no
 *    use to the next one (leases are smaller than what questions cost, or there are none), the
 *    others wait for no further call: each of them asks alone, all at once and not one after the
 *    other.
 * W3 A question keeps its deadline: if it still waits then, on_failure decides, and no call of its
 *    own is out that could be charged later. It joins no call that is late (out for half of the
 *    time that the question has left, or for many times what calls took lately), and none if it
 *    would have no time for a call of its own afterwards: then it asks alone, once, by the deadline
 *    that it always had. But questions that already wait for a call that becomes late go on
 *    waiting: otherwise a store that stands still would get a call from each of them when it goes
 *    on, and would charge for questions that have been answered by then.
 * W4 A call that was lost, or never sent, is lost or not sent for all questions that waited for it.
 * W5 At most LEASE_WAITING_MOST questions wait; beyond that, a question asks alone.
 */
#ifndef WEIR_SHARED_LEASED_LEASE_WAIT_H
#define WEIR_SHARED_LEASED_LEASE_WAIT_H

#include "redis/list.h"
#include "redis/timers.h"
#include "shared/leased/lease.h"

enum { LEASE_WAITING_MOST = 16384, LEASE_CHAINS = 256 };

enum lease_state { LEASE_OPEN, LEASE_DECIDED, LEASE_FAILED };

/* A question that has not ended. */
struct lease_question {
    struct list node; /* in the list of those that wait for a call, or of those that have ended */
    struct timer timer;
    const struct remote_part *of; /* the caller's */
    uint64_t deadline_ns;
    struct weir_answer *answer; /* for lease_ask() */
    enum lease_state state;
};

/* A call that is out. */
struct lease_flight {
    struct list node; /* in its chain */
    struct lease_call call;
    struct lease_question *question; /* the question that it decides; NULL: none */
    struct list waiting;
};

/* Makes a flight of the call, and sends it: by the deadline of `q`, or without hurry if `q` is
 * NULL. Returns 0, or an error if the call will not be made; lease_unsent() has then been called.
 * It must not end any question or call before it returns. */
typedef int (*lease_send_fn)(void *arg, struct lease_question *q, const struct lease_call *call,
                             uint64_t now_ns);

struct lease_waits {
    struct node_keys *keys;
    lease_send_fn send;
    void *arg;
    struct timers timers;
    uint64_t took_ns; /* what calls took lately; 0: none was answered yet, and no question waits */
    uint64_t count;   /* number of questions that wait */
    struct list chains[LEASE_CHAINS];
};

void lease_waits_init(struct lease_waits *w, struct node_keys *keys, lease_send_fn send, void *arg);

void lease_question_init(struct lease_question *q, const struct remote_part *of,
                         uint64_t deadline_ns, struct weir_answer *answer);

/* Does what lease_ask() has said (LEASE_SEND or LEASE_WAIT): sends the question's call, or lets it
 * wait for the call that is out. Returns 0 if the question will end later, or an error if no call
 * could be made for it. */
int lease_waits_take(struct lease_waits *w, struct lease_question *q, unsigned said,
                     struct lease_call *call, uint64_t now_ns);

/* Notes that `send` has sent the call: from now on questions may wait for it. */
void lease_flight_begin(struct lease_waits *w, struct lease_flight *f, struct lease_question *q,
                        const struct lease_call *call);

/*
 * Ends a call after lease_reply() (`replied`), lease_lost() or lease_unsent() was called for it.
 * The caller ends the call's own question. Appends the waiting questions that are now decided
 * (LEASE_DECIDED) or failed (LEASE_FAILED) to `ended`. Decides all of them before the caller calls
 * any callback, because a callback may ask again.
 */
void lease_flight_end(struct lease_waits *w, struct lease_flight *f, bool replied, uint64_t now_ns,
                      struct list *ended);

/* Puts the questions whose deadline is here into `ended`, as LEASE_FAILED. */
void lease_waits_tick(struct lease_waits *w, uint64_t now_ns, struct list *ended);

static inline uint64_t lease_waits_due(const struct lease_waits *w)
{
    return w->count != 0 ? timers_due(&w->timers) : UINT64_MAX;
}

/* Takes the next question out of `ended`. Returns NULL if there are no more. */
struct lease_question *lease_question_next(struct list *ended);

#endif
