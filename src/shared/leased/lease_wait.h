/*
 * Questions of `leased` that wait for a call which is out already, and what is done with them when
 * it has ended (lease.h L8). Of one thread: a question waits for a call of its own thread's store,
 * and where another thread's is out it asks alone. No I/O and no clock.
 *
 * W1 A question that waits has been charged nothing. When the reply is here, those that waited are
 *    asked again in the order in which they came: out of what was granted, or denied as the store
 *    denied a cost that is not higher. The script ran while they waited, so that is true at a time
 *    between question and answer; or it ran so shortly before they came that anybody would be
 *    denied by it (lease.h: the memory of denials). The first of them that neither decides makes
 *    the next call, and the others wait for that.
 * W2 Waiting is for calls that help. One that decided a question and was of no use to the next
 *    (leases are smaller than what questions cost, or there are none) is the last: each of the
 *    others asks alone then, all at once, and not one behind the other.
 * W3 A question keeps its deadline: if it still waits then, on_failure decides, and nothing of it is
 *    out that could be charged later. It joins no call that is late (out for half of the time that
 *    it has, or for many times what calls took lately), and none if it would have no time for a call
 *    of its own afterwards: then it asks alone, once, by the deadline that it always had. But those
 *    who wait for a call that becomes late stay: a store that stands still would get a call of each
 *    when it goes on, and charge who has been answered.
 * W4 A call that was lost, or never sent, is lost or not sent for all who waited for it.
 * W5 At most LEASE_WAITING_MOST wait; beyond that, a question asks alone.
 */
#ifndef WEIR_SHARED_LEASED_LEASE_WAIT_H
#define WEIR_SHARED_LEASED_LEASE_WAIT_H

#include "redis/list.h"
#include "redis/timers.h"
#include "shared/leased/lease.h"

enum { LEASE_WAITING_MOST = 16384, LEASE_CHAINS = 256 };

enum lease_state { LEASE_OPEN, LEASE_DECIDED, LEASE_FAILED };

/* A question, until it has ended. */
struct lease_question {
    struct list node; /* of those that wait for a call, or have ended */
    struct timer timer;
    struct store_limit *limit; /* held by who asks, as the texts are his */
    struct text shard;
    struct text key;
    uint64_t cost;
    uint64_t deadline_ns;
    struct weir_answer *answer; /* for lease_ask() */
    enum lease_state state;
};

/* A call that is out. */
struct lease_flight {
    struct list node; /* of its chain */
    struct lease_call call;
    struct lease_question *question; /* that it decides; NULL: none */
    struct list waiting;
};

/* Makes a flight of the call, and sends it. With `q` by its deadline, without at leisure. Not 0: it
 * will not be made, and lease_unsent() was told so. Must not end anything before it returns. */
typedef int (*lease_send_fn)(void *arg, struct lease_question *q, const struct lease_call *call,
                             uint64_t now_ns);

struct lease_waits {
    struct leases *leases;
    lease_send_fn send;
    void *arg;
    struct timers timers;
    uint64_t took_ns; /* by calls, lately; 0: none was answered yet, and nobody waits */
    uint64_t count;   /* of those who wait */
    struct list chains[LEASE_CHAINS];
};

void lease_waits_init(struct lease_waits *w, struct leases *leases, lease_send_fn send, void *arg);

void lease_question_init(struct lease_question *q, struct store_limit *limit, struct text shard,
                         struct text key, uint64_t cost, uint64_t deadline_ns,
                         struct weir_answer *answer);

/* What lease_ask() has said of the question: LEASE_SEND or LEASE_WAIT. 0: it has an end to come. */
int lease_waits_take(struct lease_waits *w, struct lease_question *q, unsigned said,
                     struct lease_call *call, uint64_t now_ns);

/* `send` has sent it: from now on questions may wait for it. */
void lease_flight_begin(struct lease_waits *w, struct lease_flight *f, struct lease_question *q,
                        const struct lease_call *call);

/*
 * It has ended, and lease_reply() (`replied`), lease_lost() or lease_unsent() knows. Its own
 * question is the caller's. Who waited and has ended too, LEASE_DECIDED or LEASE_FAILED, goes to
 * the end of `ended`: all are decided before the first hears of it and may ask something new.
 */
void lease_flight_end(struct lease_waits *w, struct lease_flight *f, bool replied, uint64_t now_ns,
                      struct list *ended);

/* Those whose deadline is here have failed. */
void lease_waits_tick(struct lease_waits *w, uint64_t now_ns, struct list *ended);

static inline uint64_t lease_waits_due(const struct lease_waits *w)
{
    return w->count != 0 ? timers_due(&w->timers) : UINT64_MAX;
}

/* The next of those that have ended; NULL: no more. */
struct lease_question *lease_question_next(struct list *ended);

#endif
